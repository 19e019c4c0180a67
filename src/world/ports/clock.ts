import type { Clock } from '../../ports/clock.ts'
import type { World } from '../cluster.ts'
import type { Client } from './client.ts'

/** Virtual time. A killed client's timers do not run. */
export const createClock = (world: World, client: Client): Clock => ({
  now: world.schedule.now,
  monotonic: world.schedule.monotonic,
  after: (ms, run) =>
    world.schedule.after(ms, () => {
      if (client.isAlive()) run()
    }),
})
