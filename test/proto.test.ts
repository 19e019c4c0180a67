import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { anyPack, anyUnpack, durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt'
import { credentials, makeClientConstructor, Server, ServerCredentials } from '@grpc/grpc-js'
import { describe, expect, test } from 'vitest'
import { ContainerDriver, ContainerdNamespace, DataSchema, NetIPPrefixSchema } from '../proto/gen/common/common_pb.ts'
import { ResourceDefinitionSpecSchema } from '../proto/gen/cosi/resource/meta/meta_pb.ts'
import * as cosi from '../proto/gen/cosi/resource/state_pb.ts'
import { ImageService, ImageServicePullRequestSchema, ImageServicePullResponseSchema } from '../proto/gen/machine/image_pb.ts'
import { LifecycleService, LifecycleServiceUpgradeResponseSchema } from '../proto/gen/machine/lifecycle_pb.ts'
import * as machine from '../proto/gen/machine/machine_pb.ts'
import { MachineConfigSpecSchema, MachineTypeSpecSchema } from '../proto/gen/resource/config/config_pb.ts'
import { SystemDiskSpecSchema } from '../proto/gen/talos/resource/definitions/block/block_pb.ts'
import { MemberSpecSchema } from '../proto/gen/talos/resource/definitions/cluster/cluster_pb.ts'
import { ImageCacheConfigSpecSchema } from '../proto/gen/talos/resource/definitions/cri/cri_pb.ts'
import {
  CriImageCacheStatus,
  MachineType,
  NetworkConfigLayer,
  NetworkOperator,
  RuntimeMachineStage,
} from '../proto/gen/talos/resource/definitions/enums/enums_pb.ts'
import { SpecSpecSchema } from '../proto/gen/talos/resource/definitions/etcd/etcd_pb.ts'
import { LayerSchema } from '../proto/gen/talos/resource/definitions/extensions/extensions_pb.ts'
import {
  KubeletConfigSpecSchema,
  NodeStatusSpecSchema,
  StaticPodStatusSpecSchema,
} from '../proto/gen/talos/resource/definitions/k8s/k8s_pb.ts'
import { NodeAddressSpecSchema, OperatorSpecSpecSchema } from '../proto/gen/talos/resource/definitions/network/network_pb.ts'
import { BootIDSpecSchema, MachineStatusSpecSchema } from '../proto/gen/talos/resource/definitions/runtime/runtime_pb.ts'
import { KubernetesRootSpecSchema, OSRootSpecSchema } from '../proto/gen/talos/resource/definitions/secrets/secrets_pb.ts'
import { ServiceSpecSchema } from '../proto/gen/talos/resource/definitions/v1alpha1/v1alpha1_pb.ts'
import { grpcMethod, grpcPath, grpcService } from '../proto/grpc.ts'

const bytes = (text: string) => new Uint8Array(Buffer.from(text))
const toHex = (data: Uint8Array) => Buffer.from(data).toString('hex')

/** Hex with texts in between, so that a field reads: tag, length, text. */
const hex = (digits: TemplateStringsArray, ...texts: string[]) =>
  digits.map((part, index) => part.replaceAll(' ', '') + toHex(bytes(texts[index] ?? ''))).join('')

/** One row: a message, and the bytes worked out by hand as tags (`field << 3 | wire type`), lengths and values. */
function wire<D extends DescMessage>(schema: D, init: MessageInitShape<D>, expected: string) {
  return { name: schema.typeName, schema: schema as DescMessage, message: create(schema, init), expected }
}

const rows = [
  wire(DataSchema, { metadata: { hostname: 'a', error: 'b' }, bytes: bytes('xy') }, hex`0a 06 0a01 ${'a'} 1201 ${'b'} 1202 ${'xy'}`),
  wire(NetIPPrefixSchema, { ip: new Uint8Array([10, 5, 0, 2]), prefixLength: 24 }, hex`0a04 0a050002 10 18`),

  // Fields 2 and 3 of ApplyConfigurationRequest are gone, `mode` is 4.
  wire(
    machine.ApplyConfigurationRequestSchema,
    { data: bytes('c'), mode: machine.ApplyConfigurationRequest_Mode.TRY, dryRun: true, tryModeTimeout: durationFromMs(60_000) },
    hex`0a01 ${'c'} 20 04 28 01 32 02 08 3c`,
  ),
  wire(machine.RebootRequestSchema, { mode: machine.RebootRequest_Mode.FORCE }, hex`08 02`),
  wire(
    machine.RebootResponseSchema,
    { messages: [{ metadata: { hostname: 'a' }, actorId: 'i' }] },
    hex`0a 08 0a03 0a01 ${'a'} 1201 ${'i'}`,
  ),
  wire(machine.ShutdownRequestSchema, { force: true }, hex`08 01`),
  wire(machine.BootstrapRequestSchema, { recoverEtcd: true, recoverSkipHashCheck: true }, hex`08 01 10 01`),
  wire(
    machine.ResetRequestSchema,
    {
      graceful: true,
      reboot: true,
      systemPartitionsToWipe: [{ label: 'STATE', wipe: true }],
      userDisksToWipe: ['d'],
      mode: machine.ResetRequest_WipeMode.USER_DISKS,
    },
    hex`08 01 10 01 1a 09 0a05 ${'STATE'} 10 01 2201 ${'d'} 28 02`,
  ),
  wire(
    machine.UpgradeRequestSchema,
    { image: 'i', preserve: true, stage: true, force: true, rebootMode: machine.UpgradeRequest_RebootMode.POWERCYCLE },
    hex`0a01 ${'i'} 10 01 18 01 20 01 28 01`,
  ),
  wire(
    machine.ServiceInfoSchema,
    {
      id: 'e',
      state: 'R',
      events: { events: [{ msg: 'm', state: 's', ts: timestampFromMs(1000) }] },
      health: { unknown: true, healthy: true, lastMessage: 'l', lastChange: timestampFromMs(2000) },
    },
    hex`0a01 ${'e'} 1201 ${'R'} 1a 0c 0a 0a 0a01 ${'m'} 1201 ${'s'} 1a02 0801 22 0b 08 01 10 01 1a01 ${'l'} 2202 0802`,
  ),
  wire(
    machine.EventsRequestSchema,
    { tailEvents: -1, tailId: 't', tailSeconds: 5, withActorId: 'a' },
    hex`08 ffffffffffffffffff01 1201 ${'t'} 18 05 2201 ${'a'}`,
  ),
  wire(
    machine.EventSchema,
    {
      data: anyPack(machine.TaskEventSchema, create(machine.TaskEventSchema, { task: 't', action: machine.TaskEvent_Action.STOP })),
      id: 'i',
      actorId: 'a',
    },
    hex`12 2e 0a25 ${'type.googleapis.com/machine.TaskEvent'} 1205 0a01 ${'t'} 1001 1a01 ${'i'} 2201 ${'a'}`,
  ),
  wire(
    machine.MachineStatusEventSchema,
    { stage: machine.MachineStatusEvent_MachineStage.RUNNING, status: { ready: true, unmetConditions: [{ name: 'n', reason: 'r' }] } },
    hex`08 04 12 0a 08 01 12 06 0a01 ${'n'} 1201 ${'r'}`,
  ),
  wire(
    machine.SequenceEventSchema,
    { sequence: 's', action: machine.SequenceEvent_Action.STOP, error: { message: 'm' } },
    hex`0a01 ${'s'} 10 02 1a 03 1201 ${'m'}`,
  ),
  wire(
    machine.VersionSchema,
    { version: { tag: 'v', arch: 'a' }, platform: { name: 'p', mode: 'm' }, features: { rbac: true } },
    hex`12 06 0a01 ${'v'} 3201 ${'a'} 1a 06 0a01 ${'p'} 1201 ${'m'} 22 02 0801`,
  ),
  // An EtcdMember has no field 1, and its id does not fit a double.
  wire(
    machine.EtcdMemberSchema,
    { id: 0x8000000000000001n, hostname: 'h', peerUrls: ['p'], clientUrls: ['c'], isLearner: true },
    hex`10 81808080808080808001 1a01 ${'h'} 2201 ${'p'} 2a01 ${'c'} 30 01`,
  ),
  wire(
    machine.EtcdMemberListResponseSchema,
    { messages: [{ legacyMembers: ['l'], members: [{ id: 1n }] }] },
    hex`0a 07 1201 ${'l'} 1a02 1001`,
  ),
  wire(machine.EtcdMemberListRequestSchema, { queryLocal: true }, hex`08 01`),
  wire(machine.EtcdRemoveMemberByIDRequestSchema, { memberId: 5n }, hex`08 05`),
  wire(
    machine.EtcdMemberStatusSchema,
    {
      protocolVersion: 'p',
      dbSize: 1n,
      dbSizeInUse: 2n,
      leader: 3n,
      raftIndex: 4n,
      raftTerm: 5n,
      raftAppliedIndex: 6n,
      errors: ['e'],
      isLearner: true,
      memberId: 7n,
      storageVersion: 's',
    },
    hex`0a01 ${'p'} 1001 1802 2003 2804 3005 3806 4201 ${'e'} 4801 5007 5a01 ${'s'}`,
  ),
  wire(machine.EtcdMemberAlarmSchema, { memberId: 1n, alarm: machine.EtcdMemberAlarm_AlarmType.CORRUPT }, hex`08 01 10 02`),
  wire(
    machine.LogsRequestSchema,
    { namespace: 'n', id: 'i', driver: ContainerDriver.CRI, follow: true, tailLines: 3 },
    hex`0a01 ${'n'} 1201 ${'i'} 18 01 20 01 28 03`,
  ),
  wire(machine.MetaWriteRequestSchema, { key: 14, value: bytes('v') }, hex`08 0e 1201 ${'v'}`),
  wire(machine.GenerateClientConfigurationRequestSchema, { roles: ['r'], crtTtl: durationFromMs(1000) }, hex`0a01 ${'r'} 12 02 0801`),
  wire(machine.SystemStatSchema, { bootTime: 9n, processBlocked: 1n }, hex`10 09 50 01`),

  // ImageServicePullRequest has no field 2.
  wire(
    ImageServicePullRequestSchema,
    { containerd: { driver: ContainerDriver.CRI, namespace: ContainerdNamespace.NS_SYSTEM }, imageRef: 'r' },
    hex`0a 04 08 01 10 01 1a01 ${'r'}`,
  ),
  wire(
    ImageServicePullResponseSchema,
    { response: { case: 'pullProgress', value: { layerId: 'l', progress: { status: 1, offset: 2n, total: 3n } } } },
    hex`12 0b 0a01 ${'l'} 12 06 08 01 18 02 20 03`,
  ),
  // A oneof is written even when its value is zero: exit code 0 is an answer.
  wire(LifecycleServiceUpgradeResponseSchema, { progress: { response: { case: 'exitCode', value: 0 } } }, hex`0a 02 10 00`),

  wire(
    cosi.ResourceSchema,
    {
      metadata: {
        namespace: 'n',
        type: 't',
        id: 'i',
        version: '1',
        phase: 'p',
        created: timestampFromMs(1000),
        finalizers: ['f'],
        labels: { k: 'v' },
        annotations: { a: 'b' },
      },
      spec: { protoSpec: bytes('x'), yamlSpec: 'y' },
    },
    hex`0a 26 0a01 ${'n'} 1201 ${'t'} 1a01 ${'i'} 2201 ${'1'} 3201 ${'p'} 3a02 0801 4a01 ${'f'} 5206 0a01 ${'k'} 1201 ${'v'} 5a06 0a01 ${'a'} 1201 ${'b'} 12 06 0a01 ${'x'} 1201 ${'y'}`,
  ),
  wire(
    cosi.WatchRequestSchema,
    {
      namespace: 'n',
      type: 't',
      id: '',
      options: { bootstrapContents: true, tailEvents: 1, aggregated: true, bootstrapBookmark: true },
      apiVersion: 1,
    },
    hex`0a01 ${'n'} 1201 ${'t'} 1a00 22 08 0801 1001 2801 3801 28 01`,
  ),
  wire(
    cosi.WatchResponseSchema,
    { event: [{ resource: {}, eventType: cosi.EventType.BOOTSTRAPPED, old: {}, error: '', bookmark: bytes('b') }] },
    hex`0a 0b 0a00 1003 1a00 2200 2a01 ${'b'}`,
  ),
  // UpdateRequest reserves field 1, LabelTerm has no field 4.
  wire(cosi.UpdateRequestSchema, { newResource: {}, options: { owner: 'o', expectedPhase: '' } }, hex`1200 1a 05 0a01 ${'o'} 1200`),
  wire(
    cosi.ListRequestSchema,
    {
      options: {
        labelQuery: [{ terms: [{ key: 'k', op: cosi.LabelTerm_Operation.IN, value: ['v'], invert: true }] }],
        idQuery: { regexp: 'r' },
      },
    },
    hex`1a 13 0a 0c 0a 0a 0a01 ${'k'} 10 03 1a01 ${'v'} 28 01 12 03 0a01 ${'r'}`,
  ),
  wire(
    ResourceDefinitionSpecSchema,
    {
      resourceType: 'r',
      displayType: 'd',
      defaultNamespace: 'n',
      aliases: ['a'],
      allAliases: ['b'],
      printColumns: [{ name: 'c', jsonPath: 'j' }],
      sensitivity: 1,
    },
    hex`0a01 ${'r'} 1201 ${'d'} 1a01 ${'n'} 2201 ${'a'} 2a01 ${'b'} 32 06 0a01 ${'c'} 1201 ${'j'} 38 01`,
  ),

  wire(MachineConfigSpecSchema, { yamlMarshalled: bytes('y') }, hex`0a01 ${'y'}`),
  wire(MachineTypeSpecSchema, { machineType: 2 }, hex`08 02`),
  wire(
    MachineStatusSpecSchema,
    { stage: RuntimeMachineStage.MACHINE_STAGE_RUNNING, status: { ready: true, unmetConditions: [{ name: 'n', reason: 'r' }] } },
    hex`08 04 12 0a 08 01 12 06 0a01 ${'n'} 1201 ${'r'}`,
  ),
  wire(BootIDSpecSchema, { bootId: 'b' }, hex`0a01 ${'b'}`),
  wire(
    LayerSchema,
    { image: 'i', metadata: { name: 'n', version: 'v', extraInfo: 'e' } },
    hex`0a01 ${'i'} 12 09 0a01 ${'n'} 1201 ${'v'} 3201 ${'e'}`,
  ),
  wire(ServiceSpecSchema, { running: true, healthy: true, unknown: true }, hex`0801 1001 1801`),
  wire(
    MemberSpecSchema,
    {
      nodeId: 'n',
      addresses: [{ ip: new Uint8Array([10, 0, 0, 1]) }],
      hostname: 'h',
      machineType: MachineType.TYPE_CONTROL_PLANE,
      operatingSystem: 'o',
      controlPlane: { apiServerPort: 6443n },
    },
    hex`0a01 ${'n'} 12 06 0a04 0a000001 1a01 ${'h'} 20 02 2a01 ${'o'} 32 03 08 ab32`,
  ),
  wire(
    SpecSpecSchema,
    { image: 'i', listenPeerAddresses: [{}], extraArgs: { k: { values: ['v'] } } },
    hex`1a01 ${'i'} 2a00 3a 08 0a01 ${'k'} 1203 0a01 ${'v'}`,
  ),
  wire(NodeStatusSpecSchema, { nodename: 'n', nodeReady: true, unschedulable: true, podCidRs: [{}] }, hex`0a01 ${'n'} 1001 1801 3200`),
  wire(StaticPodStatusSpecSchema, { podStatus: { a: true } }, hex`0a 09 0a 07 0a01 ${'a'} 1202 2001`),
  wire(KubeletConfigSpecSchema, { image: 'i', extraMounts: [{ destination: 'd' }] }, hex`0a01 ${'i'} 2a 03 0a01 ${'d'}`),
  wire(
    NodeAddressSpecSchema,
    { addresses: [{ ip: new Uint8Array([1, 2, 3, 4]), prefixLength: 8 }], sortAlgorithm: 1 },
    hex`0a 08 0a04 01020304 1008 10 01`,
  ),
  wire(
    OperatorSpecSpecSchema,
    {
      operator: NetworkOperator.OPERATOR_VIP,
      linkName: 'e',
      requireUp: true,
      vip: { ip: { ip: new Uint8Array([1, 2, 3, 4]) }, gratuitousArp: true },
      configLayer: NetworkConfigLayer.CONFIG_MACHINE_CONFIGURATION,
    },
    hex`08 02 1201 ${'e'} 18 01 32 0a 0a06 0a04 01020304 10 01 38 04`,
  ),
  wire(
    OSRootSpecSchema,
    { issuingCa: { crt: bytes('c'), key: bytes('k') }, token: 't', acceptedCAs: [{ crt: bytes('a') }] },
    hex`0a 06 0a01 ${'c'} 1201 ${'k'} 2201 ${'t'} 2a 03 0a01 ${'a'}`,
  ),
  wire(
    KubernetesRootSpecSchema,
    { endpoint: { fullPath: 'u' }, issuingCa: {}, acceptedCAs: [{}], issuerUrl: 'i' },
    hex`12 03 0a01 ${'u'} 3a00 7a00 9a01 01 ${'i'}`,
  ),
  wire(
    ImageCacheConfigSpecSchema,
    { status: CriImageCacheStatus.IMAGE_CACHE_STATUS_READY, roots: ['r'], copyStatus: 1 },
    hex`0803 1201 ${'r'} 1801`,
  ),
  wire(SystemDiskSpecSchema, { diskId: 's', devPath: 'd' }, hex`0a01 ${'s'} 1201 ${'d'}`),
]

describe('the wire form of Talos messages', () => {
  test.each(rows)('$name', ({ schema, message, expected }) => {
    expect(toHex(toBinary(schema, message))).toBe(expected)
    expect(fromBinary(schema, new Uint8Array(Buffer.from(expected, 'hex')))).toEqual(message)
  })

  test('a field of a later Talos survives being read and written again', () => {
    const later = new Uint8Array(Buffer.from(hex`0a01 ${'b'} 9a0601 ${'z'}`, 'hex'))
    expect(toBinary(BootIDSpecSchema, fromBinary(BootIDSpecSchema, later))).toEqual(later)
  })

  test('the data of an event is found by its type', () => {
    const event = create(machine.EventSchema, {
      data: anyPack(machine.PhaseEventSchema, create(machine.PhaseEventSchema, { phase: 'cleanup' })),
    })
    expect(event.data?.typeUrl).toBe('type.googleapis.com/machine.PhaseEvent')
    expect(event.data && anyUnpack(event.data, machine.PhaseEventSchema)?.phase).toBe('cleanup')
    expect(event.data && anyUnpack(event.data, machine.TaskEventSchema)).toBeUndefined()
  })
})

describe('services as grpc-js wants them', () => {
  test.each([
    [machine.MachineService.method.etcdRemoveMemberByID, '/machine.MachineService/EtcdRemoveMemberByID', false, false],
    [machine.MachineService.method.etcdSnapshot, '/machine.MachineService/EtcdSnapshot', false, true],
    [machine.MachineService.method.etcdRecover, '/machine.MachineService/EtcdRecover', true, false],
    [LifecycleService.method.upgrade, '/machine.LifecycleService/Upgrade', false, true],
    [ImageService.method.import, '/machine.ImageService/Import', true, false],
    [cosi.State.method.watch, '/cosi.resource.State/Watch', false, true],
  ])('%o', (method, path, requestStream, responseStream) => {
    expect(grpcPath(method)).toBe(path)
    expect(grpcMethod(method)).toMatchObject({ path, requestStream, responseStream })
  })

  test('one definition serves and calls', async () => {
    const definition = grpcService(machine.MachineService)
    const server = new Server()
    server.addService(
      { reboot: definition.reboot, read: definition.read },
      {
        reboot: (call: { request: machine.RebootRequest }, answer: (error: null, value: machine.RebootResponse) => void) =>
          answer(null, create(machine.RebootResponseSchema, { messages: [{ actorId: `mode ${call.request.mode}` }] })),
        read: (call: { request: machine.ReadRequest; write: (data: unknown) => void; end: () => void }) => {
          for (const part of ['a', call.request.path, 'c']) call.write(create(DataSchema, { bytes: bytes(part) }))
          call.end()
        },
      },
    )
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))),
    )
    const client = new (makeClientConstructor({}, 'machine.MachineService'))(`127.0.0.1:${port}`, credentials.createInsecure())
    try {
      const { reboot, read } = definition
      const answer = await new Promise<machine.RebootResponse | undefined>((resolve, reject) =>
        client.makeUnaryRequest(
          reboot.path,
          reboot.requestSerialize,
          reboot.responseDeserialize,
          create(machine.RebootRequestSchema, { mode: machine.RebootRequest_Mode.POWERCYCLE }),
          (error, value) => (error ? reject(error) : resolve(value)),
        ),
      )
      expect(answer?.messages[0]?.actorId).toBe('mode 1')

      const stream = client.makeServerStreamRequest(
        read.path,
        read.requestSerialize,
        read.responseDeserialize,
        create(machine.ReadRequestSchema, { path: 'b' }),
      )
      const parts: string[] = []
      for await (const data of stream) parts.push(Buffer.from((data as { bytes: Uint8Array }).bytes).toString())
      expect(parts).toEqual(['a', 'b', 'c'])
    } finally {
      client.close()
      server.forceShutdown()
    }
  })
})
