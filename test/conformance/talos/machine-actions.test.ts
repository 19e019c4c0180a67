// What can be done to one machine, through the world's own port and over the wire with the adapter: the same effect, and the same sort of answer.
import { describe, expect, it, vi } from 'vitest'
import type { Result } from '../../../src/ports/fault.ts'
import type { LongCall } from '../../../src/ports/talos.ts'
import { startDoors } from './doors.ts'

vi.setConfig({ testTimeout: 60_000 })

const start = () => startDoors({ speed: 100 })

const call: LongCall = { progress: () => {}, cancellation: { cancelled: false, onCancel: () => () => {} } }
const kindOf = (result: Result<unknown>): string => (result.ok ? 'ok' : result.fault.kind)
const WORKER = 3

describe.each(['wire', 'port'] as const)('through the %s', door => {
  it('services are told, and the kubelet is restarted', async () => {
    const doors = await start()
    const { machines, [door]: talos } = doors
    const address = machines.address(WORKER)
    const before = await talos.service(address, 'kubelet')
    expect(before).toMatchObject({ ok: true, value: { id: 'kubelet', state: 'Running', health: 'healthy' } })
    expect(await talos.service(address, 'ext-nothing')).toEqual({ ok: true, value: undefined })
    expect(await talos.restartService(address, 'kubelet')).toEqual({ ok: true, value: undefined })
    const startedAt = before.ok ? (before.value?.startedAt ?? 0) : 0
    await vi.waitFor(async () => {
      const now = await talos.service(address, 'kubelet')
      expect(now).toMatchObject({ ok: true, value: { state: 'Running', health: 'healthy' } })
      expect(now.ok ? now.value?.startedAt : 0).toBeGreaterThan(startedAt)
    }, 20_000)
    expect(kindOf(await talos.restartService(address, 'apid'))).toBe('unsupported')
    expect(kindOf(await talos.restartService(address, 'ext-nothing'))).toBe('notFound')
  })

  it('a database is defragmented, an alarm disarmed', async () => {
    const { machines, [door]: talos } = await start()
    const member = machines.world.member(1)
    member.dbSize = member.dbSizeInUse * 4
    machines.world.etcd.raiseAlarm(member.id, 'NOSPACE')
    expect(await talos.defragment(machines.address(1), call)).toEqual({ ok: true, value: undefined })
    expect(member.dbSize).toBe(member.dbSizeInUse)
    expect(await talos.disarmAlarms(machines.address(1))).toEqual({ ok: true, value: undefined })
    expect(machines.world.etcd.alarms()).toEqual([])
    expect(kindOf(await talos.defragment(machines.address(WORKER), call))).toBe('unsupported')
  })

  it('a member leaves by itself, another is taken out by its id, and one that is gone is no fault', async () => {
    const { machines, [door]: talos } = await start()
    const [first, second] = [machines.world.member(1).id, machines.world.member(2).id]
    const ids = () => machines.world.etcd.members().map(m => m.id)
    expect(await talos.leaveEtcd(machines.address(1), call)).toEqual({ ok: true, value: undefined })
    expect(ids()).not.toContain(first)
    expect(await talos.removeMember(machines.address(0), first)).toEqual({ ok: true, value: undefined })
    expect(await talos.removeMember(machines.address(0), second)).toEqual({ ok: true, value: undefined })
    expect(ids()).toHaveLength(1)
    // The last one stays.
    expect(kindOf(await talos.removeMember(machines.address(0), ids()[0] ?? ''))).not.toBe('ok')
    expect(ids()).toHaveLength(1)
  })

  it('a machine is wiped and seen in maintenance, where nobody else is', async () => {
    const { machines, [door]: talos } = await start()
    const machine = machines.world.machine(WORKER)
    const address = machines.address(WORKER)
    expect(kindOf(await talos.maintenance(address))).not.toBe('ok')
    expect(await talos.reset(address, { wipe: 'state', reboot: true })).toEqual({ ok: true, value: undefined })
    await vi.waitFor(async () => expect(await talos.maintenance(address)).toEqual({ ok: true, value: { uuid: machine.uuid } }), {
      timeout: 40_000,
      interval: 200,
    })
    expect(machine.config).toBe('')
    expect(kindOf(await talos.machine(address))).toBe('wrongPeer')
  })

  it('a machine is powered off', async () => {
    const { machines, [door]: talos } = await start()
    const address = machines.address(WORKER)
    expect(await talos.shutdown(address, { force: true })).toEqual({ ok: true, value: undefined })
    await vi.waitFor(() => expect(machines.world.machine(WORKER).powered).toBe(false), 40_000)
    expect(kindOf(await talos.maintenance(address))).toBe('unreachable')
  })
})
