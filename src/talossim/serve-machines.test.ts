import { fromBinary } from '@bufbuild/protobuf'
import { status } from '@grpc/grpc-js'
import { connect } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ContainerdNamespace, ContainerDriver } from '../../proto/gen/common/common_pb.ts'
import { EventType, State } from '../../proto/gen/cosi/resource/state_pb.ts'
import { ImageService, ImageServicePullLayerProgress_Status as LayerStatus } from '../../proto/gen/machine/image_pb.ts'
import { LifecycleService } from '../../proto/gen/machine/lifecycle_pb.ts'
import {
  ApplyConfigurationRequest_Mode as Mode,
  MachineService,
  RebootRequest_Mode,
  SequenceEventSchema,
} from '../../proto/gen/machine/machine_pb.ts'
import { MachineStatusSpecSchema } from '../../proto/gen/talos/resource/definitions/runtime/runtime_pb.ts'
import { callStream, callUnary, type Machines, startMachines } from '../../test/machines-on-the-wire.ts'

const machine = MachineService.method
const image = ImageService.method
const lifecycle = LifecycleService.method
const state = State.method
const containerd = { driver: ContainerDriver.CRI, namespace: ContainerdNamespace.NS_SYSTEM }
const NEW = 'ghcr.io/siderolabs/installer:v1.13.9'
const MACHINE_STATUS = { namespace: 'runtime', type: 'MachineStatuses.runtime.talos.dev' }

const running: Machines[] = []
const start = async (options: Partial<Parameters<typeof startMachines>[0]> = {}): Promise<Machines> => {
  const machines = await startMachines({ seed: 3, controlPlanes: 3, workers: 1, speed: 200, ...options })
  running.push(machines)
  return machines
}
vi.setConfig({ testTimeout: 20_000 })

afterEach(async () => {
  for (const machines of running.splice(0)) await machines.close()
})

const eventName = (type: number) => Object.entries(EventType).find(([, number]) => number === type)?.[0] ?? ''

/** What a call that has to fail fails with. */
const refusal = (call: Promise<unknown>): Promise<{ code: number; details: string }> =>
  call.then(
    () => {
      throw new Error('was answered')
    },
    (error: { code: number; details: string }) => ({ code: error.code, details: error.details }),
  )
const text = (chunks: readonly { bytes: Uint8Array }[]): string => Buffer.concat(chunks.map(chunk => chunk.bytes)).toString()

describe('LifecycleService and ImageService', () => {
  test('pull, install and reboot bring a machine to the new version', async () => {
    const { world, client } = await start()
    const cp = await client(0)
    const before = world.machine(0).bootID

    const early = callStream(cp, lifecycle.upgrade, { containerd, source: { imageName: NEW } })
    expect(await early.ended).toMatchObject({
      code: status.INTERNAL,
      details: expect.stringContaining('not found in containerd store') as string,
    })

    const pulling = callStream(cp, image.pull, { containerd, imageRef: NEW })
    expect(await pulling.ended).toBeUndefined()
    const name = pulling.messages.at(-1)?.response
    expect(name).toEqual({
      case: 'name',
      value: expect.stringMatching(/^ghcr\.io\/siderolabs\/installer:v1\.13\.9@sha256:[0-9a-f]{64}$/) as string,
    })
    const progress = pulling.messages.flatMap(({ response }) => (response.case === 'pullProgress' ? [response.value.progress!] : []))
    expect(progress.map(p => p.status)).toEqual([LayerStatus.DOWNLOADING, LayerStatus.DOWNLOADING, LayerStatus.EXTRACT_COMPLETE])
    expect(progress.at(-1)?.offset).toBe(progress.at(-1)?.total)

    const again = callStream(cp, image.pull, { containerd, imageRef: NEW })
    expect(await again.ended).toBeUndefined()
    expect(again.messages.map(m => m.response.case)).toEqual(['name'])

    const installing = callStream(cp, lifecycle.upgrade, { containerd, source: { imageName: name?.case === 'name' ? name.value : '' } })
    expect(await installing.ended).toBeUndefined()
    expect(installing.messages.slice(0, -1).every(m => m.progress?.response.case === 'message')).toBe(true)
    expect(installing.messages.at(-1)?.progress?.response).toEqual({ case: 'exitCode', value: 0 })
    expect(world.machine(0).bootID).toBe(before)

    await callUnary(cp, machine.reboot, {})
    await vi.waitFor(() => expect(world.isUp(world.machine(0))).toBe(false), 10_000)
    await vi.waitFor(() => expect(world.isUp(world.machine(0))).toBe(true), 10_000)
    const told = await callUnary(cp, machine.version, {}, { waitForReady: true })
    expect(told.messages[0]?.version?.tag).toBe('v1.13.9')
    expect(world.machine(0).bootID).not.toBe(before)
  })

  test('an installer that fails ends its stream well, with the exit code', async () => {
    const { world, client } = await start()
    world.fault(1, { installer: { exitCode: 1, lines: ['no space left on device'], times: 1 } })
    const cp = await client(0)
    const node = { node: world.machine(1).addresses[0]! }
    expect(await callStream(cp, image.pull, { containerd, imageRef: NEW }, { metadata: node }).ended).toBeUndefined()
    const installing = callStream(cp, lifecycle.upgrade, { containerd, source: { imageName: NEW } }, { metadata: node })
    expect(await installing.ended).toBeUndefined()
    expect(installing.messages.slice(-2).map(m => m.progress?.response.value)).toEqual(['no space left on device', 1])
  })

  test('refusals', async () => {
    const { client } = await start()
    const cp = await client(0)
    const missing = callStream(cp, image.pull, { containerd, imageRef: 'ghcr.io/siderolabs/installer:v1.13.99' })
    expect(await missing.ended).toMatchObject({ code: status.NOT_FOUND })
    const nowhere = callStream(cp, image.pull, { imageRef: NEW })
    expect(await nowhere.ended).toMatchObject({ code: status.INVALID_ARGUMENT })
    const nothing = callStream(cp, lifecycle.upgrade, { containerd, source: { imageName: '' } })
    expect(await nothing.ended).toMatchObject({ code: status.INVALID_ARGUMENT, details: 'installer image name is required' })
    expect(await refusal(callUnary(cp, machine.rollback, {}))).toMatchObject({ code: status.UNKNOWN, details: 'previous UKI not found' })
  })

  test('machines before 1.13 do not know them, whichever machine forwards', async () => {
    const { client, address } = await start({ talos: index => (index === 0 ? 'v1.13.5' : 'v1.12.5') })
    const metadata = { node: address(1) }
    for (const reader of [await client(0, ['os:reader']), await client(0)]) {
      const pulling = callStream(reader, image.pull, { containerd, imageRef: NEW }, { metadata })
      expect(await pulling.ended).toMatchObject({ code: status.UNIMPLEMENTED, details: 'unknown service machine.ImageService' })
    }
    const installing = callStream(
      await client(1),
      lifecycle.upgrade,
      { containerd, source: { imageName: NEW } },
      { metadata: { node: address(0) } },
    )
    expect(await installing.ended).toMatchObject({ code: status.INTERNAL })
  })
})

describe('reaching a machine', () => {
  const isOpen = (host: string): Promise<boolean> =>
    new Promise(resolve => {
      const socket = connect({ host, port: 50_000 })
      socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })

  test('the port is closed while a machine reboots; streams break, and its memory is empty afterwards', async () => {
    const { world, client, address } = await start({ durations: { reboot: [200_000, 200_000] } })
    const own = await client(1)
    const forwarded = callStream(await client(0), machine.events, {}, { metadata: { node: address(1) }, deadlineMs: 60_000 })
    const direct = callStream(own, machine.events, { tailEvents: -1 }, { deadlineMs: 60_000 })
    await vi.waitFor(() => expect(Math.min(direct.messages.length, forwarded.messages.length)).toBeGreaterThan(0), 5000)
    const first = await callUnary(own, state.get, { ...MACHINE_STATUS, id: 'machine' })
    await callUnary(own, machine.reboot, { mode: RebootRequest_Mode.FORCE })
    expect(await direct.ended).toMatchObject({ code: status.UNAVAILABLE })
    expect(await forwarded.ended).toMatchObject({ code: status.UNAVAILABLE })
    expect(await isOpen(address(1))).toBe(false)
    expect(await refusal(callUnary(await client(0), machine.version, {}, { metadata: { node: address(1) } }))).toMatchObject({
      code: status.UNAVAILABLE,
      details: expect.stringContaining('connection refused') as string,
    })
    await vi.waitFor(() => expect(world.isUp(world.machine(1))).toBe(true), 10_000)
    const second = await callUnary(own, state.get, { ...MACHINE_STATUS, id: 'machine' }, { waitForReady: true })
    expect(second.resource?.metadata?.created?.seconds).toBeGreaterThan(first.resource?.metadata?.created?.seconds ?? 0n)
    const later = callStream(own, machine.events, { tailEvents: -1 })
    const sequences = () =>
      later.messages.flatMap(({ data }) =>
        data?.typeUrl === 'talos/runtime/machine.SequenceEvent' ? [fromBinary(SequenceEventSchema, data.value).sequence] : [],
      )
    await vi.waitFor(() => expect(new Set(sequences())).toEqual(new Set(['initialize', 'install', 'boot'])), 5000)
    later.cancel()
  })

  test('a machine that is cut off lets callers wait, and answers when it is back', async () => {
    const { world, client, address } = await start()
    const own = await client(2)
    await callUnary(own, machine.hostname, {})
    world.blackHole(2, true)
    expect(await refusal(callUnary(own, machine.hostname, {}, { deadlineMs: 300 }))).toMatchObject({ code: status.DEADLINE_EXCEEDED })
    const through = callUnary(await client(0), machine.hostname, {}, { metadata: { node: address(2) } })
    const fresh = await client(2)
    const direct = [callUnary(own, machine.hostname, {}), callUnary(fresh, machine.hostname, {})]
    expect(await Promise.race([through, ...direct, new Promise(resolve => setTimeout(resolve, 300, 'silence'))])).toBe('silence')
    world.blackHole(2, false)
    for (const answer of await Promise.all([through, ...direct])) expect(answer.messages[0]?.hostname).toBe('cp-3')
  })

  test('one that is off: no route by way of another, refused at its own address', async () => {
    const { world, client, address } = await start()
    world.powerOff(3)
    await vi.waitFor(async () => expect(await isOpen(address(3))).toBe(false), 2000)
    const call = callUnary(await client(0), machine.version, {}, { metadata: { node: address(3) } })
    expect(await refusal(call)).toMatchObject({ code: status.UNAVAILABLE, details: expect.stringContaining('no route to host') as string })
    const both = await callUnary(await client(0), machine.version, {}, { metadata: { nodes: [address(3), address(1)] } })
    expect(both.messages.map(m => [m.metadata?.hostname, m.metadata?.status?.code ?? 0, m.version?.tag ?? ''])).toEqual([
      [address(3), status.UNAVAILABLE, ''],
      [address(1), status.OK, 'v1.13.5'],
    ])
  })

  test('where a call goes', async () => {
    const { client, address } = await start()
    const [cp, worker] = [await client(0), await client(3)]
    const host = async (from: typeof cp, metadata: Record<string, string | readonly string[]>) => {
      const { messages } = await callUnary(from, machine.hostname, {}, { metadata })
      return messages.map(m => `${m.metadata?.hostname ?? ''} ${m.hostname}`).sort()
    }
    expect(await host(cp, {})).toEqual([' cp-1'])
    expect(await host(cp, { node: address(3) })).toEqual([' wk-1'])
    expect(await host(cp, { node: address(3), proxyfrom: 'cp-1' })).toEqual([' cp-1'])
    expect(await host(cp, { nodes: [address(1), address(3)] })).toEqual([`${address(1)} cp-2`, `${address(3)} wk-1`])
    expect(await host(worker, { node: address(3) })).toEqual([' wk-1'])
    expect(await host(worker, { nodes: ['WK-1'] })).toEqual([' wk-1'])
    const refused = async (from: typeof cp, metadata: Record<string, string | readonly string[]>) =>
      (await refusal(callUnary(from, machine.hostname, {}, { metadata }))).code
    expect(await refused(worker, { node: address(0) })).toBe(status.PERMISSION_DENIED)
    expect(await refused(worker, { nodes: [address(3), address(0)] })).toBe(status.PERMISSION_DENIED)
    expect(await refused(cp, { node: [address(0), address(1)] })).toBe(status.INVALID_ARGUMENT)
    expect(await refused(cp, { node: `${address(1)}:50000` })).toBe(status.INTERNAL)
    expect(await refused(cp, { node: 'cp-2' })).toBe(status.UNAVAILABLE)
    const many = callUnary(cp, state.get, { ...MACHINE_STATUS, id: 'machine' }, { metadata: { nodes: [address(1)] } })
    expect(await refusal(many)).toMatchObject({ code: status.INVALID_ARGUMENT, details: expect.stringContaining('one-2-many') as string })
  })
})

test('roles decide, at the machine that serves', async () => {
  const { client, address } = await start()
  const config = { namespace: 'config', type: 'MachineConfigs.config.talos.dev', id: 'v1alpha1' }
  const calls: Record<string, (c: Awaited<ReturnType<typeof client>>, metadata?: Record<string, string>) => Promise<unknown>> = {
    version: (c, metadata) => callUnary(c, machine.version, {}, { metadata }),
    etcd: (c, metadata) => callUnary(c, machine.etcdStatus, {}, { metadata }),
    forfeit: (c, metadata) => callUnary(c, machine.etcdForfeitLeadership, {}, { metadata }),
    get: (c, metadata) => callUnary(c, state.get, { ...MACHINE_STATUS, id: 'machine' }, { metadata }),
    config: (c, metadata) => callUnary(c, state.get, config, { metadata }),
    read: (c, metadata) =>
      callStream(c, machine.read, { path: '/etc/hostname' }, { metadata }).ended.then(error => (error ? Promise.reject(error) : 'read')),
  }
  const allowed: Record<string, string[]> = {
    'os:admin': ['version', 'etcd', 'forfeit', 'get', 'config', 'read'],
    'os:operator': ['version', 'etcd', 'get'],
    'os:reader': ['version', 'etcd', 'get'],
    'os:etcd:backup': ['etcd'],
    'os:nonsense': [],
    'os:impersonator': [],
  }
  for (const [role, names] of Object.entries(allowed)) {
    const own = await client(0, [role])
    for (const metadata of [undefined, { node: address(1) }]) {
      for (const [name, call] of Object.entries(calls)) {
        const outcome = await call(own, metadata).then(
          () => 'allowed',
          (error: { details: string }) => error.details,
        )
        expect(`${role} ${name} ${outcome}`).toBe(`${role} ${name} ${names.includes(name) ? 'allowed' : 'not authorized'}`)
      }
    }
  }
  const both = await client(0, ['os:nonsense', 'os:reader'])
  await callUnary(both, machine.version, {})
  const apid = await client(0, ['os:impersonator'])
  await callUnary(apid, machine.version, {}, { metadata: { 'talos-role': 'os:reader' } })
  const liar = await client(0, ['os:nonsense'])
  expect(await refusal(callUnary(liar, machine.version, {}, { metadata: { 'talos-role': 'os:admin' } }))).toMatchObject({
    code: status.PERMISSION_DENIED,
  })
})

describe('resources', () => {
  test('a watch tells what is there, every change, and what was missed since a bookmark', async () => {
    const { world, client } = await start({ speed: 0 })
    const cp = await client(0)
    const services = { namespace: 'runtime', type: 'Services.v1alpha1.talos.dev' }
    const watching = callStream(cp, state.watch, { ...services, options: { bootstrapContents: true }, apiVersion: 1 })
    const seen = () => watching.messages.flatMap(m => m.event.map(e => `${eventName(e.eventType)} ${e.resource?.metadata?.id ?? ''}`))
    await vi.waitFor(() => expect(seen().at(-1)).toBe('BOOTSTRAPPED '), 5000)
    expect(watching.messages[0]?.event).toEqual([])
    expect(seen().slice(0, 3)).toEqual(['CREATED apid', 'CREATED auditd', 'CREATED containerd'])
    const bookmark = watching.messages.at(-1)?.event[0]?.bookmark
    expect(bookmark?.length).toBeGreaterThan(0)
    watching.cancel()
    await watching.ended

    await callUnary(cp, machine.reboot, {})
    const down = () => !world.machine(0).services.get('kubelet')?.state.startsWith('Running')
    while (!down()) world.schedule.step(world.schedule.now() + 60_000)
    const resumed = callStream(cp, state.watch, { ...services, options: { startFromBookmark: bookmark }, apiVersion: 1 })
    await vi.waitFor(() => expect(resumed.messages.length).toBeGreaterThan(1), 5000)
    expect(resumed.messages[1]?.event[0]).toMatchObject({
      eventType: EventType.DESTROYED,
      resource: { metadata: { id: 'kubelet', version: '1' } },
    })
    resumed.cancel()
    const stranger = callStream(cp, state.watch, { ...services, options: { startFromBookmark: new Uint8Array([1, 2]) }, apiVersion: 1 })
    expect(await stranger.ended).toMatchObject({ code: status.FAILED_PRECONDITION })
  })

  test('a watch of one', async () => {
    const { world, client } = await start({ speed: 0 })
    const worker = await client(3)
    const watching = callStream(worker, state.watch, { ...MACHINE_STATUS, id: 'machine', apiVersion: 1 })
    const stages = () =>
      watching.messages.flatMap(m =>
        m.event.map(
          e =>
            `${eventName(e.eventType)} ${fromBinary(MachineStatusSpecSchema, e.resource?.spec?.protoSpec ?? new Uint8Array()).stage} v${e.resource?.metadata?.version ?? ''}`,
        ),
      )
    await vi.waitFor(() => expect(stages()).toEqual(['CREATED 4 v1']), 5000)
    await callUnary(worker, machine.reboot, {})
    await vi.waitFor(() => expect(stages()).toEqual(['CREATED 4 v1', 'UPDATED 5 v2']), 5000)
    expect(watching.messages.at(-1)?.event[0]?.old?.metadata?.version).toBe('1')
    expect(world.machine(3).stage).toBe('rebooting')
    const absent = callStream(worker, state.watch, { ...MACHINE_STATUS, id: 'nobody', apiVersion: 1 })
    await vi.waitFor(
      () =>
        expect(absent.messages[1]?.event[0]).toMatchObject({
          eventType: EventType.DESTROYED,
          resource: { metadata: { version: 'undefined' }, spec: {} },
        }),
      5000,
    )
  })

  test('lists are in order and can be narrowed; what is not there is refused', async () => {
    const { client } = await start({ talos: index => (index === 0 ? 'v1.14.0-rc.1' : 'v1.13.5'), speed: 0 })
    const cp = await client(0)
    const members = { namespace: 'cluster', type: 'Members.cluster.talos.dev' }
    const ids = async (options: object, from = cp) => {
      const listing = callStream(from, state.list, { ...members, options })
      expect(await listing.ended).toBeUndefined()
      return listing.messages.map(m => m.resource?.metadata?.id)
    }
    expect(await ids({})).toEqual(['cp-1', 'cp-2', 'cp-3', 'wk-1'])
    expect(await ids({ idQuery: { regexp: '^wk' } })).toEqual(['wk-1'])
    expect(await ids({ labelQuery: [{ terms: [{ key: 'a', op: 0 }] }] })).toEqual([])
    expect(await ids({ labelQuery: [{ terms: [{ key: 'a', op: 0, invert: true }] }] })).toHaveLength(4)
    expect(await callStream(cp, state.list, { ...members, options: { idQuery: { regexp: '(' } } }).ended).toMatchObject({
      code: status.INVALID_ARGUMENT,
    })
    const bootID = { namespace: 'runtime', type: 'BootIDs.runtime.talos.dev', id: 'boot-id' }
    expect((await callUnary(cp, state.get, bootID)).resource?.spec?.yamlSpec).toMatch(/^bootID: [0-9a-f-]{36}\n$/)
    expect(await refusal(callUnary(await client(1), state.get, bootID))).toMatchObject({
      code: status.PERMISSION_DENIED,
      details: expect.stringContaining('is not supported') as string,
    })
    expect(await refusal(callUnary(cp, state.get, { ...members, id: 'x' }))).toMatchObject({ code: status.NOT_FOUND })
    expect(await refusal(callUnary(cp, state.destroy, { ...members, id: 'cp-1' }))).toMatchObject({
      details: 'write access is not allowed',
    })
  })
})

test('events start with an empty word, and keep to the actor asked for', async () => {
  const { client } = await start({ speed: 0 })
  const cp = await client(0)
  const all = callStream(cp, machine.events, {})
  await vi.waitFor(() => expect(all.messages).toMatchObject([{ data: { typeUrl: '' } }]), 5000)
  const { messages } = await callUnary(cp, machine.reboot, {})
  const actorId = messages[0]!.actorId
  await vi.waitFor(() => expect(all.messages.length).toBeGreaterThan(3), 5000)
  const own = callStream(cp, machine.events, { tailEvents: -1, withActorId: actorId })
  await vi.waitFor(() => expect(own.messages.length).toBeGreaterThan(2), 5000)
  expect(new Set(own.messages.map(m => m.actorId))).toEqual(new Set([actorId]))
  const last = callStream(cp, machine.events, { tailEvents: 1 })
  await vi.waitFor(() => expect(last.messages).toHaveLength(2), 5000)
  expect(last.messages[1]?.id).toBe(all.messages.at(-1)?.id)
  const since = callStream(cp, machine.events, { tailId: all.messages.at(-2)!.id })
  await vi.waitFor(() => expect(since.messages.map(m => m.id).slice(1)).toEqual([all.messages.at(-1)?.id]), 5000)
  expect(await callStream(cp, machine.events, { tailId: 'not an id' }).ended).toMatchObject({ code: status.UNKNOWN })
  expect(await callStream(cp, machine.events, { tailEvents: 1, tailSeconds: 1 }).ended).toMatchObject({ code: status.UNKNOWN })
})

test('etcd calls wait for an etcd that answers', async () => {
  const { world, client } = await start({ speed: 0 })
  const cp = await client(1)
  world.etcd.stop(world.machine(1))
  expect(await refusal(callUnary(cp, machine.etcdStatus, {}, { deadlineMs: 200 }))).toMatchObject({ code: status.DEADLINE_EXCEEDED })
  expect((await callUnary(cp, machine.etcdMemberList, {})).messages[0]?.members).toHaveLength(3)
  expect(await refusal(callUnary(cp, machine.etcdMemberList, { queryLocal: true }, { deadlineMs: 200 }))).toMatchObject({
    code: status.DEADLINE_EXCEEDED,
  })
  const waiting = callUnary(cp, machine.etcdStatus, {})
  const arrived = callUnary(cp, machine.hostname, {})
  await arrived
  world.etcd.start(world.machine(1))
  world.schedule.advanceTo(world.schedule.now() + 60_000)
  expect((await waiting).messages[0]?.memberStatus?.memberId).toBe(BigInt(`0x${world.member(1).id}`))
})

describe('a new machine configuration', () => {
  const apply = async (cp: Awaited<ReturnType<Machines['client']>>, config: string, mode: Mode, dryRun = false) => {
    const { messages } = await callUnary(cp, machine.applyConfiguration, { data: new TextEncoder().encode(config), mode, dryRun })
    return messages[0]!
  }

  test('takes another install image without a reboot, byte by byte', async () => {
    const { world, client } = await start()
    const cp = await client(0)
    const before = world.machine(0).config
    const changed = `# by hand\n${before.replace(/image: \S*installer\S*/, `image: ${NEW}`)}`
    expect((await apply(cp, changed, Mode.NO_REBOOT, true)).modeDetails).toContain(`+        image: ${NEW}`)
    expect(world.machine(0).config).toBe(before)
    expect(await apply(cp, changed, Mode.NO_REBOOT)).toMatchObject({
      mode: Mode.NO_REBOOT,
      modeDetails: 'Applied configuration without a reboot',
    })
    expect(world.machine(0).config).toBe(changed)
    const config = await callUnary(cp, state.get, { namespace: 'config', type: 'MachineConfigs.config.talos.dev', id: 'v1alpha1' })
    expect(Buffer.from(config.resource?.spec?.protoSpec ?? []).toString()).toContain(changed)
    expect(config.resource?.metadata?.annotations).toEqual({ 'talos.dev/yaml-spec': '1' })
  })

  test('that needs a reboot is refused or leads to one, as the mode says', async () => {
    const { world, client } = await start({ speed: 0 })
    const cp = await client(0)
    const changed = world.machine(0).config.replace('machine:\n', 'machine:\n    env:\n        A: b\n')
    expect(await refusal(apply(cp, changed, Mode.NO_REBOOT))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringContaining('immediate mode') as string,
    })
    expect(await apply(cp, changed, Mode.AUTO, true)).toMatchObject({ mode: Mode.REBOOT })
    expect(world.machine(0).stage).toBe('running')
  })

  test('that is none is refused', async () => {
    const { client } = await start()
    const cp = await client(0)
    const refused = async (config: string, mode: Mode = Mode.NO_REBOOT) => (await refusal(apply(cp, config, mode))).details
    expect(await refused('apiVersion: v1alpha1\nkind: HostnameConfig\n')).toContain("doesn't contain v1alpha1 config")
    expect(await refused('just a text')).toContain('expected a mapping node')
    expect(await refused('version: v1alpha1\nmachine:\n  type: controlplane\n')).toContain('cluster instructions are required')
    expect(await refused('a: [')).toContain('yaml')
  })
})

test('small facts', async () => {
  const { world, client, address } = await start()
  const cp = await client(0)
  const reading = callStream(cp, machine.read, { path: '/proc/sys/kernel/random/boot_id' })
  expect(await reading.ended).toBeUndefined()
  expect(text(reading.messages)).toBe(`${world.machine(0).bootID}\n`)
  const everywhere = callStream(cp, machine.read, { path: '/etc/hostname' }, { metadata: { nodes: [address(1), address(3)] } })
  expect(await everywhere.ended).toBeUndefined()
  expect(everywhere.messages.map(m => `${m.metadata?.hostname} ${text([m])}`).sort()).toEqual([
    `${address(1)} cp-2\n`,
    `${address(3)} wk-1\n`,
  ])
  const stat = await callUnary(cp, machine.systemStat, {})
  expect(stat.messages[0]?.bootTime).toBe(BigInt(Math.floor(world.machine(0).bootedAt / 1000)))
  world.journal.write('cp-1', 'something', 'to say')
  const logs = callStream(cp, machine.logs, { namespace: 'system', id: 'machined', tailLines: -1 })
  expect(await logs.ended).toBeUndefined()
  expect(text(logs.messages)).toContain('something: to say')
})
