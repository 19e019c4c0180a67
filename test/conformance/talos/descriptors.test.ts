// Our proto files are written by hand; the descriptors of the official Go module say whether they are the wire form of Talos.
import { globSync } from 'node:fs'
import { join } from 'node:path'
import type { DescFile } from '@bufbuild/protobuf'
import { beforeAll, describe, expect, test } from 'vitest'
import { realPart } from '../../real/parts.ts'
import { probe } from './probe.ts'
import { compareShapes, type ShapeDifferences, type WireShape, wireShapeOf } from './wire-shape.ts'

const part = await realPart('talos-probe')

type Allowed = { readonly because: string; readonly names: readonly string[] }

/** Types that Talos 1.13.9 has and we do not. A name that ends with a star stands for all types that begin so; a missing part of a type is never meant. */
const ONLY_OFFICIAL: readonly Allowed[] = [
  {
    because:
      'specs of resources that nothing in Ichor reads and the simulated machines do not have; of a group that has others, all are named here by their group',
    names: ['block', 'cluster', 'cri', 'etcd', 'files', 'hardware', 'k8s', 'kubeaccess', 'kubespan', 'network', 'perf', 'runtime']
      .concat('secrets', 'security', 'siderolink', 'time')
      .map(group => `talos.resource.definitions.${group}.*`)
      .concat('resource.network.DeviceConfigSpecSpec'),
  },
  {
    because: 'an operator that is no virtual address, or asks a cloud for it with its token, which nobody here is to read',
    names: ['OperatorSpecSpec.dhcp4', 'OperatorSpecSpec.dhcp6', 'VIPOperatorSpec.equinix_metal', 'VIPOperatorSpec.h_cloud'].map(
      field => `talos.resource.definitions.network.${field}`,
    ),
  },
  { because: 'enums of those specs', names: ['talos.resource.definitions.enums.*'] },
  {
    because: 'left over from GenerateConfiguration, which 1.13 no longer has: no method takes or gives them',
    names: [
      'CNIConfig',
      'ClusterConfig',
      'ClusterNetworkConfig',
      'ControlPlaneConfig',
      'DHCPOptionsConfig',
      'InstallConfig',
      'MachineConfig',
    ]
      .concat('MachineConfig.MachineType', 'NetworkConfig', 'NetworkDeviceConfig', 'RouteConfig')
      .map(name => `machine.${name}`),
  },
]

/** What we have and Talos 1.13.9 does not. */
const ONLY_OURS: readonly Allowed[] = [
  {
    because: 'COSI of Talos 1.14',
    names: [
      'State/Teardown',
      'State/TeardownAndDestroy',
      'TeardownAndDestroyOptions',
      'TeardownAndDestroyRequest',
      'TeardownAndDestroyResponse',
    ]
      .concat('TeardownOptions', 'TeardownRequest', 'TeardownResponse')
      .map(name => `cosi.resource.${name}`),
  },
  {
    because: 'services of Talos 1.14',
    names: [
      'LVMService',
      'LVMServiceLogicalVolumeRemoveRequest',
      'LVMServicePhysicalVolumeRemoveRequest',
      'LVMServiceVolumeGroupRemoveRequest',
    ]
      .concat('MDService', 'MDDestroyRequest', 'DebugContainerRunRequestSpec.Profile.PROFILE_HOST_NS')
      .map(name => `machine.${name}`),
  },
  {
    because: 'a service of Talos 1.15, in development',
    names: ['StorageService', 'StorageServiceStatfsRequest', 'StorageServiceStatfsResponse'].map(name => `machine.${name}`),
  },
  {
    because: 'specs of Talos 1.14',
    names: ['k8s.KubeletStatusSpec', 'runtime.BootIDSpec', 'runtime.ImageFactorySchematicSpec', 'runtime.UnattendedInstallStatusSpec']
      .concat('enums.RuntimeUnattendedInstallPhase')
      .concat(['args', 'startup_probes_enabled', 'use_authentication_config'].map(field => `k8s.APIServerConfigSpec.${field}`))
      .concat(['args', 'node_cidr_mask_size_i_pv4', 'node_cidr_mask_size_i_pv6'].map(field => `k8s.ControllerManagerConfigSpec.${field}`))
      .concat('k8s.SchedulerConfigSpec.args', 'k8s.KubeletConfigSpec.register_with_taints')
      .concat(
        [
          'accepted_aggregator_c_as',
          'accepted_issuers',
          'api_audiences',
          'etcd_encryption_config',
          'issuer_url',
          'service_account_accepted_keys',
        ].map(field => `secrets.KubernetesRootSpec.${field}`),
      )
      .map(name => `talos.resource.definitions.${name}`),
  },
]

const generated = join(import.meta.dirname, '..', '..', '..', 'proto', 'gen')

async function ourFiles(): Promise<DescFile[]> {
  const modules = await Promise.all(
    globSync(join(generated, '**', '*_pb.ts')).map(path => import(path) as Promise<Record<string, unknown>>),
  )
  return modules.flatMap(module => Object.values(module)).filter((one): one is DescFile => (one as Partial<DescFile>)?.kind === 'file')
}

describe.skipIf('missing' in part)('our proto files and the descriptors of Talos 1.13.9', () => {
  let ours: WireShape
  let official: WireShape
  let found: ShapeDifferences
  beforeAll(async () => {
    ours = wireShapeOf(await ourFiles())
    official = (await probe('descriptors')).lines[0] as WireShape
    found = compareShapes(ours, official)
  })

  const isWholeType = (name: string): boolean => [official.messages, official.enums, official.services].some(types => name in types)
  const covers = (pattern: string, name: string): boolean =>
    pattern.endsWith('.*') ? isWholeType(name) && name.startsWith(pattern.slice(0, -1)) : pattern === name
  const names = (lists: readonly Allowed[]): string[] => lists.flatMap(list => list.names)

  test('both were read: hundreds of messages, every service', () => {
    expect(Object.keys(official.messages).length).toBeGreaterThan(400)
    expect(Object.keys(ours.messages).length).toBeGreaterThan(300)
    expect(Object.keys(ours.services)).toEqual(expect.arrayContaining(Object.keys(official.services)))
    expect(Object.keys(ours.services['machine.MachineService']!)).toHaveLength(54)
  })

  test('numbers, types, labels, oneofs, enums and methods are the same', () => {
    expect(found.different).toEqual([])
  })

  test('what only Talos has is known, and why', () => {
    expect(found.onlyThere.filter(name => !names(ONLY_OFFICIAL).some(pattern => covers(pattern, name)))).toEqual([])
    expect(names(ONLY_OFFICIAL).filter(pattern => !found.onlyThere.some(name => covers(pattern, name)))).toEqual([])
  })

  test('what only we have is known, and why', () => {
    expect(found.onlyHere.filter(name => !names(ONLY_OURS).includes(name))).toEqual([])
    expect(names(ONLY_OURS).filter(name => !found.onlyHere.includes(name))).toEqual([])
  })

  test.each<[what: string, change: (shape: Mutable) => void, told: string[]]>([
    ['a number', s => (s.messages['machine.RebootRequest']!.mode!.number = 2), ['machine.RebootRequest.mode: ']],
    ['a type', s => (s.messages['machine.Stat']!.cpu_usage!.type = 'int64'), ['machine.Stat.cpu_usage: ']],
    ['a label', s => (s.messages['cluster.ClusterInfo']!.worker_nodes!.label = 'single'), ['cluster.ClusterInfo.worker_nodes: ']],
    [
      'a oneof',
      s => delete s.messages['machine.LifecycleServiceInstallProgress']!.exit_code!.oneof,
      ['machine.LifecycleServiceInstallProgress.'],
    ],
    ['presence', s => (s.messages['cosi.resource.WatchRequest']!.id!.label = 'single'), ['cosi.resource.WatchRequest.id: ']],
    ['an enum', s => (s.enums['inspect.DependencyEdgeType']!.INPUT_WEAK = 3), ['inspect.DependencyEdgeType.INPUT_WEAK: 2 here, 3 there']],
    ['a method', s => (s.services['machine.ImageService']!.Import!.kind = 'unary'), ['machine.ImageService/Import: ']],
    [
      'a name',
      s => {
        s.messages['common.URL']!.path = s.messages['common.URL']!.full_path!
        delete s.messages['common.URL']!.full_path
      },
      ['common.URL: number 1 is full_path here, path there'],
    ],
  ])('%s that differs would be named', (_, change, told) => {
    const changed = structuredClone(official) as Mutable
    change(changed)
    const { different } = compareShapes(official, changed)
    expect(different).toEqual(told.map(beginning => expect.stringContaining(beginning) as string))
  })
})

type Mutable = {
  messages: Record<
    string,
    Record<string, { number: number; type: string; label: 'single' | 'optional' | 'repeated' | 'map'; oneof?: string }>
  >
  enums: Record<string, Record<string, number>>
  services: Record<string, Record<string, { input: string; output: string; kind: string }>>
}
