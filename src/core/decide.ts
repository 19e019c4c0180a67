import type { OperationStatus, TalosOperation } from '../api/talos-operation.ts'
import { isFinished } from '../api/phases.ts'
import { ANNOTATION, leaseName } from '../api/names.ts'
import { durationMs } from '../api/duration.ts'
import type { Lease } from '../ports/home.ts'
import { isCommitted, targetNeeds } from './advance.ts'
import { closing } from './closing.ts'
import type { Decision, Told } from './decision.ts'
import { LONGEST_REST_MS, doneOf, hasFinalizer, holdsLock, isInTheMiddle, isUnguarded, look, record, rest, restUntil } from './decision.ts'
import { checksOf, isChecked, needsOfChecks } from './checks.ts'
import type { Kind } from './kind.ts'
import * as ledger from './ledger.ts'
import { claim, isConfirmed, isLeftWith, ownLease } from './lock-claim.ts'
import { begin, outsideWindow, rollingOut } from './rolling-out.ts'
import { deedsAfter, untoldDeeds } from './repeated.ts'
import { unsound, withoutFuture } from './sound.ts'
import { stageOf, stagesAfter, stagesOf } from './stages.ts'
import { unfinishedByOthers } from './unfinished.ts'
import type { World } from './world.ts'

/**
 * The one decision. Pure: asked twice about the same operation and world it answers twice the same.
 *
 * Read it from top to bottom as the life of an operation backwards: over, being taken back, stopped, queued, running.
 */
export const decide = (kind: Kind, operation: TalosOperation, world: World): Decision =>
  mended(kind, operation, world) ??
  afterTheEnd(kind, operation, world) ??
  regaining(kind, operation, world) ??
  takenBack(kind, operation, world) ??
  retryRequest(kind, operation, world) ??
  newlyCreated(operation, world) ??
  stopped(kind, operation, world) ??
  beforeTheLock(kind, operation, world) ??
  planning(kind, operation, world) ??
  rollingOut(kind, operation, world)

/** What stands in status is told apart from what can stand there. Throws where it can be neither believed nor found out anew. */
const mended = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  const why = unsound(kind, operation, world)
  if (why !== undefined)
    throw new Error(
      `${why}. The status was edited, or written by another version of Ichor: cancel this one and start another, which looks anew`,
    )
  const status = withoutFuture(operation, world.now)
  return status === operation.status ? undefined : record(operation, status)
}

/** Completed or cancelled: what it held is given back, and it goes when its time has come. */
const afterTheEnd = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  if (!isFinished(operation.status.phase)) return undefined
  if (isLeftWith(world.lock, operation)) {
    const deeds = deedsAfter(kind, operation, world)
    return deeds === undefined ? { do: 'release' } : { do: 'release', deeds }
  }
  if (hasFinalizer(operation)) {
    const deeds = untoldDeeds(kind, operation, world)
    return deeds === undefined ? { do: 'drop-finalizer' } : { do: 'remember', deeds }
  }
  if (operation.metadata.annotations[ANNOTATION.retry] === 'true') return { do: 'drop-retry', status: undefined }
  const ttl = operation.spec.ttlAfterFinished
  if (ttl !== undefined && operation.status.completedAt === undefined)
    return record(operation, { ...operation.status, completedAt: ledger.iso(world.now) })
  if (ttl === undefined || operation.metadata.deletionTimestamp) return { do: 'rest' }
  const left = ledger.ms(operation.status.completedAt) + durationMs(ttl) - world.now
  return left <= 0 ? { do: 'delete' } : { do: 'rest', forMs: Math.min(left, LONGEST_REST_MS) }
}

/** It is to stop, but a machine is still carried to its end, for which the lock is needed: a Lease that was deleted by hand is taken again. */
const regaining = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  const { spec, status, metadata } = operation
  const isEnding = spec.cancelled || metadata.deletionTimestamp !== undefined
  const isStopping = isEnding || spec.paused || ledger.isStopped(status)
  const open = ledger.openTargets(status)
  if (!isStopping || open.length === 0 || holdsLock(operation, world)) return undefined
  const verdict = claim(operation, world)
  if (verdict.may !== 'take') return undefined
  const acquire = { do: 'acquire', takeOver: verdict.from } as const
  if (isEnding) return acquire
  if (status.failureReason !== 'UnfinishedOperation') return leftByOthers(operation, world) ?? acquire
  // What is not half done is closed without it: whoever left a machine half done may be about to go on.
  const missing = look(world, open.flatMap(targetNeeds))
  const stage = stageOf(kind, operation)
  return missing ?? (open.some(target => isCommitted(stage, { operation, target, world })) ? acquire : undefined)
}

/**
 * One that was planned is not checked again when it gets the lock back. Machines that somebody else of another kind has left half done since are none
 * that it may go on over: it brings its own to their end, and stands there until that one has finished.
 */
const leftByOthers = (operation: TalosOperation, world: World): Decision | undefined => {
  const left = operation.status.machines === undefined ? [] : unfinishedByOthers(operation, world)
  if (left.length === 0) return undefined
  const message = [...left.map(refusal => refusal.message), 'Then resume this one.'].join(' ')
  return record(operation, ledger.failed(operation.status, world.now, undefined, 'UnfinishedOperation', message), {
    type: 'Warning',
    reason: 'UnfinishedOperation',
    message,
  })
}

/** It got the lock only to bring its own machines to their end, after it had stopped for what somebody else left. */
const isBorrowed = ({ status }: TalosOperation, lock: Lease | undefined): boolean =>
  lock !== undefined && status.failureReason === 'UnfinishedOperation' && ledger.ms(lock.acquireTime) >= ledger.ms(status.lastFailure?.at)

/** Cancelled or deleted: every open machine is brought to a safe point first. */
const takenBack = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  const deleted = operation.metadata.deletionTimestamp !== undefined
  if (!operation.spec.cancelled && !deleted) return undefined
  const left = operation.status.machines === undefined ? [] : stagesAfter(kind, operation).map(stage => stage.name)
  const message = `${deleted ? 'Deleted' : 'Cancelled'} at a safe point; ${doneOf(operation.status)}.${left.length > 0 ? ` Not begun: ${left.join(', ')}.` : ''}`
  return (
    closing(stageOf(kind, operation), operation, world, { why: deleted ? 'deleted' : 'cancelled', phase: 'Cancelled' }) ??
    record(operation, ledger.cancelled(operation.status, world.now, message), { type: 'Normal', reason: 'Cancelled', message })
  )
}

/** The annotation `retry=true` counts once, and only while something has failed. Any other value is nobody's request. */
const retryRequest = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  if (operation.metadata.annotations[ANNOTATION.retry] !== 'true') return undefined
  const { status } = operation
  const stuck = status.phase === 'Paused' && status.failureReason !== undefined && status.failureReason !== 'ClusterLockHeld'
  const manager = operation.metadata.retryAppliedBy
  // A wish that stands in somebody's manifests was honoured: each later apply of it is taken away, and told once.
  if (manager !== undefined && status.appliedRetry) {
    const warning: Told = {
      type: 'Warning',
      reason: 'RetryIgnored',
      message: `The annotation ${ANNOTATION.retry} was applied again by ${manager}. It was honoured once, at ${status.appliedRetry.at}; take it out of the manifest and ask with kubectl annotate or ichor operation resume.`,
    }
    return {
      do: 'drop-retry',
      status: ledger.retryIgnored(status, status.appliedRetry),
      ...(status.appliedRetry.ignored === 0 ? { event: warning } : {}),
    }
  }
  if (!stuck) return { do: 'drop-retry', status: undefined }
  if (operation.spec.paused) return undefined
  return {
    do: 'drop-retry',
    status: checkedAnew(
      status,
      ledger.retried(status, world.now, { byApply: manager !== undefined, inPlace: stageOf(kind, operation).retriesInPlace === true }),
    ),
    event: { type: 'Normal', reason: 'Retrying', message: `Retrying after ${status.failureReason}.` },
  }
}

/** What is checked anew after it was planned stays pinned to what it was: the machines that are left must not get something else than those before. */
const checkedAnew = ({ machines, preflight }: OperationStatus, now: OperationStatus): OperationStatus =>
  now.preflight === undefined && machines !== undefined && preflight?.pins !== undefined
    ? { ...now, preflight: { ...preflight, underLock: false } }
    : now

const newlyCreated = (operation: TalosOperation, world: World): Decision | undefined =>
  operation.status.phase === undefined
    ? record(operation, ledger.accepted(operation.status, world.now), {
        type: 'Normal',
        reason: 'Accepted',
        message: 'The checks are running.',
      })
    : undefined

/** Failed, refused, or paused by its operator. */
const stopped = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  const { status, spec } = operation
  const failure = status.phase === 'Paused' && status.failureReason !== 'ClusterLockHeld' ? status.failureReason : undefined
  // What has a machine in the middle was never refused: a status that says so is a failed one.
  if (failure === 'PreflightRefused' && !isInTheMiddle(status)) {
    const overridden = spec.override && ledger.standingRefusals(status).some(r => r.overridable)
    if (overridden && !spec.paused) return record(operation, checkedAnew(status, ledger.uncheck(status, world.now)))
    return holdsLock(operation, world) ? { do: 'release' } : isUnguarded(kind, operation) ? { do: 'drop-finalizer' } : { do: 'rest' }
  }
  if (failure !== undefined) {
    const lost = !holdsLock(operation, world) && status.lock !== undefined ? record(operation, ledger.lockLost(status)) : undefined
    const left = closing(stageOf(kind, operation), operation, world, { why: 'stopped by a failure', phase: 'Pending' })
    if (left && left.do !== 'rest') return left
    return (
      (isBorrowed(operation, ownLease(world.lock, operation)) ? ({ do: 'release' } as const) : undefined) ??
      lost ??
      left ??
      (isUnguarded(kind, operation) ? { do: 'drop-finalizer' } : { do: 'rest' })
    )
  }
  if (!spec.paused)
    return status.phase === 'Paused' && status.failureReason === undefined
      ? record(operation, { ...status, phase: ledger.targetsOf(status).length > 0 ? 'Running' : 'Pending', message: 'Resumed.' })
      : undefined
  const left = closing(stageOf(kind, operation), operation, world, { why: 'paused', phase: 'Pending' })
  if (left && left.do !== 'rest') return left
  if (!left && isUnguarded(kind, operation)) return { do: 'drop-finalizer' }
  const told = ledger.pausedByOperator(status, world.now, pausedMessage(operation, world), holdsLock(operation, world))
  return rest(operation, told, left?.forMs)
}

const pausedMessage = (operation: TalosOperation, world: World): string => {
  const { status } = operation
  if (holdsLock(operation, world)) return `Paused by the operator; ${doneOf(status)}. The cluster lock is kept.`
  return status.machines === undefined
    ? 'Paused by the operator before it started.'
    : `Paused by the operator; ${doneOf(status)}. It does not hold the cluster lock.`
}

/** Everything up to holding the cluster lock. */
const beforeTheLock = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  const lock = ownLease(world.lock, operation)
  if (lock) {
    if (!isConfirmed(lock, operation)) return { do: 'acquire', takeOver: undefined }
    const { lock: told, phase } = operation.status
    const isTold = told?.holder === lock.holder && (lock.acquireTime === '' || told.since === lock.acquireTime)
    if (isTold && phase === 'Running') return undefined
    const status = ledger.lockTaken(operation.status, world.now, {
      lease: leaseName(world.cluster.metadata.name),
      holder: lock.holder,
      since: lock.acquireTime || ledger.iso(world.now),
    })
    return record(operation, status, { type: 'Normal', reason: 'LockTaken', message: 'Took the cluster lock.' })
  }
  // The lock is gone from under it, a Lease deleted or edited by hand: what runs without it ends.
  const [running] = world.running
  if (running) return { do: 'cancel-act', target: running.target, step: running.step }
  const early = operation.status.machines === undefined ? tooEarly(operation, world) : undefined
  if (early) return early
  if (!isChecked(operation.status)) return check(kind, operation, world)
  const verdict = claim(operation, world)
  if (verdict.may === 'take') return leftByOthers(operation, world) ?? { do: 'acquire', takeOver: verdict.from }
  const status = ledger.queued(
    operation.status,
    world.now,
    { lease: leaseName(world.cluster.metadata.name), holder: verdict.holder, ...(verdict.since ? { since: verdict.since } : {}) },
    verdict.message,
  )
  return rest(operation, status, world.timing.idleMs)
}

/** `startAfter` and the maintenance windows: nothing new is begun outside them, nor while machines are still to be seen. */
const tooEarly = (operation: TalosOperation, world: World): Decision | undefined => {
  const start = operation.spec.startAfter === undefined ? 0 : ledger.ms(operation.spec.startAfter)
  if (start > world.now) return waitToStart(operation, world, `Starts at ${operation.spec.startAfter}.`, start)
  if (isUnseen(world))
    return rest(
      operation,
      ledger.held(
        operation.status,
        world.now,
        `Waits until the machines of TalosCluster ${world.cluster.metadata.name} are discovered.`,
        undefined,
      ),
      world.timing.idleMs,
    )
  const closed = outsideWindow(operation, world)
  return closed ? waitToStart(operation, world, closed.message, closed.opensAt) : undefined
}

/** Nobody has looked at the cluster yet, which may be as new as the operation; or it has machines, and the list of them is older. */
const isUnseen = ({ machines, cluster: { status } }: World): boolean =>
  machines.length === 0 && (status.conditions === undefined || (status.machines?.total ?? 0) > 0)

const waitToStart = (operation: TalosOperation, world: World, message: string, until: number | undefined): Decision =>
  rest(operation, ledger.held(operation.status, world.now, message, until), restUntil(until, world.now))

/** Runs the checks and writes what they found. Standing refusals end the attempt; nothing was touched and no lock is kept. */
const check = (kind: Kind, operation: TalosOperation, world: World): Decision => {
  const missing = look(world, needsOfChecks(kind, operation, world))
  if (missing) return missing
  const found = checksOf(kind, operation, world)
  const pinned = operation.status.machines === undefined ? undefined : operation.status.preflight?.pins
  const checked = pinned === undefined ? found : { ...found, pins: { ...found.pins, ...pinned } }
  const status = ledger.checked(operation.status, world.now, checked, {
    override: operation.spec.override,
    underLock: holdsLock(operation, world),
  })
  const standing = ledger.standingRefusals(status)
  if (standing.length > 0) {
    const refused = ledger.refused(status, world.now)
    return record(operation, refused, { type: 'Warning', reason: 'PreflightRefused', message: refused.message })
  }
  const passed = checked.refusals.filter(r => r.overridable)
  const told = operation.status.preflight?.refusals.filter(r => r.overridden).map(r => r.rule) ?? []
  if (passed.every(r => told.includes(r.rule))) return record(operation, status)
  const who =
    operation.metadata.annotations[ANNOTATION.overrideBy] ??
    operation.metadata.annotations[ANNOTATION.requestedBy] ??
    'somebody who is not named'
  return record(operation, status, {
    type: 'Warning',
    reason: 'Overridden',
    message: `${who} overrode ${passed.map(r => r.rule).join(', ')}.`,
  })
}

/** With the lock in hand: the checks once more, then the order is chosen and frozen. What was refused after that is checked, and goes on. */
const planning = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  const { status } = operation
  if (status.machines !== undefined && (isChecked(status) || ledger.openTargets(status).length > 0)) return undefined
  if (!isChecked(status) || status.preflight?.underLock !== true) return check(kind, operation, world)
  const [first, ...others] = stagesOf(kind, operation)
  // What else the kind can do, a reset among it, would frighten whoever reads of a reboot.
  const what = others.length === 0 && kind.stages.length > 1 ? first?.summary : kind.summary
  return begin(kind, stageOf(kind, operation), operation, world, {
    type: 'Normal',
    reason: 'Started',
    message: `${what} Checks passed and the cluster lock is held.`,
  })
}
