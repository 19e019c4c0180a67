import type { Clock } from '../ports/clock.ts'

/** What a long act says of itself, as far as it is worth writing down: at most one change in so much time, but for a leap. */
export type Progress = { readonly tell: (message: string) => void; readonly shown: () => string }

/** So many percent more are told at once. */
const LEAP = 10

/**
 * Machines say something with every line and every percent, and each change of a status is a write that wakes all who watch it.
 *
 * @param options.everyMs How long a message stands, where no leap comes.
 */
export const createProgress = (options: { readonly clock: Clock; readonly everyMs: number }): Progress => {
  const { clock, everyMs } = options
  let latest = ''
  let shown = ''
  let shownAt = -Infinity
  return {
    tell: message => {
      latest = message
    },
    shown: () => {
      const now = clock.monotonic()
      if (latest !== shown && (now - shownAt >= everyMs || percentOf(latest) >= percentOf(shown) + LEAP)) {
        shown = latest
        shownAt = now
      }
      return shown
    },
  }
}

/** NaN where it tells none: then nothing is a leap. */
const percentOf = (message: string): number => Number(/\b(\d{1,3}) %/.exec(message)?.[1] ?? Number.NaN)
