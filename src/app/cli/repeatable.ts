import type { Command, Option } from 'commander'

const repeatable = new WeakSet<Option>()

/** The option may be given again and again: its values are gathered. */
export const mayRepeat = (option: Option): void => void repeatable.add(option)

/** Of two values for one thing the last would win in silence, and an empty one, from a variable that is not set, would be no choice at all. */
export const oneValueEach = (command: Command): void => {
  for (const option of command.options) {
    if ((!option.required && !option.optional) || repeatable.has(option)) continue
    let given: string | undefined
    command.on(`option:${option.name()}`, (value: string) => {
      if (value === '') command.error(`error: option '${option.flags}' has an empty value`)
      if (given !== undefined) command.error(`error: option '${option.flags}' takes one value, and was given ${given} and ${value}`)
      given = value
    })
  }
}
