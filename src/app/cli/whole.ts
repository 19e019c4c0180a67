import { kinds } from '../../kinds/registry.ts'
import { failed } from '../../ports/fault.ts'
import { startCommands } from './commands/upgrade.ts'
import { runCli } from './main.ts'
import { realOutside } from './outside.ts'

/** All commands, with the kinds. */
export const runWhole = (argv: readonly string[]): Promise<number> =>
  runCli(
    argv,
    realOutside(kinds, () => Promise.resolve(failed('unsupported', 'this build cannot plan'))),
    startCommands,
  )
