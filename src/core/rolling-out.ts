import type { TalosOperation } from '../api/talos-operation.ts'
import type { Reason } from '../api/reasons.ts'
import { formatDuration } from '../api/duration.ts'
import { advance, failure, targetNeeds } from './advance.ts'
import { abandon, notGivenBack } from './closing.ts'
import type { Decision, Told } from './decision.ts'
import { hasFinalizer, isUnguarded, look, record, restUntil } from './decision.ts'
import { gateNeeds, gatesNow } from './health-gates.ts'
import type { Kind, Stage } from './kind.ts'
import * as ledger from './ledger.ts'
import { numberOf, stageOf, stagesAfter } from './stages.ts'
import { together } from './together.ts'
import { windowAt } from './windows.ts'
import type { View, World } from './world.ts'
import { displayName, machineFacts, nodeFacts, nodeOf, stateOf } from './world.ts'

/** Open machines first, each in its order; then the next one is opened, if one may be; when none is left, it is done. */
export const rollingOut = (kind: Kind, operation: TalosOperation, world: World): Decision => {
  const stage = stageOf(kind, operation)
  const open = ledger.openTargets(operation.status)
  if (open.length > 0 && !hasFinalizer(operation)) return { do: 'add-finalizer' }
  const all = together(operation, world, view => advance(stage, view))
  if ('decision' in all) return all.decision
  const { gathered, forMs } = all
  const next = openNext(stage, gathered, world)
  if (next?.do === 'wait' && open.length === 0 && isUnguarded(kind, operation)) return { do: 'drop-finalizer' }
  if (next && (next.do !== 'wait' || open.length === 0)) return next
  if (open.length === 0) return finish(kind, stage, operation, world)
  // The next machine is not told of while others are at work, but what its gates are seen to be must not be forgotten.
  const gates = next?.status.gates
  return { do: 'wait', status: gates ? { ...gathered.status, gates } : gathered.status, forMs: Math.min(forMs, next?.forMs ?? Infinity) }
}

/** How long a machine whose turn has come may be unable to begin. */
const OPENING_LIMIT_MS = 15 * 60_000
/** How long its turn may be kept back by machines that are none of the operation's doing. */
const TURN_LIMIT_MS = 30 * 60_000

/** Opens the next machine, if one may be opened now. */
const openNext = (stage: Stage, operation: TalosOperation, world: World): Decision | undefined => {
  const pending = ledger.targetsOf(operation.status).filter(t => t.phase === 'Pending')
  const [first] = pending
  if (!first) return undefined
  const unseen = look(world, [{ what: 'nodes' }])
  if (unseen) return unseen
  // Usually the first; but a worker that is away already takes nothing more away, and its upgrade may be its cure.
  const target = pending.find(t => stage.turn({ operation, target: t, world }).may === 'yes') ?? first
  const view: View = { operation, target, world }
  const turn = stage.turn(view)
  if (turn.may === 'wait' && ledger.openTargets(operation.status).length > 0) return undefined
  const missing = look(world, [...targetNeeds(target), ...(stage.openNeeds?.(view) ?? [])])
  if (missing) return missing
  const hold = (message: string, forMs: number, until?: number): Decision => ({
    do: 'wait',
    status: ledger.waiting(operation.status, world.now, target.name, message, until),
    forMs,
  })
  const itsTurnSince = target.stepStartedAt === undefined ? world.now : ledger.ms(target.stepStartedAt)
  const lastChance = itsTurnSince + OPENING_LIMIT_MS
  const holdFor = (reason: Reason, message: string): Decision =>
    world.now >= lastChance
      ? failure(view, reason, `${message} (for ${formatDuration(OPENING_LIMIT_MS)})`)
      : hold(message, world.timing.pollMs, lastChance)
  // Until its turn has come its time does not run.
  const notYet = (message: string, forMs: number, until?: number): Decision => ({
    do: 'wait',
    status: ledger.notYet(operation.status, world.now, target.name, message, until),
    forMs,
  })
  const closed = outsideWindow(operation, world)
  if (closed) return notYet(`${displayName(target)} is next. ${closed.message}`, restUntil(closed.opensAt, world.now), closed.opensAt)
  if (turn.may === 'wait') {
    const message = `${displayName(target)} is next: ${turn.why}`
    if (turn.reason === undefined) return notYet(message, world.timing.pollMs)
    const { waiting } = operation.status
    const until = (waiting?.for === message ? ledger.ms(waiting.since) : world.now) + TURN_LIMIT_MS
    return world.now >= until
      ? failure(view, turn.reason, `${message} (for ${formatDuration(TURN_LIMIT_MS)})`)
      : notYet(message, world.timing.pollMs, until)
  }
  // What still runs on a machine that is not open was begun by a status that is gone.
  const running = world.running.find(r => r.target === target.name)
  if (running) return { do: 'cancel-act', target: target.name, step: running.step }
  const opening = stage.open(view)
  if ('skip' in opening && opening.afterMs !== undefined && world.now < itsTurnSince + opening.afterMs)
    return hold(
      `${displayName(target)}: ${opening.skip}; it is left out if that stays so`,
      world.timing.pollMs,
      itsTurnSince + opening.afterMs,
    )
  // It may have been open before, and cordoned by us; and it may be back only now, and not well yet.
  if ('skip' in opening) {
    const words = [opening.skip, ...notGivenBack(stage, view)].join('; ')
    const isWaitedFor = words !== opening.skip && world.now < lastChance
    return (
      abandon(stage, view) ??
      (isWaitedFor
        ? hold(`${displayName(target)}: ${words}`, world.timing.pollMs, lastChance)
        : record(operation, ledger.closed(operation.status, world.now, target.name, 'Skipped', words)))
    )
  }
  if ('wait' in opening) return holdFor(opening.reason, `${displayName(target)}: ${opening.wait}`)
  if ('fail' in opening) return failure(view, opening.fail.reason, opening.fail.message)
  const facts = machineFacts(world, target.name)
  if (!facts.ok) return holdFor('MachineUnreachable', `${displayName(target)} does not answer: ${facts.fault.message}`)
  const nodes = nodeFacts(world)
  if (!nodes.ok) return hold(`the Kubernetes API does not answer: ${nodes.fault.message}`, world.timing.pollMs)
  const unseenGates = look(world, gateNeeds(world))
  if (unseenGates) return unseenGates
  const gates = gatesNow(operation.status, world)
  if (gates.are === 'late') return failure(view, 'HealthGateTimeout', `${displayName(target)} is next, but ${gates.message}.`)
  if (gates.are === 'closed') return { do: 'wait', status: ledger.atGates(operation.status, world.now, target, gates), forMs: gates.forMs }
  const before = stateOf(facts.value, nodeOf(nodes.value, facts.value.nodename), operation.metadata.uid)
  return record(operation, ledger.opened(operation.status, world.now, target.name, before, opening.open.goal), {
    type: 'Normal',
    reason: 'MachineStarted',
    message: `${displayName(target)} is being worked on.`,
  })
}

/** All are closed: ask once more for machines that joined meanwhile; then the next stage begins, or it is done. */
const finish = (kind: Kind, stage: Stage, operation: TalosOperation, world: World): Decision => {
  const missing = look(world, stage.orderNeeds(operation, world))
  if (missing) return missing
  const known = new Set(ledger.targetsOf(operation.status).map(t => t.name))
  const newcomers = stage.order(operation, world).filter(c => !known.has(c.name))
  if (newcomers.length > 0) return record(operation, ledger.appended(operation.status, world.now, newcomers))
  const [next] = stagesAfter(kind, operation)
  if (next) return begin(kind, next, operation, world)
  const message = `${kind.outcome?.(operation) ?? doneIn(operation)}.`
  return record(operation, ledger.completed(operation.status, world.now, message), { type: 'Normal', reason: 'Completed', message })
}

/** How long nothing may be known of a machine that a stage could go over. */
const UNKNOWN_LIMIT_MS = 15 * 60_000

/** The order of a stage's machines is chosen and frozen. A stage without any is none that is done: their TalosMachines were deleted, and are found again. */
export const begin = (kind: Kind, stage: Stage, operation: TalosOperation, world: World, event?: Told): Decision => {
  const missing = look(world, stage.orderNeeds(operation, world))
  if (missing) return missing
  const order = stage.order(operation, world)
  if (order.length > 0)
    return record(operation, ledger.planned(operation.status, world.now, stage.name, order, numberOf(kind, operation, stage)), event)
  const message = `There is no TalosMachine that ${stage.name} could be done to; they are looked for again`
  const until = ledger.waitingSince(operation.status, world.now, message) + UNKNOWN_LIMIT_MS
  if (world.now < until)
    return { do: 'wait', status: ledger.held(operation.status, world.now, message, until, 'Running'), forMs: world.timing.pollMs }
  const told = `${message} (for ${formatDuration(UNKNOWN_LIMIT_MS)})`
  return record(operation, ledger.failed(operation.status, world.now, undefined, 'MachineUnreachable', told), {
    type: 'Warning',
    reason: 'MachineUnreachable',
    message: told,
  })
}

const doneIn = ({ status }: TalosOperation): string => {
  const { stage: name = '', stages = [], progress: { done, skipped } = { done: 0, skipped: 0 } } = status
  const all = [...stages, { name, done, skipped }]
  return all
    .map(s => {
      const text = `${s.done} ${s.done === 1 ? 'machine' : 'machines'} done${s.skipped > 0 ? `, ${s.skipped} skipped` : ''}`
      return all.length > 1 ? `${s.name}: ${text}` : text
    })
    .join('; ')
}

export const outsideWindow = (
  operation: TalosOperation,
  world: World,
): { readonly message: string; readonly opensAt: number | undefined } | undefined => {
  if (operation.spec.ignoreWindows) return undefined
  const at = windowAt(world.cluster.spec.maintenanceWindows ?? [], world.now)
  if (at.open) return undefined
  const next = `the next one opens ${at.opensAt === undefined ? 'never' : `at ${ledger.iso(at.opensAt)}`}`
  return {
    message: [`Outside the maintenance windows of ${world.cluster.metadata.name}; ${next}.`, ...at.problems].join(' '),
    opensAt: at.opensAt,
  }
}
