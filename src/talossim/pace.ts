import { Transform } from 'node:stream'

/** How slow a network is right now. */
export type Pace = {
  /** So many milliseconds pass before anything arrives. */
  readonly delayMs: number
  /** Undefined: as much as fits. */
  readonly bytesPerSecond: number | undefined
}

/** Bytes that may be under way; whoever sends more waits. */
const UNDER_WAY = 1024 * 1024

/**
 * Hands bytes on in their order, late by the pace of the moment at which they came.
 * @param after Plans something, milliseconds from now.
 */
export const slowly = (
  pace: () => Pace,
  clock: { readonly now: () => number; readonly after: (ms: number, run: () => void) => void },
): Transform => {
  let underWay = 0
  let free = 0
  let next: (() => void) | undefined
  let end: (() => void) | undefined
  const arrived = (transform: Transform, chunk: Buffer): void => {
    underWay -= chunk.length
    transform.push(chunk)
    if (underWay < UNDER_WAY) next?.()
    if (underWay < UNDER_WAY) next = undefined
    if (underWay === 0) end?.()
  }
  return new Transform({
    transform(chunk: Buffer, _, done) {
      const { delayMs, bytesPerSecond } = pace()
      const now = clock.now()
      const takes = bytesPerSecond === undefined ? 0 : (chunk.length / bytesPerSecond) * 1000
      if (underWay === 0 && delayMs === 0 && takes === 0) return done(null, chunk)
      free = Math.max(free, now) + takes
      const due = Math.max(free, now + delayMs)
      underWay += chunk.length
      clock.after(due - now, () => {
        if (!this.destroyed) arrived(this, chunk)
      })
      if (underWay < UNDER_WAY) done()
      else next = done
    },
    flush(done) {
      if (underWay === 0) done()
      else end = done
    },
  })
}
