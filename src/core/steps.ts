import type { Reason } from '../api/reasons.ts'
import { formatDuration } from '../api/duration.ts'
import type { Act, Step } from './kind.ts'
import { ms } from './ledger.ts'
import type { Need, View } from './world.ts'
import { displayName, isKnown } from './world.ts'

/** Where a target stands in its list of steps, and what follows. */
export type Next =
  | { readonly is: 'done' }
  | { readonly is: 'look'; readonly needs: readonly Need[] }
  | { readonly is: 'enter'; readonly step: Step }
  | { readonly is: 'act'; readonly step: Step; readonly act: Act }
  | { readonly is: 'wait'; readonly step: Step; readonly why: string; readonly until: number | undefined; readonly forMs: number }
  /** What has to hold for a while holds; `since` goes into status. */
  | { readonly is: 'hold'; readonly step: Step; readonly why: string; readonly since: number; readonly forMs: number }
  | { readonly is: 'fail'; readonly step: Step; readonly reason: Reason; readonly message: string }

/**
 * Walks the steps from the last milestone whose evidence is there. Each is asked anew; a step before the recorded one that cannot be told now (the
 * machine is away) counts as done, because it was when the target went past it.
 */
export const nextStep = (all: readonly Step[], view: View): Next => {
  const steps = all.filter((s) => s.applies?.(view) ?? true)
  const recorded = steps.findIndex((s) => s.name === view.target.step)
  const missing = (step: Step): readonly Need[] => (step.needs?.(view) ?? []).filter((n) => !isKnown(view.world.facts, n))

  let from = 0
  for (let i = steps.length - 1; i >= 0; i--) {
    const step = steps[i]
    if (!step?.milestone) continue
    // Past a milestone there is no way back, even when the machine cannot be asked.
    const needs = i < recorded ? [] : missing(step)
    if (needs.length > 0) return { is: 'look', needs }
    if (i < recorded || step.done(view).is === 'yes') {
      from = i + 1
      break
    }
  }

  for (let i = from; i < steps.length; i++) {
    const step = steps[i]
    if (!step) break
    const needs = missing(step)
    if (needs.length > 0) return { is: 'look', needs }
    const answer = step.done(view)
    if (answer.is === 'failed') return { is: 'fail', step, reason: answer.reason, message: answer.message }
    if (answer.is === 'unknown' && i < recorded) continue
    if (answer.is === 'yes') {
      const stable = stability(step, view, step.stableMs?.(view))
      if (stable === undefined || i < recorded) continue
      return i === recorded ? stable : { is: 'enter', step }
    }
    if (i !== recorded) return { is: 'enter', step }
    return current(step, answer.why, view)
  }
  return { is: 'done' }
}

/** What has to hold for a while: undefined once it has, seen at two times that far apart. */
const stability = (step: Step, { target, world }: View, stableMs: number | undefined): Next | undefined => {
  if (stableMs === undefined) return undefined
  const since = target.stableSince === undefined ? world.now : ms(target.stableSince)
  const left = since + stableMs - world.now
  if (target.stableSince !== undefined && left <= 0) return undefined
  return { is: 'hold', step, since, why: `${step.name}: it holds, and must for ${formatDuration(stableMs)}`, forMs: Math.max(left, 1) }
}

/** The current step is not done: wait, act, or give up. */
const current = (step: Step, why: string, view: View): Next => {
  const { target, world } = view
  const began = ms(target.stepStartedAt)
  const limit = step.deadlineMs?.(view)
  const until = limit === undefined ? undefined : began + limit
  const verdict = step.guard?.(view) ?? { may: 'yes' }
  const reason = verdict.may === 'wait' && verdict.reason ? verdict.reason : typeof step.failure === 'function' ? step.failure(view) : step.failure
  const wait = (text: string, forMs = world.timing.pollMs): Next => ({ is: 'wait', step, why: `${step.name}: ${text}`, until, forMs: until === undefined ? forMs : Math.max(1, Math.min(forMs, until - world.now)) })

  if (until !== undefined && world.now >= until) {
    const seen = verdict.may === 'wait' ? verdict.why : why
    return { is: 'fail', step, reason, message: `${displayName(target)}: ${step.name} did not end within ${formatDuration(limit ?? 0)}: ${seen}.${step.remedy ? ` ${step.remedy}` : ''}` }
  }
  const running = world.running.find((r) => r.target === target.name && r.step === step.name)
  if (running) return wait(running.progress || why)
  if (verdict.may === 'no') return { is: 'fail', step, reason: verdict.reason, message: verdict.message }
  if (!step.act) return wait(why)
  const settled = target.actedAt === undefined || world.now - ms(target.actedAt) >= (step.settleMs?.(view) ?? 0)
  if (!settled) return wait(why)
  if (verdict.may === 'wait') return wait(verdict.why)
  return stability(step, view, step.guardStableMs?.(view)) ?? { is: 'act', step, act: step.act }
}
