import type { Clock } from '../ports/clock.ts'

/**
 * What a pass answers: look again after so long, or as soon as something changes. `failed` makes the next look come later each time; `lost` tells that
 * what it saw could not be written down.
 */
export type Next = { readonly againMs?: number; readonly failed?: boolean; readonly lost?: boolean }

export type Queue = {
  readonly add: (key: string) => void
  readonly addAfter: (key: string, ms: number) => void
  /** Takes nothing new; answers when the passes that run have ended. */
  readonly stop: () => Promise<void>
  /** Keys that are due or being worked on. */
  readonly depth: () => number
  /** How long the oldest of them has been due and worked on, in milliseconds; 0 where there is none. In a queue that is stuck it only grows. */
  readonly oldestMs: () => number
}

type Options = {
  readonly clock: Clock
  /** 0 <= x < 1, for jitter. */
  readonly random: () => number
  readonly concurrency: number
  readonly work: (key: string) => Promise<Next>
  /** A pass threw. That is a fault of ours; the key is tried again later. */
  readonly crashed: (key: string, error: unknown) => void
}

const FIRST_BACKOFF_MS = 500
const LAST_BACKOFF_MS = 60_000

/** So many passes of a key follow each other at once; work that takes more, as a long list of machines to skip, goes on a little slower. */
const AT_ONCE = 100
/** By so much each further hundred makes the pause longer: a fault of ours that never asks for one must leave the others their turn, and the API its peace. */
const PAUSE_MS = 10
const LONGEST_PAUSE_MS = 1_000

/**
 * Names of things to look at, each at most once, none of them twice at the same time. A key that is added while it is worked on is looked at once
 * more afterwards. The queue holds names only: what to do is read when the work starts.
 */
export const createQueue = ({ clock, random, concurrency, work, crashed }: Options): Queue => {
  const due: string[] = []
  /** When each key that is due or worked on became so; monotonic. */
  const since = new Map<string, number>()
  const dirty = new Set<string>()
  const busy = new Set<string>()
  const later = new Map<string, { readonly at: number; readonly cancel: () => void }>()
  const failures = new Map<string, number>()
  /** How many passes of a key have followed each other without any time in between. */
  const turns = new Map<string, number>()
  let stopped = false
  let idle: Promise<void> | undefined
  let allIdle: (() => void) | undefined

  const add = (key: string): void => {
    if (stopped || dirty.has(key)) return
    dirty.add(key)
    later.get(key)?.cancel()
    later.delete(key)
    if (busy.has(key)) return
    isDue(key)
    start()
  }

  const isDue = (key: string): void => {
    due.push(key)
    since.set(key, clock.monotonic())
  }

  const addAfter = (key: string, ms: number): void => {
    if (stopped || dirty.has(key)) return
    if (ms <= 0) return add(key)
    const at = clock.monotonic() + ms
    const planned = later.get(key)
    if (planned && planned.at <= at) return
    planned?.cancel()
    const cancel = clock.after(ms, () => {
      later.delete(key)
      add(key)
    })
    later.set(key, { at, cancel })
  }

  const start = (): void => {
    while (!stopped && busy.size < concurrency) {
      const key = due.shift()
      if (key === undefined) return
      dirty.delete(key)
      busy.add(key)
      void run(key)
    }
  }

  const backoffMs = (key: string): number => {
    const n = (failures.get(key) ?? 0) + 1
    failures.set(key, n)
    return Math.min(FIRST_BACKOFF_MS * 2 ** (n - 1), LAST_BACKOFF_MS) * (0.75 + random() / 2)
  }

  /** Before a pass that is due at once. */
  const pauseMs = (key: string): number => {
    const n = (turns.get(key) ?? 0) + 1
    turns.set(key, n)
    return Math.min(Math.floor(n / AT_ONCE) * PAUSE_MS, LONGEST_PAUSE_MS)
  }

  const run = async (key: string): Promise<void> => {
    let next: Next
    try {
      next = await work(key)
    } catch (error) {
      crashed(key, error)
      next = { failed: true }
    }
    busy.delete(key)
    since.delete(key)
    const afterMs = next.failed ? Math.max(next.againMs ?? 0, backoffMs(key)) : next.againMs
    if (!next.failed) failures.delete(key)
    // Added while it was worked on: due at once, and what the pass said about later does not count any more.
    if (dirty.delete(key) || (afterMs !== undefined && afterMs <= 0)) addAfter(key, pauseMs(key))
    else {
      turns.delete(key)
      if (afterMs !== undefined) addAfter(key, afterMs)
    }
    start()
    if (stopped && busy.size === 0) allIdle?.()
  }

  return {
    add,
    addAfter,
    depth: () => due.length + busy.size,
    oldestMs: () => (since.size === 0 ? 0 : clock.monotonic() - Math.min(...since.values())),
    stop: () => {
      stopped = true
      for (const { cancel } of later.values()) cancel()
      later.clear()
      idle ??= busy.size === 0 ? Promise.resolve() : new Promise(resolve => (allIdle = resolve))
      return idle
    },
  }
}
