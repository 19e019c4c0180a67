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
  for (const option of command.options) if (option.negate) notBoth(command, option)
}

/** `--plan` and `--no-plan` say the opposite of each other, and the last would win. */
const notBoth = (command: Command, no: Option): void => {
  const yes = command.options.find(option => !option.negate && option.attributeName() === no.attributeName())
  if (!yes) return
  const given = new Set<Option>()
  for (const option of [yes, no])
    command.on(`option:${option.name()}`, () => {
      if (given.add(option).size > 1) command.error(`error: options '${yes.flags}' and '${no.flags}' exclude each other`)
    })
}
