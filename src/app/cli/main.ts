import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { basename } from 'node:path'
import { type Command, CommanderError } from 'commander'
import type { Shell } from './commands/command.ts'
import type { Exit } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'
import { program } from './program.ts'
import { choiceOf, type GlobalOptions, type Outside } from './session.ts'
import { type Hint, Stop } from './stop.ts'
import type { Terminal } from './terminal.ts'
import { typed } from './typed.ts'

/** Runs a command line (without node and script) and answers its exit code. Everything that goes wrong ends here as one line. */
export const runCli = async (argv: readonly string[], outside: Outside, start: (shell: Shell) => readonly Command[]): Promise<number> => {
  const { terminal, calledAs } = outside
  // Only in first place: behind a command it is rather a version to upgrade to.
  if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
    terminal.out(outside.version)
    return EXIT.ok.code
  }
  let exit: Exit = 'ok'
  const root = program(outside, start, ended => {
    exit = ended
  })
  writeHelpTo(root, terminal)
  const asData = wantsJson(argv)
  const failed = (code: Exit, message: string, hints: readonly string[] = []): number => {
    if (asData) terminal.err(JSON.stringify({ error: { reason: code, code: EXIT[code].code, message, hints } }))
    else {
      terminal.err(terminal.colors.red(`error: ${message}`))
      for (const hint of hints) terminal.err(`  ${hint}`)
    }
    return EXIT[code].code
  }
  try {
    await root.parseAsync([...argv], { from: 'user' })
    return EXIT[exit].code
  } catch (error) {
    if (error instanceof Stop) {
      const given = root.opts<GlobalOptions>()
      const where = given.namespace ? ` -n ${given.namespace}` : ''
      const told = (hint: Hint): string =>
        typeof hint === 'string' ? hint : `${hint.before} ${typed(`${hint.command}${where}`, calledAs, choiceOf(given))}`
      return failed(error.exit, error.message, error.hints.map(told))
    }
    if (error instanceof CommanderError) {
      // Help that was asked for is no error; help instead of a command is.
      if (error.exitCode === 0) return EXIT.ok.code
      if (error.code === 'commander.help') return EXIT.usage.code
      const [first = '', ...more] = error.message.split('\n').filter(Boolean)
      return failed('usage', first.replace(/^error: /, ''), [
        ...more,
        `${[calledAs, ...meant(root, argv)].join(' ')} --help shows what there is.`,
      ])
    }
    return failed('error', `a fault of Ichor itself: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  }
}

/** Whoever reads documents reads them of what went wrong, too. Asked of the words themselves: they may be what is wrong. */
const wantsJson = (argv: readonly string[]): boolean =>
  argv.some((word, i) => /^(-o=?|--output=)json$/.test(word) || ((word === '-o' || word === '--output') && argv[i + 1] === 'json'))

/** The names of the command that these words lead to, as far as there is one. */
const meant = (root: Command, argv: readonly string[]): string[] => {
  const names: string[] = []
  let command = root
  const options = [...root.options]
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? ''
    if (word.startsWith('-')) {
      if (options.some(option => (option.short === word || option.long === word) && option.required)) index++
      continue
    }
    const next = command.commands.find(one => one.name() === word || one.aliases().includes(word))
    if (!next) break
    command = next
    names.push(next.name())
    options.push(...next.options)
  }
  return names
}

const writeHelpTo = (command: Command, terminal: Terminal): void => {
  const width = () => Math.min(terminal.width(), 140)
  command.configureOutput({
    writeOut: text => terminal.out(text.replace(/\n$/, '')),
    writeErr: text => terminal.err(text.replace(/\n$/, '')),
    outputError: () => {},
    getOutHelpWidth: width,
    getErrHelpWidth: width,
  })
  for (const inner of command.commands) writeHelpTo(inner, terminal)
}

/** Throws Stop with the words of the file system. */
export const readUserFile = async (path: string): Promise<string> => {
  try {
    return path === '-' ? await text(process.stdin) : await readFile(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Stop(
      'error',
      code === 'ENOENT'
        ? `there is no file ${path}`
        : code === 'EISDIR'
          ? `${path} is a folder, not a file`
          : code === 'EACCES'
            ? `${path} may not be read`
            : `${path}: ${String(code)}`,
    )
  }
}

/** As kubectl's plugin the program has another file name. */
export const calledAsOf = (script: string): string => (basename(script).startsWith('kubectl-') ? 'kubectl ichor' : 'ichor')
