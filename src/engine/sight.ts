import type { Clock } from '../ports/clock.ts'
import type { Next } from './queue.ts'

/** For how long each operation has been in sight without a gap, by the clock that nobody sets. */
export type Sight = {
  /** One look. It hears how long, in milliseconds, those before it were unbroken: 0 at the first, and at the first after a gap. */
  readonly look: (key: string, pass: (watchedMs: number) => Promise<Next>) => Promise<Next>
}

/**
 * What could not be seen, or not be written down, is a gap; so is a look that comes much later than the one before it had ended: a process that was
 * stopped for a while has not watched meanwhile.
 *
 * @param options.longestGapMs From the end of a look to the begin of the next.
 */
export const createSight = ({ clock, longestGapMs }: { readonly clock: Clock; readonly longestGapMs: number }): Sight => {
  const seen = new Map<string, { readonly since: number; readonly until: number }>()
  return {
    look: async (key, pass) => {
      const now = clock.monotonic()
      const before = seen.get(key)
      const since = before && now - before.until <= longestGapMs ? before.since : now
      seen.delete(key)
      const next = await pass(now - since)
      // Whatever is not looked at again by time has nothing that must hold for one.
      if (!next.failed && !next.lost && next.againMs !== undefined) seen.set(key, { since, until: clock.monotonic() })
      return next
    },
  }
}
