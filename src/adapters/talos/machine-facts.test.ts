import { status } from '@grpc/grpc-js'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { MachineType } from '../../../proto/gen/resource/config/config_pb.ts'
import { MachineType as MemberType, RuntimeMachineStage } from '../../../proto/gen/talos/resource/definitions/enums/enums_pb.ts'
import {
  newTalosCa,
  realClock,
  Refusal,
  resource,
  type ScriptedResource,
  serve,
  startTalos,
  stateOf,
  talosconfigFor,
} from '../../../test/scripted-talos.ts'
import type { CallReport } from './calls.ts'
import { talosConnection } from './connection.ts'
import { resourceTypes as types } from './resource-types.ts'

const ca = await newTalosCa()
const admin = await talosconfigFor(ca)
const boots = ['0b0f7a0e-54a2-4a3c-9a3d-1f2e3d4c5b6a', '1c1f7a0e-54a2-4a3c-9a3d-1f2e3d4c5b6a'] as const
const schematic = '376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'
const config = `version: v1alpha1
machine:
  type: controlplane
  token: abcdef.0123456789abcdef
  install:
    image: factory.talos.dev/metal-installer/${schematic}:v1.13.5
cluster:
  etcd:
    extraArgs:
      quota-backend-bytes: "8589934592"
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: cp1
`

/** The state of a machine; a test changes what it is about. */
type Machine = {
  version: string
  bootID: string
  stage: RuntimeMachineStage
  config: string | undefined
  type: MachineType
  hasBootIDResource: boolean
  fallback: boolean
  unknownTypes: string[]
  forbiddenTypes: string[]
  readFile: () => string
  unmet: { name: string; reason: string }[]
  uuid: string
  nodeID: string
  /** Fields of a later release, at the end of each resource. */
  extraBytes: Buffer
}
let machine: Machine
let reports: CallReport[]
let later: number

beforeEach(() => {
  reports = []
  later = 0
  machine = {
    version: 'v1.13.5',
    bootID: boots[0],
    stage: RuntimeMachineStage.MACHINE_STAGE_RUNNING,
    config,
    type: MachineType.CONTROL_PLANE,
    hasBootIDResource: false,
    fallback: false,
    unknownTypes: [types.bootID.type],
    forbiddenTypes: [],
    readFile: () => `${machine.bootID}\n`,
    unmet: [{ name: 'services', reason: 'etcd not running' }],
    uuid: '4c4c4544-0042-3510-8052-b4c04f4d3732',
    nodeID: 'node-id',
    extraBytes: Buffer.alloc(0),
  }
})

function resources(): ScriptedResource[] {
  const all = [
    resource(types.machineStatus, 'machine', {
      stage: machine.stage,
      status: { ready: false, unmetConditions: machine.unmet },
    }),
    resource(types.machineType, 'machine-type', { machineType: machine.type }),
    resource(types.systemInformation, 'systeminformation', { uuid: machine.uuid }),
    resource(types.identity, 'local', { nodeId: machine.nodeID }),
    resource(types.info, 'current', { clusterId: 'cluster-id', clusterName: 'prod' }),
    resource(types.securityState, 'securitystate', { secureBoot: true }),
    resource(types.hostnameStatus, 'hostname', { hostname: 'cp1' }),
    resource(types.nodename, 'nodename', { nodename: 'cp1.example.org' }),
    resource(types.extensionStatus, '0', { metadata: { name: 'iscsi-tools', version: 'v0.2.0' } }),
    resource(types.extensionStatus, '1', {
      metadata: { name: 'schematic', version: schematic, author: 'Image Factory (https://factory.example.org:8443)' },
    }),
    resource(types.extensionStatus, 'modules.dep', { metadata: { name: 'modules.dep', version: '6.18.0-talos' } }),
    resource(types.member, 'cp1', {
      nodeId: 'node-id',
      hostname: 'cp1',
      machineType: MemberType.TYPE_CONTROL_PLANE,
      operatingSystem: 'Talos (v1.13.5)',
      addresses: [{ ip: new Uint8Array([10, 5, 0, 2]) }, { ip: new Uint8Array([0xfd, ...Array<number>(14).fill(0), 2]) }],
    }),
    resource(types.member, 'w1', { nodeId: 'other', hostname: 'w1', machineType: MemberType.TYPE_WORKER }),
  ]
  if (machine.config !== undefined) all.push(resource(types.machineConfig, 'v1alpha1', { yamlMarshalled: Buffer.from(machine.config) }))
  if (machine.hasBootIDResource) all.push(resource(types.bootID, 'boot-id', { bootId: machine.bootID }))
  if (machine.fallback) all.push(resource(types.metaKey, '0x06', { value: 'A' }))
  return all.map(one => ({ ...one, spec: Buffer.concat([one.spec, machine.extraBytes]) }))
}

async function connect() {
  const server = await startTalos({
    ca,
    services: [
      stateOf(resources, machine),
      serve(MachineService, {
        version: () => ({ messages: [{ version: { tag: machine.version, arch: 'amd64' }, platform: { name: 'metal', mode: 'metal' } }] }),
        async *read(request) {
          if (request.path !== '/proc/sys/kernel/random/boot_id') throw new Refusal(status.NOT_FOUND, 'no such file')
          const text = machine.readFile()
          // In pieces, as a stream may come.
          yield { bytes: Buffer.from(text.slice(0, 10)) }
          yield { bytes: Buffer.from(text.slice(10)) }
        },
      }),
    ],
  })
  onTestFinished(server.stop)
  const opened = talosConnection({
    talosconfig: admin,
    clock: { ...realClock, monotonic: () => performance.now() + later },
    onCall: report => reports.push(report),
  })
  if (!opened.ok) throw new Error(opened.fault.message)
  onTestFinished(opened.value.destroy)
  return { talos: opened.value, address: server.address }
}

const methodsCalled = () => {
  const methods = reports.map(({ method }) => method).toSorted()
  reports = []
  return methods
}

const factsOf = (address: string) => ({
  address,
  hostname: 'cp1',
  nodename: 'cp1.example.org',
  role: 'controlplane',
  uuid: '4c4c4544-0042-3510-8052-b4c04f4d3732',
  nodeID: 'node-id',
  clusterID: 'cluster-id',
  clusterName: 'prod',
  version: 'v1.13.5',
  platform: 'metal',
  arch: 'amd64',
  secureBoot: true,
  bootID: boots[0],
  stage: 'running',
  ready: false,
  unmet: ['services: etcd not running'],
  schematic,
  factory: 'factory.example.org:8443',
  extensions: ['iscsi-tools'],
  installImage: `factory.talos.dev/metal-installer/${schematic}:v1.13.5`,
  fallbackArmed: false,
  etcdQuotaBytes: 8_589_934_592,
})

test.each([
  ['v1.12.5', false],
  ['v1.13.5', false],
  ['v1.14.0-rc.1', true],
])('all facts of %s', async (version, hasBootIDResource) => {
  machine = { ...machine, version, hasBootIDResource, unknownTypes: hasBootIDResource ? [] : [types.bootID.type] }
  const { talos, address } = await connect()
  expect(await talos.machine(address)).toEqual({ ok: true, value: { ...factsOf(address), version } })
  const methods = methodsCalled()
  expect(methods).toHaveLength(14)
  expect(methods.filter(method => method === 'machine.MachineService/Read')).toHaveLength(hasBootIDResource ? 0 : 2)
})

test('Talos 1.14 in a container has no boot id resource, so the file is read', async () => {
  machine = { ...machine, version: 'v1.14.0', unknownTypes: [] }
  const { talos, address } = await connect()
  expect(await talos.machine(address)).toMatchObject({ ok: true, value: { bootID: boots[0] } })
})

test('a poll is three calls, and six every 30 seconds', async () => {
  const { talos, address } = await connect()
  await talos.machine(address)
  methodsCalled()
  machine.fallback = true
  machine.config = config.replace('v1.13.5', 'v1.13.9')
  expect(await talos.machine(address)).toMatchObject({ ok: true, value: { fallbackArmed: true } })
  expect(methodsCalled()).toEqual(['cosi.resource.State/Get', 'cosi.resource.State/Get', 'machine.MachineService/Read'])
  later = 30_001
  expect(await talos.machine(address)).toMatchObject({ ok: true, value: { installImage: expect.stringContaining('v1.13.9') } })
  expect(methodsCalled()).toHaveLength(6)
  await talos.machine(address)
  expect(methodsCalled()).toHaveLength(3)
})

test('another boot is read anew from the ground', async () => {
  const { talos, address } = await connect()
  await talos.machine(address)
  machine.bootID = boots[1]
  machine.version = 'v1.13.9'
  expect(await talos.machine(address)).toMatchObject({ ok: true, value: { bootID: boots[1], version: 'v1.13.9' } })
})

test('a reboot in the middle of a reading never mixes two boots', async () => {
  let reads = 0
  machine.readFile = () => `${boots[reads++ === 0 ? 0 : 1]}\n`
  const { talos, address } = await connect()
  expect(await talos.machine(address)).toMatchObject({ ok: false, fault: { kind: 'busy' } })
  expect(await talos.machine(address)).toMatchObject({ ok: true, value: { bootID: boots[1] } })
})

test('while it boots nothing is kept', async () => {
  machine.stage = RuntimeMachineStage.MACHINE_STAGE_BOOTING
  const { talos, address } = await connect()
  expect(await talos.machine(address)).toMatchObject({ ok: true, value: { stage: 'booting' } })
  methodsCalled()
  await talos.machine(address)
  expect(methodsCalled()).toHaveLength(14)
})

test('what keeps a machine from being ready, in its own words [B066 mitchross/talos-argocd-proxmox#2423]', async () => {
  machine.unmet = [{ name: 'services', reason: 'kubelet waiting for time sync' }]
  const { talos, address } = await connect()
  expect(await talos.machine(address)).toMatchObject({
    ok: true,
    value: { stage: 'running', ready: false, unmet: ['services: kubelet waiting for time sync'] },
  })
})

test('an address that another machine answers by now: not a fact of the one before is kept [B035]', async () => {
  const { talos, address } = await connect()
  await talos.machine(address)
  const other = '4c4c4544-0099-3510-8052-b4c04f4d3732'
  machine = { ...machine, uuid: other, nodeID: 'other-node', bootID: boots[1], version: 'v1.12.5', type: MachineType.WORKER }
  expect(await talos.machine(address)).toEqual({
    ok: true,
    value: {
      ...factsOf(address),
      uuid: other,
      nodeID: 'other-node',
      bootID: boots[1],
      version: 'v1.12.5',
      role: 'worker',
      etcdQuotaBytes: 0,
    },
  })
})

describe('another release of Talos', () => {
  test('a newer one: fields, stages and extensions that are not known here', async () => {
    machine.stage = 42 as RuntimeMachineStage
    machine.extraBytes = Buffer.from([0xfa, 0x3e, 3, 1, 2, 3, 0xf8, 0x3f, 0x2a])
    const { talos, address } = await connect()
    expect(await talos.machine(address)).toEqual({ ok: true, value: { ...factsOf(address), stage: 'unknown' } })
    expect(await talos.members(address)).toMatchObject({ ok: true, value: [{ hostname: 'cp1' }, { hostname: 'w1' }] })
  })

  test('an older one that lacks resource types', async () => {
    machine.unknownTypes = [types.bootID.type, types.securityState.type, types.metaKey.type]
    const { talos, address } = await connect()
    expect(await talos.machine(address)).toEqual({ ok: true, value: { ...factsOf(address), secureBoot: false, fallbackArmed: false } })
  })

  test('a call that it does not have', async () => {
    const { talos, address } = await connect()
    const call = { cancellation: { cancelled: false, onCancel: () => () => {} }, progress: () => {} }
    const answers = [
      await talos.reboot(address, 'default'),
      await talos.forfeitLeadership(address),
      await talos.etcd(address),
      await talos.install(address, 'ghcr.io/siderolabs/installer:v1.13.9', call),
      await talos.upgrade(address, { image: 'ghcr.io/siderolabs/installer:v1.13.9', preserve: true, rebootMode: 'default' }),
    ]
    for (const answer of answers) expect(answer).toMatchObject({ ok: false, fault: { kind: 'unsupported' } })
  })
})

test('a worker has no etcd quota', async () => {
  machine.type = MachineType.WORKER
  const { talos, address } = await connect()
  expect(await talos.machine(address)).toMatchObject({ ok: true, value: { role: 'worker', etcdQuotaBytes: 0 } })
})

describe('what cannot be told is a fault', () => {
  test('the boot id, for want of a role', async () => {
    machine.readFile = () => {
      throw new Refusal(status.PERMISSION_DENIED, 'not authorized')
    }
    const { talos, address } = await connect()
    const answer = await talos.machine(address)
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'forbidden' } })
    expect(!answer.ok && answer.fault.message).toContain('os:admin')
  })

  test('a boot id that is none', async () => {
    machine.readFile = () => ''
    const { talos, address } = await connect()
    expect(await talos.machine(address)).toMatchObject({ ok: false, fault: { kind: 'unknown' } })
  })

  test('the configuration, for want of a role', async () => {
    machine.forbiddenTypes.push(types.machineConfig.type)
    const { talos, address } = await connect()
    const answer = await talos.machine(address)
    expect(answer).toEqual({
      ok: false,
      fault: { kind: 'forbidden', message: `${address}: State.Get MachineConfigs.config.talos.dev/v1alpha1: not authorized` },
    })
  })

  test('a configuration that is no YAML, without a word of it', async () => {
    machine.config = 'machine:\n  token: abcdef.0123456789abcdef\n {'
    const { talos, address } = await connect()
    const answer = await talos.machine(address)
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'unknown' } })
    expect(JSON.stringify(answer)).not.toContain('abcdef')
  })

  test('maintenance mode', async () => {
    machine.stage = RuntimeMachineStage.MACHINE_STAGE_MAINTENANCE
    machine.config = undefined
    machine.type = MachineType.UNKNOWN
    const { talos, address } = await connect()
    const answer = await talos.machine(address)
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'precondition' } })
    expect(!answer.ok && answer.fault.message).toContain('maintenance mode')
  })
})

test('no secret of the configuration is among the facts [B117]', async () => {
  const { talos, address } = await connect()
  expect(JSON.stringify(await talos.machine(address))).not.toContain('abcdef')
})

test('members, with addresses of both families', async () => {
  const { talos, address } = await connect()
  expect(await talos.members(address)).toEqual({
    ok: true,
    value: [
      { hostname: 'cp1', nodeID: 'node-id', role: 'controlplane', addresses: ['10.5.0.2', 'fd00::2'], operatingSystem: 'Talos (v1.13.5)' },
      { hostname: 'w1', nodeID: 'other', role: 'worker', addresses: [], operatingSystem: '' },
    ],
  })
})
