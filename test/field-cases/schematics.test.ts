import { describe, expect, it } from 'vitest'
import { NAMESPACE } from '../../src/storm/story.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { EMPTY_SCHEMATIC } from '../../src/core/talos-image.ts'
import { runningSlot } from '../../src/world/slots.ts'
import { installedFrom, play, playWithDeaths, type Run } from './play.ts'

const S1 = '1'.repeat(64)
const S2 = '2'.repeat(64)
const version = 'v1.12.4'
const before = { talos: 'v1.12.2', kubernetes: 'v1.34.1' }
const images = (run: Run) => [...new Set(installedFrom(run))]

describe('the id of the schematic without any extension [B014 home-operations/tuppr#576]', () => {
  const installImage = () => `factory.talos.dev/metal-installer/${EMPTY_SCHEMATIC}:v1.12.2`

  it('in the configuration says nothing: what runs is kept', async () => {
    const { run, end } = await playWithDeaths(
      { cluster: { ...before, schematic: S1, extensions: ['iscsi-tools'], installImage }, spec: { talos: { version } } },
      3,
    )
    expect(end).toMatchObject({ phase: 'Completed', reason: undefined })
    expect(run.status().preflight?.refusals).toEqual([])
    expect(images(run)).toEqual([`factory.talos.dev/metal-installer/${S1}:${version}`])
    expect(run.world.machines.map(m => runningSlot(m.disk).extensions)).toEqual(Array(5).fill(['iscsi-tools']))
  })

  it('where it is also what runs, it stays', async () => {
    const { run, end } = await play({ cluster: { ...before, schematic: EMPTY_SCHEMATIC, installImage }, spec: { talos: { version } } })
    expect(end.phase).toBe('Completed')
    expect(images(run)).toEqual([`factory.talos.dev/metal-installer/${EMPTY_SCHEMATIC}:${version}`])
  })

  it('in the image that is asked for is no other schematic than none', async () => {
    const image = `factory.talos.dev/metal-installer/${EMPTY_SCHEMATIC}:${version}`
    const { run, end } = await play({ cluster: before, spec: { talos: { version, image } } })
    expect(end.phase).toBe('Completed')
    expect(run.status().preflight?.refusals).toEqual([])
    expect(images(run)).toEqual([image])
  })
})

describe('a factory that is no plain host name [B017 siderolabs/talos#13989]', () => {
  it.each([
    ['with a port', '192.0.2.5:8080', '192.0.2.5:8080'],
    ['of IPv6', '[2001:db8::5]:8080', '[2001:db8::5]:8080'],
    ['with a path', 'factory.example/sub/path', 'factory.example/sub/path'],
    ['written as a URL', 'http://192.0.2.5:8080/', '192.0.2.5:8080'],
  ])('%s', async (_, imageFactory, host) => {
    const { run, end } = await play({
      cluster: { ...before, schematic: S1, extensions: ['iscsi-tools'], factories: [host], cluster: { imageFactory } },
      spec: { talos: { version } },
    })
    const image = `${host}/metal-installer/${S1}:${version}`
    expect(end.phase).toBe('Completed')
    expect(images(run)).toEqual([image])
    expect(run.world.machines.map(m => m.config.includes(`image: ${image}\n`))).toEqual(Array(5).fill(true))
    const noted = run.status().preflight?.notes?.filter(n => n.includes('imageFactory')) ?? []
    expect(noted).toEqual(
      imageFactory === host
        ? []
        : ['spec.imageFactory of the TalosCluster is "http://192.0.2.5:8080/"; in references of images it is written 192.0.2.5:8080.'],
    )
  })
})

describe('an image of the mirror whose name tells no schematic', () => {
  const repository = 'harbor.example/talos/installer-s1'
  const cluster = { schematic: S1, extensions: ['iscsi-tools'] }
  const target = 'v1.13.9'
  const image = `${repository}:${target}`
  /** The mirror has it, with this schematic in it, and each TalosMachine names it. */
  const mirrored =
    (schematic: string) =>
    ({ world: { registry, store } }: Run): void => {
      registry.addRepository(repository, schematic)
      for (const machine of store.list(ICHOR.machines, NAMESPACE).items)
        store.update(ICHOR.machines, { ...machine, spec: { ...(machine.spec as object), installImage: repository } })
    }

  it('named on the machines is installed as it is, once each, and a second operation has nothing to do', async () => {
    const { run, end } = await playWithDeaths({
      cluster,
      spec: { talos: { version: target } },
      arrange: mirrored(S1),
    })
    expect(end).toMatchObject({ phase: 'Completed', reason: undefined })
    expect(images(run)).toEqual([image])
    expect(run.world.machines.map(m => run.world.journal.of('reboot-requested', m.name).length)).toEqual(Array(5).fill(1))

    run.create({ name: 'again', spec: { kind: 'talos', talos: { version: target } } })
    await run.until('the second has ended', () => run.operation('again')?.status.phase === 'Completed')
    expect(run.operation('again')?.status.preflight?.notes).toContain(`All 5 machines already run ${target}; there is nothing to do.`)
    expect(run.operation('again')?.status.progress).toMatchObject({ done: 0, skipped: 5 })
  })

  it('has to carry the schematic that is asked for by name', async () => {
    const { run, end } = await play({ cluster, spec: { talos: { version: target, schematic: S2 } }, arrange: mirrored(S1) })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'SchematicMismatch' })
    expect(run.status().message).toContain(`wanted the schematic ${S2}`)
  })
})

describe('the boot partition is full [B021 siderolabs/talos#12551]', () => {
  it.each([
    ['v1.13.9', 'v1.13.5'],
    ['v1.14.0', 'v1.13.9'],
  ])('by %s: the machine goes on with what it has, and only installing it anew is a way', async (target, talos) => {
    const { run, end } = await playWithDeaths(
      {
        cluster: { talos },
        spec: { talos: { version: target } },
        arrange: ({ world }) => {
          world.registry.addRelease(target)
          world.fault('wk-2', { bootPartitionFull: true })
        },
      },
      3,
    )
    expect(end).toMatchObject({ phase: 'Paused', reason: 'InstallFailed' })
    expect(end.machines.slice(3)).toEqual([expect.stringMatching(`^wk-1 ${target} .*Completed$`), `wk-2 ${talos} Failed`])
    expect(run.status().message).toMatch(/^wk-2: .*no space left on device.*still runs v1\.13\.\d, wanted/)
    expect(run.status().message).toContain('the machine has to be reset and installed anew')
    expect(run.world.journal.of('reboot-requested', 'wk-2')).toEqual([])
    expect([...run.world.calls.counts().keys()].filter(name => /reset|wipe/.test(name))).toEqual([])
  })
})

describe('the version is right and the extensions are not there [B023 siderolabs/talos#11844]', () => {
  const extensions = ['iscsi-tools', 'util-linux-tools']
  /** The installer of this machine writes the new version with the old schematic. */
  const keepsSchematic = (run: Run, name: string): void => {
    run.world.registry.addSchematic(S2, extensions)
    run.world.journal.onEntry(({ what, machine }) => {
      if (what !== 'installed' || machine !== name) return
      const { disk } = run.world.machine(name)
      const fresh = disk.booted === 'A' ? 'B' : 'A'
      const slot = disk.slots[fresh]
      if (slot) disk.slots[fresh] = { ...slot, schematic: S1, extensions: ['iscsi-tools'] }
    })
  }
  const told = {
    cluster: { ...before, schematic: S1, extensions: ['iscsi-tools'] },
    spec: { talos: { version, schematic: S2 } },
  }

  it('is no success: it ends at that machine and names what is missing', async () => {
    const { run, end } = await playWithDeaths({ ...told, arrange: run => keepsSchematic(run, 'wk-1') })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'SchematicMismatch' })
    expect(end.machines.slice(2)).toEqual([
      `cp-3 ${version} ${S2.slice(0, 8)} Completed`,
      `wk-1 ${version} ${S1.slice(0, 8)} Failed`,
      `wk-2 v1.12.2 ${S1.slice(0, 8)} Pending`,
    ])
    expect(run.status().message).toMatch(
      new RegExp(
        `^wk-1 runs ${version} with the schematic ${S1}, wanted the schematic ${S2}\\. Of the extensions that cp-. has, these are missing: util-linux-tools\\.`,
      ),
    )
    expect(run.world.journal.of('pulled', 'wk-2')).toEqual([])
  })

  it('on the first machine, where there is nothing to compare with, it tells what is there', async () => {
    const { run, end } = await play({ ...told, arrange: run => keepsSchematic(run, 'cp-1') })
    const first = run.status().machines?.[0]?.hostname
    if (first !== 'cp-1') throw new Error(`the order begins with ${first}`)
    expect(end).toMatchObject({ phase: 'Paused', reason: 'SchematicMismatch' })
    expect(run.status().message).toContain('It has the extensions iscsi-tools.')
  })
})
