import type { Argument, Command, Option } from 'commander'
import type { Files } from './files.ts'
import { code, generatedFrom, page, table } from './markdown.ts'

export const cliPath = 'docs/reference/cli.md'

export type ExitCodes = Readonly<Record<string, { readonly code: number; readonly meaning: string }>>

/** Every command of the program with its arguments and options, and what the exit codes say. */
export const cliPage = (program: Command, exitCodes: ExitCodes | undefined): Files =>
  new Map([
    [
      cliPath,
      page(
        generatedFrom('src/app/cli'),
        `# ${program.name()}`,
        program.description(),
        ...(options(program).length === 0 ? [] : ['Every command takes:', optionTable(options(program))]),
        ...(exitCodes
          ? [
              '## Exit codes',
              table(
                ['Code', 'Meaning'],
                Object.values(exitCodes).map(exit => [String(exit.code), exit.meaning]),
              ),
            ]
          : []),
        '## Commands',
        ...program.commands.filter(isShown).flatMap(command => commandBlocks(command, program.name())),
      ),
    ],
  ])

// Commander keeps it to itself, but help shows what is not hidden.
const isShown = (command: Command): boolean => !(command as unknown as { _hidden?: boolean })._hidden && command.name() !== 'help'

const commandBlocks = (command: Command, parent: string): string[] => {
  const name = `${parent} ${command.name()}`
  const inner = command.commands.filter(isShown).flatMap(sub => commandBlocks(sub, name))
  // A group that does nothing by itself takes nothing.
  if (inner.length > 0 && options(command).length === 0) return inner
  const aliases = command.aliases()
  return [
    `### ${name}`,
    command.description() || command.summary(),
    '```\n' + `${name} ${command.usage()}`.trim() + '\n```',
    ...(aliases.length === 0 ? [] : [`Also as ${aliases.map(alias => code(`${parent} ${alias}`)).join(', ')}.`]),
    ...(command.registeredArguments.length === 0 ? [] : [table(['Argument', 'Meaning'], command.registeredArguments.map(argumentRow))]),
    ...(options(command).length === 0 ? [] : [optionTable(options(command))]),
    ...inner,
  ]
}

const options = (command: Command): readonly Option[] => command.options.filter(option => !option.hidden)

const optionTable = (all: readonly Option[]): string => table(['Option', 'Default', 'Meaning'], all.map(optionRow))

const optionRow = (option: Option): string[] => [
  code(option.flags),
  option.defaultValue === undefined || option.defaultValue === false
    ? ''
    : (option.defaultValueDescription ?? code(String(option.defaultValue))),
  withChoices(option.description, option.argChoices),
]

const argumentRow = (argument: Argument): string[] => [
  code(argument.required ? argument.name() : `[${argument.name()}]`),
  withChoices(argument.description, argument.argChoices),
]

const withChoices = (description: string, choices: readonly string[] | undefined): string =>
  choices ? `${description.replace(/\.?$/, '.')} One of ${choices.map(code).join(', ')}.` : description
