import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { processTerminal } from '../cli/terminal.ts'
import { endOf } from './end.ts'
import { titleLine } from './guide.ts'
import { DEMO_HELP, readOptions } from './options.ts'
import { createScreen } from './screen.ts'

/** Runs the demo until its end or a signal. Answers the exit code; everything that it started is gone by then. */
export const runDemo = async (argv: readonly string[]): Promise<number> => {
  const read = readOptions(argv)
  if (!read.ok) {
    process.stderr.write(`error: ${read.problem}\n  npm run demo -- --help shows the options.\n`)
    return 2
  }
  if (read.options === 'help') {
    process.stdout.write(DEMO_HELP)
    return 0
  }
  const { options } = read
  const screen = createScreen(processTerminal())
  const { colors } = screen.terminal
  const undo: (() => unknown)[] = []
  const end = endOf()
  undo.push(end.close)

  const folder = mkdtempSync(join(tmpdir(), 'ichor-demo-'))
  let keepsFolder = false
  // Whatever ends the process: what is left of it is a folder at most, and not that.
  const removeFolder = () => keepsFolder || rmSync(folder, { recursive: true, force: true })
  process.once('exit', removeFolder)
  screen.say(titleLine(options, colors))
  screen.say()
  try {
    // Slow to load: the first line is there before.
    const { play } = await import('./play.ts')
    return await Promise.race([play({ options, screen, folder, undo, fail: end.fail, isOver: end.isOver }), end.came])
  } catch (error) {
    keepsFolder = existsSync(join(folder, 'controller.log'))
    screen.settle()
    screen.terminal.err(colors.red(`error: ${error instanceof Error ? error.message : String(error)}`))
    if (keepsFolder) screen.terminal.err(`  The files are kept: ${folder}`)
    return 1
  } finally {
    // What is still under way loses its ground now, and would complain.
    screen.close()
    for (const each of undo.toReversed()) await each()
    removeFolder()
  }
}
