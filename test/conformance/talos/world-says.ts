// What a machine of the world has of each type of resource, in the words of Talos' own types: said again here from the world, not taken from
// what draws the resources.
import type { World } from '../../../src/world/cluster.ts'
import { type Machine, versionOf } from '../../../src/world/machine.ts'
import { KUBERNETES_SAYS } from './world-says-kubernetes.ts'

type Specs = Readonly<Record<string, unknown>>
type Said = (world: World, machine: Machine) => Specs

const isControlPlane = (machine: Machine): boolean => machine.role === 'controlplane'

const node = (world: World, machine: Machine) => {
  const found = world.store.get('nodes', '', machine.name) as
    | {
        metadata: { labels?: object; annotations?: object }
        spec?: { unschedulable?: boolean }
        status: { conditions: { type: string; status: string }[] }
      }
    | undefined
  if (!found) return {}
  const { metadata, spec, status } = found
  return {
    [machine.name]: {
      nodename: machine.name,
      nodeReady: status.conditions.some(c => c.type === 'Ready' && c.status === 'True'),
      unschedulable: spec?.unschedulable ?? false,
      labels: metadata.labels ?? {},
      annotations: metadata.annotations ?? {},
      podCIDRs: [],
    },
  }
}

const extension = (at: number, version: string, of: { name: string; version: string; author: string; description: string }) => ({
  [at]: { image: `${at}.sqsh`, metadata: { ...of, compatibility: { talos: { version: `>= ${version}` } } } },
})

const addressSets = (machine: Machine): Specs => {
  const all = { addresses: machine.addresses.map(address => `${address}/24`), sortAlgorithm: 'v1' }
  const filtered = ['accumulative', 'current', 'routed']
  return Object.fromEntries([
    ...[...filtered, 'default', ...filtered.map(name => `${name}-no-k8s`)].map(id => [id, all]),
    ...filtered.map(name => [`${name}-only-k8s`, { ...all, addresses: [] }]),
  ])
}

/** Resources of a machine of Talos 1.13 that runs the schematic and extension of `describedMachines`, by type and id. */
export const WORLD_SAYS: Readonly<Record<string, Said>> = {
  ...KUBERNETES_SAYS,
  'MachineStatuses.runtime.talos.dev': (world, machine) => ({
    machine: { stage: machine.stage, status: { ready: world.unmet(machine).length === 0, unmetConditions: [] } },
  }),
  'Versions.runtime.talos.dev': (_, machine) => ({ version: { name: 'Talos', version: versionOf(machine) } }),
  'MetaKeys.runtime.talos.dev': (_, machine) =>
    Object.fromEntries([...machine.disk.meta].map(([key, value]) => [`0x${key.toString(16).padStart(2, '0')}`, { value }])),
  'SecurityStates.talos.dev': () => ({ securitystate: { secureBoot: false, selinuxState: 'enabled, permissive' } }),
  'ExtensionStatuses.runtime.talos.dev': (_, machine) => ({
    ...extension(0, versionOf(machine), {
      name: 'iscsi-tools',
      version: 'v0.2.0',
      author: 'Sidero Labs',
      description: 'system extension iscsi-tools',
    }),
    ...extension(1, versionOf(machine), {
      name: 'schematic',
      version: SCHEMATIC,
      author: 'Image Factory (https://factory.talos.dev)',
      description: 'Virtual extension which specifies the schematic of the image.',
    }),
  }),
  'Diagnostics.runtime.talos.dev': () => ({}),
  'PlatformMetadatas.talos.dev': (_, machine) => ({ platformmetadata: { platform: 'metal', hostname: machine.hostname } }),
  'Services.v1alpha1.talos.dev': (_, machine) =>
    Object.fromEntries(
      [...machine.services.values()]
        .filter(service => service.state === 'Running')
        .map(({ id, health }) => [id, { running: true, healthy: health === 'healthy', unknown: health === 'unknown' }]),
    ),
  'TimeStatuses.v1alpha1.talos.dev': () => ({ node: { synced: true, epoch: 0, syncDisabled: false } }),
  'SystemDisks.block.talos.dev': () => ({ 'system-disk': { diskID: 'sda', devPath: '/dev/sda' } }),
  'SystemInformations.hardware.talos.dev': (_, machine) => ({
    systeminformation: { manufacturer: 'Ichor', productName: 'Simulated machine', uuid: machine.uuid },
  }),
  'ImageCacheConfigs.cri.talos.dev': () => ({ 'image-cache': { status: 'disabled', copyStatus: 'skipped', roots: [] } }),
  'MachineConfigs.config.talos.dev': (_, machine) => ({ persistent: machine.config, v1alpha1: machine.config }),
  'MachineTypes.config.talos.dev': (_, machine) => ({ 'machine-type': machine.role }),
  'Members.cluster.talos.dev': world =>
    Object.fromEntries(
      world.machines.map(machine => [
        machine.name,
        {
          nodeId: machine.nodeID,
          addresses: machine.addresses,
          hostname: machine.hostname,
          machineType: machine.role,
          operatingSystem: `Talos (${versionOf(machine)})`,
          ...(isControlPlane(machine) ? { controlPlane: { port: 6443 } } : {}),
        },
      ]),
    ),
  'Identities.cluster.talos.dev': (_, machine) => ({ local: { nodeId: machine.nodeID } }),
  'Infos.cluster.talos.dev': world => ({ current: { clusterId: world.site.clusterID, clusterName: 'home' } }),
  'EtcdMembers.etcd.talos.dev': (world, machine) => (isControlPlane(machine) ? { local: { memberID: world.member(machine.name).id } } : {}),
  'EtcdSpecs.etcd.talos.dev': (_, machine) =>
    isControlPlane(machine)
      ? {
          etcd: {
            name: machine.hostname,
            advertisedAddresses: machine.addresses,
            listenPeerAddresses: ['0.0.0.0'],
            listenClientAddresses: ['0.0.0.0'],
            image: 'registry.k8s.io/etcd:v3.6.12',
            extraArgs: {},
          },
        }
      : {},
  'HostnameStatuses.net.talos.dev': (_, machine) => ({ hostname: { hostname: machine.hostname, domainname: '' } }),
  'NodeAddresses.net.talos.dev': (_, machine) => addressSets(machine),
  'OperatorSpecs.net.talos.dev': ({ site: { virtualAddress } }, machine) =>
    virtualAddress === '' || !isControlPlane(machine)
      ? {}
      : {
          [`vip/eth0/${virtualAddress}`]: {
            ...{ operator: 'vip', linkName: 'eth0', requireUp: true, layer: 'configuration' },
            vip: { ip: virtualAddress, gratuitousARP: true },
          },
        },
  'NetworkStatuses.net.talos.dev': () => ({
    status: { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true },
  }),
  'Nodenames.kubernetes.talos.dev': (_, machine) => ({
    nodename: { nodename: machine.name, hostnameVersion: '1', skipNodeRegistration: false },
  }),
  'NodeStatuses.kubernetes.talos.dev': node,
  'NodeIPs.kubernetes.talos.dev': (_, machine) => ({ kubelet: { addresses: machine.addresses } }),
}

const SCHEMATIC = '4a0d65c669d46663f377e7161e50cfd570c401f26fd9e7bda34a0216b6f1922b'

/** The machines that the table is about. */
export const describedMachines = {
  seed: 5,
  controlPlanes: 3,
  workers: 1,
  talos: 'v1.13.9',
  kubernetes: 'v1.35.2',
  schematic: SCHEMATIC,
  extensions: ['siderolabs/iscsi-tools:v0.2.0'],
  clusterName: 'home',
  vip: '10.5.0.100',
} as const
