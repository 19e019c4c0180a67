import { Argument, Command } from 'commander'
import type { Resource } from '../../../adapters/kube/resource.ts'
import { complete, type Names } from '../complete.ts'
import { COMPLETION_SCRIPTS } from '../completion-scripts.ts'
import { NAMESPACE } from '../resource-types.ts'
import { openSession } from '../session.ts'
import type { Shell } from './command.ts'
import { group, withExamples } from './command.ts'

/** From the key to the words, with the start of the program: a shell that stands still for longer is worse than one that knows no names. */
export const NAMES_WITHIN_MS = 200

export const completionCommand = ({ outside, leave }: Shell): Command => {
  const shells = Object.keys(COMPLETION_SCRIPTS)
  const command = group(
    'completion',
    'Write the script that lets a shell complete commands, flags, and names from the cluster',
  ).addArgument(new Argument('<shell>', 'the shell').choices(shells))
  command.action((shell: keyof typeof COMPLETION_SCRIPTS) => {
    outside.terminal.out(COMPLETION_SCRIPTS[shell].trimEnd())
    leave('ok')
  })
  return withExamples(command, { outside, leave }, ['completion bash > ~/.local/share/bash-completion/completions/ichor'])
}

/** What the scripts ask. Whatever goes wrong, it says nothing: nobody reads an error between two words of a command line. */
export const completeCommand = ({ outside, leave }: Shell): Command => {
  const command = new Command('__complete').argument('[words...]').allowUnknownOption().helpOption(false)
  return command.action(async (words: readonly string[]) => {
    const names: Names = (type, options) => within(NAMES_WITHIN_MS, namesOf(type, options))
    const found = await complete(command.parent ?? command, words, names).catch(() => [])
    for (const { word, about } of found) outside.terminal.out(about ? `${word}\t${about.split('\n', 1)[0]}` : word)
    leave('ok')
  })

  async function namesOf(type: Resource, options: Readonly<Record<string, string>>): Promise<readonly string[]> {
    const { api, namespace } = await openSession(outside, options)
    const table = await api.table(type, type === NAMESPACE ? undefined : namespace)
    return table.ok ? table.value.rows.map(({ object }) => object.metadata.name) : []
  }
}

const within = async (ms: number, asked: Promise<readonly string[]>): Promise<readonly string[]> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<readonly string[]>(resolve => {
    timer = setTimeout(() => resolve([]), ms)
  })
  try {
    return await Promise.race([asked.catch(() => []), late])
  } finally {
    clearTimeout(timer)
  }
}
