import type { OperationStatus, TalosOperation } from '../api/talos-operation.ts'
import { gateNeeds, gateNotes, gateRefusals } from './health-gates.ts'
import type { Checked, Kind } from './kind.ts'
import { standingRefusals } from './ledger.ts'
import { otherHolder } from './lock-claim.ts'
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

/** Whether its checks have passed. What was refused, and is asked again after it was planned, still has what it was pinned to. */
export const isChecked = (status: OperationStatus): boolean => status.preflight !== undefined && standingRefusals(status).length === 0

/** Rules about how machines are at the moment, and not about what is asked for. */
const PASSING: ReadonlySet<string> = new Set([
  'ConfigPending',
  'EtcdAlarm',
  'EtcdUnhealthy',
  'KubernetesUnreachable',
  'MachineNotReady',
  'MachineUnreachable',
  'NodeNotReady',
  'QuorumWouldBeLost',
  'StaticPodNotReady',
  'UnfinishedOperation',
])

/**
 * Everything that speaks against it, at once. While somebody else holds the cluster lock, machines are as they are by his doing, or may be: that is asked
 * again when the lock is there, because all checks are made once more under it.
 */
export const checksOf = (kind: Kind, operation: TalosOperation, world: World): Checked => {
  const found = kind.checks(operation, world)
  const refusals = [
    ...startRefusals(kind, operation, world),
    ...found.refusals,
    ...gateRefusals(world),
    ...unfinishedByOthers(operation, world),
    ...repeated(kind, operation, world),
  ]
  const notes = [...found.notes, ...gateNotes(world)]
  const holder = otherHolder(operation, world)
  const passing = holder === undefined ? [] : refusals.filter(({ rule }) => PASSING.has(rule))
  if (passing.length === 0) return { ...found, refusals, notes }
  const rules = [...new Set(passing.map(({ rule, machine }) => (machine === undefined ? rule : `${rule} (${machine})`)))]
  return {
    ...found,
    refusals: refusals.filter(refusal => !passing.includes(refusal)),
    notes: [...notes, `Asked again when ${holder} has given the cluster lock back: ${rules.join(', ')}.`],
  }
}
