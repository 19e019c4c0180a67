import { status } from '@grpc/grpc-js'
import { expect, describe, onTestFinished, test } from 'vitest'
import { ImageService, ImageServicePullLayerProgress_Status as LayerStatus } from '../../../proto/gen/machine/image_pb.ts'
import { LifecycleService } from '../../../proto/gen/machine/lifecycle_pb.ts'
import {
  ApplyConfigurationRequest_Mode,
  MachineService,
  RebootRequest_Mode,
  UpgradeRequest_RebootMode,
} from '../../../proto/gen/machine/machine_pb.ts'
import {
  newTalosCa,
  realClock,
  Refusal,
  resource,
  type ScriptedTalos,
  type Served,
  serve,
  startTalos,
  stateOf,
  talosconfigFor,
} from '../../../test/scripted-talos.ts'
import { talosConnection } from './connection.ts'
import { resourceTypes } from './resource-types.ts'

const ca = await newTalosCa()
const admin = await talosconfigFor(ca)
const image = 'ghcr.io/siderolabs/installer:v1.13.9'

async function connectTo(...services: Served[]) {
  const server = await startTalos({ ca, services })
  onTestFinished(server.stop)
  const opened = talosConnection({ talosconfig: admin, clock: realClock })
  if (!opened.ok) throw new Error(opened.fault.message)
  onTestFinished(opened.value.destroy)
  return { talos: opened.value, address: server.address, server }
}

const never = { cancelled: false, onCancel: () => () => {} }
function longCall() {
  const told: string[] = []
  return { told, call: { cancellation: never, progress: (message: string) => void told.push(message) } }
}
const refuse = (code: status, details: string) => () => {
  throw new Refusal(code, details)
}
// A stream that refuses before it yields anything.
const refuseStream = (code: status, details: string) =>
  async function* () {
    yield* await Promise.reject<never[]>(new Refusal(code, details))
  }

describe('pull', () => {
  test('layers as they go, then the name with its digest', async () => {
    let asked: unknown
    const layer = (layerId: string, layerStatus: LayerStatus, offset: number) => ({
      response: {
        case: 'pullProgress' as const,
        value: { layerId, progress: { status: layerStatus, offset: BigInt(offset), total: 1_048_576n } },
      },
    })
    const { talos, address } = await connectTo(
      serve(ImageService, {
        async *pull(request) {
          asked = { image: request.imageRef, ...request.containerd }
          yield layer('a', LayerStatus.DOWNLOADING, 524_288)
          yield layer('a', LayerStatus.DOWNLOADING, 524_289)
          yield layer('b', LayerStatus.ALREADY_EXISTS, 0)
          yield layer('a', LayerStatus.EXTRACTING, 0)
          yield { response: { case: 'name', value: 'ghcr.io/siderolabs/installer@sha256:abc' } }
        },
      }),
    )
    const { call, told } = longCall()
    expect(await talos.pull(address, image, call)).toEqual({ ok: true, value: 'ghcr.io/siderolabs/installer@sha256:abc' })
    // The CRI's containerd and its system namespace.
    expect(asked).toMatchObject({ image, driver: 1, namespace: 1 })
    expect(told).toEqual([
      'pulling the image: 0 of 1 layers (50 % of 1.0 MiB)',
      'pulling the image: 1 of 2 layers (75 % of 2.0 MiB)',
      'pulling the image: 2 of 2 layers (100 % of 2.0 MiB)',
    ])
  })

  test('an image that does not exist', async () => {
    const { talos, address } = await connectTo(
      serve(ImageService, { pull: refuseStream(status.NOT_FOUND, 'error pulling image: failed to resolve reference: not found') }),
    )
    const pulled = await talos.pull(address, image, longCall().call)
    expect(pulled).toMatchObject({ ok: false, fault: { kind: 'notFound' } })
    expect(!pulled.ok && pulled.fault.message).toContain(image)
  })

  test('a stream that ends without a name', async () => {
    const { talos, address } = await connectTo(serve(ImageService, { async *pull() {} }))
    expect(await talos.pull(address, image, longCall().call)).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
  })

  test('before Talos 1.13 by the old call', async () => {
    let asked: unknown
    const { talos, address } = await connectTo(
      serve(MachineService, {
        imagePull: request => {
          asked = { namespace: request.namespace, reference: request.reference }
          return { messages: [{}] }
        },
      }),
    )
    expect(await talos.pull(address, image, longCall().call)).toEqual({ ok: true, value: image })
    expect(asked).toEqual({ namespace: 1, reference: image })
  })

  test('the old call may say that there is no such image, and be missing itself', async () => {
    const missing = await connectTo(serve(MachineService, { imagePull: refuse(status.NOT_FOUND, 'failed to pull image: not found') }))
    expect(await missing.talos.pull(missing.address, image, longCall().call)).toMatchObject({ ok: false, fault: { kind: 'notFound' } })
    const older = await connectTo(serve(MachineService, {}))
    expect(await older.talos.pull(older.address, image, longCall().call)).toEqual({ ok: true, value: image })
  })
})

describe('install', () => {
  const say = (value: string) => ({ progress: { response: { case: 'message' as const, value } } })
  const exit = (value: number) => ({ progress: { response: { case: 'exitCode' as const, value } } })

  test('a bar that grows is one line, told once a percent', async () => {
    const { talos, address } = await connectTo(
      serve(LifecycleService, {
        async *upgrade() {
          yield say('writing the image\n')
          for (let step = 0; step <= 1_000; step++) yield say(`\rcopied [${'#'.repeat(step / 100)}] ${(step / 10).toFixed(1)}%`)
          yield say('\ncopying 100% of nothing else\n')
          yield exit(0)
        },
      }),
    )
    const { call, told } = longCall()
    expect(await talos.install(address, image, call)).toEqual({
      ok: true,
      value: { exitCode: 0, lines: ['writing the image', 'copied [##########] 100.0%', 'copying 100% of nothing else'] },
    })
    expect(told).toHaveLength(103)
    expect(told.slice(0, 3)).toEqual(['writing the image', 'copied [] 0.0%', 'installing, 1 %'])
    expect(told.slice(-2)).toEqual(['installing, 100 %', 'copying 100% of nothing else'])
  })

  test.each([0, 1, 4])('exit code %i, with the last lines', async code => {
    let asked: unknown
    const { talos, address } = await connectTo(
      serve(LifecycleService, {
        async *upgrade(request) {
          asked = { image: request.source.imageName, driver: request.containerd.driver, namespace: request.containerd.namespace }
          for (let line = 1; line <= 30; line++) yield say(`line ${line}\n`)
          yield say('\u001b[31merror:\u001b[0m password=hunter2\r\n\n---\n')
          yield exit(code)
        },
      }),
    )
    const { call, told } = longCall()
    const installed = await talos.install(address, image, call)
    expect(installed).toMatchObject({ ok: true, value: { exitCode: code } })
    const lines = installed.ok ? installed.value.lines : []
    expect(lines).toHaveLength(20)
    expect(lines[0]).toBe('line 12')
    expect(lines.at(-1)).toBe('error: password=[redacted]')
    expect(told).toHaveLength(31)
    expect(asked).toEqual({ image, driver: 1, namespace: 1 })
  })

  test('a stream that ends without an exit code tells nothing', async () => {
    const { talos, address } = await connectTo(
      serve(LifecycleService, {
        async *upgrade() {
          yield say('begun')
        },
      }),
    )
    const installed = await talos.install(address, image, longCall().call)
    expect(installed).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
    expect(!installed.ok && installed.fault.message).toContain('without an exit code')
  })

  test('a stream that is cut tells nothing', async () => {
    let server: ScriptedTalos | undefined
    const machine = await connectTo(
      serve(LifecycleService, {
        async *upgrade() {
          yield say('begun')
          await new Promise<never>(() => {})
        },
      }),
    )
    server = machine.server
    const cut = { cancellation: never, progress: () => server?.stop() }
    expect(await machine.talos.install(machine.address, image, cut)).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
  })

  test('an exit code counts, however the stream ends after it', async () => {
    const { talos, address } = await connectTo(
      serve(LifecycleService, {
        async *upgrade() {
          yield exit(0)
          throw new Refusal(status.UNAVAILABLE, 'going away')
        },
      }),
    )
    expect(await talos.install(address, image, longCall().call)).toMatchObject({ ok: true, value: { exitCode: 0 } })
  })

  test('another one running is a reason to wait', async () => {
    const { talos, address } = await connectTo(
      serve(LifecycleService, { upgrade: refuseStream(status.FAILED_PRECONDITION, 'another installation/upgrade is already in progress') }),
    )
    expect(await talos.install(address, image, longCall().call)).toMatchObject({ ok: false, fault: { kind: 'busy' } })
  })

  test('cancelled', async () => {
    const { talos, address } = await connectTo(
      serve(LifecycleService, {
        async *upgrade() {
          yield say('begun')
          await new Promise<never>(() => {})
        },
      }),
    )
    let cancel = () => {}
    const cancellation = { cancelled: false, onCancel: (run: () => void) => ((cancel = run), () => {}) }
    expect(await talos.install(address, image, { cancellation, progress: () => cancel() })).toMatchObject({
      ok: false,
      fault: { kind: 'cancelled' },
    })
  })
})

describe('the old upgrade call', () => {
  test('as asked', async () => {
    const asked: unknown[] = []
    const { talos, address } = await connectTo(
      serve(MachineService, {
        upgrade: ({ image: reference, preserve, stage, force, rebootMode }) => {
          asked.push({ reference, preserve, stage, force, rebootMode })
          return { messages: [{ ack: 'Upgrade request received' }] }
        },
      }),
    )
    expect(await talos.upgrade(address, { image, preserve: true, rebootMode: 'powercycle' })).toEqual({ ok: true, value: undefined })
    expect(asked).toEqual([
      { reference: image, preserve: true, stage: false, force: false, rebootMode: UpgradeRequest_RebootMode.POWERCYCLE },
    ])
    expect(await talos.upgrade(address, { image, preserve: false, rebootMode: 'force' })).toMatchObject({
      ok: false,
      fault: { kind: 'unsupported' },
    })
    expect(asked).toHaveLength(1)
  })

  test('an image that does not exist', async () => {
    const { talos, address } = await connectTo(
      serve(MachineService, {
        upgrade: refuse(status.UNKNOWN, `error validating installer image "${image}": failed to pull: ${image}: not found`),
      }),
    )
    expect(await talos.upgrade(address, { image, preserve: false, rebootMode: 'default' })).toMatchObject({
      ok: false,
      fault: { kind: 'notFound' },
    })
  })
})

describe('reboot', () => {
  test.each([
    ['v1.13.5', 'default', RebootRequest_Mode.DEFAULT],
    ['v1.13.5', 'powercycle', RebootRequest_Mode.POWERCYCLE],
    ['v1.12.0', 'force', RebootRequest_Mode.FORCE],
    ['v1.11.9', 'force', undefined],
  ] as const)('%s %s', async (version, mode, expected) => {
    let asked: number | undefined
    const { talos, address } = await connectTo(
      serve(MachineService, {
        version: () => ({ messages: [{ version: { tag: version } }] }),
        reboot: request => {
          asked = request.mode
          return { messages: [{ actorId: 'a' }] }
        },
      }),
    )
    expect((await talos.reboot(address, mode)).ok).toBe(expected !== undefined)
    expect(asked).toBe(expected)
  })
})

test('leadership', async () => {
  const one = await connectTo(serve(MachineService, { etcdForfeitLeadership: () => ({ messages: [{ member: '' }] }) }))
  expect(await one.talos.forfeitLeadership(one.address)).toEqual({ ok: true, value: undefined })
  const single = await connectTo(
    serve(MachineService, {
      etcdForfeitLeadership: refuse(status.UNKNOWN, 'failed to forfeit leadership: cannot forfeit leadership, only one member'),
    }),
  )
  expect(await single.talos.forfeitLeadership(single.address)).toMatchObject({ ok: false, fault: { kind: 'precondition' } })
})

describe('the install image', () => {
  const config = (installer: string) =>
    `# mine\nversion: v1alpha1\nmachine:\n  token: abc.def\n  install:\n    image: ${installer} # kept\n---\nkind: HostnameConfig\n`
  const of = (id: string, text: string) => resource(resourceTypes.machineConfig, id, { yamlMarshalled: Buffer.from(text) })

  async function machineWith(
    live: string | undefined,
    persistent: string | undefined,
    apply: () => { messages: [{ modeDetails: string }] } = () => ({ messages: [{ modeDetails: '' }] }),
  ) {
    const applied: { text: string; mode: number }[] = []
    const machine = await connectTo(
      stateOf(() => [
        ...(live === undefined ? [] : [of('v1alpha1', live)]),
        ...(persistent === undefined ? [] : [of('persistent', persistent)]),
      ]),
      serve(MachineService, {
        applyConfiguration: request => {
          applied.push({ text: Buffer.from(request.data).toString(), mode: request.mode })
          return apply()
        },
      }),
    )
    return { ...machine, applied }
  }

  test('is set without a reboot, and nothing else', async () => {
    const { talos, address, applied } = await machineWith(config('a:v1'), config('a:v1'))
    expect(await talos.setInstallImage(address, image)).toEqual({ ok: true, value: undefined })
    expect(applied).toEqual([{ text: config(image), mode: ApplyConfigurationRequest_Mode.NO_REBOOT }])
  })

  test('is not sent where it is there already', async () => {
    const { talos, address, applied } = await machineWith(config(image), undefined)
    expect(await talos.setInstallImage(address, image)).toEqual({ ok: true, value: undefined })
    expect(applied).toEqual([])
  })

  test('never undoes a staged configuration', async () => {
    const { talos, address, applied } = await machineWith(config('a:v1'), config('b:v2'))
    expect(await talos.setInstallImage(address, image)).toMatchObject({ ok: false, fault: { kind: 'precondition' } })
    expect(applied).toEqual([])
  })

  test('needs a configuration', async () => {
    const { talos, address } = await machineWith(undefined, undefined)
    expect(await talos.setInstallImage(address, image)).toMatchObject({ ok: false, fault: { kind: 'precondition' } })
  })

  test('a refusal is told without the diff that comes with it [B117 openshift/machine-config-operator#5601]', async () => {
    const { talos, address } = await machineWith(
      config('a:v1'),
      undefined,
      refuse(status.INVALID_ARGUMENT, "this config change can't be applied in immediate mode\ndiff: --- a\n+++ b\n-  clusterwide: abc.def"),
    )
    const set = await talos.setInstallImage(address, image)
    expect(set).toEqual({
      ok: false,
      fault: {
        kind: 'invalid',
        message: `${address}: MachineService.ApplyConfiguration: this config change can't be applied in immediate mode`,
      },
    })
  })
})
