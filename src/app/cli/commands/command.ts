import { Command } from 'commander'
import type { Exit } from '../exit-codes.ts'
import type { Answer, GlobalOptions, Outside, Session } from '../session.ts'
import type { Resource } from '../../../adapters/kube/resource.ts'
import { bareName } from '../resource-types.ts'
import { openSession, wordFor } from '../session.ts'
import { Stop } from '../stop.ts'

/** What the builders of commands share: the outside, and where a command leaves how it ended. */
export type Shell = { readonly outside: Outside; readonly leave: (exit: Exit) => void }

/** A command's work with its arguments, its options and those of the program. Without an answer it ended well. */
export type Work<O> = (session: Session, args: readonly string[], options: O) => Promise<Answer>

/** Gives `command` its work: opens the session first, hands the end to the shell. `named`: what its first argument is the name of. */
export const works = <O>(command: Command, { outside, leave }: Shell, work: Work<O>, named?: Resource): Command => {
  if (named) firstArguments.set(command, named)
  return command.action(async () => {
    const options = command.optsWithGlobals<O & GlobalOptions>()
    const [first, ...rest] = command.processedArgs as string[]
    const args = first === undefined ? [] : [named ? bareName(named, first) : first, ...rest]
    // An empty name would be the list of all.
    if (named && args[0] === '') throw new Stop('usage', `${JSON.stringify(first)} names no ${wordFor(named)}`)
    leave((await work(await openSession(outside, options), args, options)) ?? 'ok')
  })
}

const firstArguments = new WeakMap<Command, Resource>()

/** What the first argument of a command is the name of, for who completes it. */
export const namedBy = (command: Command): Resource | undefined => firstArguments.get(command)

/** Lines below the options in a command's help, each as it would be typed. */
export const withExamples = (command: Command, { outside }: Shell, examples: readonly string[]): Command =>
  command.addHelpText('after', ['', 'Examples:', ...examples.map(example => `  ${outside.calledAs} ${example}`)].join('\n'))

/** A command that only has others below it: alone it shows its help, and that is a usage error. */
export const group = (name: string, description: string): Command => new Command(name).description(description)
