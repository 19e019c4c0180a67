import { describe, expect, it } from 'vitest'
import { powerOff, powerOn } from './boot.ts'
import type { WorldOptions } from './cluster.ts'
import { createWorld } from './cluster.ts'
import { configOnDisk, setConfig, stageConfig, tryConfig } from './configuration.ts'
import { requestUpgrade } from './legacy-upgrade.ts'
import type { Machine } from './machine.ts'
import { isInMaintenance, versionOf } from './machine.ts'
import { INSTALL_IMAGE, writeScalar } from './machine-config.ts'
import type { MachineEvent } from './machine-events.ts'
import { deleteMeta, writeMeta } from './meta.ts'
import { requestReboot } from './reboot.ts'
import type { ResetRequest } from './reset.ts'
import { requestReset } from './reset.ts'
import { requestRollback } from './rollback.ts'
import { requestShutdown } from './shutdown.ts'

const MINUTE = 60_000
const NEWER = 'ghcr.io/siderolabs/installer:v1.12.6'

const world = (options: Partial<WorldOptions> = {}) =>
  createWorld({ seed: 5, controlPlanes: 3, workers: 2, talos: 'v1.12.5', kubernetes: 'v1.34.2', ...options })
type World = ReturnType<typeof world>
const pass = (w: World, ms: number) => w.schedule.advanceTo(w.schedule.now() + ms)

/** All that a machine tells from now on, over its reboots. */
const listen = (machine: Machine): MachineEvent[] => {
  const seen: MachineEvent[] = []
  machine.events.onEvent(event => seen.push(event))
  return seen
}
const phasesOf = (events: readonly MachineEvent[], sequence: string): string[] => {
  const phases: string[] = []
  let current = ''
  for (const event of events) {
    if (event.type === 'SequenceEvent' && event.action === 'START') current = event.sequence
    if (event.type === 'PhaseEvent' && event.action === 'START' && current === sequence) phases.push(event.phase)
  }
  return phases
}
const stagesOf = (events: readonly MachineEvent[]): string[] =>
  events.flatMap(e => (e.type === 'MachineStatusEvent' ? [e.stage] : [])).filter((stage, at, all) => stage !== all[at - 1])
const errorsOf = (events: readonly MachineEvent[]) =>
  events.flatMap(e => (e.type === 'SequenceEvent' && e.error ? [`${e.sequence} ${e.error.code}`] : []))

describe('a boot', () => {
  it.each(['v1.12.5', 'v1.13.9', 'v1.14.0-rc.1'])('of %s is told from its first sequence on, and the first status is BOOTING', version => {
    const w = world({ talos: version })
    const machine = w.machine('wk-1')
    requestReboot(w.site, machine, 'default')
    pass(w, 5 * MINUTE)
    const events = machine.events.list()
    const sequences = events.flatMap(e => (e.type === 'SequenceEvent' ? [`${e.sequence} ${e.action}`] : []))
    expect(sequences).toEqual(['initialize START', 'initialize STOP', 'install START', 'install STOP', 'boot START', 'boot STOP'])
    expect(stagesOf(events)).toEqual(['booting', 'running'])
    // Nobody asked for it.
    expect(new Set(events.map(e => e.actorID))).toEqual(new Set(['']))
    expect(phasesOf(events, 'initialize')).toEqual(['systemRequirements', 'earlyServices', 'usb', 'meta', 'dashboard', 'config'])
    expect(phasesOf(events, 'install')).toEqual([])
    expect(phasesOf(events, 'boot')).toEqual([
      ...['memorySizeCheck', 'diskSizeCheck', 'env', 'dbus', 'ephemeral'],
      ...(version.startsWith('v1.14') ? ['promotableVolumes'] : ['udevSetup']),
      ...['userDisks', 'userSetup', 'startEverything'],
    ])
  })

  it('of a container has the phases that a real one told', () => {
    const w = world({ platform: 'container' })
    const machine = w.machine('wk-1')
    powerOff(w.site, machine)
    powerOn(w.site, machine)
    pass(w, 5 * MINUTE)
    expect(phasesOf(machine.events.list(), 'initialize')).toEqual(['machined', 'config'])
    expect(phasesOf(machine.events.list(), 'boot')).toEqual([
      ...['memorySizeCheck', 'diskSizeCheck', 'env', 'dbus', 'sharedFilesystems', 'ephemeral', 'userSetup', 'startEverything'],
    ])
  })
})

describe('shutdown', () => {
  it('cordons, drains, stops and switches off; switched on, the machine uncordons itself', () => {
    const w = world({ workloads: [{ name: 'web', on: [3] }] })
    const machine = w.machine('wk-1')
    const events = listen(machine)
    expect(requestShutdown(w.site, machine, false, w.drain)).toMatchObject({ ok: true })
    pass(w, 5 * MINUTE)
    expect(machine.powered).toBe(false)
    expect(phasesOf(events, 'shutdown')).toEqual([
      ...['storeShutdown', 'drain', 'cleanup', 'dbus', 'stopServices', 'umount', 'unmountBind', 'unmountSystem', 'volumeFinalize'],
      ...['stopEverything', 'shutdown'],
    ])
    expect(events.at(-1)).toMatchObject({ type: 'RestartEvent', cmd: 0x4321fedc })
    expect(w.journal.of('evicted')).toHaveLength(1)
    expect(w.nodes.isSchedulable('wk-1')).toBe(false)
    w.powerOn('wk-1')
    pass(w, 5 * MINUTE)
    expect(w.isUp(machine)).toBe(true)
    expect(w.nodes.isSchedulable('wk-1')).toBe(true)
  })

  it('forced, does not drain', () => {
    const w = world({ workloads: [{ name: 'web', on: [3] }] })
    const events = listen(w.machine('wk-1'))
    requestShutdown(w.site, w.machine('wk-1'), true, w.drain)
    pass(w, 5 * MINUTE)
    expect(phasesOf(events, 'shutdown')).not.toContain('drain')
    expect(w.machine('wk-1').powered).toBe(false)
  })

  it('that can cordon nobody ends with the power off all the same', () => {
    const w = world()
    w.apiOutage(60 * MINUTE)
    const events = listen(w.machine('wk-1'))
    requestShutdown(w.site, w.machine('wk-1'), false, w.drain)
    pass(w, 3 * MINUTE)
    expect(errorsOf(events)).toEqual(['shutdown FATAL'])
    expect(w.machine('wk-1').powered).toBe(false)
  })
})

describe('who takes over from whom', () => {
  const start: Record<string, (w: World, machine: Machine) => unknown> = {
    boot: (w, m) => {
      powerOff(w.site, m)
      powerOn(w.site, m)
      while (m.sequence?.name !== 'boot') pass(w, 1000)
    },
    reboot: (w, m) => requestReboot(w.site, m, 'default'),
    reset: (w, m) => reset(w, m, { partitions: ['EPHEMERAL'] }),
    upgrade: (w, m) => {
      requestUpgrade(w.site, m, { image: NEWER, preserve: true, force: true, rebootMode: 'default' }, w.drain, () => {})
      while (m.sequence?.name !== 'upgrade' && m.stage === 'running') pass(w, 1000)
    },
    shutdown: (w, m) => requestShutdown(w.site, m, true, w.drain),
  }
  const cases: [running: string, next: string, takesOver: boolean][] = [
    ['boot', 'reboot', true],
    ['boot', 'reset', true],
    ['boot', 'upgrade', true],
    ['boot', 'shutdown', true],
    ['reboot', 'reboot', true],
    ['reboot', 'reset', false],
    ['reboot', 'upgrade', false],
    ['reboot', 'shutdown', true],
    ['reset', 'reboot', true],
    ['reset', 'reset', false],
    ['reset', 'shutdown', true],
    ['upgrade', 'reboot', false],
    ['upgrade', 'reset', false],
    ['upgrade', 'shutdown', true],
    ['shutdown', 'reboot', false],
  ]
  it.each(cases)('%s, then %s: %s', (running, next, takesOver) => {
    const w = world({ durations: { stopPods: [60_000, 60_000] } })
    const machine = w.machine('wk-1')
    start[running]!(w, machine)
    expect(machine.sequence?.name).toBe(running)
    const events = listen(machine)
    // An upgrade looks at its image before it asks for the lock.
    if (next === 'upgrade') {
      requestUpgrade(w.site, machine, { image: NEWER, preserve: true, force: true, rebootMode: 'default' }, w.drain, () => {})
      pass(w, 20_000)
    } else start[next]!(w, machine)
    if (takesOver) expect(errorsOf(events)[0]).toBe(`${running} CANCELED`)
    else expect(errorsOf(events)[0]).toBe(`${next} LOCKED`)
  })
})

const reset = (w: World, machine: Machine, request: Partial<ResetRequest>) =>
  requestReset(w.site, machine, { graceful: false, reboot: true, partitions: [], userDisks: [], mode: 'all', ...request }, w.drain)

describe('reset', () => {
  it.each<[Partial<ResetRequest>, string]>([
    [
      { mode: 'system-disk', userDisks: ['/dev/sdb'] },
      "reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter",
    ],
    [
      { mode: 'user-disks', partitions: ['STATE'] },
      "reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter",
    ],
    [{ userDisks: ['/dev/sdz'] }, "reset user disk failed: device /dev/sdz wasn't found"],
    [{ userDisks: ['/dev/sr0'] }, 'reset user disk failed: device /dev/sr0 is readonly'],
    [{ userDisks: ['/dev/sda'] }, 'reset user disk failed: device /dev/sda is the system disk'],
    [
      { partitions: ['NOSUCH'] },
      `failed to get volume status with label "NOSUCH": resource VolumeStatuses.block.talos.dev(runtime/NOSUCH@undefined) doesn't exist`,
    ],
    [
      { partitions: ['BOOT'] },
      `failed to get volume status with label "BOOT": resource VolumeStatuses.block.talos.dev(runtime/BOOT@undefined) doesn't exist`,
    ],
  ])('%j is refused', (request, message) => {
    const w = world()
    expect(reset(w, w.machine('wk-1'), request)).toEqual({ ok: false, code: 'Unknown', message })
    pass(w, MINUTE)
    expect(w.machine('wk-1').stage).toBe('running')
  })

  it('of a folder without its partition is refused from 1.14 on', () => {
    const w = world({ talos: 'v1.14.0-rc.1' })
    expect(reset(w, w.machine('cp-1'), { partitions: ['ETCD'] })).toMatchObject({
      ok: false,
      message: expect.stringContaining('failed to reset: volume "ETCD" resides on volume "EPHEMERAL", ') as string,
    })
    expect(reset(w, w.machine('cp-1'), { partitions: ['ETCD', 'EPHEMERAL'] })).toMatchObject({ ok: true })
  })

  it('of EPHEMERAL, gracefully: a control plane leaves etcd, comes back with its configuration and joins anew', () => {
    const w = world({ workloads: [{ name: 'web', on: [0] }] })
    const machine = w.machine('cp-1')
    const { id } = w.member('cp-1')
    const { config, nodeID } = machine
    const events = listen(machine)
    reset(w, machine, { graceful: true, partitions: ['EPHEMERAL'] })
    pass(w, MINUTE)
    expect(w.etcd.members().map(m => m.id)).not.toContain(id)
    pass(w, 10 * MINUTE)
    expect(phasesOf(events, 'reset')).toEqual([
      ...['drain', 'cleanup', 'dbus', 'leave', 'preReset', 'stopServices', 'umount', 'unmountBind', 'unmountSystem', 'volumeFinalize'],
      ...['kexec', 'stopEverything', 'forceCleanup', 'resetSpec', 'reboot'],
    ])
    const tasks = events.flatMap(e => (e.type === 'TaskEvent' && e.action === 'START' ? [e.task] : []))
    expect(tasks).toEqual(expect.arrayContaining(['removeAllPods', 'leaveEtcd', 'sendResetSignal', 'resetSystemDiskSpec']))
    expect(stagesOf(events)).toEqual(['resetting', 'booting', 'running'])
    expect([machine.config, machine.nodeID]).toEqual([config, nodeID])
    expect(w.member('cp-1').id).not.toBe(id)
    expect(w.member('cp-1').isLearner).toBe(false)
    expect(w.isUp(machine)).toBe(true)
    expect(w.nodes.isSchedulable('cp-1')).toBe(true)
  })

  it('of EPHEMERAL, not gracefully: what the control plane was stays a member until it joins again', () => {
    const w = world()
    const machine = w.machine('cp-1')
    const { id } = w.member('cp-1')
    reset(w, machine, { partitions: ['EPHEMERAL'] })
    pass(w, MINUTE)
    expect(w.etcd.members().find(m => m.id === id)).toMatchObject({ name: 'cp-1', machine: undefined })
    pass(w, 10 * MINUTE)
    expect(w.etcd.members().map(m => m.name)).toEqual(['cp-2', 'cp-3', 'cp-1'])
    expect(w.member('cp-1').id).not.toBe(id)
    expect(w.isUp(machine)).toBe(true)
  })

  it('that cannot leave etcd ends as a reboot, with all that was', () => {
    const w = world({ controlPlanes: 2 })
    const machine = w.machine('cp-1')
    w.powerOff('cp-2')
    pass(w, MINUTE)
    const events = listen(machine)
    const { id } = w.member('cp-1')
    reset(w, machine, { graceful: true, partitions: ['STATE', 'EPHEMERAL'] })
    pass(w, 15 * MINUTE)
    expect(errorsOf(events)).toEqual(['reset FATAL'])
    expect(w.member('cp-1').id).toBe(id)
    expect(machine.config).not.toBe('')
    expect(w.journal.of('wiped')).toEqual([])
  })

  it('of STATE and EPHEMERAL: the machine comes back installed, in maintenance, as somebody else', () => {
    const w = world()
    const machine = w.machine('wk-1')
    const { nodeID } = machine
    const events = listen(machine)
    reset(w, machine, { partitions: ['STATE', 'EPHEMERAL'] })
    pass(w, 10 * MINUTE)
    expect(isInMaintenance(machine)).toBe(true)
    expect([machine.stage, machine.config, versionOf(machine)]).toEqual(['maintenance', '', 'v1.12.5'])
    expect(machine.nodeID).not.toBe(nodeID)
    expect(stagesOf(events)).toEqual(['resetting', 'booting', 'maintenance'])
    expect(machine.sequence?.name).toBe('initialize')
  })

  it('of the whole disk, without a reboot: off, and what boots then is not installed', () => {
    const w = world()
    const machine = w.machine('wk-1')
    machine.disk.meta.set(12, 'a note')
    const events = listen(machine)
    reset(w, machine, { reboot: false })
    pass(w, 5 * MINUTE)
    expect(phasesOf(events, 'reset').slice(-2)).toEqual(['reset', 'shutdown'])
    expect(phasesOf(events, 'reset')).not.toContain('kexec')
    expect([machine.powered, machine.disk.slots.A, machine.disk.meta.size]).toEqual([false, undefined, 0])
    w.powerOn('wk-1')
    pass(w, 5 * MINUTE)
    expect(machine.stage).toBe('maintenance')
    expect(requestRollback(w.site, machine)).toEqual({ ok: false, code: 'FailedPrecondition', message: 'system disk not found' })
  })

  it('of a machine that has nothing else to boot leaves it dark', () => {
    const w = world()
    const machine = w.machine('wk-1')
    machine.disk.media = undefined
    reset(w, machine, {})
    pass(w, 10 * MINUTE)
    expect([machine.powered, machine.apid]).toEqual([true, false])
  })

  it('of user disks leaves the system as it is', () => {
    const w = world()
    const machine = w.machine('wk-1')
    const events = listen(machine)
    reset(w, machine, { mode: 'user-disks', userDisks: ['/dev/sdb'] })
    pass(w, 5 * MINUTE)
    expect(phasesOf(events, 'reset').slice(-2)).toEqual(['resetUserDisks', 'reboot'])
    expect(w.isUp(machine)).toBe(true)
  })

  it('in a container stops everything and switches off, and nothing is lost', () => {
    const w = world({ platform: 'container' })
    const machine = w.machine('wk-1')
    const events = listen(machine)
    expect(reset(w, machine, { graceful: true, reboot: false, partitions: ['STATE'] })).toMatchObject({
      message: 'failed to reset: volume "STATE" is not located',
    })
    reset(w, machine, { graceful: true, reboot: false })
    pass(w, MINUTE)
    expect(phasesOf(events, 'reset')).toEqual(['stopEverything', 'shutdown'])
    expect(w.nodes.isSchedulable('wk-1')).toBe(false)
    w.powerOn('wk-1')
    pass(w, 5 * MINUTE)
    expect(w.isUp(machine)).toBe(true)
  })
})

describe('upgrades and the way back', () => {
  const upgrade = (w: World, machine: Machine, more: { stage?: boolean; image?: string } = {}) => {
    requestUpgrade(w.site, machine, { image: NEWER, preserve: false, force: false, rebootMode: 'default', ...more }, w.drain, () => {})
    pass(w, 10 * MINUTE)
  }

  it('staged: reboots, installs in that boot, and reboots again', () => {
    const w = world()
    const machine = w.machine('wk-1')
    const events = listen(machine)
    upgrade(w, machine, { stage: true })
    expect([versionOf(machine), w.isUp(machine)]).toEqual(['v1.12.6', true])
    expect(w.journal.of('boot')).toHaveLength(2)
    expect(phasesOf(events, 'stageUpgrade').slice(-2)).toEqual(['stopEverything', 'reboot'])
    expect(phasesOf(events, 'install')).toEqual([
      'env',
      'install',
      'meta',
      'saveMeta',
      'volumeFinalize',
      'stopEverything',
      'kexec',
      'reboot',
    ])
    expect(stagesOf(events)).toEqual(['upgrading', 'rebooting', 'booting', 'installing', 'booting', 'running'])
    expect([...machine.disk.meta.keys()]).toEqual([])
  })

  it('staged, and the installer fails: the machine runs what it ran, and does not try again', () => {
    const w = world()
    const machine = w.machine('wk-1')
    w.fault('wk-1', { installer: { exitCode: 1, lines: ['no space left'], times: Infinity } })
    const events = listen(machine)
    upgrade(w, machine, { stage: true })
    expect(errorsOf(events)).toEqual(['install FATAL'])
    expect([versionOf(machine), w.isUp(machine), machine.disk.meta.size]).toEqual(['v1.12.5', true, 0])
  })

  it('rollback: to the other slot, and none where nothing is in it', () => {
    const w = world()
    const machine = w.machine('wk-1')
    expect(requestRollback(w.site, machine)).toEqual({ ok: false, code: 'Unknown', message: 'previous UKI not found' })
    upgrade(w, machine)
    expect(versionOf(machine)).toBe('v1.12.6')
    expect(requestRollback(w.site, machine)).toEqual({ ok: true, value: undefined })
    pass(w, 5 * MINUTE)
    expect([versionOf(machine), w.isUp(machine)]).toEqual(['v1.12.5', true])
  })
})

describe('reboot modes', () => {
  it.each<[version: string, mode: 'default' | 'powercycle' | 'force', phases: string[]]>([
    ['v1.11.5', 'force', ['cleanup', 'kexec', 'stopEverything']],
    ['v1.12.5', 'force', []],
    ['v1.13.9', 'default', ['cleanup', 'kexec', 'stopEverything']],
    ['v1.13.9', 'powercycle', ['cleanup', 'stopEverything']],
    ['v1.14.0-rc.1', 'default', ['cleanup', 'stopEverything', 'kexec']],
  ])('%s, %s', (talos, mode, phases) => {
    const w = world({ talos })
    const events = listen(w.machine('wk-1'))
    requestReboot(w.site, w.machine('wk-1'), mode)
    pass(w, 5 * MINUTE)
    const told = phasesOf(events, 'reboot')
    expect(told.filter(phase => ['cleanup', 'kexec', 'stopEverything'].includes(phase))).toEqual(phases)
    expect(told.at(-1)).toBe('reboot')
    expect(w.isUp(w.machine('wk-1'))).toBe(true)
  })
})

describe('META', () => {
  it('keeps what is written, over a reset of other partitions too', () => {
    const w = world()
    const machine = w.machine('wk-1')
    expect(writeMeta(w.site, machine, 0x0a, 'network')).toEqual({ ok: true, value: undefined })
    expect(writeMeta(w.site, machine, 0x0e, 'a note').ok).toBe(true)
    reset(w, machine, { partitions: ['EPHEMERAL'] })
    pass(w, 5 * MINUTE)
    expect(machine.disk.meta.get(0x0e)).toBe('a note')
    expect(deleteMeta(w.site, machine, 0x0e).ok).toBe(true)
    expect(deleteMeta(w.site, machine, 0x0e)).toEqual({ ok: false, code: 'NotFound', message: 'meta key not found' })
  })

  it('refuses keys that are none, and what does not fit', () => {
    const w = world()
    const machine = w.machine('wk-1')
    expect(writeMeta(w.site, machine, 256, 'x')).toEqual({ ok: false, code: 'InvalidArgument', message: 'key must be a uint8' })
    expect(writeMeta(w.site, machine, 12, 'x'.repeat(256 * 1024))).toEqual({
      ...{ ok: false, code: 'ResourceExhausted', message: 'meta write failed' },
    })
    expect(machine.disk.meta.size).toBe(0)
  })

  it.each([
    ['v1.13.9', true],
    ['v1.13.10', false],
    ['v1.14.0-rc.1', false],
  ])("Talos' own keys in %s: %s", (talos, may) => {
    const w = world({ talos })
    const machine = w.machine('wk-1')
    expect(writeMeta(w.site, machine, 0x0a, 'x').ok).toBe(may)
    expect(deleteMeta(w.site, machine, 0x0a).ok).toBe(may)
    expect(writeMeta(w.site, machine, 0x0d, 'ours').ok).toBe(true)
  })
})

describe('the configuration', () => {
  const changed = (machine: Machine, to: string) => writeScalar(machine.config, INSTALL_IMAGE, to)

  it('staged: runs after the next boot; one that comes meanwhile drops it', () => {
    const w = world()
    const machine = w.machine('wk-1')
    const { config } = machine
    stageConfig(w.site, machine, changed(machine, 'staged:v1'))
    expect([machine.config, configOnDisk(machine)]).toEqual([config, changed(machine, 'staged:v1')])
    setConfig(w.site, machine, changed(machine, 'now:v1'))
    expect([machine.config, configOnDisk(machine)]).toEqual([changed(machine, 'now:v1'), changed(machine, 'now:v1')])
    stageConfig(w.site, machine, changed(machine, 'staged:v2'))
    requestReboot(w.site, machine, 'default')
    pass(w, 5 * MINUTE)
    expect(machine.config).toContain('staged:v2')
  })

  it('tried: runs for its time and is never on the disk; the next one ends the trial', () => {
    const w = world()
    const machine = w.machine('wk-1')
    const { config } = machine
    tryConfig(w.site, machine, changed(machine, 'tried:v1'), MINUTE)
    expect([machine.config, configOnDisk(machine)]).toEqual([changed(machine, 'tried:v1'), config])
    pass(w, MINUTE)
    expect([machine.config, configOnDisk(machine)]).toEqual([config, config])
    tryConfig(w.site, machine, changed(machine, 'tried:v2'), MINUTE)
    setConfig(w.site, machine, changed(machine, 'kept:v1'))
    pass(w, 2 * MINUTE)
    expect(machine.config).toContain('kept:v1')
    tryConfig(w.site, machine, changed(machine, 'tried:v3'), 60 * MINUTE)
    requestReboot(w.site, machine, 'default')
    pass(w, 5 * MINUTE)
    expect(machine.config).toContain('kept:v1')
  })
})
