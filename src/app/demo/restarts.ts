/** What a Deployment needs until the next one runs. */
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 5_000
const SHORT_LIFE_MS = 5_000
/** Who ends with an error sooner, so many times in a row, will never run. */
const MOST_ERRORS = 5
/** A shell adds this to the number of the signal that ended its child. */
const SIGNALS_FROM = 128

export type Restarts = {
  /** After how long the next one is to start, in milliseconds; `never` when it is of no use. */
  readonly after: (life: { readonly exitCode: number; readonly livedMs: number }) => number | 'never'
}

/**
 * When a process that ended is to be started again: slower and slower while it does not live long. One that was killed or asked to go says nothing about the
 * next, however often that happens; only its own errors in a row do.
 */
export const createRestarts = (): Restarts => {
  let shortLives = 0
  let errors = 0
  return {
    after: ({ exitCode, livedMs }) => {
      const isShort = livedMs < SHORT_LIFE_MS
      const isOwnError = exitCode > 0 && exitCode <= SIGNALS_FROM
      shortLives = isShort ? shortLives + 1 : 0
      errors = isShort && isOwnError ? errors + 1 : 0
      if (errors >= MOST_ERRORS) return 'never'
      return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.max(0, shortLives - 1))
    },
  }
}
