// The same questions and acts, once through the world's own port and once over the wire with the adapter: the answers have to be the same.
import { describe, expect, test, vi } from 'vitest'
import type { LongCall } from '../../../src/ports/talos.ts'
import type { Machine } from '../../../src/world/machine.ts'
import type { Machines } from '../../machines-on-the-wire.ts'
import { startDoors } from './doors.ts'

vi.setConfig({ testTimeout: 30_000 })

const SCHEMATIC = '376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'

const call = (): LongCall & { readonly lines: string[] } => {
  const lines: string[] = []
  return { lines, progress: line => lines.push(line), cancellation: { cancelled: false, onCancel: () => () => {} } }
}

describe.each(['v1.12.5', 'v1.13.5', 'v1.14.0-rc.1'])('Talos %s', version => {
  const factory = { talos: version, schematic: SCHEMATIC, extensions: ['iscsi-tools'], kubernetes: 'v1.34.2' }

  test('what machines, members and etcd say', async () => {
    const { machines, wire, port } = await startDoors({ ...factory, etcdQuotaBytes: 8 * 1024 ** 3 })
    expect(await wire.members(machines.address(3))).toEqual(await port.members(machines.address(3)))
    expect(await wire.machine(machines.address(0))).toEqual(await port.machine(machines.address(0)))
    // What a worker says of etcd's quota means nothing.
    const worker = await port.machine(machines.address(3))
    if (!worker.ok) throw new Error(worker.fault.message)
    expect(await wire.machine(machines.address(3))).toMatchObject({
      ok: true,
      value: { ...worker.value, etcdQuotaBytes: expect.any(Number) as number },
    })
    machines.world.etcd.raiseAlarm(machines.world.member(1).id, 'NOSPACE')
    expect(await wire.etcd(machines.address(1))).toEqual(await port.etcd(machines.address(1)))
    const [onWorker, inPort] = [await wire.etcd(machines.address(3)), await port.etcd(machines.address(3))]
    expect([onWorker.ok, inPort.ok]).toEqual([false, false])
    if (!onWorker.ok && !inPort.ok) expect(onWorker.fault.kind).toBe(inPort.fault.kind)
  })

  test('an upgrade to its end', async () => {
    const { machines, wire } = await startDoors({ ...factory, speed: 200 })
    const address = machines.address(1)
    const target = version === 'v1.14.0-rc.1' ? 'v1.14.0-beta.1' : version.replace(/\.\d+$/, '.6')
    const image = `factory.talos.dev/metal-installer/${SCHEMATIC}:${target}`
    const machine = machines.world.machine(1)
    const before = machine.bootID

    const missing = await wire.pull(address, image.replace(target, 'v1.13.99'), call())
    expect(missing).toMatchObject({ ok: false, fault: { kind: 'notFound' } })
    const pulled = await wire.pull(address, image, call())
    if (!pulled.ok) throw new Error(pulled.fault.message)
    if (version === 'v1.12.5') {
      expect(await wire.upgrade(address, { image: pulled.value, preserve: true, rebootMode: 'default' })).toEqual({
        ok: true,
        value: undefined,
      })
    } else {
      const long = call()
      expect(await wire.install(address, pulled.value, long)).toMatchObject({ ok: true, value: { exitCode: 0 } })
      expect(long.lines.length).toBeGreaterThan(2)
      expect(await wire.reboot(address, 'default')).toEqual({ ok: true, value: undefined })
    }
    await vi.waitFor(() => expect(cameBack(machines, machine, before)).toBe(true), 20_000)
    expect(await wire.machine(address)).toMatchObject({
      ok: true,
      value: { version: target, bootID: machine.bootID, stage: 'running', ready: true },
    })

    expect(await wire.setInstallImage(address, image)).toEqual({ ok: true, value: undefined })
    expect(machine.config).toContain(`image: ${image}\n`)
  })
})

function cameBack({ world }: Machines, machine: Machine, before: string): boolean {
  return machine.bootID !== before && world.isUp(machine)
}

test('leadership moves, and a machine that is off is unreachable', async () => {
  const { machines, wire } = await startDoors({ speed: 200 })
  const { world } = machines
  const was = world.etcd.leader()
  const leading = [0, 1, 2].find(index => world.member(index).id === was)!
  expect(await wire.forfeitLeadership(machines.address(leading))).toEqual({ ok: true, value: undefined })
  expect(world.etcd.leader()).not.toBe(was)
  world.powerOff(3)
  expect(await wire.machine(machines.address(3))).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
})
