import { performance } from 'node:perf_hooks'
import type { Clock } from '../../src/ports/clock.ts'

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

export type FakeClock = Clock & {
  /** Moves the time on and runs what is due, in its order. */
  readonly advance: (ms: number) => void
  /** How far away each timer is, nearest first. */
  readonly waits: () => readonly number[]
}

export const fakeClock = (start = Date.UTC(2026, 0, 1)): FakeClock => {
  let now = 0
  let timers: { readonly at: number; readonly run: () => void }[] = []
  return {
    now: () => start + now,
    monotonic: () => now,
    after: (ms, run) => {
      const timer = { at: now + ms, run }
      timers = [...timers, timer].toSorted((a, b) => a.at - b.at)
      return () => {
        timers = timers.filter(one => one !== timer)
      }
    },
    advance: ms => {
      const end = now + ms
      for (let next = timers[0]; next && next.at <= end; next = timers[0]) {
        timers = timers.slice(1)
        now = next.at
        next.run()
      }
      now = end
    },
    waits: () => timers.map(({ at }) => at - now),
  }
}
