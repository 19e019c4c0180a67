import type { TalosOperation } from '../api/talos-operation.ts'
import { ANNOTATION, LABEL, leaseName, operationHolder } from '../api/names.ts'
import { ms } from '../core/ledger.ts'
import { heldOperation, isHeldBy } from '../core/lock-claim.ts'
import type { Clock } from '../ports/clock.ts'
import type { Result } from '../ports/fault.ts'
import { ok } from '../ports/fault.ts'
import type { Home, Key, Lease, LeaseWrite } from '../ports/home.ts'
import { microTime } from './micro-time.ts'

/** The lock never expires; the Lease wants a number all the same. */
const FOR_EVER_SECONDS = 2_147_483_647

/** The lock as the server has it, or undefined where no Lease exists yet. */
export const readLock = async (home: Home, namespace: string, cluster: string): Promise<Result<Lease | undefined>> => {
  const found = await home.lease({ namespace, name: leaseName(cluster) })
  return found.ok || found.fault.kind !== 'notFound' ? found : ok(undefined)
}

/**
 * Compare-and-swap on the Lease that the decision was made on. Anybody else's write in between answers `conflict` or `alreadyExists`. `deeds`: what is
 * remembered of what the one did whose lock is taken over.
 */
export const takeLock = (
  home: Home,
  clock: Clock,
  seen: Lease | undefined,
  cluster: string,
  operation: TalosOperation,
  deeds?: string,
): Promise<Result<Lease>> => {
  // Never before the retry that it confirms, though that may have been written by another's clock.
  const time = microTime(Math.max(clock.now(), ms(operation.status.lastRetry)))
  const write: LeaseWrite = {
    holder: operationHolder(operation.metadata.namespace, operation.metadata.name),
    durationSeconds: FOR_EVER_SECONDS,
    acquireTime: seen && isHeldBy(seen, operation) ? seen.acquireTime : time,
    renewTime: time,
    transitions: seen && isHeldBy(seen, operation) ? seen.transitions : (seen?.transitions ?? -1) + 1,
    annotations: { ...remembering(seen?.annotations ?? {}, deeds), [ANNOTATION.holderUid]: operation.metadata.uid },
    labels: { [LABEL.cluster]: cluster },
  }
  return seen
    ? home.replaceLease(seen, write)
    : home.createLease({ namespace: operation.metadata.namespace, name: leaseName(cluster) }, write)
}

/**
 * Frees the lock of an operation that does not exist any more, which may have been deleted while no controller led. The Lease is read before the
 * operation, so that a namesake which has taken it since is never robbed. False where it could not be told.
 */
export const freeLock = async (home: Home, clock: Clock, cluster: Key): Promise<boolean> => {
  const lock = await readLock(home, cluster.namespace, cluster.name)
  if (!lock.ok) return false
  const holder = lock.value && heldOperation(lock.value.holder)
  if (!lock.value || !holder) return true
  const found = await home.operation(holder)
  if (found.ok || found.fault.kind !== 'notFound') return found.ok
  const freed = await releaseLock(home, clock, lock.value)
  return freed.ok || freed.fault.kind === 'conflict'
}

/** `deeds`: what is remembered of what its holder did. */
export const releaseLock = (home: Home, clock: Clock, lease: Lease, deeds?: string): Promise<Result<Lease>> => {
  const { [ANNOTATION.holderUid]: _, ...others } = lease.annotations
  const time = microTime(clock.now())
  return home.replaceLease(lease, { ...lease, holder: '', acquireTime: time, renewTime: time, annotations: remembering(others, deeds) })
}

/** What is remembered of one that does not hold the lock; whoever does keeps it. */
export const rememberDeeds = (home: Home, seen: Lease | undefined, cluster: Key, deeds: string): Promise<Result<Lease>> =>
  seen
    ? home.replaceLease(seen, { ...seen, annotations: remembering(seen.annotations, deeds) })
    : home.createLease(
        { namespace: cluster.namespace, name: leaseName(cluster.name) },
        {
          holder: '',
          durationSeconds: FOR_EVER_SECONDS,
          acquireTime: '',
          renewTime: '',
          transitions: 0,
          annotations: remembering({}, deeds),
          labels: { [LABEL.cluster]: cluster.name },
        },
      )

const remembering = (annotations: Lease['annotations'], deeds: string | undefined): Lease['annotations'] =>
  deeds === undefined ? annotations : { ...annotations, [ANNOTATION.deeds]: deeds }
