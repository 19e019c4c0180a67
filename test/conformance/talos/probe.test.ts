// The official Go client of Talos 1.13.9 judges the simulated machines: whether it understands their resources as the world means them, and
// what installing and pulling look like to it.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Machines, startMachines } from '../../machines-on-the-wire.ts'
import { realPart } from '../../real/parts.ts'
import { type Probed, probe, probeOn, type Watching } from './probe.ts'
import { describedMachines, WORLD_SAYS } from './world-says.ts'

const part = await realPart('talos-probe')

type Encoded = { readonly proto: string | null; readonly yaml: string }
type Told = {
  readonly metadata: {
    readonly namespace: string
    readonly type: string
    readonly id: string
    readonly version: string
    readonly owner: string
  }
  readonly goType: string
  readonly definition?: unknown
  readonly spec: unknown
  readonly served: Encoded
  readonly official: Encoded
}
type Event = { readonly event: string; readonly hasBookmark: boolean; readonly resource: Told; readonly old?: Told }

let home: string
let machines: Machines
const configs: Record<string, string> = {}

async function start(options: Parameters<typeof startMachines>[0]): Promise<void> {
  home = await mkdtemp(join(tmpdir(), 'talos-probe-'))
  machines = await startMachines(options)
  for (const role of ['os:admin', 'os:operator', 'os:reader']) {
    configs[role] = join(home, role.replace(':', '-'))
    await writeFile(configs[role], await machines.talosconfig({ roles: [role], endpoints: [machines.address(0)] }))
  }
}
async function stop(): Promise<void> {
  await machines.close()
  await rm(home, { recursive: true, force: true })
}

const flags = (index: number, role = 'os:admin'): string[] => ['--talosconfig', configs[role]!, '--node', machines.address(index)]
const ask = (index: number, ...args: string[]): Promise<Probed> => probe(...flags(index), ...args)
const told = async (index: number, ...args: string[]): Promise<readonly Told[]> => {
  const { lines, error } = await ask(index, ...args)
  expect(error).toBeUndefined()
  return lines as Told[]
}

const types = Object.keys(WORLD_SAYS)
const definitionsOf = async (index: number): Promise<Map<string, unknown>> =>
  new Map((await told(index, 'cosi-list', 'rd')).map(({ spec }) => [(spec as { type: string }).type, spec]))
const byType = (resources: readonly Told[]): Record<string, Record<string, unknown>> => {
  const sorted: Record<string, Record<string, unknown>> = Object.fromEntries(types.map(type => [type, {}]))
  for (const { metadata, spec } of resources) (sorted[metadata.type] ??= {})[metadata.id] = spec
  return sorted
}
const expected = (index: number) =>
  Object.fromEntries(types.map(type => [type, WORLD_SAYS[type]!(machines.world, machines.world.machine(index))]))

const installer = (version: string): string => `ghcr.io/siderolabs/installer:${version}`

type Line = { readonly progress: { readonly message?: string; readonly exitCode?: number } }
const exits = (lines: readonly unknown[]): number[] => (lines as Line[]).flatMap(({ progress: { exitCode } }) => exitCode ?? [])
const words = (lines: readonly unknown[]): string[] => (lines as Line[]).flatMap(({ progress: { message } }) => message ?? [])

describe.skipIf('missing' in part)('a world that stands still: resources, as the official types read them', () => {
  beforeAll(async () => {
    await start({ ...describedMachines, speed: 0 })
    for (const machine of machines.world.machines) machine.disk.meta.set(0x0a, 'a note')
  })
  afterAll(stop)

  test('version', async () => {
    const { lines } = await ask(3, 'version')
    expect(lines).toEqual([
      {
        metadata: null,
        version: { tag: 'v1.13.9', sha: 'simulated', built: '', goVersion: 'none', os: 'linux', arch: 'amd64' },
        platform: { name: 'metal', mode: 'metal' },
        features: { rbac: true },
      },
    ])
  })

  test('the world has a word for every type that a machine serves', async () => {
    const served = [...(await definitionsOf(0)).keys()].filter(type => !type.endsWith('.meta.cosi.dev'))
    expect(types.toSorted()).toEqual(served.toSorted())
  })

  test.each([
    ['a control plane', 0],
    ['another, through it', 2],
    ['a worker', 3],
  ])('list: all of %s', async (_, index) => {
    const resources = await told(index, 'cosi-list', ...types)
    expect(byType(resources)).toEqual(expected(index))
    expect(resources.filter(({ goType }) => !goType.includes('github.com/siderolabs/talos/') && !goType.startsWith('*config.'))).toEqual([])
  })

  test('what is served is what a real machine would send of the same: bytes, YAML, definition', async () => {
    const definitions = await definitionsOf(0)
    const resources = await told(0, 'cosi-list', ...types, 'rd', 'namespaces')
    const length = ({ proto }: Encoded): number => Buffer.from(proto ?? '', 'base64').length
    const text = ({ yaml }: Encoded): string => yaml.replaceAll('"', "'")
    const name = ({ metadata: { type, id } }: Told): string => `${type} ${id}`
    // The order of fields is Go's and of maps it is anybody's, but nothing may be lost or added.
    expect(resources.filter(r => length(r.served) !== length(r.official)).map(name)).toEqual([])
    expect([...new Set(resources.filter(r => text(r.served) !== text(r.official)).map(r => r.metadata.type))]).toEqual([])
    const compared = resources.filter(r => r.definition !== undefined && !r.metadata.type.endsWith('.meta.cosi.dev'))
    expect(new Set(compared.map(r => r.metadata.type)).size).toBe(types.length - 1)
    for (const { metadata, definition } of compared) expect(definitions.get(metadata.type), metadata.type).toEqual(definition)
  })

  test('get: one of each type, and one that is not there', async () => {
    const wanted = Object.entries(expected(0)).flatMap(([type, specs]) => {
      const [id, spec] = Object.entries(specs).at(-1) ?? []
      return id === undefined ? [] : [{ type, id, spec }]
    })
    const found = await told(0, 'cosi-get', ...wanted.flatMap(({ type, id }) => [type, id]))
    expect(found.map(({ metadata: { type, id }, spec }) => ({ type, id, spec }))).toEqual(wanted)
    expect(wanted).toHaveLength(types.length - 1)
    expect((await ask(0, 'cosi-get', 'diagnostics', 'nosuch')).error).toEqual({
      code: 'NotFound',
      message: expect.stringContaining("resource Diagnostics.runtime.talos.dev(runtime/nosuch@undefined) doesn't exist") as string,
    })
    expect((await ask(0, 'cosi-get', 'nosuch', 'nosuch')).error?.code).toBe('NotFound')
    expect((await ask(0, '--namespace', 'nosuch', 'cosi-get', 'members', 'cp-1')).error).toEqual({
      code: 'PermissionDenied',
      message: 'namespace "nosuch" is not supported',
    })
  })

  test('watch: what is there, of every type, and then its end', async () => {
    const { lines, error } = await ask(3, '--initial', 'cosi-watch', ...types)
    expect(error).toBeUndefined()
    const events = lines as Event[]
    expect(byType(events.filter(e => e.event === 'Created').map(e => e.resource))).toEqual(expected(3))
    const ends = events.filter(e => e.event === 'Bootstrapped').map(e => e.resource.metadata.type)
    expect(ends.toSorted()).toEqual(types.toSorted())
    expect(events.filter(e => !['Created', 'Bootstrapped'].includes(e.event) || !e.hasBookmark)).toEqual([])
    for (const type of types) {
      const ids = events.filter(e => e.resource.metadata.type === type).map(e => e.resource.metadata.id)
      expect(ids, type).toEqual([...ids.slice(0, -1).toSorted(), ''])
    }
  })

  test('watch: one that is not there is told as destroyed', async () => {
    const { lines } = await ask(0, '--initial', '--id', 'nosuch', 'cosi-watch', 'members')
    expect(lines).toMatchObject([{ event: 'Destroyed', resource: { metadata: { id: 'nosuch', version: 'undefined' } } }])
  })

  test('watch: changes, with what was before', async () => {
    const watching = await probeOn(...flags(2), 'cosi-watch', 'nodestatuses')
    const events = () => watching.lines() as Event[]
    try {
      await vi.waitFor(() => expect(events().at(-1)?.event).toBe('Bootstrapped'), 10_000)
      machines.world.userCordon('cp-3')
      await vi.waitFor(() => expect(events()).toHaveLength(3), 10_000)
      machines.world.userUncordon('cp-3')
      machines.world.userDeleteNode('cp-3')
      await vi.waitFor(() => expect(events()).toHaveLength(5), 10_000)
    } finally {
      await watching.stop()
    }
    const one = (unschedulable: boolean, version: string) => ({ metadata: { id: 'cp-3', version }, spec: { unschedulable } })
    expect(events().filter(({ event }) => event !== 'Bootstrapped')).toMatchObject([
      { event: 'Created', resource: one(false, '1') },
      { event: 'Updated', resource: one(true, '2'), old: one(false, '1') },
      { event: 'Updated', resource: one(false, '3'), old: one(true, '2') },
      { event: 'Destroyed', resource: one(false, '3') },
    ])
  })

  test('who may read what', async () => {
    const secret = await probe(...flags(0, 'os:reader'), 'cosi-list', 'machineconfigs')
    expect(secret).toEqual({ lines: [], error: { code: 'PermissionDenied', message: 'not authorized' } })
    expect((await probe(...flags(3, 'os:reader'), 'cosi-list', 'members')).lines).toHaveLength(4)
  })

  test('one upgrade at a time', async () => {
    const { world } = machines
    const pass = (ms: number): void => world.schedule.advanceTo(world.schedule.now() + ms)
    const begun = async (...args: string[]): Promise<Watching> => {
      const going = await probeOn(...flags(1), ...args)
      await vi.waitFor(() => expect(going.lines().length).toBeGreaterThan(0), 10_000)
      return going
    }
    const pulling = await begun('pull', installer('v1.13.8'))
    pass(60_000)
    await vi.waitFor(() => expect(pulling.lines().at(-1)).toHaveProperty('name'), 10_000)
    await pulling.stop()
    const first = await begun('upgrade', installer('v1.13.8'))
    expect((await ask(1, 'upgrade', installer('v1.13.8'))).error).toEqual({
      code: 'FailedPrecondition',
      message: 'another installation/upgrade is already in progress',
    })
    expect(exits(first.lines())).toEqual([])
    pass(90_000)
    await vi.waitFor(() => expect(exits(first.lines())).toEqual([0]), 10_000)
    await first.stop()
  })
})

const OLDER = 'v1.12.5'

describe.skipIf('missing' in part)('images and upgrades, as the official client sees them', () => {
  beforeAll(() =>
    start({ seed: 7, controlPlanes: 3, workers: 2, talos: index => (index === 4 ? OLDER : 'v1.13.8'), kubernetes: 'v1.35.2', speed: 120 }),
  )
  afterAll(stop)

  test('pull, twice, and the image is in the list', async () => {
    const own = [/^ghcr\.io\/siderolabs\/kubelet:/, /^registry\.k8s\.io\/etcd:/].map(name =>
      expect.objectContaining({ name: expect.stringMatching(name) as string }),
    )
    expect(await ask(0, 'image-list')).toEqual({ lines: own })
    const { lines, error } = await ask(0, 'pull', installer('v1.13.9'))
    expect(error).toBeUndefined()
    const { name } = lines.at(-1) as { name: string }
    expect(name).toMatch(/^ghcr\.io\/siderolabs\/installer:v1\.13\.9@sha256:[0-9a-f]{64}$/)
    const progress = lines.slice(0, -1) as {
      pullProgress: { layerId: string; progress: { status: string; offset: string; total: string } }
    }[]
    expect(progress.length).toBeGreaterThan(1)
    const steps = progress.map(({ pullProgress: p }) => ({
      status: p.progress.status,
      part: Number(p.progress.offset) / Number(p.progress.total),
    }))
    expect(steps.at(-1)).toEqual({ status: 'EXTRACT_COMPLETE', part: 1 })
    expect(steps.map(step => step.part)).toEqual(steps.map(step => step.part).toSorted((a, b) => a - b))
    expect((await ask(0, 'pull', installer('v1.13.9'))).lines).toEqual([{ name }])
    const listed = (await ask(0, 'image-list')).lines
    expect(listed).toEqual([expect.objectContaining({ name: installer('v1.13.9'), digest: name.split('@')[1] }), ...own])
  })

  test('an image that no registry has', async () => {
    const { error } = await ask(1, 'pull', installer('v1.13.99'))
    expect(error).toEqual({ code: 'NotFound', message: expect.stringContaining('installer:v1.13.99: not found') as string })
    expect((await ask(1, 'upgrade', installer('v1.13.99'))).error).toEqual({
      code: 'Internal',
      message: expect.stringContaining('installer image "ghcr.io/siderolabs/installer:v1.13.99" not found in containerd store') as string,
    })
    expect((await ask(1, 'upgrade', '')).error).toEqual({ code: 'InvalidArgument', message: 'installer image name is required' })
  })

  test('a containerd that cannot be', async () => {
    const mixed = ['--driver', 'CONTAINERD', '--containerd', 'NS_CRI']
    expect((await ask(1, ...mixed, 'image-list')).error).toEqual({
      code: 'InvalidArgument',
      message: 'cannot use CRI namespace with containerd driver',
    })
    expect((await ask(1, '--containerd', 'NS_UNKNOWN', 'pull', installer('v1.13.9'))).error?.code).toBe('InvalidArgument')
  })

  test('an upgrade: lines, then the exit code, and no reboot', { timeout: 30_000 }, async () => {
    const machine = machines.world.machine(0)
    const { bootID } = machine
    await ask(0, 'pull', installer('v1.13.9'))
    const { lines, error } = await ask(0, 'upgrade', installer('v1.13.9'))
    expect(error).toBeUndefined()
    expect(exits(lines)).toEqual([0])
    expect((lines.at(-1) as Line).progress.exitCode).toBe(0)
    expect(words(lines).length).toBeGreaterThan(2)
    expect(machine.bootID).toBe(bootID)
    expect(machine.disk.slots[machine.disk.next]?.version).toBe('v1.13.9')
    expect((await ask(0, 'version')).lines).toMatchObject([{ version: { tag: 'v1.13.8' } }])
  })

  test('an installer that fails tells why and ends with its code; the next one does not', { timeout: 30_000 }, async () => {
    machines.world.fault(1, { installer: { exitCode: 1, lines: ['no space left on device'], times: 1 } })
    await ask(1, 'pull', installer('v1.13.9'))
    const failed = await ask(1, 'upgrade', installer('v1.13.9'))
    expect(failed.error).toBeUndefined()
    expect(words(failed.lines).at(-1)).toBe('no space left on device')
    expect(exits(failed.lines)).toEqual([1])
    const { disk } = machines.world.machine(1)
    expect(disk.next).toBe(disk.booted)
    expect(exits((await ask(1, 'upgrade', installer('v1.13.9'))).lines)).toEqual([0])
  })

  test('who may pull, and who may upgrade', async () => {
    const denied = { lines: [], error: { code: 'PermissionDenied', message: 'not authorized' } }
    expect(await probe(...flags(3, 'os:reader'), 'pull', installer('v1.13.9'))).toEqual(denied)
    expect((await probe(...flags(3, 'os:reader'), 'image-list')).error).toBeUndefined()
    expect((await probe(...flags(3, 'os:operator'), 'pull', installer('v1.13.9'))).error).toBeUndefined()
    expect(await probe(...flags(3, 'os:operator'), 'upgrade', installer('v1.13.9'))).toEqual(denied)
  })

  test('a machine of 1.12 behind the endpoint has neither service', async () => {
    const unknown = (service: string) => ({ lines: [], error: { code: 'Unimplemented', message: `unknown service ${service}` } })
    expect((await ask(4, 'version')).lines).toMatchObject([{ version: { tag: OLDER } }])
    expect(await ask(4, 'image-list')).toEqual(unknown('machine.ImageService'))
    expect(await ask(4, 'pull', installer('v1.12.6'))).toEqual(unknown('machine.ImageService'))
    expect(await ask(4, 'upgrade', installer('v1.12.6'))).toEqual(unknown('machine.LifecycleService'))
    const [status] = await told(4, 'cosi-get', 'machinestatus', 'machine')
    expect(status?.spec).toMatchObject({ stage: 'running' })
    expect((await told(4, 'cosi-get', 'versions', 'version'))[0]?.spec).toEqual({ name: '', version: OLDER })
  })
})

describe.skipIf('missing' in part)('a machine that is newer than the client', () => {
  const SCHEMATIC = describedMachines.schematic
  beforeAll(() => start({ ...describedMachines, controlPlanes: 1, workers: 0, talos: 'v1.14.0-rc.1', kubernetes: 'v1.36.2', speed: 0 }))
  afterAll(stop)

  test('types that the client does not know come as YAML, the others as ever', async () => {
    const [boot] = await told(0, 'cosi-list', 'bootids')
    expect(boot?.goType).toBe('*protobuf.Resource')
    expect(parse(boot!.served.yaml)).toEqual({ bootID: machines.world.machine(0).bootID })
    const [schematic] = await told(0, 'cosi-list', 'imagefactoryschematics')
    expect(parse(schematic!.served.yaml)).toMatchObject({ schematicId: SCHEMATIC })
    expect((await told(0, 'cosi-list', ...types)).length).toBeGreaterThan(30)
    expect((await told(0, 'cosi-get', 'versions', 'version'))[0]?.spec).toEqual({ name: 'Talos', version: 'v1.14.0-rc.1' })
  })
})
