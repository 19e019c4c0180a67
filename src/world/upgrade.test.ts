import { describe, expect, it } from 'vitest'
import type { Answer } from './answer.ts'
import type { WorldOptions } from './cluster.ts'
import { createWorld } from './cluster.ts'
import type { InstallOutcome } from '../ports/talos.ts'
import { install, pullImage } from './install.ts'
import { requestUpgrade } from './legacy-upgrade.ts'
import { versionOf } from './machine.ts'
import { requestReboot } from './reboot.ts'
import { META_FALLBACK } from './slots.ts'

const MINUTE = 60_000
const IMAGE = 'ghcr.io/siderolabs/installer:v1.13.9'
const SCHEMATIC = 'ab'.repeat(32)

const world = (options: Partial<WorldOptions> = {}) => createWorld({ seed: 5, controlPlanes: 3, workers: 2, ...options })
type World = ReturnType<typeof world>
const pass = (w: World, ms: number) => w.schedule.advanceTo(w.schedule.now() + ms)

/** Pulls and installs; answers what the installer's stream ended with. */
const put = (w: World, name: string, image = IMAGE): Answer<InstallOutcome> | undefined => {
  const machine = w.machine(name)
  let ended: Answer<InstallOutcome> | undefined
  pullImage(w.site, machine, image, {
    line: () => {},
    end: pulled => {
      if (pulled.ok) install(w.site, machine, pulled.value, { line: () => {}, end: result => (ended = result) })
    },
  })
  pass(w, 2 * MINUTE)
  return ended
}

describe('reboot', () => {
  it('OK means queued: the boot id changes a minute later, the version does not', () => {
    const w = world()
    const machine = w.machine('wk-1')
    const { bootID } = machine
    expect(requestReboot(w.site, machine, 'default').ok).toBe(true)
    expect([machine.bootID, machine.stage]).toEqual([bootID, 'rebooting'])
    pass(w, 5 * MINUTE)
    expect(machine.bootID).not.toBe(bootID)
    expect([machine.stage, versionOf(machine)]).toEqual(['running', 'v1.13.5'])
    expect(w.isUp(machine)).toBe(true)
    expect(w.journal.of('boot')).toHaveLength(1)
  })

  it('neither cordons nor drains', () => {
    const w = world({ workloads: [{ name: 'web', on: [3] }] })
    requestReboot(w.site, w.machine('wk-1'), 'default')
    pass(w, 5 * MINUTE)
    expect(w.journal.of('cordon')).toEqual([])
    expect(w.journal.of('evicted')).toEqual([])
  })

  it('its events live in a ring that is empty after the boot', () => {
    const w = world()
    const machine = w.machine('wk-1')
    const seen: string[] = []
    machine.events.onEvent(e => {
      if (e.type === 'PhaseEvent' && e.action === 'START') seen.push(e.phase)
    })
    const answer = requestReboot(w.site, machine, 'default')
    pass(w, 30_000)
    expect(seen).toEqual([
      'cleanup',
      'dbus',
      'stopServices',
      'umount',
      'unmountBind',
      'unmountSystem',
      'volumeFinalize',
      'kexec',
      'stopEverything',
      'reboot',
    ])
    pass(w, 5 * MINUTE)
    const actor = answer.ok ? answer.value.actorID : ''
    expect(actor).not.toBe('')
    expect(machine.events.list().some(e => e.actorID === actor)).toBe(false)
    expect(machine.events.list().some(e => e.type === 'SequenceEvent' && e.sequence === 'boot' && e.action === 'STOP')).toBe(true)
  })

  it('that hangs while it stops pods holds the lock: the next one is dropped with a LOCKED event, force gets through', () => {
    const w = world()
    const machine = w.machine('wk-1')
    const { bootID } = machine
    w.fault('wk-1', { stopPodsMs: Infinity })
    requestReboot(w.site, machine, 'default')
    pass(w, 30 * MINUTE)
    expect([machine.stage, machine.bootID]).toEqual(['rebooting', bootID])
    expect(requestReboot(w.site, machine, 'default').ok).toBe(true)
    expect(machine.events.list().at(-1)).toMatchObject({ type: 'SequenceEvent', action: 'NOOP', actorID: '', error: { code: 'LOCKED' } })
    pass(w, 30 * MINUTE)
    expect(machine.bootID).toBe(bootID)
    requestReboot(w.site, machine, 'force')
    pass(w, 5 * MINUTE)
    expect(machine.bootID).not.toBe(bootID)
  })

  it('that never ends leaves the machine dark until somebody switches it off and on', () => {
    const w = world()
    const machine = w.machine('wk-1')
    w.fault('wk-1', { rebootNeverEnds: true })
    requestReboot(w.site, machine, 'default')
    pass(w, 60 * MINUTE)
    expect(w.away('worker')).toEqual([machine])
    w.fault('wk-1', { rebootNeverEnds: false })
    w.powerOff('wk-1')
    w.powerOn('wk-1')
    pass(w, 10 * MINUTE)
    expect(w.away()).toEqual([])
  })
})

describe('LifecycleService.Upgrade', () => {
  it('writes the other slot and changes nothing else; the reboot then boots it, and the way back is dropped once ready', () => {
    const w = world()
    const machine = w.machine('cp-1')
    const { bootID } = machine
    expect(put(w, 'cp-1')).toMatchObject({ ok: true, value: { exitCode: 0 } })
    expect([versionOf(machine), machine.bootID, machine.stage]).toEqual(['v1.13.5', bootID, 'running'])
    expect(machine.disk.meta.get(META_FALLBACK)).toBe('A')
    requestReboot(w.site, machine, 'default')
    pass(w, 5 * MINUTE)
    expect(versionOf(machine)).toBe('v1.13.9')
    expect(machine.disk.meta.has(META_FALLBACK)).toBe(false)
    expect(w.journal.of('fallback-dropped', 'cp-1')).toHaveLength(1)
    expect(w.journal.of('boot')).toHaveLength(1)
  })

  it('needs the image pulled, and Talos 1.13', () => {
    const results: unknown[] = []
    const w = world()
    install(w.site, w.machine('cp-1'), IMAGE, { line: () => {}, end: r => results.push(r) })
    const old = world({ talos: 'v1.12.5', kubernetes: 'v1.35.2' })
    install(old.site, old.machine('cp-1'), IMAGE, { line: () => {}, end: r => results.push(r) })
    expect(results).toMatchObject([
      { code: 'Internal', message: expect.stringContaining('not found in containerd store') },
      { code: 'Unimplemented' },
    ])
  })

  it('refuses a second one while the first runs', () => {
    const w = world()
    const machine = w.machine('cp-1')
    put(w, 'cp-1')
    const results: unknown[] = []
    for (let i = 0; i < 2; i++) install(w.site, machine, IMAGE, { line: () => {}, end: r => results.push(r) })
    expect(results).toMatchObject([{ code: 'FailedPrecondition', message: 'another installation/upgrade is already in progress' }])
  })

  it('that fails leaves what boots next as it was', () => {
    const w = world()
    const machine = w.machine('wk-1')
    w.fault('wk-1', { installer: { exitCode: 1, lines: ['probing bootloader', 'error: failed to probe bootloader'], times: 1 } })
    expect(put(w, 'wk-1')).toMatchObject({
      ok: true,
      value: { exitCode: 1, lines: expect.arrayContaining(['error: failed to probe bootloader']) },
    })
    expect(machine.disk.meta.has(META_FALLBACK)).toBe(false)
    requestReboot(w.site, machine, 'default')
    pass(w, 5 * MINUTE)
    expect(versionOf(machine)).toBe('v1.13.5')
    expect(put(w, 'wk-1')).toMatchObject({ ok: true, value: { exitCode: 0 } })
  })

  it('checks what it comes from inside the installer', () => {
    const w = world({ talos: 'v1.13.5', kubernetes: 'v1.31.0' })
    w.registry.addSchematic(SCHEMATIC, [])
    expect(put(w, 'wk-1', `factory.talos.dev/metal-installer/${SCHEMATIC}:v1.14.0-rc.1`)).toMatchObject({
      value: { exitCode: 4, lines: expect.arrayContaining([expect.stringContaining('version of Kubernetes 1.31.0 is too old')]) },
    })
  })

  it('takes schematic and extensions from the image', () => {
    const w = world({ schematic: SCHEMATIC, extensions: ['iscsi-tools'] })
    expect(w.machine('wk-1').disk.slots.A).toMatchObject({
      schematic: SCHEMATIC,
      factory: 'factory.talos.dev',
      extensions: ['iscsi-tools'],
    })
    put(w, 'wk-1')
    expect(w.machine('wk-1').disk.slots.B).toMatchObject({ version: 'v1.13.9', schematic: '', extensions: [] })
  })

  it('a boot that fails comes back on the old slot, with a new boot id', () => {
    const w = world()
    const machine = w.machine('wk-1')
    const { bootID } = machine
    put(w, 'wk-1')
    w.fault('wk-1', { failedBoots: 1 })
    requestReboot(w.site, machine, 'default')
    pass(w, 10 * MINUTE)
    expect(versionOf(machine)).toBe('v1.13.5')
    expect(machine.bootID).not.toBe(bootID)
    expect(machine.disk.meta.has(META_FALLBACK)).toBe(false)
    expect(w.isUp(machine)).toBe(true)
  })

  it('a pull of what no registry has fails', () => {
    const w = world()
    w.registry.remove(':v1.13.9')
    let result: unknown
    pullImage(w.site, w.machine('cp-1'), IMAGE, { line: () => {}, end: r => (result = r) })
    pass(w, MINUTE)
    expect(result).toMatchObject({ ok: false, code: 'NotFound' })
  })

  it('when the machine goes down the stream breaks', () => {
    const w = world()
    const machine = w.machine('cp-1')
    put(w, 'cp-1')
    let result: unknown
    install(w.site, machine, IMAGE, { line: () => {}, end: r => (result = r) })
    w.powerOff('cp-1')
    expect(result).toMatchObject({ ok: false, code: 'Unavailable' })
    expect(machine.installing).toBe(false)
  })
})

describe('the legacy Upgrade', () => {
  const old = (options: Partial<WorldOptions> = {}) => world({ talos: 'v1.12.5', kubernetes: 'v1.35.2', ...options })
  const upgrade = (w: World, name: string, image: string) => {
    const results: unknown[] = []
    requestUpgrade(w.site, w.machine(name), { image, preserve: false, force: false, rebootMode: 'default' }, w.drain, r => results.push(r))
    return results
  }
  const TARGET = 'ghcr.io/siderolabs/installer:v1.12.11'

  it('drains, installs and reboots by itself, and its own cordon goes away', () => {
    const w = old({ workloads: [{ name: 'web', replicas: 2 }] })
    const machine = w.machine('wk-1')
    const results = upgrade(w, 'wk-1', TARGET)
    pass(w, MINUTE)
    expect(results).toMatchObject([{ ok: true }])
    pass(w, 15 * MINUTE)
    expect(versionOf(machine)).toBe('v1.12.11')
    expect(w.isUp(machine)).toBe(true)
    const what = w.journal
      .entries()
      .filter(e => e.machine === 'wk-1')
      .map(e => e.what)
    const order = [
      'upgrade-requested',
      'cordon',
      'evicted',
      'pod-gone',
      'install-began',
      'installed',
      'boot',
      'uncordon',
      'fallback-dropped',
    ]
    expect(what.filter(w => order.includes(w)).filter((w, at, all) => all.indexOf(w) === at)).toEqual(order)
    expect(w.nodes.isSchedulable('wk-1')).toBe(true)
  })

  it('a budget holds it up for five minutes and no longer', () => {
    const w = old({ workloads: [{ name: 'web', budget: { minAvailable: 1 }, on: [3] }] })
    upgrade(w, 'wk-1', TARGET)
    pass(w, 4 * MINUTE)
    expect(w.journal.of('install-began')).toEqual([])
    pass(w, 15 * MINUTE)
    expect(w.journal.of('drain-gave-up', 'wk-1')).toHaveLength(1)
    expect(versionOf(w.machine('wk-1'))).toBe('v1.12.11')
  })

  it('looks at image and etcd before it answers', () => {
    const w = old()
    w.registry.remove(':v1.12.10')
    const missing = upgrade(w, 'wk-1', 'ghcr.io/siderolabs/installer:v1.12.10')
    w.sicken('cp-2', true)
    const sick = upgrade(w, 'cp-1', TARGET)
    const two = old({ controlPlanes: 2 })
    const pair = upgrade(two, 'cp-1', TARGET)
    pass(w, MINUTE)
    pass(two, MINUTE)
    expect(missing).toMatchObject([{ code: 'Unknown', message: expect.stringContaining('error validating installer image') }])
    expect(sick).toMatchObject([{ code: 'Unknown', message: expect.stringContaining('is not healthy') }])
    expect(pair).toMatchObject([{ code: 'Unknown', message: expect.stringContaining('etcd member count(2) is insufficient') }])
    expect(w.journal.of('cordon')).toEqual([])
  })

  it('an installer that fails reboots the machine into the old version', () => {
    const w = old()
    const machine = w.machine('wk-1')
    const { bootID } = machine
    w.fault('wk-1', { installer: { exitCode: 1, lines: ['failed'], times: 1 } })
    upgrade(w, 'wk-1', TARGET)
    pass(w, 15 * MINUTE)
    expect(versionOf(machine)).toBe('v1.12.5')
    expect(machine.bootID).not.toBe(bootID)
    expect(w.nodes.isSchedulable('wk-1')).toBe(true)
  })
})

it('the same seed tells the same story, another one another', () => {
  const tell = (seed: number): string => {
    const w = world({
      seed,
      workloads: [
        { name: 'web', replicas: 3, budget: { maxUnavailable: 1 } },
        { name: 'db', volume: true },
      ],
    })
    put(w, 'cp-2')
    requestReboot(w.site, w.machine('cp-2'), 'default')
    w.userCordon('wk-1')
    for (const pod of w.store.list('pods').items)
      if ((pod.spec as { nodeName?: string }).nodeName === 'wk-1') w.evict(pod.metadata.namespace ?? '', pod.metadata.name)
    pass(w, 10 * MINUTE)
    return w.journal.text()
  }
  expect(tell(1)).toBe(tell(1))
  expect(tell(1)).not.toBe(tell(2))
})
