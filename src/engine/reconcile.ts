import type { TalosCluster } from '../api/talos-cluster.ts'
import type { OperationStatus, TalosOperation } from '../api/talos-operation.ts'
import { ANNOTATION, FINALIZER } from '../api/names.ts'
import { isFinished } from '../api/phases.ts'
import type { Decision, Told } from '../core/decision.ts'
import { isChecked } from '../core/checks.ts'
import { decide } from '../core/decide.ts'
import type { Act, ActPorts, Kind, LongAct, Refusal, ShortAct } from '../core/kind.ts'
import * as ledger from '../core/ledger.ts'
import { heldOperation, isHeldBy, isLeftWith } from '../core/lock-claim.ts'
import { deedsAfter, untoldDeeds } from '../core/repeated.ts'
import { stageOf } from '../core/stages.ts'
import type { View, World } from '../core/world.ts'
import { isKnown } from '../core/world.ts'
import type { Fault, Result } from '../ports/fault.ts'
import { isTransient } from '../ports/fault.ts'
import type { Key } from '../ports/home.ts'
import { freeLock, readLock, releaseLock, rememberDeeds, takeLock } from './cluster-lock.ts'
import { type BlindDecision, decideBlindly } from '../core/blind.ts'
import { sameValue } from '../core/same-value.ts'
import { fenced } from './fence.ts'
import type { Log } from './log.ts'
import type { LongActs, SettledAct } from './long-acts.ts'
import type { MachineWatches } from './machine-watches.ts'
import type { Observer } from './observe.ts'
import { gather, observe } from './observe.ts'
import { noCluster } from './no-cluster.ts'
import { asError, traceOf } from './thrown.ts'
import type { Next } from './queue.ts'

export type Reconciler = Observer & {
  readonly kinds: readonly Kind[]
  readonly longActs: LongActs
  readonly watches: MachineWatches
  readonly log: Log
  /** Still the leader, by the monotonic clock. */
  readonly isLeading: () => boolean
  /** UIDs of operations whose retry has been honoured, and still stands in them: while it cannot be taken away it is no new request. */
  readonly honoured: Set<string>
  /** Puts the operation back into the queue. */
  readonly wake: (key: Key) => void
}

const AGAIN: Next = { againMs: 0 }
const BACK_OFF: Next = { failed: true }
/** Somebody else wrote in between. Soon, but not as fast as one can: where somebody writes all the time, that would never end. */
const AFRESH: Next = { againMs: 200, lost: true }

/** One pass: observe, decide, record the intention, act, record the outcome, and say when to look again. */
export const reconcile = async (engine: Reconciler, key: Key): Promise<Next> => {
  const found = await engine.home.operation(key)
  if (!found.ok) return found.fault.kind === 'notFound' ? forget(engine, key) : unread(engine, key, found.fault)
  const operation = found.value
  if (operation.metadata.annotations[ANNOTATION.retry] !== 'true') engine.honoured.delete(operation.metadata.uid)
  engine.longActs.cancelNamesakes(key, operation.metadata.uid)
  const cluster = await clusterOf(engine, { namespace: key.namespace, name: operation.spec.clusterRef.name })
  if (!cluster.ok && cluster.fault.kind !== 'notFound') return unread(engine, key, cluster.fault)
  const kind = engine.kinds.find(k => k.name === operation.spec.kind)
  try {
    if (!kind || !cluster.ok) return await impossible(engine, operation, kind)
    const settled = await recordSettled(engine, kind, operation)
    if (settled) return settled
    const world = await observe(engine, operation, cluster.value, engine.longActs.running(operation.metadata.uid))
    if (!world.ok) return unread(engine, key, world.fault)
    engine.watches.follow(operation, world.value)
    // What is checked is what is there now, not what was there a moment ago.
    if (!isChecked(operation.status)) engine.connections.doubt(cluster.value)
    const decided = await lookAndDecide(engine, kind, operation, world.value)
    return await perform(engine, operation, decided.world, decided.decision)
  } catch (error) {
    return bug(engine, operation, error)
  }
}

/** It hardly ever changes, so what the last watch event said will do; that there is none is asked for anew. */
const clusterOf = async ({ home }: Reconciler, key: Key): Promise<Result<TalosCluster>> => {
  const known = await home.clusters(key.namespace)
  const found = known.ok ? known.value.find(c => c.metadata.name === key.name) : undefined
  return found ? { ok: true, value: found } : home.cluster(key)
}

/** What is decided once all is seen. */
type Decided = Exclude<Decision, { readonly do: 'look' }>

/** Asks for the decision, and for the facts it misses, until it has what it needs. Each look must bring something new, so it comes to an end. */
const lookAndDecide = async (
  engine: Reconciler,
  kind: Kind,
  operation: TalosOperation,
  seen: World,
): Promise<{ readonly decision: Decided; readonly world: World }> => {
  let world = seen
  for (;;) {
    const decision = decide(kind, operation, world)
    if (decision.do !== 'look') return { decision, world }
    const asked = decision.needs.filter(need => !isKnown(world.facts, need))
    if (asked.length === 0)
      throw new Error(`the decision asked again for what is known: ${decision.needs.map(need => need.what).join(', ')}`)
    world = await gather(engine, world, asked)
  }
}

/** What the one did whose lock is taken over: it has ended, and did not get to give its lock back and to write that down itself. */
const deedsOfLoser = ({ kinds }: Reconciler, world: World): string | undefined => {
  const loser = world.others.find(o => isFinished(o.status.phase) && isLeftWith(world.lock, o))
  const kind = loser && kinds.find(({ name }) => name === loser.spec.kind)
  return kind && deedsAfter(kind, loser, world)
}

const perform = async (engine: Reconciler, operation: TalosOperation, world: World, decision: Decided): Promise<Next> => {
  const { home, clock } = engine
  switch (decision.do) {
    case 'wait': {
      const next = await record(engine, operation, decision.status)
      return next.failed ? next : { againMs: decision.forMs }
    }
    case 'act':
      return act(engine, operation, decision.status, decision.view, decision.step.name, decision.act)
    case 'acquire': {
      const deeds = decision.takeOver === undefined ? undefined : deedsOfLoser(engine, world)
      const taken = await takeLock(home, clock, world.lock, world.cluster.metadata.name, operation, deeds)
      if (!taken.ok) return again(engine, operation, 'taking the cluster lock', taken.fault)
      const loser = decision.takeOver === undefined ? undefined : heldOperation(decision.takeOver)
      if (loser) engine.wake(loser)
      if (decision.takeOver)
        await tell(engine, operation, {
          type: 'Normal',
          reason: 'LockTakenOver',
          message: `Took the cluster lock over from ${decision.takeOver}.`,
        })
      return AGAIN
    }
    case 'release':
      return world.lock
        ? after(engine, operation, 'releasing the cluster lock', await releaseLock(home, clock, world.lock, decision.deeds))
        : AGAIN
    case 'remember': {
      const told = await rememberDeeds(home, world.lock, world.cluster.metadata, decision.deeds)
      // Where a namespace goes nothing can be created in it any more, and whoever waits for that must not hold it up.
      const isInVain = !told.ok && !world.lock && (told.fault.kind === 'forbidden' || told.fault.kind === 'notFound')
      if (isInVain) return performBlindly(engine, operation, { do: 'drop-finalizer' })
      return after(engine, operation, 'remembering what was done', told)
    }
    case 'cancel-act':
      engine.longActs.cancel(operation.metadata.uid, decision.target)
      return AGAIN
    case 'add-finalizer':
      return after(
        engine,
        operation,
        'setting the finalizer',
        await home.changeOperation(operation, { finalizers: [...operation.metadata.finalizers, FINALIZER] }),
      )
    case 'delete':
      return after(engine, operation, 'deleting it after its time to live', await home.deleteOperation(operation))
    default:
      return performBlindly(engine, operation, decision)
  }
}

/** What can be done to the operation itself, whatever is known of its cluster. */
const performBlindly = async (engine: Reconciler, operation: TalosOperation, decision: BlindDecision): Promise<Next> => {
  switch (decision.do) {
    case 'rest':
      // What it says stays true, but it is said about this generation now.
      if (operation.status.observedGeneration !== operation.metadata.generation) return record(engine, operation, operation.status)
      return decision.forMs === undefined ? {} : { againMs: decision.forMs }
    case 'record':
      return record(engine, operation, decision.status, decision.event)
    case 'drop-finalizer':
      return after(
        engine,
        operation,
        'removing the finalizer',
        await engine.home.changeOperation(operation, { finalizers: operation.metadata.finalizers.filter(f => f !== FINALIZER) }),
      )
    case 'drop-retry':
      return dropRetry(engine, operation, decision.status, decision.event)
  }
}

/** Writes the status if it differs. A conflict means that the decision was made on something old: it is thrown away. */
const record = async (engine: Reconciler, operation: TalosOperation, status: OperationStatus, event?: Told): Promise<Next> => {
  const written = await write(engine, operation, status)
  if (!written.ok) return again(engine, operation, 'writing the status', written.fault)
  if (event) await tell(engine, operation, event)
  return AGAIN
}

const write = async (engine: Reconciler, operation: TalosOperation, status: OperationStatus): Promise<Result<TalosOperation>> => {
  const next = ledger.withConditions(status, operation, engine.clock.now())
  if (sameValue(next, operation.status)) return { ok: true, value: operation }
  return engine.home.writeOperationStatus(operation, next)
}

/** First the new life of the failed step, then the end of the request: a crash between the two leaves a request that has no effect any more. */
const dropRetry = async (
  engine: Reconciler,
  operation: TalosOperation,
  status: OperationStatus | undefined,
  event: Told | undefined,
): Promise<Next> => {
  const { uid } = operation.metadata
  let current = operation
  if (status && !engine.honoured.has(uid)) {
    const written = await write(engine, operation, status)
    if (!written.ok) return again(engine, operation, 'writing the status', written.fault)
    current = written.value
    engine.honoured.add(uid)
    if (event) await tell(engine, operation, event)
  }
  const removed = await engine.home.changeOperation(current, { annotations: { [ANNOTATION.retry]: null } })
  if (removed.ok) engine.honoured.delete(uid)
  return after(engine, operation, 'removing the retry annotation', removed)
}

/** The intention is written, the right to act is checked once more, then the nudge is given. */
const act = async (
  engine: Reconciler,
  operation: TalosOperation,
  status: OperationStatus,
  view: View,
  step: string,
  what: Act,
): Promise<Next> => {
  // Before the intention: what cannot be reached at all is not intended, or its effect would be waited for.
  const { cluster } = view.world
  const [talos, kube] = await Promise.all([engine.connections.talos(cluster), engine.connections.kube(cluster)])
  if (!talos.ok) return unconnected(engine, operation, view, 'connecting to Talos', talos.fault)
  if (!kube.ok) return unconnected(engine, operation, view, 'connecting to Kubernetes', kube.fault)
  // An intention that will not be acted on would keep the next leader waiting for its effect.
  if (!engine.isLeading()) return BACK_OFF
  const written = await write(engine, operation, status)
  if (!written.ok) return again(engine, operation, 'writing the intention', written.fault)
  const stopped = await mayNot(engine, operation, what)
  if (stopped) {
    engine.log.info('not acting', { ...about(operation), step, reason: stopped })
    // While another may lead nothing is written. The intention stands there for an act that never was: its effect is waited for in vain, and that is all.
    if (!engine.isLeading()) return BACK_OFF
    const [{ name }, now] = [view.target, written.value]
    await writeUnanswered(engine, now, ledger.undone(now.status, name), name, { message: `not done: ${stopped}` })
    return BACK_OFF
  }
  const ports: ActPorts = { talos: fenced(talos.value, engine.isLeading), kube: fenced(kube.value, engine.isLeading) }
  engine.log.info(what.describe(view), { ...about(operation), machine: view.target.name, step })
  return what.long ? startLong(engine, operation, ports, view, step, what) : runShort(engine, written.value, ports, view, step, what)
}

/** Nothing could be asked of the machine: nothing is intended, what is in the way is told, and the longer it is, the later it is tried again. */
const unconnected = async (engine: Reconciler, operation: TalosOperation, view: View, what: string, fault: Fault): Promise<Next> => {
  const next = backOff(engine, operation, what, fault)
  if (!engine.isLeading()) return next
  const { target } = view
  const { pollMs, idleMs } = engine.timing
  const now = engine.clock.now()
  const waitMs = Math.max(fault.retryAfterMs ?? 0, Math.min(Math.max((now - ledger.ms(target.stepStartedAt)) / 2, pollMs / 2), idleMs))
  const written = await write(engine, operation, ledger.unanswered(operation.status, target.name, fault.message, now + waitMs))
  return written.ok ? AGAIN : again(engine, operation, 'writing the outcome', written.fault)
}

/** Why a disruptive act must not be done: leadership or the lock is gone, read now and not from a cache. */
const mayNot = async (engine: Reconciler, operation: TalosOperation, what: Act): Promise<string | undefined> => {
  if (!engine.isLeading()) return 'leadership is lost'
  if (!what.disruptive) return undefined
  const lock = await readLock(engine.home, operation.metadata.namespace, operation.spec.clusterRef.name)
  if (!lock.ok) return `the cluster lock cannot be read: ${lock.fault.message}`
  if (!isHeldBy(lock.value, operation)) return `the cluster lock is held by ${lock.value?.holder || 'nobody'}`
  return engine.isLeading() ? undefined : 'leadership is lost'
}

const startLong = (engine: Reconciler, operation: TalosOperation, ports: ActPorts, view: View, step: string, what: LongAct): Next => {
  const { namespace, name, uid } = operation.metadata
  engine.longActs.start(
    { namespace, name, uid },
    view.target.name,
    step,
    call => what.run(ports, view, call),
    () => engine.wake({ namespace, name }),
  )
  return { againMs: view.world.timing.pollMs }
}

const runShort = async (
  engine: Reconciler,
  operation: TalosOperation,
  ports: ActPorts,
  view: View,
  step: string,
  what: ShortAct,
): Promise<Next> => {
  const result = await what.run(ports, view)
  if (result.ok) return AGAIN
  // Another may lead by now, and knows better what to write.
  if (!engine.isLeading()) return BACK_OFF
  return (await faulted(engine, operation, view.target.name, step, what, result.fault)).next
}

/** What came of writing an answer down. */
type Recorded = { readonly isWritten: boolean; readonly next: Next }

const WRITTEN: Recorded = { isWritten: true, next: AGAIN }

const unwritten = (engine: Reconciler, operation: TalosOperation, fault: Fault): Recorded => ({
  isWritten: false,
  next: again(engine, operation, 'writing the outcome', fault),
})

/** The act was refused or got no answer. Fatal faults fail the step; after any other the act is given again, later. */
const faulted = async (
  engine: Reconciler,
  operation: TalosOperation,
  name: string,
  step: string,
  what: Act,
  fault: Fault,
): Promise<Recorded> => {
  const now = engine.clock.now()
  const target = ledger.targetsOf(operation.status).find(t => t.name === name)
  // Where the answer says for sure that nothing was done, the machine is what it was.
  const isCertain = fault.kind !== 'unreachable' && fault.kind !== 'unknown' && fault.kind !== 'cancelled'
  const status = isCertain ? ledger.undone(operation.status, name) : operation.status
  const fatal = target && what.fatal?.(fault, { operation, target })
  if (fatal) {
    const written = await write(engine, operation, ledger.failed(status, now, target, fatal.reason, fatal.message))
    if (!written.ok) return unwritten(engine, operation, written.fault)
    await tell(engine, operation, { type: 'Warning', ...fatal })
    return WRITTEN
  }
  engine.log.warn('the act was not answered well; trying again', {
    ...about(operation),
    machine: name,
    step,
    fault: fault.message,
  })
  const written = await writeUnanswered(engine, operation, status, name, fault)
  return written.ok ? WRITTEN : unwritten(engine, operation, written.fault)
}

/** The machine whose act was not answered well waits a while, longer after each try; the others of the operation go on. */
const writeUnanswered = (
  engine: Reconciler,
  operation: TalosOperation,
  status: OperationStatus,
  name: string,
  { message, retryAfterMs = 0 }: Pick<Fault, 'message' | 'retryAfterMs'>,
): Promise<Result<TalosOperation>> => {
  const { pollMs, idleMs } = engine.timing
  const attempts = ledger.targetsOf(status).find(t => t.name === name)?.attempts ?? 1
  const waitMs = Math.max(retryAfterMs, Math.min((pollMs / 2) * 2 ** Math.max(0, attempts - 1), idleMs))
  return write(engine, operation, ledger.unanswered(status, name, message, engine.clock.now() + waitMs))
}

/** What long acts said since the last pass goes into status before anything is decided. */
const recordSettled = async (engine: Reconciler, kind: Kind, operation: TalosOperation): Promise<Next | undefined> => {
  const { uid } = operation.metadata
  const settled = engine.longActs.settled(uid)
  if (!settled) return undefined
  const { isWritten, next } = await recordOutcome(engine, kind, operation, settled)
  // Dropped only when its answer stands in status: an installer must not run again because a write of ours met another's, or no server.
  if (isWritten) engine.longActs.drop(uid, settled)
  return next
}

const recordOutcome = async (engine: Reconciler, kind: Kind, operation: TalosOperation, settled: SettledAct): Promise<Recorded> => {
  const target = ledger.targetsOf(operation.status).find(t => t.name === settled.target)
  const step = stageOf(kind, operation).steps.find(s => s.name === settled.step)
  // Nobody waits for it any more.
  if (!target || !step?.act || isFinished(operation.status.phase)) return WRITTEN
  const { result } = settled
  if (!result.ok) return faulted(engine, operation, target.name, settled.step, step.act, result.fault)
  const now = engine.clock.now()
  const failed = 'failed' in result.value ? result.value.failed : undefined
  const status =
    'receipt' in result.value
      ? ledger.received(operation.status, now, target.name, settled.step, result.value.receipt)
      : ledger.failed(operation.status, now, target, result.value.failed.reason, result.value.failed.message)
  const written = await write(engine, operation, status)
  if (!written.ok) return unwritten(engine, operation, written.fault)
  if (failed) await tell(engine, operation, { type: 'Warning', ...failed })
  return WRITTEN
}

/** The cluster or the kind is unknown: nothing can be checked, let alone done. */
const impossible = async (engine: Reconciler, operation: TalosOperation, kind: Kind | undefined): Promise<Next> => {
  const { namespace } = operation.metadata
  const refusal: Refusal = kind
    ? {
        rule: 'UnknownCluster',
        message: await noCluster(engine.home, { namespace, name: operation.spec.clusterRef.name }),
        overridable: false,
      }
    : {
        rule: 'UnknownKind',
        message: `This controller does not know the kind ${operation.spec.kind} (it knows: ${engine.kinds.map(k => k.name).join(', ')}).`,
        overridable: false,
      }
  engine.longActs.cancel(operation.metadata.uid)
  engine.watches.forget(operation.metadata)
  const decision = decideBlindly(operation, refusal, engine.clock.now())
  const isOver = decision.do === 'drop-finalizer' || (decision.do === 'rest' && decision.forMs === undefined)
  return (isOver && (await givenBack(engine, operation, kind))) || performBlindly(engine, operation, decision)
}

/**
 * The lock of an operation that does nothing any more and whose cluster is gone: others need not wait for it, should one of that name be there again.
 * Whoever makes the same operation anew with it still hears what was done. Undefined where there is nothing to give back, and nothing left to tell.
 */
const givenBack = async (engine: Reconciler, operation: TalosOperation, kind: Kind | undefined): Promise<Next | undefined> => {
  const { home, clock } = engine
  const cluster = { namespace: operation.metadata.namespace, name: operation.spec.clusterRef.name }
  const lock = await readLock(home, cluster.namespace, cluster.name)
  if (!lock.ok) return unread(engine, operation.metadata, lock.fault)
  const isHeld = isLeftWith(lock.value, operation)
  if (!lock.value || (!isHeld && !operation.metadata.finalizers.includes(FINALIZER))) return undefined
  const machines = await home.machines(cluster)
  if (!machines.ok) return unread(engine, operation.metadata, machines.fault)
  const world = { lock: lock.value, now: clock.now(), machines: machines.value }
  const ended = kind && isFinished(operation.status.phase) ? kind : undefined
  if (isHeld) {
    const deeds = ended && deedsAfter(ended, operation, world)
    return after(engine, operation, 'releasing the cluster lock', await releaseLock(home, clock, lock.value, deeds))
  }
  const untold = ended && untoldDeeds(ended, operation, world)
  if (untold === undefined) return undefined
  return after(engine, operation, 'remembering what was done', await rememberDeeds(home, lock.value, cluster, untold))
}

/** A fault of ours stops this operation, loudly, and no other. */
const bug = async (engine: Reconciler, operation: TalosOperation, thrown: unknown): Promise<Next> => {
  const now = engine.clock.now()
  const id = `E-${now.toString(36)}`
  const error = asError(thrown)
  const { message: text } = error
  engine.log.error('internal error', { id, ...about(operation), error: traceOf(error) })
  engine.longActs.cancel(operation.metadata.uid)
  const { spec, status, metadata } = operation
  // It must still be possible to get rid of it, although nobody can say what it left behind.
  if (spec.cancelled || metadata.deletionTimestamp !== undefined) {
    const told = `Given up after an internal error (${id}: ${text}). Look after its machines yourself: cordons may be left.`
    return isFinished(status.phase)
      ? BACK_OFF
      : record(engine, operation, ledger.cancelled(ledger.broken(status, now, told), now, told), {
          type: 'Warning',
          reason: 'InternalError',
          message: told,
        })
  }
  // It stands there failed already; told again each time it would never rest.
  if (status.phase === 'Paused' && status.failureReason === 'InternalError' && ledger.openTargets(status).length === 0) return {}
  const message = `${id}: ${text}`
  return record(engine, operation, ledger.broken(status, now, message), { type: 'Warning', reason: 'InternalError', message })
}

/** The operation is gone: its acts end, and a lock that names one that is gone is freed. */
const forget = async (engine: Reconciler, key: Key): Promise<Next> => {
  engine.longActs.cancelNamesakes(key)
  engine.watches.forget(key)
  const clusters = await engine.home.clusters(key.namespace)
  if (!clusters.ok) return BACK_OFF
  const freed = await Promise.all(clusters.value.map(cluster => freeLock(engine.home, engine.clock, cluster.metadata)))
  return freed.includes(false) ? BACK_OFF : {}
}

/** What every line of the log about an operation carries. */
const about = ({ metadata, spec }: TalosOperation) => ({ namespace: metadata.namespace, operation: metadata.name, kind: spec.kind })

/** What changed goes to the log as well: Events do not live long. */
const tell = (engine: Reconciler, operation: TalosOperation, told: Told): Promise<void> => {
  const { namespace, name, uid } = operation.metadata
  const write = told.type === 'Warning' ? engine.log.warn : engine.log.info
  write('event', { ...about(operation), reason: told.reason, message: told.message })
  return engine.home.event({ regarding: { kind: 'TalosOperation', namespace, name, uid }, ...told })
}

const after = (engine: Reconciler, operation: TalosOperation, what: string, result: Result<unknown>): Next =>
  result.ok ? AGAIN : again(engine, operation, what, result.fault)

/** A write of ours met another's, or what it was to change is gone: look again. Anything else is backed off from. */
const again = (engine: Reconciler, operation: TalosOperation, what: string, fault: Fault): Next => {
  if (fault.kind === 'conflict' || fault.kind === 'alreadyExists' || fault.kind === 'notFound') return AFRESH
  return backOff(engine, operation, what, fault)
}

const backOff = (engine: Reconciler, operation: TalosOperation, what: string, fault: Fault): Next => {
  const write = isTransient(fault) ? engine.log.info : engine.log.warn
  write(`${what} did not work; trying again`, { ...about(operation), fault: fault.message })
  return fault.retryAfterMs === undefined ? BACK_OFF : { failed: true, againMs: fault.retryAfterMs }
}

const unread = (engine: Reconciler, key: Key, fault: Fault): Next => {
  engine.log.info('the Kubernetes API does not answer well; trying again', {
    namespace: key.namespace,
    operation: key.name,
    fault: fault.message,
  })
  return BACK_OFF
}
