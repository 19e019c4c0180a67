import type { Random } from './random.ts'
import { createRandom } from './random.ts'

/** Takes an event back; harmless when it has happened. */
export type Cancel = () => void

/**
 * Virtual time: a list of what happens when. Nothing moves by itself; whoever owns the world advances it, either as fast as it can (tests) or
 * along with the wall clock (the demo). Events of one moment run in the order in which they were planned.
 */
export type Schedule = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Milliseconds since the start of the world. */
  readonly monotonic: () => number
  /** At a moment; a moment that is past means now. */
  readonly at: (ms: number, run: () => void) => Cancel
  readonly after: (delayMs: number, run: () => void) => Cancel
  /** When the next event is due; undefined when nothing is planned. */
  readonly next: () => number | undefined
  /** Moves to the next event, if it is due until then, and runs it alone. False when there was none; time is then `until`. */
  readonly step: (until: number) => boolean
  /** Runs all that is due until then, in order. What runs may plan more. */
  readonly advanceTo: (ms: number) => void
  readonly random: Random
  /** How many events have run. */
  readonly steps: () => number
}

type Entry = { readonly at: number; readonly order: number; run: (() => void) | undefined }

const before = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

/** @param options.start Milliseconds since 1970 at which the world begins. */
export const createSchedule = (options: { readonly seed: number; readonly start: number }): Schedule => {
  const heap: Entry[] = []
  let now = options.start
  let order = 0
  let steps = 0

  const swap = (i: number, j: number): void => {
    const [a, b] = [heap[i], heap[j]]
    if (a && b) [heap[i], heap[j]] = [b, a]
  }
  const isBefore = (i: number, j: number): boolean => {
    const [a, b] = [heap[i], heap[j]]
    return a !== undefined && b !== undefined && before(a, b)
  }
  const push = (entry: Entry): void => {
    heap.push(entry)
    for (let i = heap.length - 1; i > 0;) {
      const parent = (i - 1) >> 1
      if (!isBefore(i, parent)) break
      swap(i, parent)
      i = parent
    }
  }
  const pop = (): void => {
    const last = heap.pop()
    if (!last || heap.length === 0) return
    heap[0] = last
    for (let i = 0; ;) {
      let least = i
      for (const child of [2 * i + 1, 2 * i + 2]) if (isBefore(child, least)) least = child
      if (least === i) break
      swap(i, least)
      i = least
    }
  }
  /** Cancelled entries are dropped when they reach the top. */
  const top = (): Entry | undefined => {
    while (heap[0] && !heap[0].run) pop()
    return heap[0]
  }

  const at = (ms: number, run: () => void): Cancel => {
    const entry: Entry = { at: Math.max(now, ms), order: order++, run }
    push(entry)
    return () => {
      entry.run = undefined
    }
  }
  const step = (until: number): boolean => {
    const entry = top()
    if (!entry || entry.at > until) {
      now = Math.max(now, until)
      return false
    }
    pop()
    now = entry.at
    const { run } = entry
    entry.run = undefined
    steps++
    run?.()
    return true
  }

  return {
    now: () => now,
    monotonic: () => now - options.start,
    at,
    after: (delayMs, run) => at(now + Math.max(0, delayMs), run),
    next: () => top()?.at,
    step,
    advanceTo: ms => {
      while (step(ms));
    },
    random: createRandom(options.seed),
    steps: () => steps,
  }
}

/** Lets everything that waits for settled promises go on, before the next event. A caller with a real event loop hands in a better one. */
const microtasks = async (): Promise<void> => {
  for (let i = 0; i < 64; i++) await undefined
}

/**
 * Advances event by event, with room for promises in between, until a condition holds. False when `until` passed, or when nothing is planned any
 * more, without it.
 */
export const advanceUntil = async (
  schedule: Schedule,
  condition: () => boolean,
  options: { readonly until: number; readonly settle?: () => Promise<void> },
): Promise<boolean> => {
  const settle = options.settle ?? microtasks
  await settle()
  while (!condition()) {
    if (schedule.next() === undefined || !schedule.step(options.until)) return false
    await settle()
  }
  return true
}

/** Advances until a promise is settled and answers with its value; throws when nothing more is planned, or `withinMs` passed, without it. */
export const outcome = async <T>(
  schedule: Schedule,
  promise: Promise<T>,
  options: { readonly withinMs?: number; readonly settle?: () => Promise<void> } = {},
): Promise<T> => {
  let over = false
  const end = (): void => {
    over = true
  }
  promise.then(end, end)
  const until = schedule.now() + (options.withinMs ?? 6 * 3_600_000)
  if (!(await advanceUntil(schedule, () => over, { until, settle: options.settle }))) throw new Error('the promise was never settled')
  return promise
}
