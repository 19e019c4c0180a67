import type { TalosOperation } from '../api/talos-operation.ts'
import { ANNOTATION, CONTROLLER, operationHolder } from '../api/names.ts'
import { isFinished } from '../api/phases.ts'
import type { Lease } from '../ports/home.ts'
import { isStopped, ms, openTargets } from './ledger.ts'
import type { World } from './world.ts'
import { displayName } from './world.ts'

/** Whether the Lease names this very operation: the name alone could be a namesake's. */
export const isHeldBy = (lease: Lease | undefined, { metadata }: TalosOperation): boolean =>
  lease !== undefined &&
  lease.holder === operationHolder(metadata.namespace, metadata.name) &&
  lease.annotations[ANNOTATION.holderUid] === metadata.uid

/** The same of an operation that has ended, and holds nothing by right: where a hand has taken the UID off the Lease, its name is enough. */
export const isLeftWith = (lease: Lease | undefined, { metadata }: TalosOperation): boolean =>
  lease?.holder === operationHolder(metadata.namespace, metadata.name) &&
  (lease.annotations[ANNOTATION.holderUid] ?? metadata.uid) === metadata.uid

/** The Lease, where it names this very operation. */
export const ownLease = (lease: Lease | undefined, operation: TalosOperation): Lease | undefined =>
  isHeldBy(lease, operation) ? lease : undefined

/**
 * Whether the hold was written after the last retry. Somebody who saw the operation failed may be about to take the lock over; writing the Lease
 * once more after the failure is cleared makes that compare-and-swap fail, or ours.
 */
export const isConfirmed = (lease: Lease | undefined, { status }: TalosOperation): boolean =>
  lease !== undefined && (status.lastRetry === undefined || ms(lease.renewTime) >= ms(status.lastRetry))

export type Claim =
  /** The lock is free, or its holder has no right to it any more; `from` names that holder. */
  | { readonly may: 'take'; readonly from: string | undefined }
  /** `since` is empty where nobody knows. */
  | { readonly may: 'wait'; readonly holder: string; readonly since: string; readonly message: string }

/**
 * Whether an operation may take the cluster lock now. A lock never expires by time: it is taken over from a holder that was deleted, completed, was
 * cancelled, or is paused on a failed step, and from nobody else; who is none of ours is named and left alone. Of those who wait, one that has machines open (its Lease was deleted by hand) goes
 * first, and then the oldest.
 */
export const claim = (operation: TalosOperation, world: World): Claim => {
  const { lock } = world
  if (lock && lock.holder !== '') {
    const keeps = holderKeeps(lock, world)
    if (keeps)
      return {
        may: 'wait',
        holder: lock.holder,
        since: lock.acquireTime,
        message: `Waits for the cluster lock, held by ${lock.holder}: ${keeps}. It starts by itself.`,
      }
  }
  const first = world.others
    .filter(o => (waitsForLock(o) || hasOpenMachines(o)) && goesBefore(o, operation))
    .toSorted((a, b) => (goesBefore(a, b) ? -1 : 1))[0]
  if (first) {
    const name = operationHolder(first.metadata.namespace, first.metadata.name)
    const why = hasOpenMachines(first)
      ? `is working on ${openTargets(first.status).map(displayName).join(', ')}`
      : 'is older and goes first'
    return { may: 'wait', holder: name, since: '', message: `Waits for the cluster lock: ${name} ${why}. It starts by itself.` }
  }
  return { may: 'take', from: lock?.holder || undefined }
}

/** Who may hold the lock: an operation, a control plane that joins or is removed (its TalosMachine), or the Helm Job that follows the cluster's CNI. */
export type Holder = { readonly sort: 'op' | 'machine' | 'cni'; readonly namespace: string; readonly name: string }

/** Whom a holder identity names, if it is one of ours. */
export const holderNamed = (identity: string): Holder | undefined => {
  const [, sort, namespace, name] = new RegExp(`^${CONTROLLER}/(op|machine|cni)/([^/]+)/([^/]+)$`).exec(identity) ?? []
  return sort !== undefined && namespace !== undefined && name !== undefined ? { sort: sort as Holder['sort'], namespace, name } : undefined
}

/** The operation that a holder identity names, if it is one. */
export const heldOperation = (identity: string): Holder | undefined => {
  const holder = holderNamed(identity)
  return holder?.sort === 'op' ? holder : undefined
}

/** Who else holds the lock and is not to be robbed of it; undefined where nobody does. */
export const otherHolder = ({ metadata }: TalosOperation, world: World): string | undefined => {
  const { lock } = world
  if (!lock || lock.holder === '' || lock.holder === operationHolder(metadata.namespace, metadata.name)) return undefined
  return holderKeeps(lock, world) === undefined ? undefined : lock.holder
}

/** Why the holder keeps the lock, or undefined when it may be taken over. */
const holderKeeps = (lock: Lease, world: World): string | undefined => {
  const holder = holderNamed(lock.holder)
  if (!holder) return 'it is none of ours, so it is left alone'
  const uid = lock.annotations[ANNOTATION.holderUid]
  const isNamed = ({ metadata }: Pick<TalosOperation, 'metadata'>): boolean =>
    metadata.namespace === holder.namespace && metadata.name === holder.name
  if (holder.sort === 'op') return operationKeeps(world.others.find(isNamed), uid, lock.holder)
  // They give it back themselves when they are done; only what is gone cannot.
  const object = holder.sort === 'machine' ? world.machines.find(isNamed) : [world.cluster].find(isNamed)
  if (!object || (uid !== undefined && object.metadata.uid !== uid)) return undefined
  return holder.sort === 'machine' ? 'that control plane joins or is removed' : 'the Job of the CNI is at work'
}

/** The UID is the identity. Where a hand has taken it off the Lease, the operation itself says whether it holds the lock. */
const operationKeeps = (op: TalosOperation | undefined, uid: string | undefined, identity: string): string | undefined => {
  if (!op || (uid === undefined ? op.status.lock?.holder !== identity : op.metadata.uid !== uid)) return undefined
  const { status, spec } = op
  if (isFinished(status.phase)) return undefined
  if (spec.paused) return 'its operator paused it'
  const open = openTargets(status)
  if (isStopped(status)) return open.length > 0 ? `it failed and finishes ${open.map(displayName).join(', ')} first` : undefined
  const { message = 'it has just begun' } = status
  return message.replace(/\.$/, '')
}

/** It stands in the queue: checked and not stopped by anything but the lock. */
export const waitsForLock = ({ status, spec, metadata }: TalosOperation): boolean =>
  !spec.paused &&
  !spec.cancelled &&
  metadata.deletionTimestamp === undefined &&
  status.phase === 'Paused' &&
  status.failureReason === 'ClusterLockHeld'

const hasOpenMachines = ({ status }: TalosOperation): boolean => !isFinished(status.phase) && openTargets(status).length > 0

const goesBefore = (a: TalosOperation, b: TalosOperation): boolean =>
  hasOpenMachines(a) === hasOpenMachines(b) ? isOlder(a, b) : hasOpenMachines(a)

/** By creation time, then UID. */
export const isOlder = (a: TalosOperation, b: TalosOperation): boolean => {
  const [x, y] = [a.metadata, b.metadata]
  return x.creationTimestamp === y.creationTimestamp ? x.uid < y.uid : x.creationTimestamp < y.creationTimestamp
}
