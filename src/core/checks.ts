import type { TalosOperation } from '../api/talos-operation.ts'
import { gateNeeds, gateNotes, gateRefusals } from './health-gates.ts'
import type { Checked, Kind } from './kind.ts'
import { repeated } from './repeated.ts'
import { startNeeds, startRefusals } from './start-guard.ts'
import { unfinishedByOthers } from './unfinished.ts'
import type { Need, World } from './world.ts'

/** What the checks before the first touch have to know: those of the kind, and those that every operation has. */
export const needsOfChecks = (kind: Kind, operation: TalosOperation, world: World): readonly Need[] => [
  ...kind.checkNeeds(operation, world),
  ...gateNeeds(world),
  ...startNeeds(kind, operation),
]

/** Everything that speaks against it, at once. */
export const checksOf = (kind: Kind, operation: TalosOperation, world: World): Checked => {
  const found = kind.checks(operation, world)
  return {
    ...found,
    refusals: [
      ...startRefusals(kind, operation, world),
      ...found.refusals,
      ...gateRefusals(world),
      ...unfinishedByOthers(operation, world),
      ...repeated(kind, operation, world),
    ],
    notes: [...found.notes, ...gateNotes(world)],
  }
}
