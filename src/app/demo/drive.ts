import { setImmediate } from 'node:timers/promises'
import type { Schedule } from '../../world/time.ts'

/** The longest that the world stands still: what a call plans is due by then, too. */
const TICK_MS = 10
/** What happens at once at most, before others (sockets, promises) have their turn. */
const STRIDE_MS = 50

/**
 * Lets the world's time run along with the wall clock, from `schedule.now()` on: it must have begun at about the present. Answers how to stop it. What an event of
 * the world throws goes to `failed`, and the world stands still from then on.
 */
export const drive = (schedule: Schedule, failed: (error: unknown) => void): (() => void) => {
  let isStopped = false
  let timer: NodeJS.Timeout | undefined

  const catchUp = async (): Promise<void> => {
    // After a sleep of the whole computer there is much to catch up with.
    for (let now = Date.now(); schedule.now() < now && !isStopped; now = Date.now()) {
      schedule.advanceTo(Math.min(now, schedule.now() + STRIDE_MS))
      if (schedule.now() < now) await setImmediate()
    }
    if (!isStopped) timer = setTimeout(turn, TICK_MS)
  }
  const turn = (): void => {
    catchUp().catch((error: unknown) => {
      isStopped = true
      failed(error)
    })
  }
  turn()
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
