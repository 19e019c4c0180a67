import type { Reason } from '../api/reasons.ts'
import { formatDuration } from '../api/duration.ts'
import type { Act, Answer, Step, Verdict } from './kind.ts'
import { YES } from './kind.ts'
import { ms } from './ledger.ts'
import type { Need, RunningAct, View } from './world.ts'
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
 * machine is away) counts as done, because it was when the target went past it. Only the end waits until it can be told again.
 */
export const nextStep = (all: readonly Step[], view: View): Next => {
  const steps = all.filter(s => s.applies?.(view) ?? true)
  const recorded = steps.findIndex(s => s.name === view.target.step)
  const missing = (step: Step): readonly Need[] => unknownOf(view, step.needs)

  let from = 0
  for (let i = steps.length - 1; i >= 0; i--) {
    const step = steps[i]
    if (!step?.milestone) continue
    // Once a milestone's act was intended, what came before it is not done again, and past it there is no way back even when the machine cannot be asked.
    if (i === recorded && view.target.actedAt !== undefined) {
      from = i
      break
    }
    const needs = i < recorded ? [] : missing(step)
    if (needs.length > 0) return { is: 'look', needs }
    if (i < recorded || step.done(view).is === 'yes') {
      // What has to hold for a while is not there yet: it is looked at from here on, and what came before is history all the same.
      from = i < recorded || !step.stableMs?.(view) ? i + 1 : i
      break
    }
  }

  let unseen: Extract<Answer, { is: 'unknown' }> | undefined
  for (const [i, step] of steps.entries()) {
    if (i < from) continue
    const needs = missing(step)
    if (needs.length > 0) return { is: 'look', needs }
    const answer = step.done(view, i < recorded)
    if (answer.is === 'failed') {
      // What is seen while our own act is on its way may be half of that: it is judged when the act has ended, or its time is over.
      const now = steps[recorded]
      if (now && i < recorded && runningAct(now, view)) return current(now, { is: 'unknown', why: answer.message }, view)
      return { is: 'fail', step, reason: answer.reason, message: answer.message }
    }
    if (answer.is === 'unknown' && i < recorded) {
      unseen ??= answer
      continue
    }
    if (answer.is === 'yes') {
      const stable = stability(step, view, step.stableMs?.(view), answer.but ?? 'all is well')
      if (stable === undefined || i < recorded) continue
      return i === recorded ? stable : { is: 'enter', step }
    }
    if (i !== recorded) return { is: 'enter', step }
    return current(step, answer, view)
  }
  // Only now is known what the step itself needs to know.
  const last = steps[recorded]
  return unseen && last ? current(last, unseen, view) : { is: 'done' }
}

const runningAct = (step: Step, { target, world }: View): RunningAct | undefined =>
  world.running.find(r => r.target === target.name && r.step === step.name)

const unknownOf = (view: View, needs: Step['needs']): readonly Need[] => (needs?.(view) ?? []).filter(n => !isKnown(view.world.facts, n))

/** So many looks fall into the time for which something has to hold, where they need not follow faster than the world is asked anyway. */
const LOOKS = 10

/**
 * What has to hold for a while: undefined once it has, at looks of which none is missing. Right after a time in which nothing could be seen the shadows
 * of what was before may still stand there, so the end of that while has to be in sight without a gap.
 */
const stability = (step: Step, { target, world }: View, stableMs: number | undefined, what: string): Next | undefined => {
  if (stableMs === undefined) return undefined
  const { now, watchedMs, timing } = world
  const since = target.stableSince === undefined ? now : ms(target.stableSince)
  const left = Math.max(since + stableMs - now, Math.min(stableMs, timing.etcdStableMs) - watchedMs)
  const soon = Math.max(timing.pollMs, Math.min(stableMs / LOOKS, timing.idleMs))
  if (target.stableSince !== undefined && left <= 0) return undefined
  return {
    is: 'hold',
    step,
    since,
    why: `${step.name}: ${what}; confirming${stableMs < 1000 ? '' : ` for ${formatDuration(stableMs)}`}`,
    forMs: Math.max(1, Math.min(left, soon)),
  }
}

const remedyOf = ({ remedy }: Step, view: View): string => {
  const text = typeof remedy === 'function' ? remedy(view) : remedy
  return text ? ` ${text}` : ''
}

/** The current step is not done: wait, act, or give up. */
const current = (step: Step, answer: Extract<Answer, { readonly why: string }>, view: View): Next => {
  const { target, world } = view
  const limit = step.deadlineMs?.(view)
  const until = limit === undefined ? undefined : ms(target.stepStartedAt) + limit
  const running = runningAct(step, view)
  const settles = target.actedAt !== undefined && world.now - ms(target.actedAt) < (step.settleMs?.(view) ?? 0)
  const retryInMs = target.retryAt === undefined ? 0 : ms(target.retryAt) - world.now
  // Where it cannot be told whether the act is needed, it is not given, and nobody asks whether it might be.
  const isDue = step.act !== undefined && answer.is === 'no' && !running && !settles && retryInMs <= 0

  if (isDue) {
    const needs = unknownOf(view, step.guardNeeds)
    if (needs.length > 0) return { is: 'look', needs }
  }
  const verdict: Verdict = isDue && step.guard ? step.guard(view) : YES
  const why = verdict.may === 'wait' ? verdict.why : answer.why
  const seen = target.fault === undefined ? why : `${why}; the last try: ${target.fault}`
  // A clock that was set must not end what has just been begun: while the act runs, its time is the one for which it was in sight.
  const isOver = limit !== undefined && until !== undefined && world.now >= until && (!running || world.watchedMs >= limit)
  if (isOver) {
    const reason =
      verdict.may === 'wait' && verdict.reason ? verdict.reason : typeof step.failure === 'function' ? step.failure(view) : step.failure
    return {
      is: 'fail',
      step,
      reason,
      message: `${displayName(target)}: ${step.name} did not end within ${formatDuration(limit)}: ${seen}.${remedyOf(step, view)}`,
    }
  }
  if (verdict.may === 'no') return { is: 'fail', step, reason: verdict.reason, message: verdict.message }
  if (isDue && verdict.may === 'yes' && step.act)
    return stability(step, view, step.guardStableMs?.(view), 'nothing speaks against it') ?? { is: 'act', step, act: step.act }
  const soon = retryInMs > 0 ? Math.min(world.timing.pollMs, retryInMs) : world.timing.pollMs
  const forMs = until === undefined || until <= world.now ? soon : Math.max(1, Math.min(soon, until - world.now))
  return { is: 'wait', step, why: `${step.name}: ${running?.progress || seen}`, until, forMs }
}
