import { describe, expect, it } from 'vitest'
import type { World } from './cluster.ts'
import { createWorld } from './cluster.ts'
import { install, pullImage } from './install.ts'
import { requestUpgrade } from './legacy-upgrade.ts'
import { answers, versionOf } from './machine.ts'
import { RESOURCE, conditionOf } from './objects.ts'
import { requestReboot } from './reboot.ts'

const MINUTE = 60_000

/** One of the things that happen to machines, chosen by the seed. */
const disturb = (w: World): void => {
  const { random } = w.schedule
  const machine = random.pick(w.machines)
  const { name } = machine
  const on = answers(machine)
  const image = `ghcr.io/siderolabs/installer:${versionOf(machine).startsWith('v1.12') ? 'v1.12.11' : 'v1.13.9'}`
  const quiet = { line: () => {}, end: () => {} }
  const deeds: (() => void)[] = [
    () => w.powerOff(name),
    () => w.powerOn(name),
    () => w.blackHole(name, true),
    () => w.blackHole(name, false),
    () => w.apiOutage(random.between(1000, 2 * MINUTE)),
    () => w.etcd.elect(),
    () =>
      w.store
        .list(RESOURCE.pods)
        .items.slice(0, 3)
        .forEach(pod => w.evict(pod.metadata.namespace ?? '', pod.metadata.name)),
    () => void (on && requestReboot(w.site, machine, random.pick(['default', 'force', 'powercycle']))),
    () => void (on && requestUpgrade(w.site, machine, { image, preserve: false, force: false, rebootMode: 'default' }, w.drain, () => {})),
    () =>
      void (
        on &&
        pullImage(w.site, machine, image, {
          line: () => {},
          end: pulled => {
            if (pulled.ok) install(w.site, machine, pulled.value, quiet)
          },
        })
      ),
  ]
  random.pick(deeds)()
}

describe('whatever happens to it, a cluster that is then left alone', () => {
  it.each(Array.from({ length: 40 }, (_, seed) => seed))('comes back whole and falls silent (seed %i)', seed => {
    const isOld = seed % 2 === 1
    const w = createWorld({
      seed,
      controlPlanes: [1, 3, 5][seed % 3] ?? 3,
      workers: seed % 4,
      talos: isOld ? 'v1.12.5' : 'v1.13.5',
      kubernetes: isOld ? 'v1.35.2' : 'v1.36.2',
      workloads: [
        { name: 'web', replicas: 3, budget: { minAvailable: 2 } },
        { name: 'db', volume: true },
      ],
    })
    for (let i = 0; i < 12; i++) {
      disturb(w)
      w.schedule.advanceTo(w.schedule.now() + w.schedule.random.between(1000, 200_000))
    }
    for (const { name } of w.machines) {
      w.blackHole(name, false)
      w.powerOn(name)
    }
    w.schedule.advanceTo(w.schedule.now() + 40 * MINUTE)

    expect(w.away()).toEqual([])
    expect(w.api.available()).toBe(true)
    for (const machine of w.machines) {
      expect(w.nodes.isReady(machine.name)).toBe(true)
      expect(w.nodes.isSchedulable(machine.name)).toBe(true)
      expect(w.nodes.of(machine)?.status).toMatchObject({ nodeInfo: { bootID: machine.bootID } })
    }
    const pods = w.store.list(RESOURCE.pods).items
    expect(pods.filter(pod => conditionOf(pod, 'Ready')?.status !== 'True').map(pod => pod.metadata.name)).toEqual([])
    expect(pods.filter(pod => pod.metadata.labels?.app === 'web')).toHaveLength(3)
    expect(w.store.list(RESOURCE.attachments).items).toHaveLength(1)
    const steps = w.schedule.steps()
    const serials = () => w.machines.map(machine => machine.certificate?.serial ?? 0)
    const before = serials()
    w.schedule.advanceTo(w.schedule.now() + 60 * MINUTE)
    // Nothing happens but that certificates are renewed twice a day.
    const renewed = serials().filter((serial, index) => serial !== before[index])
    expect(w.schedule.steps() - steps).toBe(renewed.length)
  })
})

it('an installer whose caller hung up was sometimes killed and sometimes not', () => {
  const outcomes = new Set<string>()
  for (let seed = 0; seed < 20; seed++) {
    const w = createWorld({ seed, controlPlanes: 1, workers: 0 })
    const machine = w.machine(0)
    const image = 'ghcr.io/siderolabs/installer:v1.13.9'
    pullImage(w.site, machine, image, { line: () => {}, end: () => {} })
    w.schedule.advanceTo(w.schedule.now() + MINUTE)
    const hangUp = install(w.site, machine, image, { line: () => {}, end: () => {} })
    w.schedule.advanceTo(w.schedule.now() + 5000)
    hangUp()
    w.schedule.advanceTo(w.schedule.now() + 2 * MINUTE)
    expect(machine.installing).toBe(false)
    const isInstalled = machine.disk.slots.B?.version === 'v1.13.9'
    expect(machine.disk.next).toBe(isInstalled ? 'B' : 'A')
    outcomes.add(isInstalled ? 'installed' : 'killed')
  }
  expect([...outcomes].toSorted()).toEqual(['installed', 'killed'])
})

it('a scaled world is so many times as fast', () => {
  const away = (scale: number): number => {
    const w = createWorld({ seed: 4, controlPlanes: 3, workers: 1, scale })
    const begun = w.schedule.now()
    requestReboot(w.site, w.machine('wk-1'), 'default')
    w.schedule.advanceTo(begun + 10 * MINUTE)
    const back = w.journal.of('stage', 'wk-1').find(e => e.detail === 'running')
    return (back?.at ?? Infinity) - begun
  }
  expect(away(1)).toBeGreaterThan(40_000)
  expect(away(20)).toBeLessThan(10_000)
})
