import colors from 'picocolors'
import { ask } from './ask.ts'

export type Colors = ReturnType<typeof colors.createColors>

/** Where the CLI writes to and reads from. */
export type Terminal = {
  readonly out: (line: string) => void
  readonly err: (line: string) => void
  /** Standard output rewrites lines; else every line stays. */
  readonly isLive: boolean
  /** Somebody can be asked. */
  readonly canAsk: boolean
  readonly width: () => number
  readonly height: () => number
  readonly colors: Colors
  /** Unchanged, without a line's end: for escape sequences. */
  readonly raw: (text: string) => void
  readonly ask: (question: string) => Promise<string>
  /** Runs on Ctrl-C instead of the end of the process. The answer takes it back. */
  readonly onInterrupt: (run: () => void) => () => void
  readonly now: () => number
  /** Runs again and again. The answer stops it. */
  readonly every: (ms: number, run: () => void) => () => void
}

/** The process' own. A closed pipe (`ichor operation list | head -1`) ends it quietly. */
export const processTerminal = (): Terminal => {
  const { stdout, stderr } = process
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(0)
      throw error
    })
  }
  const isLive = stdout.isTTY === true && process.env['TERM'] !== 'dumb'
  return {
    out: line => void stdout.write(`${line}\n`),
    err: line => void stderr.write(`${line}\n`),
    raw: text => void stdout.write(text),
    isLive,
    // Touching standard input costs 10 ms, and most commands never do.
    get canAsk() {
      return process.stdin.isTTY === true && stderr.isTTY === true
    },
    width: () => stdout.columns || 120,
    height: () => stdout.rows || 40,
    colors: colors.createColors(hasColors(isLive, process.env)),
    ask: question => ask(question, process.stdin, stderr),
    onInterrupt: run => {
      process.on('SIGINT', run)
      return () => void process.removeListener('SIGINT', run)
    },
    now: Date.now,
    every: (ms, run) => {
      const timer = setInterval(run, ms)
      return () => clearInterval(timer)
    },
  }
}

// https://no-color.org: any value that is not empty.
const hasColors = (isLive: boolean, env: NodeJS.ProcessEnv): boolean => {
  if (env['NO_COLOR']) return false
  if (env['FORCE_COLOR'] && env['FORCE_COLOR'] !== '0') return true
  return isLive
}
