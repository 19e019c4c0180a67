import { isFinished } from '../api/phases.ts'
import type { TalosOperation, Target } from '../api/talos-operation.ts'
import { advance, isCommitted, targetNeeds } from './advance.ts'
import type { Decision } from './decision.ts'
import { look, record } from './decision.ts'
import type { Stage } from './kind.ts'
import * as ledger from './ledger.ts'
import { isMarked } from './machine-steps/coming-back.ts'
import { sameValue } from './same-value.ts'
import { together } from './together.ts'
import type { Need, View, World } from './world.ts'
import { displayName, nodeFacts } from './world.ts'

type End = { readonly why: string; readonly phase: 'Cancelled' | 'Pending' }

/**
 * Open machines before the operation stops: one that is committed is carried to its end, any other is closed and what we took is given back; none waits
 * for another. A `rest` says that nothing is left to be done now, but something that may be given back later.
 */
export const closing = (stage: Stage, operation: TalosOperation, world: World, to: End): Decision | undefined => {
  const all = together(operation, world, view =>
    isCommitted(stage, view)
      ? advance(stage, view, `${to.why === 'paused' ? 'pausing' : 'stopping'}, finishing ${displayName(view.target)}`)
      : close(stage, view, to),
  )
  if ('decision' in all) return all.decision
  const { gathered, forMs } = all
  const back = givenBack(stage, gathered, world)
  if (forMs === Infinity || (back && back.do !== 'wait' && back.do !== 'rest')) return back
  return { do: 'wait', status: gathered.status, forMs: Math.min(forMs, back?.forMs ?? Infinity) }
}

/** One that is not committed: what runs on it ends, and it has back what we took, as far as that can be now. */
const close = (stage: Stage, view: View, to: End): Decision => {
  const { operation, target, world } = view
  const running = world.running.find(r => r.target === target.name)
  if (running) return { do: 'cancel-act', target: target.name, step: running.step }
  const undo = abandon(stage, view)
  if (undo) return undo
  const words = [`closed before anything that cannot be undone, because the operation was ${to.why}`, ...notGivenBack(stage, view)].join(
    '; ',
  )
  return to.phase === 'Pending'
    ? record(operation, ledger.returned(operation.status, world.now, target.name, words))
    : record(operation, ledger.closed(operation.status, world.now, target.name, 'Cancelled', words))
}

/**
 * On machines that were closed before their end, what we took is given back where the machine is healthy. One that is not keeps no other from it, and is
 * looked at again while the operation stands there; one that is taken back ends all the same, and what it leaves is swept.
 */
const givenBack = (stage: Stage, operation: TalosOperation, world: World): Decision | undefined => {
  const isEnding = operation.spec.cancelled || operation.metadata.deletionTimestamp !== undefined
  const targets = ledger.targetsOf(operation.status)
  const closed = targets.filter(t => t.phase === 'Failed' || t.phase === 'Cancelled')
  const waiting = stage.abandon.length > 0 ? targets.filter(t => t.phase === 'Pending') : []
  const unseen = look(world, [...closed.flatMap(targetNeeds), ...(waiting.length > 0 ? [NODES] : [])])
  if (unseen) return unseen
  const returned = waiting.map(target => ({ operation, target: withNode(target, world), world })).filter(isMarked)
  const missing = look(
    world,
    returned.flatMap(({ target }) => targetNeeds(target)),
  )
  if (missing) return missing
  // Whether one that waits for its turn bears our mark cannot be told without the Nodes.
  let againMs = waiting.length > 0 && !nodeFacts(world).ok && !isEnding ? world.timing.idleMs : Infinity
  for (const view of [...closed.map(target => ({ operation, target, world })), ...returned]) {
    const { target } = view
    // Its step has failed, or is of no use any more: what still runs for it ends.
    const running = world.running.find(r => r.target === target.name)
    if (running) return { do: 'cancel-act', target: target.name, step: running.step }
    const isBusy = isInOtherHands(view)
    const undo = isBusy ? undefined : abandon(stage, view)
    if (undo && undo.do !== 'wait') return undo
    const note = undo || isBusy ? '' : notGivenBack(stage, view).join('; ')
    const told = remarked(view, note)
    if (told) return told
    if (undo) againMs = Math.min(againMs, undo.forMs)
    else if ((isBusy || note !== '') && !isEnding) againMs = Math.min(againMs, world.timing.idleMs)
  }
  if (againMs === Infinity) return undefined
  return isEnding ? { do: 'wait', status: operation.status, forMs: againMs } : { do: 'rest', forMs: againMs }
}

const NODES: Need = { what: 'nodes' }

/** Its Node may have become known only when it was opened, which it has forgotten. */
const withNode = (target: Target, { machines }: World): Target => {
  const node = target.node ?? machines.find(m => m.metadata.name === target.name)?.status.nodeName
  return node === undefined ? target : { ...target, node }
}

/** Another operation has taken the lock from this one, which stands there failed, and works on the machine: the cordon is of use to it. */
const isInOtherHands = ({ target, world }: View): boolean =>
  world.others.some(other => !isFinished(other.status.phase) && ledger.openTargets(other.status).some(t => t.name === target.name))

/** What could not be given back is told once. */
const remarked = ({ operation, target }: View, note: string): Decision | undefined => {
  if (note === '' || target.message?.includes(note)) return undefined
  const status = ledger.remarked(operation.status, target.name, note)
  // Where there is no room for it, it is not said.
  return sameValue(status, operation.status) ? undefined : record(operation, status)
}

/** What we took from a machine is given back, where it is healthy. */
export const abandon = (stage: Stage, view: View): Decision | undefined => {
  const { operation, target, world } = view
  for (const step of stage.abandon) {
    const missing = look(world, step.needs?.(view) ?? [])
    if (missing) return missing
    if (step.done(view).is !== 'no' || step.guard(view).may !== 'yes' || !step.act) continue
    const waitMs = target.retryAt === undefined ? 0 : ledger.ms(target.retryAt) - world.now
    return waitMs > 0
      ? { do: 'wait', status: operation.status, forMs: waitMs }
      : { do: 'act', status: operation.status, view, step, act: step.act }
  }
  return undefined
}

/** Why what we took cannot be given back now, in words. */
export const notGivenBack = (stage: Stage, view: View): readonly string[] =>
  stage.abandon.flatMap(step => {
    const answer = step.done(view)
    // The Kubernetes API is away, perhaps for that very reason; its own words change from look to look.
    if (answer.is === 'unknown') return ['it cannot be seen yet whether it has back what was taken from it']
    const verdict = answer.is === 'no' ? step.guard(view) : undefined
    return verdict?.may === 'wait' ? [verdict.why] : []
  })
