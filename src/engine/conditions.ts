import type { Condition } from '../api/schema.ts'
import { iso } from '../core/ledger.ts'

/** A condition as it stands now, for the generation that was looked at; the time of its last change is kept where its status is the same. */
export const condition = (
  before: readonly Condition[] | undefined,
  generation: number,
  now: number,
  told: Pick<Condition, 'status' | 'reason' | 'message'> & { readonly type?: string },
): Condition => {
  const { type = 'Ready', status, reason, message } = told
  const old = before?.find(c => c.type === type)
  return {
    ...{ type, status, reason, message },
    observedGeneration: generation,
    lastTransitionTime: old?.status === status ? old.lastTransitionTime : iso(now),
  }
}
