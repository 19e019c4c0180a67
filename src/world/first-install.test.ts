// How Talos comes onto a disk for the first time, and how a machine in maintenance is upgraded: by version.
import { describe, expect, test } from 'vitest'
import type { InstallOutcome } from '../ports/talos.ts'
import type { Answer } from './answer.ts'
import { createWorld } from './cluster.ts'
import { setConfig } from './configuration.ts'
import { EMPTY_SCHEMATIC } from './images.ts'
import { install, installAnew, pullImage } from './install.ts'
import { requestUpgrade } from './legacy-upgrade.ts'
import { isInMaintenance, type Machine, versionOf } from './machine.ts'
import { requestReboot } from './reboot.ts'
import { requestReset } from './reset.ts'
import { isInstalled } from './slots.ts'
import { outcome } from './time.ts'

const VERSIONS = ['v1.10.9', 'v1.11.6', 'v1.12.1', 'v1.13.9', 'v1.14.0-rc.1'] as const
const HOUR = 3_600_000
const imageOf = (version: string): string =>
  version.startsWith('v1.14')
    ? `factory.talos.dev/metal-installer/${EMPTY_SCHEMATIC}:${version}`
    : `ghcr.io/siderolabs/installer:${version}`

/** A cluster of one control plane, and a machine beside it that waits in maintenance. */
const begin = (version: string) => {
  const world = createWorld({
    seed: 4,
    controlPlanes: 1,
    workers: 1,
    spares: 1,
    talos: version,
    installImage: () => imageOf(version),
    kubernetes: 'v1.33.2',
  })
  world.schedule.advanceTo(world.schedule.now() + HOUR)
  const machine = world.machine(2)
  expect(isInMaintenance(machine)).toBe(true)
  const over = <T>(run: (resolve: (answer: T) => void) => unknown): Promise<T> => outcome(world.schedule, new Promise<T>(run))
  const line = (): void => {}
  return {
    world,
    machine,
    pull: (image: string) => over<Answer<string>>(end => pullImage(world.site, machine, image, { line, end })),
    anew: (image: string, disk = '/dev/sda') =>
      over<Answer<InstallOutcome>>(end => installAnew(world.site, machine, { image, disk }, { line, end })),
    upgrade: (image: string) => over<Answer<InstallOutcome>>(end => install(world.site, machine, image, { line, end })),
    legacy: (image: string, more: { stage?: boolean } = {}) =>
      over<Answer<{ actorID: string }>>(end =>
        requestUpgrade(world.site, machine, { image, preserve: false, force: false, rebootMode: 'default', ...more }, world.drain, end),
      ),
    configure: (text: string) => {
      setConfig(world.site, machine, text)
      machine.configured?.()
      world.schedule.advanceTo(world.schedule.now() + HOUR)
    },
  }
}
const sequences = (machine: Machine): readonly string[] =>
  machine.events.list().flatMap(event => (event.type === 'SequenceEvent' ? [`${event.sequence} ${event.error?.code ?? event.action}`] : []))
const refused = (answer: Answer<unknown>): string => (answer.ok ? 'OK' : `${answer.code} ${answer.message}`)

describe.each(VERSIONS)('%s', version => {
  const minor = 10 + VERSIONS.indexOf(version)
  const image = imageOf(version)

  test('LifecycleService.Install', async () => {
    const { world, machine, pull, anew, upgrade, configure } = begin(version)
    if (minor < 13) return expect(refused(await anew(image))).toBe('Unimplemented unknown service machine.LifecycleService')
    expect(refused(await upgrade(image))).toBe('FailedPrecondition machine is not installed')
    expect(refused(await anew(''))).toBe('InvalidArgument installer image name is required')
    expect(refused(await anew(image, ''))).toBe('InvalidArgument destination disk is required')
    expect(refused(await anew(image, '/dev/sdz'))).toBe('InvalidArgument invalid disk path: lstat /dev/sdz: no such file or directory')
    expect(refused(await anew(image))).toContain(`Internal installation failed: installer image "${image}" not found in containerd store`)
    await pull(image)
    const [first, second] = await Promise.all([anew(image, '/dev/sdb'), anew(image)])
    expect(first).toMatchObject({ ok: true, value: { exitCode: 0 } })
    expect(refused(second)).toBe('FailedPrecondition another installation/upgrade is already in progress')
    expect(refused(await anew(image))).toBe('AlreadyExists machine is already installed')
    expect([machine.disk.slots.A?.version, machine.disks.find(disk => disk.system)?.path]).toEqual([version, '/dev/sdb'])
    // It runs on from where it booted until it is rebooted, and then still waits for a configuration.
    expect(isInMaintenance(machine)).toBe(true)
    const { bootID } = machine
    requestReboot(world.site, machine, 'default')
    world.schedule.advanceTo(world.schedule.now() + HOUR)
    expect(machine.bootID).not.toBe(bootID)
    expect([isInMaintenance(machine), machine.disk.slotless]).toEqual([true, undefined])
    configure(world.machine(1).config)
    expect(world.isUp(machine)).toBe(true)
    expect(sequences(machine)).not.toContain('install FATAL')
  })

  test('the install section of the configuration', () => {
    const { world, machine, configure } = begin(version)
    configure(world.machine(1).config)
    expect([world.isUp(machine), versionOf(machine), machine.disk.slotless]).toEqual([true, version, undefined])
    expect(
      world.journal
        .of('down')
        .filter(entry => entry.machine === machine.name)
        .map(entry => entry.detail),
    ).toEqual(['install'])
  })

  test('an upgrade in maintenance', async () => {
    const { world, machine, legacy, pull, anew } = begin(version)
    const target = minor === 14 ? image : imageOf('v1.12.11')
    expect(refused(await legacy(target))).toBe('FailedPrecondition Talos is not installed')
    if (minor >= 13) {
      await pull(image)
      await anew(image)
    } else machine.disk.slots.A = machine.disk.media
    const staged = await legacy(target, { stage: true })
    if (minor < 13)
      expect(refused(staged)).toBe('Unimplemented upgrade --preserve, --stage, and --force are not supported in maintenance mode')
    const queued = minor < 13 ? await legacy(target) : staged
    expect(queued.ok).toBe(true)
    expect(sequences(machine).slice(-2)).toEqual(['initialize CANCELED', 'maintenanceUpgrade START'])
    world.schedule.advanceTo(world.schedule.now() + HOUR)
    expect([versionOf(machine), isInMaintenance(machine)]).toEqual([minor === 14 ? version : 'v1.12.11', true])
  })

  test('a reset in maintenance', () => {
    const { world, machine } = begin(version)
    const request = { graceful: false, reboot: true, partitions: [], userDisks: [], mode: 'all' } as const
    const reset = (more: object = {}) => refused(requestReset(world.site, machine, { ...request, ...more }, world.drain))
    if (minor < 13) {
      expect(reset({ partitions: ['STATE'] })).toBe('Unknown system partitions to wipe params is not supported in the maintenance mode')
      expect(reset()).toBe('Unknown reset failed: Talos is not installed')
    }
    machine.disk.slots.A = machine.disk.media
    expect(reset()).toBe('OK')
    expect(sequences(machine).at(-1)).toBe(`${minor < 13 ? 'reboot' : 'reset'} LOCKED`)
    expect(isInstalled(machine.disk)).toBe(minor >= 13)
  })
})

describe('UnattendedInstallConfig', () => {
  const version = 'v1.14.0-rc.1'
  const wish = (config: string, more: string): string =>
    `${config.replace(/ {4}install:\n(?: {8}.*\n)+/, '')}---\napiVersion: v1alpha1\nkind: UnattendedInstallConfig\nprovisioning:\n    diskSelector:\n        match: disk.dev_path == "/dev/sda"\n${more}`
  const downs = (world: ReturnType<typeof begin>['world'], machine: Machine): readonly string[] =>
    world.journal
      .of('down')
      .filter(entry => entry.machine === machine.name)
      .map(entry => entry.detail ?? '')

  test.each([
    ['its own image', '', [], version],
    ['an image', `installer:\n    image: ${imageOf(version)}\n`, ['reboot default'], version],
    ['an image, and to go on', `installer:\n    image: ${imageOf(version)}\nreboot: false\n`, [], version],
    ['its own image, and a reboot', 'reboot: true\n', ['reboot default'], version],
  ])('%s', (_, more, expected) => {
    const { world, machine, configure } = begin(version)
    configure(wish(world.machine(1).config, more))
    expect(world.isUp(machine)).toBe(true)
    expect(isInstalled(machine.disk)).toBe(true)
    expect(downs(world, machine)).toEqual(expected)
    expect(machine.disk.slots.A?.version).toBe(version)
  })

  test('without it and without an install section the machine waits for a caller of the API', async () => {
    const { world, machine, configure, pull, anew } = begin(version)
    configure(world.machine(1).config.replace(/ {4}install:\n(?: {8}.*\n)+/, ''))
    expect([machine.stage, machine.sequence?.phase, isInstalled(machine.disk)]).toEqual(['booting', 'ephemeral', false])
    await pull(imageOf(version))
    await anew(imageOf(version))
    world.schedule.advanceTo(world.schedule.now() + HOUR)
    expect(world.isUp(machine)).toBe(true)
  })

  test('an image that no registry has', () => {
    const { world, machine, configure } = begin(version)
    configure(wish(world.machine(1).config, 'installer:\n    image: example.com/none:v1\n'))
    expect(machine.sequence?.phase).toBe('ephemeral')
    expect(world.journal.of('unattended-install-failed')).toHaveLength(1)
  })
})
