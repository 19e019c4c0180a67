import type { TalosOperation } from '../api/talos-operation.ts'
import { ANNOTATION, FINALIZER } from '../api/names.ts'
import { isFinished } from '../api/phases.ts'
import type { Decision } from './decision.ts'
import { isInTheMiddle } from './decision.ts'
import type { Refusal } from './kind.ts'
import * as ledger from './ledger.ts'
import { displayName } from './world.ts'

/** Nothing of a cluster is needed for it. */
export type BlindDecision = Extract<Decision, { readonly do: 'rest' | 'record' | 'drop-finalizer' | 'drop-retry' }>

/** Nobody tells of a cluster that is there again, and what is half done, or held, should not wait for a person then. */
const LOOK_AGAIN_MS = 60_000

/**
 * What follows when nothing can be asked: the cluster that the operation names does not exist (or no longer), or its kind is unknown. It is refused, can
 * be retried, and, because nothing could be closed anyhow, it can always be cancelled and deleted.
 */
export const decideBlindly = (operation: TalosOperation, refusal: Refusal, now: number): BlindDecision => {
  const { spec, status, metadata } = operation
  if (isFinished(status.phase)) return metadata.finalizers.includes(FINALIZER) ? { do: 'drop-finalizer' } : { do: 'rest' }
  if (spec.cancelled || metadata.deletionTimestamp !== undefined) {
    const open = ledger.openTargets(status)
    const left = open.length > 0 ? ` ${open.map(displayName).join(', ')} could not be closed.` : ''
    return { do: 'record', status: ledger.cancelled(status, now, `Ended without a look at its machines. ${refusal.message}${left}`) }
  }
  // Machines that are open are half done, which is no refusal: it is told as what it is, and goes on when the cluster is there again.
  const open = ledger.openTargets(status)
  if (open.length > 0) {
    if (metadata.annotations[ANNOTATION.retry] === 'true' && !spec.paused) return { do: 'drop-retry', status: undefined }
    if (status.failureReason === 'UnfinishedOperation') return { do: 'rest', forMs: LOOK_AGAIN_MS }
    const names = open.map(displayName).join(', ')
    const message = `${refusal.message} ${names} ${open.length === 1 ? 'is' : 'are'} half done and cannot be looked at. Create it again and resume, and what is open is carried to its end; or cancel.`
    return {
      do: 'record',
      status: ledger.failed(status, now, undefined, 'UnfinishedOperation', message),
      event: { type: 'Warning', reason: 'UnfinishedOperation', message },
    }
  }
  const event = { type: 'Warning', reason: 'PreflightRefused', message: refusal.message } as const
  // Nothing is tried again, so no retry is counted; a wish that stands in somebody's manifests is not answered each time.
  const asksInVain = metadata.annotations[ANNOTATION.retry] === 'true' && !spec.paused
  const dropRetry = { do: 'drop-retry', status: undefined, ...(metadata.retryAppliedBy === undefined ? { event } : {}) } as const
  // What it failed on, and what it took from that machine, is needed when the cluster is there again.
  if (ledger.isStopped(status) && isInTheMiddle(status)) return asksInVain ? dropRetry : { do: 'rest', forMs: LOOK_AGAIN_MS }
  // What people were told of it when it was checked stays told, and what its spec was pinned to when it was planned stays so.
  const { notes = [], pins = {} } = status.preflight ?? {}
  const kept = status.machines === undefined ? { notes } : { notes, pins }
  const refused = ledger.refused(
    ledger.checked(status, now, { found: {}, refusals: [refusal], ...kept }, { override: false, underLock: false }),
    now,
  )
  const isRefused =
    status.phase === 'Paused' &&
    status.failureReason === 'PreflightRefused' &&
    ledger.standingRefusals(status).some(r => r.rule === refusal.rule)
  if (!isRefused) return { do: 'record', status: refused, event }
  if (asksInVain) return dropRetry
  // It may hold the lock of its cluster, which can be given back only when that is there again.
  return { do: 'rest', forMs: LOOK_AGAIN_MS }
}
