// What a machine is asked when faults are looked for, through the world's own port and over the wire with the adapter: the same answers.
import { describe, expect, it, vi } from 'vitest'
import type { Result } from '../../../src/ports/fault.ts'
import { startDoors } from './doors.ts'

vi.setConfig({ testTimeout: 60_000 })

const valueOf = <T>(result: Result<T>): T => {
  if (!result.ok) throw new Error(result.fault.message)
  return result.value
}

describe.each(['wire', 'port'] as const)('through the %s', door => {
  it('a clock that is wrong is told as far as it is, and one that is right is not touched by it', async () => {
    const { machines, [door]: talos } = await startDoors({ speed: 0 })
    const ask = async (index: number) => valueOf(await talos.clockAhead(machines.address(index)))
    const [before, other] = [await ask(1), await ask(3)]
    machines.world.setClock('cp-2', -90_000)
    const turned = (await ask(1)) - before
    expect(turned).toBeGreaterThan(-93_000)
    expect(turned).toBeLessThan(-87_000)
    expect(Math.abs((await ask(3)) - other)).toBeLessThan(3_000)
  })

  it('a virtual address is known to every control plane, whoever has it, and to no worker', async () => {
    const { machines, [door]: talos } = await startDoors({ speed: 0, vip: '192.0.2.10' })
    const all = await Promise.all([0, 1, 2, 3].map(async index => valueOf(await talos.virtualAddresses(machines.address(index)))))
    expect(all).toEqual([['192.0.2.10'], ['192.0.2.10'], ['192.0.2.10'], []])
  })

  it('one of IPv6 as well, and none where there is none', async () => {
    const six = await startDoors({ speed: 0, vip: '2001:db8::10' })
    expect(valueOf(await six[door].virtualAddresses(six.machines.address(0)))).toEqual(['2001:db8::10'])
    const none = await startDoors({ speed: 0 })
    expect(valueOf(await none[door].virtualAddresses(none.machines.address(0)))).toEqual([])
  })

  it('a machine that is off answers neither', async () => {
    const { machines, [door]: talos } = await startDoors({ speed: 0 })
    machines.world.powerOff('wk-1')
    const asked = [talos.clockAhead(machines.address(3)), talos.virtualAddresses(machines.address(3))]
    machines.world.schedule.advanceTo(machines.world.schedule.now() + 60_000)
    for (const answer of await Promise.all(asked)) expect(answer.ok ? 'ok' : answer.fault.kind).toBe('unreachable')
  })
})
