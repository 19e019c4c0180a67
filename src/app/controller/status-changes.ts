import { operationHolder } from '../../api/names.ts'
import { isFinished, type Phase, type TargetPhase } from '../../api/phases.ts'
import type { Reason } from '../../api/reasons.ts'
import type { OperationStatus, TalosOperation } from '../../api/talos-operation.ts'

/** How a step ended: its machine went on, or failed in it, or was given back without it. */
export type StepEnd = 'done' | 'failed' | 'left'

/** What is worth counting when one status of an operation follows another. Times in milliseconds. */
export type StatusChange =
  | { readonly is: 'step'; readonly step: string; readonly end: StepEnd; readonly ms: number }
  | { readonly is: 'lock-taken'; readonly waitedMs: number | undefined }
  | { readonly is: 'failure'; readonly reason: Reason }
  | { readonly is: 'finished'; readonly phase: Phase; readonly ms: number | undefined }

/**
 * What happened between two statuses. A status is written by compare-and-swap and never forgotten, so whatever is counted by its changes is counted once,
 * however often the controller starts anew in between.
 */
export const statusChanges = (operation: TalosOperation, after: OperationStatus, now: number): readonly StatusChange[] => {
  const before = operation.status
  return [
    ...stepsEnded(before, after, now),
    ...lockTaken(operation, after, now),
    ...(after.lastFailure && after.lastFailure.at !== before.lastFailure?.at
      ? [{ is: 'failure', reason: after.lastFailure.reason } as const]
      : []),
    ...(after.phase && isFinished(after.phase) && !isFinished(before.phase)
      ? [{ is: 'finished', phase: after.phase, ms: since(after.startedAt, now) } as const]
      : []),
  ]
}

const LEFT: ReadonlySet<TargetPhase> = new Set(['Pending', 'Skipped', 'Cancelled'])

const stepsEnded = (before: OperationStatus, after: OperationStatus, now: number): readonly StatusChange[] => {
  const next = new Map((after.machines ?? []).map(machine => [machine.name, machine]))
  return (before.machines ?? []).flatMap((old): readonly StatusChange[] => {
    const machine = next.get(old.name)
    const ms = since(old.stepStartedAt, now)
    if (old.phase !== 'Running' || old.step === undefined || ms === undefined || machine === undefined) return []
    if (machine.phase === 'Running' && machine.step === old.step && machine.stepStartedAt === old.stepStartedAt) return []
    const end = machine.phase === 'Failed' ? 'failed' : LEFT.has(machine.phase) ? 'left' : 'done'
    return [{ is: 'step', step: old.step, end, ms }]
  })
}

/** The wait runs from when it asked for the lock: when its checks had passed, or when it was retried last. Unknown where neither is. */
const lockTaken = ({ metadata, status }: TalosOperation, after: OperationStatus, now: number): readonly StatusChange[] => {
  const own = operationHolder(metadata.namespace, metadata.name)
  if (after.lock?.holder !== own || after.phase !== 'Running') return []
  if (status.lock?.holder === own && status.failureReason !== 'ClusterLockHeld') return []
  const asked = [status.preflight?.underLock === false ? status.preflight.checkedAt : undefined, status.lastRetry].filter(
    time => time !== undefined,
  )
  return [{ is: 'lock-taken', waitedMs: since(asked.toSorted().at(-1), now) }]
}

const since = (time: string | undefined, now: number): number | undefined =>
  time === undefined ? undefined : Math.max(0, now - Date.parse(time))
