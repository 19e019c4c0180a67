import type { Clock } from '../ports/clock.ts'

/** The machine's own clock. */
export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after: (ms, run) => {
    // setTimeout takes 32 bits; what lies further off is looked at again then.
    const timer = setTimeout(run, Math.min(ms, 2_147_483_647))
    return () => clearTimeout(timer)
  },
}
