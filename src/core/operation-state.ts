import { ANNOTATION } from '../api/names.ts'
import { PHASES } from '../api/phases.ts'
import type { OperationStatus, TalosOperation } from '../api/talos-operation.ts'

/** What an operation looks like at a glance. Finer than a phase: what stands still must never look like what advances. */
export type State =
  /** No controller has answered it yet, or its checks run. */
  | 'pending'
  | 'running'
  /** It advances when the world does. */
  | 'waiting'
  /** It waits for the cluster lock and starts by itself. */
  | 'queued'
  /** It was asked to pause and carries a machine to its end first. */
  | 'pausing'
  /** A person paused it. */
  | 'paused'
  /** A step failed. */
  | 'failed'
  /** A step failed, and other machines that were open then are still carried to their end. */
  | 'failing'
  /** The checks refused it. */
  | 'refused'
  /** It was asked to go on; the controller has not taken that up yet. */
  | 'resuming'
  | 'cancelling'
  | 'deleting'
  | 'completed'
  | 'cancelled'
  /** It is over, in a way that a newer Ichor knows and this one does not. */
  | 'ended'

/** Whether nothing more will happen unless a person does something. */
export const isAtRest = (state: State): boolean =>
  state === 'completed' || state === 'cancelled' || state === 'ended' || state === 'failed' || state === 'refused'

const isTrue = ({ conditions }: OperationStatus, type: string): boolean =>
  conditions?.some(c => c.type === type && c.status === 'True') === true

/** Whether an end that this version has no word for is a good one. */
export const endedWell = ({ status }: TalosOperation): boolean => isTrue(status, 'Ready')

/** The state that spec, status and annotations add up to. */
export const stateOf = ({ metadata, spec, status }: TalosOperation): State => {
  const phase = status.phase ?? 'Pending'
  const hasOpen = (status.machines ?? []).some(m => m.phase === 'Running')
  if (phase === 'Completed') return 'completed'
  if (phase === 'Cancelled') return 'cancelled'
  // A phase that this version does not know may be an end: only the condition tells.
  if (!(phase in PHASES) && isTrue(status, 'Finished')) return 'ended'
  if (metadata.deletionTimestamp !== undefined) return 'deleting'
  if (spec.cancelled) return 'cancelling'
  if (phase === 'Paused') {
    const reason = status.failureReason
    if (reason === 'ClusterLockHeld') return spec.paused ? 'paused' : 'queued'
    if (reason !== undefined) {
      // A retry does not count before the operator's own pause is lifted.
      if (metadata.annotations[ANNOTATION.retry] === 'true' && !spec.paused) return 'resuming'
      if (reason === 'PreflightRefused') return 'refused'
      return hasOpen ? 'failing' : 'failed'
    }
    return spec.paused ? 'paused' : 'resuming'
  }
  if (spec.paused) return hasOpen ? 'pausing' : 'paused'
  if (phase === 'Pending') return 'pending'
  return status.waiting ? 'waiting' : 'running'
}
