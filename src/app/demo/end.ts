import { whenOrphaned } from './parents.ts'

/** The ends that come from outside: a signal, the loss of whoever started us, or a fault in the background. */
export type End = {
  /** With an exit code, or a fault. */
  readonly came: Promise<number>
  readonly fail: (error: unknown) => void
  /** All has been shown: Ctrl-C is now how one ends it, and no interruption. */
  readonly isOver: () => void
  readonly close: () => void
}

/** Listens for signals from here on, until it is closed. */
export const endOf = (): End => {
  let isDone = false
  let resolve: (code: number) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const came = new Promise<number>((fulfil, refuse) => {
    resolve = fulfil
    reject = refuse
  })
  // It may come when nobody waits for it any more.
  came.catch(() => {})
  let asked = 0
  const onSignal = (signal: NodeJS.Signals): void => {
    // Whoever asks twice does not want to wait; the watch over the children ends them.
    if (asked++ > 0) process.exit(130)
    resolve(signal === 'SIGINT' ? (isDone ? 0 : 130) : signal === 'SIGHUP' ? 129 : 143)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, onSignal)
  const stopLooking = whenOrphaned(() => resolve(1))
  return {
    came,
    fail: error => reject(error),
    isOver: () => {
      isDone = true
    },
    close: () => {
      stopLooking()
      for (const signal of signals) process.removeListener(signal, onSignal)
    },
  }
}
