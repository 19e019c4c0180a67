// The whole configuration of a machine, through the world's own port and over the wire with the adapter: the same effect, and the same sort of answer.
import { describe, expect, it, vi } from 'vitest'
import type { Result } from '../../../src/ports/fault.ts'
import { startDoors } from './doors.ts'

vi.setConfig({ testTimeout: 60_000 })

const kindOf = (result: Result<unknown>): string => (result.ok ? 'ok' : result.fault.kind)
const WORKER = 3
const DONE = { ok: true, value: undefined }

describe.each(['wire', 'port'] as const)('through the %s', door => {
  /** A hundred times as fast: three minutes of the machines are a few seconds. */
  const start = async (talos = 'v1.13.5', kubernetes = 'v1.36.2') => {
    const doors = await startDoors({ speed: 100, talos, kubernetes })
    const { machines, [door]: port } = doors
    const address = machines.address(WORKER)
    const machine = machines.world.machine(WORKER)
    return {
      address,
      machine,
      machines,
      port,
      from: machine.config,
      to: machine.config.replace('certSANs: []', 'certSANs: [a.example.com]'),
    }
  }

  it('is read, replaced for good, and read again, byte for byte', async () => {
    const { address, machine, port, from, to } = await start()
    expect(await port.configuration(address)).toEqual({ ok: true, value: { running: from, onDisk: from } })
    expect(await port.applyConfiguration(address, { from, to, mode: 'no-reboot' })).toEqual(DONE)
    expect(machine.config).toBe(to)
    expect(await port.configuration(address)).toEqual({ ok: true, value: { running: to, onDisk: to } })
  })

  it('is not replaced where it is another one by now', async () => {
    const { address, machine, port, from, to } = await start()
    expect(kindOf(await port.applyConfiguration(address, { from: `${from}# not so\n`, to, mode: 'no-reboot' }))).toBe('conflict')
    expect(machine.config).toBe(from)
  })

  it('waits on the disk when it is staged, and that is what is replaced next', async () => {
    const { address, machine, port, from, to } = await start()
    expect(await port.applyConfiguration(address, { from, to, mode: 'staged' })).toEqual(DONE)
    expect(machine.config).toBe(from)
    expect(await port.configuration(address)).toEqual({ ok: true, value: { running: from, onDisk: to, pending: 'staged' } })
    expect(kindOf(await port.applyConfiguration(address, { from, to, mode: 'staged' }))).toBe('conflict')
    const more = to.replace('wipe: false', 'wipe: true')
    expect(await port.applyConfiguration(address, { from: to, to: more, mode: 'staged' })).toEqual(DONE)
    expect(await port.configuration(address)).toEqual({ ok: true, value: { running: from, onDisk: more, pending: 'staged' } })
  })

  it('goes back by itself when it is tried, unless it is kept', async () => {
    const { address, port, from, to } = await start()
    expect(await port.applyConfiguration(address, { from, to, mode: 'try', tryMs: 300_000 })).toEqual(DONE)
    expect(await port.configuration(address)).toEqual({ ok: true, value: { running: to, onDisk: from, pending: 'trial' } })
    // It would end the trial, and what was tried would stay.
    const more = from.replace('wipe: false', 'wipe: true')
    expect(kindOf(await port.applyConfiguration(address, { from, to: more, mode: 'staged' }))).toBe('conflict')
    await vi.waitFor(
      async () => expect(await port.configuration(address)).toEqual({ ok: true, value: { running: from, onDisk: from } }),
      10_000,
    )
    expect(await port.applyConfiguration(address, { from, to, mode: 'try', tryMs: 400_000 })).toEqual(DONE)
    expect(await port.applyConfiguration(address, { from: to, to, mode: 'no-reboot' })).toEqual(DONE)
    expect(await port.configuration(address)).toEqual({ ok: true, value: { running: to, onDisk: to } })
  })

  it('does not tell after a boot what is on its disk, and a trial does not change that', async () => {
    const { address, machine, machines, port, from, to } = await start()
    machines.world.powerOff('wk-1')
    machines.world.powerOn('wk-1')
    const booted = (running: string) => ({ ok: true, value: { running, onDisk: running, isDiskUntold: true } })
    await vi.waitFor(async () => expect(await port.configuration(address)).toEqual(booted(from)), 20_000)
    await vi.waitFor(() => expect(machine.stage).toBe('running'), 20_000)
    expect(await port.applyConfiguration(address, { from, to, mode: 'try', tryMs: 300_000 })).toEqual(DONE)
    expect(await port.configuration(address)).toEqual(booted(to))
    await vi.waitFor(async () => expect(await port.configuration(address)).toEqual(booted(from)), 10_000)
    expect(await port.applyConfiguration(address, { from, to, mode: 'try', tryMs: 400_000 })).toEqual(DONE)
    expect(await port.applyConfiguration(address, { from: to, to, mode: 'no-reboot' })).toEqual(DONE)
    expect(await port.configuration(address)).toEqual({ ok: true, value: { running: to, onDisk: to } })
  })

  it('never tells it on Talos 1.9', async () => {
    const { address, port, from, to } = await start('v1.9.6', 'v1.32.3')
    expect(await port.applyConfiguration(address, { from, to, mode: 'try', tryMs: 300_000 })).toEqual(DONE)
    expect(await port.configuration(address)).toEqual({ ok: true, value: { running: to, onDisk: to, isDiskUntold: true } })
  })

  it('is only shown by a dry run, which ends no trial in the mode try', async () => {
    const { address, machine, port, from, to } = await start()
    expect(await port.applyConfiguration(address, { from, to, mode: 'try', tryMs: 400_000 })).toEqual(DONE)
    expect(await port.dryRun(address, to.replace('a.example.com', 'b.example.com'), 'try')).toEqual({ ok: true, value: { takes: true } })
    expect(machine.config).toBe(to)
    await vi.waitFor(() => expect(machine.config).toBe(from), 10_000)
  })

  it('that needs a reboot is refused at once, and taken for the next boot', async () => {
    const { address, port, from } = await start()
    const onBoot = from.replace('    certSANs: []', '    certSANs: []\n    env:\n        PASSWORD: hunter2hunter2')
    for (const mode of ['try', 'no-reboot'] as const) {
      const said = await port.dryRun(address, onBoot, mode)
      expect(said).toMatchObject({ ok: true, value: { takes: false, needsReboot: true } })
      expect(JSON.stringify(said)).not.toContain('hunter2hunter2')
      const applied = await port.applyConfiguration(address, { from, to: onBoot, mode })
      expect(kindOf(applied)).toBe('invalid')
      expect(JSON.stringify(applied)).not.toContain('hunter2hunter2')
    }
    expect(await port.dryRun(address, onBoot, 'staged')).toEqual({ ok: true, value: { takes: true } })
  })

  it('needs no reboot on Talos 1.14', async () => {
    const { address, port, from } = await start('v1.14.0-rc.1')
    const onBoot = from.replace('    certSANs: []', '    certSANs: []\n    env:\n        LEVEL: debug')
    expect(await port.dryRun(address, onBoot, 'no-reboot')).toEqual({ ok: true, value: { takes: true } })
  })
})
