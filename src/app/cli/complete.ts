import type { Command, Option } from 'commander'
import type { Resource } from '../../adapters/kube/resource.ts'
import { namedBy } from './commands/command.ts'
import { CLUSTER, MACHINE, NAMESPACE, OPERATION } from './resource-types.ts'

/** What may stand there, and what it is. */
export type Candidate = { readonly word: string; readonly about: string }

/** The names of the objects of a type, in the namespace and the cluster that the options so far name; empty where they cannot be had in time. */
export type Names = (type: Resource, options: Readonly<Record<string, string>>) => Promise<readonly string[]>

/** `words` as far as the cursor, without the program itself; the last one is the one to complete, often empty. */
export const complete = async (root: Command, words: readonly string[], names: Names): Promise<readonly Candidate[]> => {
  const current = words.at(-1) ?? ''
  const { command, positionals, pending, options } = walked(root, words.slice(0, -1))
  const starting = (candidates: readonly Candidate[]): readonly Candidate[] => candidates.filter(({ word }) => word.startsWith(current))
  const named = async (type: Resource | undefined): Promise<readonly Candidate[]> =>
    type ? starting((await names(type, options)).map(word => ({ word, about: '' }))) : []

  if (pending) return pending.argChoices ? starting(pending.argChoices.map(word => ({ word, about: '' }))) : named(typeOf(pending.name()))
  if (current.startsWith('-'))
    return starting(optionsOf(command).map(option => ({ word: option.long ?? option.short ?? '', about: option.description })))
  if (command.commands.length > 0 && positionals === 0) {
    const inner = starting(
      command
        .createHelp()
        .visibleCommands(command)
        .map(one => ({ word: one.name(), about: one.description() })),
    )
    // A group may also be a command with a name of its own.
    return [...inner, ...(await named(namedBy(command)))]
  }
  const argument = command.registeredArguments[positionals]
  if (argument?.argChoices) return starting(argument.argChoices.map(word => ({ word, about: '' })))
  return argument ? named((positionals === 0 ? namedBy(command) : undefined) ?? typeOf(argument.name())) : []
}

/** What an argument or a flag of that name takes the name of. */
const typeOf = (name: string): Resource | undefined =>
  ({ cluster: CLUSTER, confirm: CLUSTER, machine: MACHINE, namespace: NAMESPACE, operation: OPERATION })[name]

type Walked = {
  readonly command: Command
  /** How many words stand there that are arguments of it. */
  readonly positionals: number
  /** The option whose value is next. */
  readonly pending: Option | undefined
  /** Values of options so far, by their long names. */
  readonly options: Readonly<Record<string, string>>
}

const walked = (root: Command, words: readonly string[]): Walked => {
  let command = root
  let positionals = 0
  let pending: Option | undefined
  const options: Record<string, string> = {}
  for (const word of words) {
    if (pending) {
      options[pending.name()] = word
      pending = undefined
    } else if (word.startsWith('-')) {
      const [name = '', value] = word.split('=', 2)
      const option = optionsOf(command).find(({ short, long }) => name === short || name === long)
      if (option && value !== undefined) options[option.name()] = value
      else if (option?.required) pending = option
    } else {
      const inner = positionals === 0 ? command.commands.find(one => one.name() === word || one.aliases().includes(word)) : undefined
      if (inner) command = inner
      else positionals += 1
    }
  }
  return { command, positionals, pending, options }
}

/** Its own and those of the commands above it. */
const optionsOf = (command: Command): readonly Option[] => {
  const own = command.createHelp().visibleOptions(command)
  return command.parent ? [...own, ...optionsOf(command.parent).filter(({ long }) => !own.some(one => one.long === long))] : own
}
