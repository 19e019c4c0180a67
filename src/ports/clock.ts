/** Time, handed in. Wall time is for people and for status; durations that must not jump are measured on the monotonic clock. */
export type Clock = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Milliseconds since some fixed moment of this process; never goes back. */
  readonly monotonic: () => number
  /** Runs once after so many milliseconds. The answer cancels it. */
  readonly after: (ms: number, run: () => void) => () => void
}

/** How a caller takes back what it asked for. The engine cancels long acts when leadership or the lock is lost. */
export type Cancellation = {
  readonly cancelled: boolean
  /** Runs when cancelled (at once if it already is). The answer unsubscribes. */
  readonly onCancel: (run: () => void) => () => void
}
