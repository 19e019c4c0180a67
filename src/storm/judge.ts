import type { Violation } from './checker.ts'
import type { Wish } from './draw.ts'
import { drawPlan } from './draw.ts'
import type { Plan } from './plan.ts'
import { shrinkPlan } from './shrink.ts'
import type { StormOptions } from './storm.ts'
import { playPlan } from './storm.ts'

/** What came of one seed, as far as it is told to others. */
export type Verdict = {
  readonly seed: number
  readonly violations: readonly Violation[]
  /** Phase and reason of each operation in the end. */
  readonly ends: readonly string[]
  readonly calls: number
  readonly virtualMs: number
}

export const judge = async (plan: Plan, options: StormOptions = {}): Promise<Verdict & { readonly text: string }> => {
  try {
    const { violations, stage, text } = await playPlan(plan, options)
    const { world } = stage.story
    return {
      seed: plan.seed,
      violations,
      ends: stage.operations().map(({ status }) => [status.phase, status.failureReason].filter(Boolean).join(' ')),
      calls: world.calls.count(),
      virtualMs: world.schedule.monotonic(),
      text: violations.length > 0 ? text() : '',
    }
  } catch (error) {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { seed: plan.seed, violations: [{ checker: 'it-can-be-played', at: 0, what }], ends: [], calls: 0, virtualMs: 0, text: what }
  }
}

/** The story of a seed, whether or not anything is wrong with it. */
export const replay = async (plan: Plan): Promise<{ readonly text: string; readonly violations: readonly Violation[] }> => {
  const run = await playPlan(plan)
  return { text: run.text(), violations: run.violations }
}

/** The smallest plan in which the same checker objects. */
export const shrink = (wish: Wish, checker: string): Promise<Plan> =>
  shrinkPlan(drawPlan(wish), async plan => (await judge(plan)).violations.some(v => v.checker === checker))
