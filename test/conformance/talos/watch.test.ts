// A machine is watched, once through the world's own port and once over the wire with the adapter: word of a change comes both ways.
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { talosConnection } from '../../../src/adapters/talos/connection.ts'
import type { Talos } from '../../../src/ports/talos.ts'
import { requestReboot } from '../../../src/world/reboot.ts'
import { createClient } from '../../../src/world/ports/client.ts'
import { createTalos } from '../../../src/world/ports/talos.ts'
import { startMachines } from '../../machines-on-the-wire.ts'
import { realClock } from '../../scripted-talos.ts'

vi.setConfig({ testTimeout: 60_000 })

const soon = { timeout: 30_000, interval: 20 }

/** Looks at the machine whenever there is word of it, as the engine does, and keeps what was new. */
const follow = (talos: Talos, address: string) => {
  const seen: string[] = []
  let isEnded = false
  const look = async (): Promise<void> => {
    const facts = await talos.machine(address)
    if (facts.ok) seen.push(`${facts.value.bootID} ${facts.value.stage} ${facts.value.ready}`)
  }
  const stop = talos.watch(address, what => {
    if (what === 'ended') isEnded = true
    void look()
  })
  onTestFinished(stop)
  return { seen, isEnded: () => isEnded }
}

describe.each(['v1.12.5', 'v1.14.0-rc.1'])('a machine with Talos %s', version => {
  test('is followed through a reboot by word of its changes alone', async () => {
    // It takes its time to go down: three seconds of ours, in which it can be seen on its way.
    const durations = { stopPods: [60_000, 60_000] } as const
    const machines = await startMachines({ seed: 7, controlPlanes: 1, workers: 1, speed: 20, talos: version, durations })
    onTestFinished(machines.close)
    const wire = talosConnection({ talosconfig: await machines.talosconfig(), clock: realClock })
    if (!wire.ok) throw new Error(wire.fault.message)
    onTestFinished(wire.value.destroy)
    const port = createTalos(machines.world, createClient(machines.world, 'test'), {
      role: 'os:admin',
      begins: 0,
      expires: Infinity,
      authorityExpires: Infinity,
    })
    const worker = machines.world.machine('wk-1')
    const before = worker.bootID
    const both = [wire.value, port].map(talos => follow(talos, machines.address(1)))
    await vi.waitFor(() => expect(both.every(({ seen }) => seen.at(-1) === `${before} running true`)).toBe(true), soon)

    requestReboot(machines.world.site, worker, 'default')
    await vi.waitFor(() => expect(both.every(({ seen }) => seen.some(now => now.startsWith(`${before} rebooting`)))).toBe(true), soon)
    await vi.waitFor(() => expect(worker.bootID).not.toBe(before), soon)
    await vi.waitFor(() => expect(both.every(({ seen }) => seen.at(-1) === `${worker.bootID} running true`)).toBe(true), soon)

    wire.value.close()
    await vi.waitFor(() => expect(both.map(({ isEnded }) => isEnded())).toEqual([true, false]), soon)
  })
})
