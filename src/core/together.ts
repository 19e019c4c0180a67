import type { TalosOperation } from '../api/talos-operation.ts'
import { targetNeeds } from './advance.ts'
import type { Decision } from './decision.ts'
import { look } from './decision.ts'
import { openTargets } from './ledger.ts'
import type { View, World } from './world.ts'

export type Together =
  /** One of them has something to do. */
  | { readonly decision: Decision }
  /** All wait: the operation with the words of each, and when to look again; Infinity where none is open. */
  | { readonly gathered: TalosOperation; readonly forMs: number }

/**
 * Open machines, each in its order: the first that has anything to do but wait does it. While all wait, their words are gathered in one status, and the
 * soonest tells when to look again, so that none is kept waiting by another.
 */
export const together = (operation: TalosOperation, world: World, next: (view: View) => Decision): Together => {
  const open = openTargets(operation.status)
  const unseen = look(world, open.flatMap(targetNeeds))
  if (unseen) return { decision: unseen }
  let gathered = operation
  let forMs = Infinity
  for (const target of open) {
    const decision = next({ operation: gathered, target, world })
    if (decision.do !== 'wait') return { decision }
    gathered = { ...gathered, status: decision.status }
    forMs = Math.min(forMs, decision.forMs)
  }
  return { gathered, forMs }
}
