import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  MachineConfigSpecSchema,
  MachineType as ConfigMachineType,
  MachineTypeSpecSchema,
} from '../../../proto/gen/resource/config/config_pb.ts'
import { IdentitySpecSchema, InfoSpecSchema, MemberSpecSchema } from '../../../proto/gen/talos/resource/definitions/cluster/cluster_pb.ts'
import {
  MachineType,
  NethelpersAddressSortAlgorithm,
  NetworkConfigLayer,
  NetworkOperator,
} from '../../../proto/gen/talos/resource/definitions/enums/enums_pb.ts'
import { MemberSpecSchema as EtcdMemberSpecSchema, SpecSpecSchema } from '../../../proto/gen/talos/resource/definitions/etcd/etcd_pb.ts'
import {
  HostnameStatusSpecSchema,
  NodeAddressSpecSchema,
  OperatorSpecSpecSchema,
  StatusSpecSchema,
} from '../../../proto/gen/talos/resource/definitions/network/network_pb.ts'
import { configOnDisk, tellsDisk } from '../../world/configuration.ts'
import type { Machine } from '../../world/machine.ts'
import { versionOf } from '../../world/machine.ts'
import { isAtLeast, releaseOf } from '../../world/releases.ts'
import type { Site } from '../../world/site.ts'
import type { Drawn, ResourceKind } from './kind.ts'
import { drawn, ipBytes } from './kind.ts'

const API_SERVER_PORT = 6443

const isControlPlane = (machine: Machine): boolean => machine.role === 'controlplane'

/** Discovery keeps a machine for half an hour after its last word: off or not, all are told. */
const member = (machine: Machine): Drawn => {
  const { nodeID: nodeId, addresses, hostname, role } = machine
  const operatingSystem = `Talos (${versionOf(machine)})`
  const init: MessageInitShape<typeof MemberSpecSchema> = {
    nodeId,
    addresses: addresses.map(address => ({ ip: ipBytes(address) })),
    hostname,
    machineType: isControlPlane(machine) ? MachineType.TYPE_CONTROL_PLANE : MachineType.TYPE_WORKER,
    operatingSystem,
  }
  if (isControlPlane(machine)) init.controlPlane = { apiServerPort: BigInt(API_SERVER_PORT) }
  const yaml = {
    nodeId,
    addresses,
    hostname,
    machineType: role,
    operatingSystem,
    ...(isControlPlane(machine) ? { controlPlane: { port: API_SERVER_PORT } } : {}),
  }
  return drawn(machine.name, MemberSpecSchema, init, yaml)
}

/** A text as one YAML string in the form that a person can read. Without the indent Go's reader would take it for empty. */
const blockScalar = (text: string): string => {
  if (/^\s/.test(text) || !/[^\n]\n$/.test(text)) return JSON.stringify(text)
  return `|\n${text.replaceAll(/^(?=.)/gm, '    ')}`
}

/** The proto carries the text byte by byte. In YAML it is the text itself, since 1.12 as one YAML string with an annotation that says so. */
const machineConfigs = (machine: Machine): readonly Drawn[] => {
  const version = versionOf(machine)
  const isScalar = isAtLeast(version, 1, 12)
  const texts = [['persistent', configOnDisk(machine)] as const, ['v1alpha1', machine.config] as const]
  return texts.slice(tellsDisk(machine) ? 0 : 1).map(([id, text]) => ({
    ...drawn(id, MachineConfigSpecSchema, { yamlMarshalled: new TextEncoder().encode(text) }, ''),
    yaml: isScalar ? blockScalar(text) : text,
    annotations: isScalar ? { 'talos.dev/yaml-spec': '1' } : ({} as Record<string, string>),
  }))
}

const etcdMember = (site: Site, machine: Machine): readonly Drawn[] => {
  const own = site.etcd.memberOf(machine)
  if (!own?.running || machine.services.get('etcd')?.health !== 'healthy') return []
  return [drawn('local', EtcdMemberSpecSchema, { memberId: own.id }, { memberID: own.id })]
}

const etcdSpec = (machine: Machine): readonly Drawn[] => {
  if (!isControlPlane(machine)) return []
  const image = `registry.k8s.io/etcd:v${releaseOf(versionOf(machine)).etcd}`
  const any = [{ ip: ipBytes('0.0.0.0') }]
  return [
    drawn(
      'etcd',
      SpecSpecSchema,
      {
        name: machine.hostname,
        advertisedAddresses: machine.addresses.map(a => ({ ip: ipBytes(a) })),
        image,
        listenPeerAddresses: any,
        listenClientAddresses: any,
      },
      {
        name: machine.hostname,
        advertisedAddresses: machine.addresses,
        listenPeerAddresses: ['0.0.0.0'],
        listenClientAddresses: ['0.0.0.0'],
        image,
        extraArgs: {},
      },
    ),
  ]
}

/** With and without a filter; no address belongs to pods or services. */
const ADDRESS_SETS = ['accumulative', 'current', 'default', 'routed'].flatMap(name =>
  name === 'default' ? [name] : [name, `${name}-no-k8s`, `${name}-only-k8s`],
)
const PREFIX_LENGTH = 24
const LINK = 'eth0'

const nodeAddresses = (machine: Machine): readonly Drawn[] =>
  ADDRESS_SETS.map(id => {
    const addresses = id.endsWith('-only-k8s') ? [] : machine.addresses
    const sorted = isAtLeast(versionOf(machine), 1, 9)
    return drawn(
      id,
      NodeAddressSpecSchema,
      {
        addresses: addresses.map(address => ({ ip: ipBytes(address), prefixLength: PREFIX_LENGTH })),
        sortAlgorithm: NethelpersAddressSortAlgorithm.ADDRESS_SORT_ALGORITHM_V1,
      },
      { addresses: addresses.map(address => `${address}/${PREFIX_LENGTH}`), ...(sorted ? { sortAlgorithm: 'v1' } : {}) },
    )
  })

/** Addresses are given out by nobody here; only a virtual one wants an operator. */
const operators = ({ virtualAddress }: Site, machine: Machine): readonly Drawn[] => {
  if (virtualAddress === '' || !isControlPlane(machine)) return []
  return [
    drawn(
      `vip/${LINK}/${virtualAddress}`,
      OperatorSpecSpecSchema,
      {
        operator: NetworkOperator.OPERATOR_VIP,
        linkName: LINK,
        requireUp: true,
        vip: { ip: { ip: ipBytes(virtualAddress) }, gratuitousArp: true },
        configLayer: NetworkConfigLayer.CONFIG_MACHINE_CONFIGURATION,
      },
      { operator: 'vip', linkName: LINK, requireUp: true, vip: { ip: virtualAddress, gratuitousARP: true }, layer: 'configuration' },
    ),
  ]
}

/** Who the machine is, and whom it knows. */
export const clusterKinds: readonly ResourceKind[] = [
  {
    type: 'MachineConfigs.config.talos.dev',
    display: 'MachineConfig',
    namespace: 'config',
    owner: '',
    sensitiveSince: 0,
    since: 0,
    draw: (_, machine) => machineConfigs(machine),
  },
  {
    type: 'MachineTypes.config.talos.dev',
    display: 'MachineType',
    namespace: 'config',
    owner: 'config.MachineTypeController',
    columns: () => [['Type', '{@}']],
    since: 0,
    draw: (_, machine) => {
      const machineType = isControlPlane(machine) ? ConfigMachineType.CONTROL_PLANE : ConfigMachineType.WORKER
      return [drawn('machine-type', MachineTypeSpecSchema, { machineType }, machine.role)]
    },
  },
  {
    type: 'Members.cluster.talos.dev',
    display: 'Member',
    namespace: 'cluster',
    owner: 'cluster.MemberController',
    columns: () => [
      ['Hostname', '{.hostname}'],
      ['Machine Type', '{.machineType}'],
      ['OS', '{.operatingSystem}'],
      ['Addresses', '{.addresses}'],
    ],
    since: 0,
    draw: site => site.machines.filter(machine => machine.config !== '').map(member),
  },
  {
    type: 'Identities.cluster.talos.dev',
    display: 'Identity',
    namespace: 'cluster',
    owner: 'cluster.NodeIdentityController',
    columns: () => [['ID', '{.nodeId}']],
    since: 0,
    draw: (_, { nodeID: nodeId }) => [drawn('local', IdentitySpecSchema, { nodeId }, { nodeId })],
  },
  {
    type: 'Infos.cluster.talos.dev',
    display: 'Info',
    namespace: 'cluster',
    owner: 'cluster.InfoController',
    columns: () => [
      ['Cluster ID', '{.clusterId}'],
      ['Cluster Name', '{.clusterName}'],
    ],
    since: 4,
    draw: ({ clusterID: clusterId, clusterName }) => [
      drawn('current', InfoSpecSchema, { clusterId, clusterName }, { clusterId, clusterName }),
    ],
  },
  {
    type: 'EtcdMembers.etcd.talos.dev',
    display: 'EtcdMember',
    namespace: 'etcd',
    owner: 'etcd.MemberController',
    columns: () => [['Member ID', '{.memberID}']],
    since: 3,
    draw: etcdMember,
  },
  {
    type: 'EtcdSpecs.etcd.talos.dev',
    display: 'EtcdSpec',
    namespace: 'etcd',
    owner: 'etcd.SpecController',
    columns: () => [
      ['Name', '{.name}'],
      ['AdvertisedAddresses', '{.advertisedAddresses}'],
      ['ListenPeerAddresses', '{.listenPeerAddresses}'],
      ['ListenClientAddresses', '{.listenClientAddresses}'],
    ],
    since: 2,
    draw: (_, machine) => etcdSpec(machine),
  },
  {
    type: 'HostnameStatuses.net.talos.dev',
    display: 'HostnameStatus',
    namespace: 'network',
    owner: 'network.HostnameSpecController',
    aliases: ['hostname'],
    columns: () => [
      ['Hostname', '{.hostname}'],
      ['Domainname', '{.domainname}'],
    ],
    since: 0,
    draw: (_, { hostname }) => [drawn('hostname', HostnameStatusSpecSchema, { hostname }, { hostname, domainname: '' })],
  },
  {
    type: 'NodeAddresses.net.talos.dev',
    display: 'NodeAddress',
    namespace: 'network',
    owner: 'network.NodeAddressController',
    columns: version => [
      ['Addresses', '{.addresses}'],
      ...(isAtLeast(version, 1, 9) ? [['SortAlgorithm', '{.sortAlgorithm}'] as const] : []),
    ],
    since: 0,
    draw: (_, machine) => nodeAddresses(machine),
  },
  {
    type: 'OperatorSpecs.net.talos.dev',
    display: 'OperatorSpec',
    namespace: 'network',
    owner: 'network.OperatorMergeController',
    sensitiveSince: 0,
    since: 3,
    draw: operators,
  },
  {
    type: 'NetworkStatuses.net.talos.dev',
    display: 'NetworkStatus',
    namespace: 'network',
    owner: 'network.StatusController',
    aliases: ['netstatus', 'netstatuses'],
    columns: () => [
      ['Address', '{.addressReady}'],
      ['Connectivity', '{.connectivityReady}'],
      ['Hostname', '{.hostnameReady}'],
      ['Etc', '{.etcFilesReady}'],
    ],
    since: 0,
    draw: () => {
      const spec = { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true }
      return [drawn('status', StatusSpecSchema, spec, spec)]
    },
  },
]
