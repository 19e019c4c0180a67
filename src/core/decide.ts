import type { OperationStatus, TalosOperation, Target } from '../api/talos-operation.ts'
import { isFinished } from '../api/phases.ts'
import type { Reason } from '../api/reasons.ts'
import { ANNOTATION, FINALIZER, leaseName } from '../api/names.ts'
import { durationMs, formatDuration } from '../api/duration.ts'
import type { Act, Kind, Step } from './kind.ts'
import { YES } from './kind.ts'
import * as ledger from './ledger.ts'
import { claim, isConfirmed, isHeldBy } from './lock-claim.ts'
import { nextStep } from './steps.ts'
import { unfinishedByOthers } from './unfinished.ts'
import { windowAt } from './windows.ts'
import type { Need, View, World } from './world.ts'
import { displayName, isKnown, machineFacts, nodeFacts, nodeOf, stateOf } from './world.ts'

/** What one pass does. Exactly one thing, and then the world is looked at again. */
export type Decision =
  /** The answer needs facts that were not gathered yet. */
  | { readonly do: 'look'; readonly needs: readonly Need[] }
  /** A choice or an observation goes into status, and nothing else happens. */
  | { readonly do: 'record'; readonly status: OperationStatus; readonly event?: Told }
  /** The same, and then wait: for the time, or for a change that a watch tells of. */
  | { readonly do: 'wait'; readonly status: OperationStatus; readonly forMs: number }
  /** The intention (already in `status`) is written, then the act is done. */
  | { readonly do: 'act'; readonly status: OperationStatus; readonly view: View; readonly step: Step; readonly act: Act }
  | { readonly do: 'acquire'; readonly takeOver: string | undefined }
  | { readonly do: 'release' }
  | { readonly do: 'cancel-act'; readonly target: string; readonly step: string }
  | { readonly do: 'add-finalizer' }
  | { readonly do: 'drop-finalizer' }
  | { readonly do: 'drop-retry'; readonly status: OperationStatus | undefined; readonly event?: Told }
  | { readonly do: 'delete' }
  /** Nothing to do until something changes. */
  | { readonly do: 'rest'; readonly forMs?: number }

export type Told = { readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string }

/**
 * The one decision. Pure: asked twice about the same operation and world it answers twice the same.
 *
 * Read it from top to bottom as the life of an operation backwards: over, being taken back, stopped, queued, running.
 */
export const decide = (kind: Kind, operation: TalosOperation, world: World): Decision =>
  afterTheEnd(operation, world) ??
  takenBack(kind, operation, world) ??
  retryRequest(operation, world) ??
  newlyCreated(operation, world) ??
  stopped(kind, operation, world) ??
  beforeTheLock(kind, operation, world) ??
  planning(kind, operation, world) ??
  rollingOut(kind, operation, world)

const record = (operation: TalosOperation, status: OperationStatus, event?: Told): Decision =>
  event ? { do: 'record', status, event } : { do: 'record', status }

const holdsLock = (operation: TalosOperation, world: World): boolean => isHeldBy(world.lock, operation)

/** Timers reach so far; whatever lies further off is looked at again on the way. */
const LONGEST_REST_MS = 3_600_000

const hasFinalizer = (operation: TalosOperation): boolean => operation.metadata.finalizers.includes(FINALIZER)

const look = (world: World, needs: readonly Need[]): Decision | undefined => {
  const missing = needs.filter((n) => !isKnown(world.facts, n))
  return missing.length > 0 ? { do: 'look', needs: missing } : undefined
}

/** Completed or cancelled: what it held is given back, and it goes when its time has come. */
const afterTheEnd = (operation: TalosOperation, world: World): Decision | undefined => {
  if (!isFinished(operation.status.phase)) return undefined
  if (holdsLock(operation, world)) return { do: 'release' }
  if (hasFinalizer(operation)) return { do: 'drop-finalizer' }
  if (operation.metadata.annotations[ANNOTATION.retry] === 'true') return { do: 'drop-retry', status: undefined }
  const ttl = operation.spec.ttlAfterFinished
  if (ttl === undefined || operation.metadata.deletionTimestamp) return { do: 'rest' }
  const left = ledger.ms(operation.status.completedAt) + durationMs(ttl) - world.now
  return left <= 0 ? { do: 'delete' } : { do: 'rest', forMs: Math.min(left, LONGEST_REST_MS) }
}

/** Cancelled or deleted: every open machine is brought to a safe point first. */
const takenBack = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  const deleted = operation.metadata.deletionTimestamp !== undefined
  if (!operation.spec.cancelled && !deleted) return undefined
  const why = deleted ? 'deleted' : 'cancelled'
  return (
    closing(kind, operation, world, { why, phase: 'Cancelled' }) ??
    record(operation, ledger.cancelled(operation.status, world.now, `${deleted ? 'Deleted' : 'Cancelled'} at a safe point; ${doneOf(operation.status)}.`), {
      type: 'Normal',
      reason: 'Cancelled',
      message: `Stopped at a safe point because it was ${why}; ${doneOf(operation.status)}.`,
    })
  )
}

const doneOf = (status: OperationStatus): string => `${status.progress?.done ?? 0} of ${status.progress?.total ?? 0} machines were done`

/** The annotation `retry=true` counts once, and only while something has failed. Any other value is nobody's request. */
const retryRequest = (operation: TalosOperation, world: World): Decision | undefined => {
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
    return { do: 'drop-retry', status: ledger.retryIgnored(status), ...(status.appliedRetry.ignored === 0 ? { event: warning } : {}) }
  }
  if (!stuck) return { do: 'drop-retry', status: undefined }
  if (operation.spec.paused) return undefined
  return {
    do: 'drop-retry',
    status: ledger.retried(status, world.now, manager !== undefined),
    event: { type: 'Normal', reason: 'Retrying', message: `Retrying after ${status.failureReason}.` },
  }
}

const newlyCreated = (operation: TalosOperation, world: World): Decision | undefined =>
  operation.status.phase === undefined ? record(operation, ledger.accepted(operation.status, world.now), { type: 'Normal', reason: 'Accepted', message: 'The checks are running.' }) : undefined

/** Failed, refused, or paused by its operator. */
const stopped = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  const { status, spec } = operation
  const failure = status.phase === 'Paused' && status.failureReason !== 'ClusterLockHeld' ? status.failureReason : undefined
  if (failure === 'PreflightRefused') {
    const overridden = spec.override && ledger.standingRefusals(status).some((r) => r.overridable)
    if (overridden && !spec.paused) return record(operation, ledger.uncheck(status, world.now))
    return holdsLock(operation, world) ? { do: 'release' } : hasFinalizer(operation) ? { do: 'drop-finalizer' } : { do: 'rest' }
  }
  if (failure !== undefined) {
    const lost = !holdsLock(operation, world) && status.lock !== undefined ? record(operation, ledger.lockLost(status)) : undefined
    return closing(kind, operation, world, { why: 'stopped by a failure', phase: 'Pending' }) ?? lost ?? (isUntouched(operation) ? { do: 'drop-finalizer' } : { do: 'rest' })
  }
  if (!spec.paused) return status.phase === 'Paused' && status.failureReason === undefined ? record(operation, { ...status, phase: ledger.targetsOf(status).length > 0 ? 'Running' : 'Pending', message: 'Resumed.' }) : undefined
  return (
    closing(kind, operation, world, { why: 'paused', phase: 'Pending' }) ??
    (isUntouched(operation) ? ({ do: 'drop-finalizer' } as const) : undefined) ??
    rest(operation, ledger.pausedByOperator(status, world.now, pausedMessage(operation, world), holdsLock(operation, world)))
  )
}

const pausedMessage = (operation: TalosOperation, world: World): string => {
  const { status } = operation
  if (holdsLock(operation, world)) return `Paused by the operator; ${doneOf(status)}. The cluster lock is kept.`
  return status.machines === undefined ? 'Paused by the operator before it started.' : `Paused by the operator; ${doneOf(status)}. It does not hold the cluster lock.`
}

/** Whether the finalizer guards nothing: no machine is open, and none was left in the middle by a failure. */
const isUntouched = (operation: TalosOperation): boolean =>
  hasFinalizer(operation) && !ledger.targetsOf(operation.status).some((t) => t.phase === 'Running' || (t.phase === 'Failed' && t.before !== undefined))

/** Writes the status if it says anything new, and rests. */
const rest = (operation: TalosOperation, status: OperationStatus, forMs?: number): Decision =>
  status.phase !== operation.status.phase ||
  status.message !== operation.status.message ||
  status.failureReason !== operation.status.failureReason ||
  status.lock?.holder !== operation.status.lock?.holder
    ? { do: 'record', status }
    : forMs === undefined
      ? { do: 'rest' }
      : { do: 'rest', forMs }

/** Open machines before the operation stops: one that is committed is carried to its end, any other is closed and what we took is given back. */
const closing = (kind: Kind, operation: TalosOperation, world: World, to: { readonly why: string; readonly phase: 'Cancelled' | 'Pending' }): Decision | undefined => {
  for (const target of ledger.openTargets(operation.status)) {
    const view: View = { operation, target, world }
    const missing = look(world, targetNeeds(target))
    if (missing) return missing
    if (isCommitted(kind, view)) return advance(kind, view, `${to.why === 'paused' ? 'pausing' : 'stopping'}, finishing ${displayName(target)}`)
    const running = world.running.find((r) => r.target === target.name)
    if (running) return { do: 'cancel-act', target: target.name, step: running.step }
    const undo = abandon(kind, view)
    if (undo) return undo
    const words = [`closed before its install, because the operation was ${to.why}`, ...notGivenBack(kind, view)].join('; ')
    return to.phase === 'Pending'
      ? record(operation, ledger.returned(operation.status, world.now, target.name, words))
      : record(operation, ledger.closed(operation.status, world.now, target.name, 'Cancelled', words))
  }
  return givenBack(kind, operation, world)
}

/** On machines that were closed before their end, what we took is given back where the machine is healthy. */
const givenBack = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  for (const target of ledger.targetsOf(operation.status)) {
    if (target.phase !== 'Failed' && target.phase !== 'Cancelled') continue
    // Its step has failed, or is of no use any more: what still runs for it ends.
    const running = world.running.find((r) => r.target === target.name)
    if (running) return { do: 'cancel-act', target: target.name, step: running.step }
    const missing = look(world, targetNeeds(target))
    if (missing) return missing
    const undo = abandon(kind, { operation, target, world }) ?? kept(kind, { operation, target, world })
    if (undo) return undo
  }
  return undefined
}

const abandon = (kind: Kind, view: View): Decision | undefined => {
  const { operation, target, world } = view
  for (const step of kind.rollout.abandon) {
    const missing = look(world, step.needs?.(view) ?? [])
    if (missing) return missing
    if (step.done(view).is !== 'no' || (step.guard?.(view) ?? YES).may !== 'yes' || !step.act) continue
    const waitMs = target.retryAt === undefined ? 0 : ledger.ms(target.retryAt) - world.now
    return waitMs > 0 ? { do: 'wait', status: operation.status, forMs: waitMs } : { do: 'act', status: operation.status, view, step, act: step.act }
  }
  return undefined
}

/** Why what we took cannot be given back now, in words. */
const notGivenBack = (kind: Kind, view: View): readonly string[] =>
  kind.rollout.abandon.flatMap((step) => {
    const verdict = step.done(view).is === 'no' ? step.guard?.(view) : undefined
    return verdict?.may === 'wait' ? [verdict.why] : []
  })

/** What could not be given back is told, and tried again while the operation stands there failed. */
const kept = (kind: Kind, view: View): Decision | undefined => {
  const { operation, target, world } = view
  const note = notGivenBack(kind, view).join('; ')
  if (note === '') return undefined
  const told = target.message?.includes(note) ? operation.status : ledger.remarked(operation.status, target.name, `${target.message ?? ''} (${note})`.trim())
  if (told !== operation.status) return record(operation, told)
  return ledger.isStopped(operation.status) && !operation.spec.cancelled && !operation.metadata.deletionTimestamp ? { do: 'rest', forMs: world.timing.idleMs } : undefined
}

/** What every question about a target may ask about without saying so. */
export const targetNeeds = (target: Pick<Target, 'name'>): readonly Need[] => [{ what: 'machine', name: target.name }, { what: 'nodes' }]

/** A committing step was intended, or its evidence is there: the machine is half done until it is all done. */
const isCommitted = (kind: Kind, { target }: View): boolean => {
  const { steps } = kind.rollout
  const at = steps.findIndex((s) => s.name === target.step)
  return steps.some((s, i) => s.commits === true && (i < at ? ledger.receiptOf(target, s.name) !== undefined || s.milestone === true : i === at && target.actedAt !== undefined))
}

/** Everything up to holding the cluster lock. */
const beforeTheLock = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  if (holdsLock(operation, world)) {
    if (!isConfirmed(world.lock, operation)) return { do: 'acquire', takeOver: undefined }
    if (operation.status.lock?.holder === world.lock?.holder && operation.status.phase === 'Running') return undefined
    const since = world.lock?.acquireTime || ledger.iso(world.now)
    const status = ledger.lockTaken(operation.status, world.now, { lease: leaseName(world.cluster.metadata.name), holder: world.lock?.holder ?? '', since })
    return record(operation, status, { type: 'Normal', reason: 'LockTaken', message: 'Took the cluster lock.' })
  }
  // The lock is gone from under it, a Lease deleted or edited by hand: what runs without it ends.
  const [running] = world.running
  if (running) return { do: 'cancel-act', target: running.target, step: running.step }
  const early = operation.status.machines === undefined ? tooEarly(operation, world) : undefined
  if (early) return early
  if (operation.status.preflight === undefined) return check(kind, operation, world)
  const verdict = claim(operation, world)
  if (verdict.may === 'take') return { do: 'acquire', takeOver: verdict.from }
  const status = ledger.queued(
    operation.status,
    world.now,
    { lease: leaseName(world.cluster.metadata.name), holder: verdict.holder, ...(verdict.since ? { since: verdict.since } : {}) },
    verdict.message,
  )
  return rest(operation, status, world.timing.idleMs)
}

/** `startAfter` and the maintenance windows: nothing new is begun outside them. */
const tooEarly = (operation: TalosOperation, world: World): Decision | undefined => {
  const start = operation.spec.startAfter === undefined ? 0 : ledger.ms(operation.spec.startAfter)
  if (start > world.now) return waitToStart(operation, world, `Starts at ${operation.spec.startAfter}.`, start)
  const closed = outsideWindow(operation, world)
  return closed ? waitToStart(operation, world, closed.message, closed.opensAt) : undefined
}

const outsideWindow = (operation: TalosOperation, world: World): { readonly message: string; readonly opensAt: number | undefined } | undefined => {
  const windows = world.cluster.spec.maintenanceWindows ?? []
  if (windows.length === 0 || operation.spec.ignoreWindows) return undefined
  const at = windowAt(windows, world.now)
  if (at.open) return undefined
  return { message: `Outside the maintenance windows of ${world.cluster.metadata.name}; the next one opens ${at.opensAt === undefined ? 'never' : `at ${ledger.iso(at.opensAt)}`}.`, opensAt: at.opensAt }
}

const waitToStart = (operation: TalosOperation, world: World, message: string, until: number | undefined): Decision =>
  rest(operation, ledger.held(operation.status, world.now, message, until), Math.min(until === undefined ? Infinity : until - world.now, LONGEST_REST_MS))

/** Runs the checks and writes what they found. Standing refusals end the attempt; nothing was touched and no lock is kept. */
const check = (kind: Kind, operation: TalosOperation, world: World): Decision => {
  const missing = look(world, kind.checkNeeds(operation, world))
  if (missing) return missing
  const found = kind.checks(operation, world)
  const checked = { ...found, refusals: [...found.refusals, ...unfinishedByOthers(operation, world)] }
  const status = ledger.checked(operation.status, world.now, checked, { override: operation.spec.override, underLock: holdsLock(operation, world) })
  const standing = ledger.standingRefusals(status)
  if (standing.length > 0) {
    const refused = ledger.refused(status, world.now)
    return record(operation, refused, { type: 'Warning', reason: 'PreflightRefused', message: refused.message ?? '' })
  }
  const passed = checked.refusals.filter((r) => r.overridable)
  const told = operation.status.preflight?.refusals.filter((r) => r.overridden).map((r) => r.rule) ?? []
  if (passed.every((r) => told.includes(r.rule))) return record(operation, status)
  const who = operation.metadata.annotations[ANNOTATION.overrideBy] ?? operation.metadata.annotations[ANNOTATION.requestedBy] ?? 'somebody who is not named'
  return record(operation, status, { type: 'Warning', reason: 'Overridden', message: `${who} overrode ${passed.map((r) => r.rule).join(', ')}.` })
}

/** With the lock in hand: the checks once more, then the order is chosen and frozen. */
const planning = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  const { status } = operation
  if (status.machines !== undefined) return undefined
  if (status.preflight?.underLock !== true) return check(kind, operation, world)
  const missing = look(world, kind.rollout.orderNeeds(operation, world))
  if (missing) return missing
  return record(operation, ledger.planned(status, world.now, kind.rollout.name, kind.rollout.order(operation, world)), {
    type: 'Normal',
    reason: 'Started',
    message: `${kind.summary} Checks passed and the cluster lock is held.`,
  })
}

/** Open machines first, each in its order; then the next one is opened, if one may be; when none is left, it is done. */
const rollingOut = (kind: Kind, operation: TalosOperation, world: World): Decision => {
  const open = ledger.openTargets(operation.status)
  if (open.length > 0 && !hasFinalizer(operation)) return { do: 'add-finalizer' }
  // While all that are open wait, their words are gathered in one status, and the soonest tells when to look again.
  let gathered = operation
  let forMs = Infinity
  const unseen = look(world, open.flatMap(targetNeeds))
  if (unseen) return unseen
  for (const target of open) {
    const decision = advance(kind, { operation: gathered, target, world })
    if (decision.do !== 'wait') return decision
    gathered = { ...gathered, status: decision.status }
    forMs = Math.min(forMs, decision.forMs)
  }
  const next = openNext(kind, gathered, world)
  if (next?.do === 'wait' && open.length === 0 && isUntouched(operation)) return { do: 'drop-finalizer' }
  if (next && (next.do !== 'wait' || open.length === 0)) return next
  return open.length > 0 ? { do: 'wait', status: gathered.status, forMs } : finish(kind, operation, world)
}

/** One target's next move. `prefix` tells that the operation will stop afterwards. */
const advance = (kind: Kind, view: View, prefix?: string): Decision => {
  const { operation, target, world } = view
  const say = (text: string): string => (prefix ? `${prefix}: ${text}` : text)
  const outdated = isCommitted(kind, view) ? undefined : kind.rollout.outdated?.(view)
  if (outdated) return record(operation, ledger.returned(operation.status, world.now, target.name, outdated))
  const next = nextStep(kind.rollout.steps, view)
  switch (next.is) {
    case 'look':
      return { do: 'look', needs: next.needs }
    case 'done': {
      const facts = machineFacts(world, target.name)
      const nodes = nodeFacts(world)
      const after = facts.ok ? stateOf(facts.value, nodes.ok ? nodeOf(nodes.value, facts.value.nodename) : undefined, operation.metadata.uid) : undefined
      const took = formatDuration(world.now - ledger.ms(target.startedAt))
      return record(operation, ledger.closed(operation.status, world.now, target.name, 'Completed', `${target.before?.version ?? ''} -> ${after?.version ?? ''} in ${took}`, after), {
        type: 'Normal',
        reason: 'MachineCompleted',
        message: `${displayName(target)} is done: ${target.before?.version} -> ${after?.version} in ${took}.`,
      })
    }
    case 'enter':
      return record(operation, ledger.entered(operation.status, world.now, target.name, next.step))
    case 'hold':
      return { do: 'wait', status: ledger.holding(ledger.waiting(operation.status, world.now, target.name, say(`${displayName(target)}: ${next.why}`), undefined), target.name, next.since), forMs: next.forMs }
    case 'fail':
      return failure(view, next.reason, next.message)
    case 'wait':
      return { do: 'wait', status: ledger.holding(ledger.waiting(operation.status, world.now, target.name, say(`${displayName(target)}: ${next.why}`), next.until), target.name, undefined), forMs: next.forMs }
    case 'act': {
      const message = say(`${displayName(target)}: ${next.act.describe(view)}`)
      return { do: 'act', status: ledger.intended(operation.status, world.now, target.name, message), view, step: next.step, act: next.act }
    }
  }
}

const failure = ({ operation, target, world }: View, reason: Reason, message: string): Decision => {
  const status = ledger.failed(operation.status, world.now, target, reason, message)
  return record(operation, status, { type: 'Warning', reason, message })
}

/** How long a machine whose turn has come may be unable to begin. */
const OPENING_LIMIT_MS = 15 * 60_000

/** Opens the next machine, if one may be opened now. */
const openNext = (kind: Kind, operation: TalosOperation, world: World): Decision | undefined => {
  const pending = ledger.targetsOf(operation.status).filter((t) => t.phase === 'Pending')
  const [first] = pending
  if (!first) return undefined
  const unseen = look(world, [{ what: 'nodes' }])
  if (unseen) return unseen
  // Usually the first; but a worker that is away already takes nothing more away, and its upgrade may be its cure.
  const target = pending.find((t) => kind.rollout.turn({ operation, target: t, world }).may === 'yes') ?? first
  const view: View = { operation, target, world }
  const turn = kind.rollout.turn(view)
  if (turn.may === 'wait' && ledger.openTargets(operation.status).length > 0) return undefined
  const missing = look(world, [...targetNeeds(target), ...(kind.rollout.openNeeds?.(view) ?? [])])
  if (missing) return missing
  const hold = (message: string, forMs: number, until?: number): Decision => ({ do: 'wait', status: ledger.waiting(operation.status, world.now, target.name, message, until), forMs })
  const lastChance = (target.stepStartedAt === undefined ? world.now : ledger.ms(target.stepStartedAt)) + OPENING_LIMIT_MS
  const holdFor = (reason: Reason, message: string): Decision =>
    world.now >= lastChance ? failure(view, reason, `${message} (for ${formatDuration(OPENING_LIMIT_MS)})`) : hold(message, world.timing.pollMs, lastChance)
  // Until its turn has come its time does not run.
  const notYet = (message: string, forMs: number, until?: number): Decision => ({ do: 'wait', status: ledger.notYet(operation.status, world.now, target.name, message, until), forMs })
  const closed = outsideWindow(operation, world)
  if (closed) return notYet(`${displayName(target)} is next. ${closed.message}`, closed.opensAt === undefined ? LONGEST_REST_MS : Math.min(closed.opensAt - world.now, LONGEST_REST_MS), closed.opensAt)
  if (turn.may === 'wait') return notYet(`${displayName(target)} is next: ${turn.why}`, world.timing.pollMs)
  if (turn.may === 'no') return failure(view, turn.reason, turn.message)
  const opening = kind.rollout.open(view)
  if ('skip' in opening) return record(operation, ledger.closed(operation.status, world.now, target.name, 'Skipped', opening.skip))
  if ('wait' in opening) return holdFor(opening.reason, `${displayName(target)}: ${opening.wait}`)
  if ('fail' in opening) return failure(view, opening.fail.reason, opening.fail.message)
  const facts = machineFacts(world, target.name)
  if (!facts.ok) return holdFor('MachineUnreachable', `${displayName(target)} does not answer: ${facts.fault.message}`)
  const nodes = nodeFacts(world)
  if (!nodes.ok) return hold(`the Kubernetes API does not answer: ${nodes.fault.message}`, world.timing.pollMs)
  const before = stateOf(facts.value, nodeOf(nodes.value, facts.value.nodename), operation.metadata.uid)
  return record(operation, ledger.opened(operation.status, world.now, target.name, before, opening.open.goal), { type: 'Normal', reason: 'MachineStarted', message: `${displayName(target)} is being worked on.` })
}

/** All are closed: ask once more for machines that joined meanwhile, then it is done. */
const finish = (kind: Kind, operation: TalosOperation, world: World): Decision => {
  const missing = look(world, kind.rollout.orderNeeds(operation, world))
  if (missing) return missing
  const known = new Set(ledger.targetsOf(operation.status).map((t) => t.name))
  const newcomers = kind.rollout.order(operation, world).filter((c) => !known.has(c.name))
  if (newcomers.length > 0) return record(operation, ledger.appended(operation.status, world.now, newcomers))
  const { done = 0, skipped = 0 } = operation.status.progress ?? {}
  const message = `${done} ${done === 1 ? 'machine' : 'machines'} done${skipped > 0 ? `, ${skipped} skipped` : ''}.`
  return record(operation, ledger.completed(operation.status, world.now, message), { type: 'Normal', reason: 'Completed', message })
}
