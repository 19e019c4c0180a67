import type { TalosOperation } from '../api/talos-operation.ts'
import { ANNOTATION, CONTROLLER, operationHolder } from '../api/names.ts'
import { isFinished } from '../api/phases.ts'
import { isStopped, openTargets } from './ledger.ts'
import type { World } from './world.ts'
import { displayName } from './world.ts'

export type Claim =
  /** The lock is free, or its holder has no right to it any more; `from` names that holder. */
  | { readonly may: 'take'; readonly from: string | undefined }
  | { readonly may: 'wait'; readonly holder: string; readonly since: string | undefined; readonly message: string }

/**
 * Whether an operation may take the cluster lock now. A lock never expires by time: it is taken over from a holder that was deleted, completed, was
 * cancelled, or is paused on a failed step, and from nobody else. Of those who wait, the oldest goes first.
 */
export const claim = (operation: TalosOperation, world: World): Claim => {
  const waiters = world.others.filter((o) => waits(o) && isOlder(o, operation))
  const first = waiters.toSorted((a, b) => (isOlder(a, b) ? -1 : 1))[0]
  const { lock } = world
  if (lock && lock.holder !== '') {
    const keeps = holderKeeps(lock.holder, lock.annotations[ANNOTATION.holderUid], world)
    if (keeps) return { may: 'wait', holder: lock.holder, since: lock.acquireTime || undefined, message: `Waits for the cluster lock, held by ${lock.holder}: ${keeps}. It starts by itself.` }
  }
  if (first) {
    const name = operationHolder(first.metadata.namespace, first.metadata.name)
    return { may: 'wait', holder: name, since: undefined, message: `Waits for the cluster lock: ${name} is older and goes first. It starts by itself.` }
  }
  return { may: 'take', from: lock?.holder || undefined }
}

/** Why the holder keeps the lock, or undefined when it may be taken over. */
const holderKeeps = (holder: string, uid: string | undefined, world: World): string | undefined => {
  const match = new RegExp(`^${CONTROLLER}/op/([^/]+)/([^/]+)$`).exec(holder)
  if (!match) return 'it is not one of our operations, so it is left alone'
  const op = world.others.find((o) => o.metadata.namespace === match[1] && o.metadata.name === match[2])
  if (!op || op.metadata.uid !== uid) return undefined
  const { status, spec } = op
  if (isFinished(status.phase)) return undefined
  if (spec.paused) return 'its operator paused it'
  const open = openTargets(status)
  if (isStopped(status)) return open.length > 0 ? `it failed and finishes ${open.map(displayName).join(', ')} first` : undefined
  return status.message ?? status.phase ?? 'it has just begun'
}

/** It stands in the queue: checked and not stopped by anything but the lock. */
const waits = ({ status, spec, metadata }: TalosOperation): boolean =>
  !spec.paused && !spec.cancelled && metadata.deletionTimestamp === undefined && status.phase === 'Paused' && status.failureReason === 'ClusterLockHeld'

const isOlder = (a: TalosOperation, b: TalosOperation): boolean => {
  const [x, y] = [a.metadata, b.metadata]
  return x.creationTimestamp === y.creationTimestamp ? x.uid < y.uid : x.creationTimestamp < y.creationTimestamp
}
