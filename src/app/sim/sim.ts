import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { processTerminal } from '../cli/terminal.ts'
import { endOf } from '../demo/end.ts'
import { createScreen, type Screen } from '../demo/screen.ts'
import { SIM_HELP, readSimOptions } from './options.ts'

/** Runs simulated machines until a signal. Answers the exit code; everything that it started is gone by then. */
export const runSim = async (argv: readonly string[]): Promise<number> => {
  const read = readSimOptions(argv)
  if (!read.ok) {
    process.stderr.write(`error: ${read.problem}\n  ichor sim --help shows the options.\n`)
    return 2
  }
  if (read.options === 'help') {
    process.stdout.write(SIM_HELP)
    return 0
  }
  const screen: Screen = createScreen(processTerminal())
  const undo: (() => unknown)[] = []
  const end = endOf()
  undo.push(end.close)
  const folder = mkdtempSync(join(tmpdir(), 'ichor-sim-'))
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true })
  // Whatever ends the process.
  process.once('exit', removeFolder)
  try {
    // Slow to load: a wrong option is told before.
    const { startMachines } = await import('./machines.ts')
    await Promise.race([startMachines({ options: read.options, screen, folder, undo, fail: end.fail }), end.came])
    end.isOver()
    return await end.came
  } catch (error) {
    screen.terminal.err(screen.terminal.colors.red(`error: ${error instanceof Error ? error.message : String(error)}`))
    return 1
  } finally {
    screen.close()
    for (const each of undo.toReversed()) await each()
    removeFolder()
  }
}
