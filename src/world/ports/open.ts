import type { ResourceDefinition } from '../../api/schema.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Connections } from '../../ports/connections.ts'
import type { Home } from '../../ports/home.ts'
import type { World } from '../cluster.ts'
import type { Client } from './client.ts'
import { createClient } from './client.ts'
import { createClock } from './clock.ts'
import { createConnections } from './connections.ts'
import { createHome } from './home.ts'

/** All that one process sees of the world. */
export type Ports = {
  readonly client: Client
  readonly clock: Clock
  readonly home: Home
  readonly connections: Connections
  /** kill -9: from here on nothing of this process has an effect, and none of its calls is answered. */
  readonly kill: () => void
}

/** @param options.name Names the process in `world.calls`. */
export const openPorts = (world: World, options: { readonly name: string; readonly operation?: ResourceDefinition }): Ports => {
  const client = createClient(world, options.name)
  return {
    client,
    clock: createClock(world, client),
    home: createHome(world, client, options.operation),
    connections: createConnections(world, client),
    kill: client.kill,
  }
}
