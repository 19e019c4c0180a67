// Two doors to the same machines: the wire, through the adapter, and the world's own port.
import { afterEach } from 'vitest'
import { talosConnection, type TalosConnection } from '../../../src/adapters/talos/connection.ts'
import type { Talos } from '../../../src/ports/talos.ts'
import { createClient } from '../../../src/world/ports/client.ts'
import { createTalos } from '../../../src/world/ports/talos.ts'
import { type Machines, startMachines } from '../../machines-on-the-wire.ts'
import { realClock } from '../../scripted-talos.ts'

export type Doors = { readonly machines: Machines; readonly wire: TalosConnection; readonly port: Talos }

const open: { close: () => unknown }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

/** Three control planes and a worker, until the end of the test. */
export const startDoors = async (options: Partial<Parameters<typeof startMachines>[0]>): Promise<Doors> => {
  const machines = await startMachines({ seed: 11, controlPlanes: 3, workers: 1, speed: 0, ...options })
  open.push(machines)
  const wire = talosConnection({ talosconfig: await machines.talosconfig(), clock: realClock })
  if (!wire.ok) throw new Error(wire.fault.message)
  open.push(wire.value)
  const port = createTalos(machines.world, createClient(machines.world, 'test'), {
    role: 'os:admin',
    begins: 0,
    expires: Infinity,
    authorityExpires: Infinity,
  })
  return { machines, wire: wire.value, port }
}
