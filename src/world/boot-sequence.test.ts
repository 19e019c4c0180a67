// The phases and tasks of each sequence by version, in the order of their events; and which sequence gives way to which.
import { describe, expect, test } from 'vitest'
import { failSequence } from './boot.ts'
import { createWorld } from './cluster.ts'
import { requestReboot } from './reboot.ts'
import { requestReset } from './reset.ts'
import { requestRollback } from './rollback.ts'
import type { SequenceName } from './sequencer.ts'
import { startSequence } from './sequencer.ts'
import { requestShutdown } from './shutdown.ts'

const VERSIONS = ['v1.10.9', 'v1.11.6', 'v1.12.1', 'v1.13.9', 'v1.14.0-rc.1'] as const
const HOUR = 3_600_000

const begin = (version: string, platform = 'metal') => {
  const world = createWorld({ seed: 6, controlPlanes: 1, workers: 1, talos: version, platform, kubernetes: 'v1.33.2' })
  const machine = world.machine(1)
  const heard: string[] = []
  machine.events.onEvent(event => {
    if (event.type === 'SequenceEvent') heard.push(`${event.sequence}:${event.error?.code ?? event.action}`)
    else if (event.type === 'PhaseEvent' && event.action === 'START') heard.push(event.phase)
    else if (event.type === 'TaskEvent' && event.action === 'START') heard.push(`.${event.task}`)
    else if (event.type === 'RestartEvent') heard.push(`!${event.cmd.toString(16)}`)
  })
  const pass = (): void => world.schedule.advanceTo(world.schedule.now() + HOUR)
  return { world, machine, heard, pass }
}
const only = (heard: readonly string[], sequence: string): readonly string[] => {
  const from = heard.indexOf(`${sequence}:START`)
  return heard.slice(from, heard.indexOf(`${sequence}:STOP`, from))
}
const phasesOf = (heard: readonly string[], sequence: string): string =>
  only(heard, sequence)
    .slice(1)
    .filter(word => !/^[.!]/.test(word))
    .join(' ')

describe.each(VERSIONS)('%s', version => {
  const minor = 10 + VERSIONS.indexOf(version)
  const since14 = (text: string): string => (minor >= 14 ? ` ${text}` : '')

  test('a reboot, and the boot after it', () => {
    const { world, machine, heard, pass } = begin(version)
    requestReboot(world.site, machine, 'default')
    pass()
    expect(phasesOf(heard, 'initialize')).toBe('systemRequirements earlyServices usb meta dashboard config')
    expect(only(heard, 'initialize').filter(word => ['.startApid', '.startUdevd', '.waitForUdevd'].includes(word))).toEqual(
      [['.startUdevd'], ['.startUdevd', '.startApid'], ['.waitForUdevd', '.startApid']][Math.max(0, minor - 12)],
    )
    expect(phasesOf(heard, 'install')).toBe('')
    expect(phasesOf(heard, 'boot')).toBe(
      `memorySizeCheck diskSizeCheck env dbus ephemeral${since14('promotableVolumes')}${minor < 14 ? ' udevSetup' : ''} userDisks userSetup startEverything`,
    )
    // The words of a reboot, but for its last, are all before apid ends.
    const [start] = [heard.indexOf('reboot:START')]
    const reboot = heard.slice(start, heard.indexOf('initialize:START')).filter(word => !word.startsWith('.'))
    const kexec = minor < 14 ? ['kexec', 'stopEverything'] : ['stopEverything', 'kexec']
    expect(reboot).toEqual([
      ...['reboot:START', 'cleanup', 'dbus', ...(minor >= 14 ? ['denyNewServices'] : []), 'stopServices', 'umount', 'unmountBind'],
      ...(minor >= 14 ? ['unmountPromotable'] : []),
      ...['unmountSystem', 'volumeFinalize', ...kexec, 'reboot', '!45584543'],
    ])
  })

  test('a machine in a container', () => {
    const { world, machine, heard, pass } = begin(version, 'container')
    expect(requestReboot(world.site, machine, 'default')).toMatchObject({ ok: false, code: 'FailedPrecondition' })
    world.powerOff(1)
    world.powerOn(1)
    pass()
    expect(only(heard, 'initialize').join(' ')).toBe(
      `initialize:START machined .startMachined${minor >= 13 ? ' .startApid' : ''} .startContainerd config .loadConfig`,
    )
    expect(phasesOf(heard, 'boot')).toBe(
      `memorySizeCheck diskSizeCheck env dbus sharedFilesystems ephemeral${since14('promotableVolumes')} userSetup startEverything`,
    )
  })

  test('the mode force is known since 1.12', () => {
    const { world, machine, heard } = begin(version)
    requestReboot(world.site, machine, 'force')
    expect(heard[1]).toBe(minor < 12 ? 'cleanup' : 'reboot')
  })

  test('a sequence that fails', () => {
    const { world, machine, heard, pass } = begin(version)
    const { bootID } = machine
    const phases = [{ name: 'upgrade', tasks: ['upgrade'], run: (end: (error?: string) => void) => end('no') }]
    startSequence(world.site, machine, { name: 'upgrade', phases, ended: () => failSequence(world.site, machine) }, 'a')
    expect(machine.stage).toBe('rebooting')
    const cleanup = ['START', 'umount', 'unmountBind', 'unmountSystem', 'volumeFinalize', 'STOP']
    expect(heard.filter(word => !word.startsWith('.'))).toEqual([
      ...['upgrade:START', 'upgrade', 'upgrade:STOP', 'upgrade:FATAL'],
      ...(minor >= 13 ? cleanup.map(word => (/[A-Z]{4}/.test(word) ? `emergencyVolumeCleanup:${word}` : word)) : []),
    ])
    pass()
    expect([machine.bootID === bootID, world.isUp(machine)]).toEqual([false, true])
  })

  const LET_IN: Readonly<Record<string, readonly SequenceName[]>> = {
    initialize: ['maintenanceUpgrade', ...(minor >= 13 ? (['reboot'] as const) : [])],
    install: [],
    boot: ['reboot', 'reset', 'upgrade'],
    reboot: ['reboot'],
    reset: ['reboot'],
    upgrade: [],
    stageUpgrade: [],
    maintenanceUpgrade: [],
    shutdown: [],
  }
  const wait = { name: 'wait', tasks: ['wait'], run: () => {} }

  test.each(Object.keys(LET_IN) as SequenceName[])('what may take over from %s', running => {
    for (const name of Object.keys(LET_IN) as SequenceName[]) {
      const { world, machine, heard } = begin(version)
      startSequence(world.site, machine, { name: running, phases: [wait] }, 'first')
      heard.length = 0
      const mayRun = startSequence(world.site, machine, { name, phases: [wait] }, 'second')
      expect(`${name} ${mayRun}`).toBe(`${name} ${LET_IN[running]!.includes(name)}`)
      expect(heard).toEqual(mayRun ? [`${running}:STOP`, `${running}:CANCELED`, `${name}:START`, 'wait', '.wait'] : [`${name}:LOCKED`])
      if (!mayRun) expect(machine.events.list().at(-1)).toMatchObject({ actorID: '' })
    }
  })

  test('a shutdown and a rollback wait for nobody', () => {
    const asks: readonly ((at: ReturnType<typeof begin>) => unknown)[] = [
      ({ world, machine }) => requestShutdown(world.site, machine, true, world.drain),
      ({ world, machine }) => {
        machine.disk.slots.B = machine.disk.slots.A
        return requestRollback(world.site, machine)
      },
    ]
    for (const ask of asks) {
      const at = begin(version)
      startSequence(at.world.site, at.machine, { name: 'upgrade', phases: [wait] }, 'first')
      ask(at)
      expect(at.heard).toContain('upgrade:CANCELED')
    }
  })
})

test.each([
  [[], false],
  [['EPHEMERAL'], true],
])('a reset that names the partitions %j comes back by kexec: %s', (partitions, expected) => {
  const { world, machine, heard, pass } = begin('v1.13.9')
  requestReset(world.site, machine, { graceful: false, reboot: true, partitions, userDisks: [], mode: 'all' }, world.drain)
  pass()
  expect(heard.includes('kexec')).toBe(expected)
})
