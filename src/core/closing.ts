import type { TalosOperation } from '../api/talos-operation.ts'
import { advance, isCommitted, targetNeeds } from './advance.ts'
import type { Decision } from './decision.ts'
import { look, record } from './decision.ts'
import type { Stage } from './kind.ts'
import * as ledger from './ledger.ts'
import type { View, World } from './world.ts'
import { displayName } from './world.ts'

/** Open machines before the operation stops: one that is committed is carried to its end, any other is closed and what we took is given back. */
export const closing = (
  stage: Stage,
  operation: TalosOperation,
  world: World,
  to: { readonly why: string; readonly phase: 'Cancelled' | 'Pending' },
): Decision | undefined => {
  for (const target of ledger.openTargets(operation.status)) {
    const view: View = { operation, target, world }
    const missing = look(world, targetNeeds(target))
    if (missing) return missing
    if (isCommitted(stage, view))
      return advance(stage, view, `${to.why === 'paused' ? 'pausing' : 'stopping'}, finishing ${displayName(target)}`)
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
  return givenBack(stage, operation, world)
}

/** On machines that were closed before their end, what we took is given back where the machine is healthy. */
const givenBack = (stage: Stage, operation: TalosOperation, world: World): Decision | undefined => {
  for (const target of ledger.targetsOf(operation.status)) {
    if (target.phase !== 'Failed' && target.phase !== 'Cancelled') continue
    // Its step has failed, or is of no use any more: what still runs for it ends.
    const running = world.running.find(r => r.target === target.name)
    if (running) return { do: 'cancel-act', target: target.name, step: running.step }
    const missing = look(world, targetNeeds(target))
    if (missing) return missing
    const undo = abandon(stage, { operation, target, world }) ?? kept(stage, { operation, target, world })
    if (undo) return undo
  }
  return undefined
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

/** What could not be given back is told, and tried again while the operation stands there failed. */
const kept = (stage: Stage, view: View): Decision | undefined => {
  const { operation, target, world } = view
  const note = notGivenBack(stage, view).join('; ')
  if (note === '') return undefined
  const told = target.message?.includes(note) ? operation.status : ledger.remarked(operation.status, target.name, note)
  if (told !== operation.status) return record(operation, told)
  return ledger.isStopped(operation.status) && !operation.spec.cancelled && !operation.metadata.deletionTimestamp
    ? { do: 'rest', forMs: world.timing.idleMs }
    : undefined
}
