import { kinds } from '../../kinds/registry.ts'
import { failed } from '../../ports/fault.ts'
import { planHere } from '../plan.ts'
import { startCommands } from './commands/upgrade.ts'
import { runCli } from './main.ts'
import { kubeconfigOf, realOutside } from './outside.ts'
import type { Outside } from './session.ts'
import { version } from './version.ts'

/** All commands, with the kinds. `instead` replaces parts of the outside: the demo shows what the CLI says in its own way. */
export const runWhole = (argv: readonly string[], instead: Partial<Outside> = {}): Promise<number> =>
  runCli(argv, { ...realOutside(kinds, plan, instead.terminal), ...instead }, startCommands)

const plan: Outside['plan'] = async (operation, choice) => {
  const kind = kinds.find(one => one.name === operation.spec.kind)
  if (!kind) return failed('unsupported', `this program knows no kind ${operation.spec.kind}`)
  return planHere(kubeconfigOf(choice), `ichor/${version}`, kind, operation)
}
