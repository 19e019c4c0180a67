import type { TalosOperation } from '../../api/talos-operation.ts'
import { targetsOf } from '../ledger.ts'
import { stateOf } from '../operation-state.ts'
import { summarize } from '../summary.ts'
import type { ClusterSight } from './cluster-sight.ts'
import { inNamespace } from './cluster-sight.ts'
import { type Finding, type Look, orFine, plural, seen, warning, wrong } from './look.ts'

/** Whether an operation stands still until a person does something, or left a machine half done. */
export const operations: Look<ClusterSight> = {
  name: 'operations',
  look: sight =>
    seen('Operations', sight.operations, all => {
      const open = all.filter(one => !over.has(stateOf(one)))
      return orFine(
        all.flatMap(one => [...standing(sight, one), ...halfDone(sight, one)]),
        open.length === 0
          ? 'None is open.'
          : `${plural(open.length, 'is', 'are')} open: ${open.map(({ metadata }) => metadata.name).join(', ')}.`,
      )
    }),
}

const over = new Set(['completed', 'cancelled', 'ended'])

const standing = (sight: ClusterSight, operation: TalosOperation): readonly Finding[] => {
  const { state, headline, name } = summarize(operation, sight.world.now)
  const see = { command: inNamespace(sight, `ichor operation get ${name}`) }
  switch (state) {
    case 'failed':
    case 'failing':
      return [
        wrong(`Operation ${name} waits for a person: ${headline}`, { remedy: 'Mend the cause; then resume it, or cancel it.', ...see }),
      ]
    case 'refused':
      return [
        warning(`Operation ${name} waits for a person: ${headline}`, { remedy: 'Mend the cause and resume it, or delete it.', ...see }),
      ]
    case 'paused':
      return [
        warning(`Operation ${name} waits for a person: ${headline}`, {
          remedy: 'Resume it, or cancel it.',
          command: inNamespace(sight, `ichor operation resume ${name}`),
        }),
      ]
    case 'pending':
      return sight.world.now - Date.parse(operation.metadata.creationTimestamp) < UNTOUCHED_MS
        ? []
        : [warning(`Operation ${name} has not been looked at: ${headline}`, { remedy: 'Is a controller at work?', ...see })]
    default:
      return []
  }
}

/** A controller takes an operation up within seconds. */
const UNTOUCHED_MS = 60_000

/** Past what cannot be undone, and not at work any more. */
const halfDone = (sight: ClusterSight, operation: TalosOperation): readonly Finding[] => {
  const { metadata, status } = operation
  if (status.phase !== 'Cancelled' && status.phase !== 'Completed') return []
  return targetsOf(status)
    .filter(target => (target.phase === 'Failed' || target.phase === 'Running') && target.committed !== undefined)
    .map(target =>
      wrong(`${target.hostname ?? target.name} was left half done by operation ${metadata.name} (${target.step ?? target.phase}).`, {
        remedy: 'Bring it to its end or undo it, then delete that operation. Operations of other kinds are refused before.',
        command: inNamespace(sight, `ichor operation get ${metadata.name}`),
      }),
    )
}
