import { ImageCacheConfigSpecSchema } from '../../../proto/gen/talos/resource/definitions/cri/cri_pb.ts'
import { SystemDiskSpecSchema } from '../../../proto/gen/talos/resource/definitions/block/block_pb.ts'
import {
  CriImageCacheCopyStatus,
  CriImageCacheStatus,
  RuntimeMachineStage,
  RuntimeSELinuxState,
} from '../../../proto/gen/talos/resource/definitions/enums/enums_pb.ts'
import { LayerSchema } from '../../../proto/gen/talos/resource/definitions/extensions/extensions_pb.ts'
import { SystemInformationSpecSchema } from '../../../proto/gen/talos/resource/definitions/hardware/hardware_pb.ts'
import {
  BootIDSpecSchema,
  ImageFactorySchematicSpecSchema,
  MachineStatusSpecSchema,
  MetaKeySpecSchema,
  PlatformMetadataSpecSchema,
  SecurityStateSpecSchema,
  VersionSpecSchema,
} from '../../../proto/gen/talos/resource/definitions/runtime/runtime_pb.ts'
import { StatusSpecSchema } from '../../../proto/gen/talos/resource/definitions/time/time_pb.ts'
import { ServiceSpecSchema } from '../../../proto/gen/talos/resource/definitions/v1alpha1/v1alpha1_pb.ts'
import type { MachineStage } from '../../ports/talos.ts'
import type { Machine } from '../../world/machine.ts'
import { unmetConditions, versionOf } from '../../world/machine.ts'
import { readScalar } from '../../world/machine-config.ts'
import { isAtLeast } from '../../world/releases.ts'
import type { Site } from '../../world/site.ts'
import { isInstalled, runningSlot } from '../../world/slots.ts'
import type { Drawn, ResourceKind } from './kind.ts'
import { drawn } from './kind.ts'

/** In the order of their numbers. */
export const STAGES: readonly MachineStage[] = [
  'unknown',
  'booting',
  'installing',
  'maintenance',
  'running',
  'rebooting',
  'shutting down',
  'resetting',
  'upgrading',
]

/** `name: reason`, as the world says it, in its two parts. */
export const conditionOf = (text: string): { readonly name: string; readonly reason: string } => {
  const at = text.indexOf(': ')
  return at < 0 ? { name: text, reason: '' } : { name: text.slice(0, at), reason: text.slice(at + 2) }
}

const machineStatus = (site: Site, machine: Machine): readonly Drawn[] => {
  const unmet = unmetConditions(site, machine).map(conditionOf)
  const ready = unmet.length === 0
  const stage = STAGES.indexOf(machine.stage) as RuntimeMachineStage
  const yaml = { stage: machine.stage, status: { ready, unmetConditions: unmet } }
  return [drawn('machine', MachineStatusSpecSchema, { stage, status: { ready, unmetConditions: unmet } }, yaml)]
}

/** Both slots have a name in the boot loader; META 6 names the one to fall back to. */
const metaKeys = (machine: Machine): readonly Drawn[] =>
  [...machine.disk.meta]
    .filter(([, value]) => value !== '')
    .sort(([a], [b]) => a - b)
    .map(([key, value]) => drawn(`0x${key.toString(16).padStart(2, '0')}`, MetaKeySpecSchema, { value }, { value }))

const services = (machine: Machine): readonly Drawn[] =>
  [...machine.services.values()]
    .filter(service => service.state === 'Running')
    .map(({ id, health }) => {
      const spec = { running: true, healthy: health === 'healthy', unknown: health === 'unknown' }
      return drawn(id, ServiceSpecSchema, spec, spec)
    })

const extensions = (machine: Machine): readonly Drawn[] => {
  const { extensions: names, schematic, factory, version } = runningSlot(machine.disk)
  const layer = (at: number, metadata: { name: string; version: string; author: string; description: string }): Drawn => {
    const talos = { version: `>= ${version}` }
    const spec = { image: `${at}.sqsh`, metadata: { ...metadata, compatibility: { talos } } }
    return drawn(`${at}`, LayerSchema, spec, spec)
  }
  const layers = names.map((full, at) => {
    const [name = full, own = version] = (full.split('/').at(-1) ?? full).split(/[:@]/)
    return layer(at, { name, version: own, author: 'Sidero Labs', description: `system extension ${name}` })
  })
  if (schematic === '') return layers
  const author = `Image Factory (https://${factory})`
  return [
    ...layers,
    layer(names.length, {
      name: 'schematic',
      version: schematic,
      author,
      description: 'Virtual extension which specifies the schematic of the image.',
    }),
  ]
}

const securityState = (machine: Machine): readonly Drawn[] => {
  const { secureBoot, version } = runningSlot(machine.disk)
  const knowsSELinux = isAtLeast(version, 1, 10) && machine.platform !== 'container'
  return [
    drawn(
      'securitystate',
      SecurityStateSpecSchema,
      { secureBoot, ...(knowsSELinux ? { seLinuxState: RuntimeSELinuxState.SE_LINUX_STATE_PERMISSIVE } : {}) },
      { secureBoot, ...(knowsSELinux ? { selinuxState: 'enabled, permissive' } : {}) },
    ),
  ]
}

const schematic = (machine: Machine): readonly Drawn[] => {
  const { schematic: schematicId, factory } = runningSlot(machine.disk)
  if (schematicId === '') return []
  const apiUrl = `https://${factory}`
  return [
    drawn('image-factory-schematic', ImageFactorySchematicSpecSchema, { schematicId, apiurl: apiUrl }, { schematicId, flavor: '', apiUrl }),
  ]
}

const systemDisk = (machine: Machine): readonly Drawn[] => {
  if (machine.platform === 'container' || !isInstalled(machine.disk)) return []
  const devPath = readScalar(machine.config, ['machine', 'install', 'disk']) ?? '/dev/sda'
  const diskID = devPath.slice(devPath.lastIndexOf('/') + 1)
  return [drawn('system-disk', SystemDiskSpecSchema, { diskId: diskID, devPath }, { diskID, devPath })]
}

/** What is installed and what runs on it. */
export const runtimeKinds: readonly ResourceKind[] = [
  {
    type: 'MachineStatuses.runtime.talos.dev',
    display: 'MachineStatus',
    namespace: 'runtime',
    owner: 'runtime.MachineStatusController',
    columns: () => [
      ['Stage', '{.stage}'],
      ['Ready', '{.status.ready}'],
    ],
    since: 2,
    draw: machineStatus,
  },
  {
    type: 'BootIDs.runtime.talos.dev',
    display: 'BootID',
    namespace: 'runtime',
    owner: 'runtime.BootIDController',
    columns: () => [['Boot ID', '{.bootID}']],
    since: 14,
    draw: (_, { bootID, platform }) =>
      platform === 'container' ? [] : [drawn('boot-id', BootIDSpecSchema, { bootId: bootID }, { bootID })],
  },
  {
    type: 'Versions.runtime.talos.dev',
    display: 'Version',
    namespace: 'runtime',
    owner: 'runtime.VersionController',
    columns: version => [...(isAtLeast(version, 1, 13) ? [['Name', '{.name}'] as const] : []), ['Version', '{.version}']],
    since: 10,
    draw: (_, machine) => {
      const version = versionOf(machine)
      const spec = isAtLeast(version, 1, 13) ? { name: 'Talos', version } : { version }
      return [drawn('version', VersionSpecSchema, spec, spec)]
    },
  },
  {
    type: 'MetaKeys.runtime.talos.dev',
    display: 'MetaKey',
    namespace: 'runtime',
    owner: '',
    aliases: ['meta'],
    columns: () => [['Value', '{.value}']],
    since: 4,
    draw: (_, machine) => metaKeys(machine),
  },
  {
    type: 'SecurityStates.talos.dev',
    display: 'SecurityState',
    namespace: 'runtime',
    owner: 'runtime.SecurityStateController',
    columns: version => [
      ['SecureBoot', '{.secureBoot}'],
      ['UKISigningKeyFingerprint', '{.ukiSigningKeyFingerprint}'],
      ['PCRSigningKeyFingerprint', '{.pcrSigningKeyFingerprint}'],
      ...(isAtLeast(version, 1, 10) ? [['SELinuxState', '{.selinuxState}'] as const] : []),
      ...(isAtLeast(version, 1, 12) ? [['ModuleSignatureEnforced', '{.moduleSignatureEnforced}'] as const] : []),
    ],
    since: 5,
    draw: (_, machine) => securityState(machine),
  },
  {
    type: 'ExtensionStatuses.runtime.talos.dev',
    display: 'ExtensionStatus',
    namespace: 'runtime',
    owner: 'runtime.ExtensionStatusController',
    aliases: ['extensions'],
    columns: () => [
      ['Name', '{.metadata.name}'],
      ['Version', '{.metadata.version}'],
    ],
    since: 0,
    draw: (_, machine) => extensions(machine),
  },
  {
    type: 'ImageFactorySchematics.runtime.talos.dev',
    display: 'ImageFactorySchematic',
    namespace: 'runtime',
    owner: 'runtime.ImageFactorySchematicController',
    columns: () => [
      ['Schematic ID', '{.schematicId}'],
      ['Flavor', '{.flavor}'],
      ['API URL', '{.apiUrl}'],
    ],
    since: 14,
    draw: (_, machine) => schematic(machine),
  },
  {
    type: 'Diagnostics.runtime.talos.dev',
    display: 'Diagnostic',
    namespace: 'runtime',
    owner: 'runtime.DiagnosticsController',
    columns: () => [['Message', '{.message}']],
    since: 8,
    // Nothing that Talos would diagnose happens in the world.
    draw: () => [],
  },
  {
    type: 'PlatformMetadatas.talos.dev',
    display: 'PlatformMetadata',
    namespace: 'runtime',
    owner: 'network.PlatformConfigApplyController',
    columns: () => [
      ['Platform', '{.platform}'],
      ['Type', '{.instanceType}'],
      ['Region', '{.region}'],
      ['Zone', '{.zone}'],
    ],
    since: 3,
    draw: (_, { platform, hostname }) => [
      drawn('platformmetadata', PlatformMetadataSpecSchema, { platform, hostname }, { platform, hostname }),
    ],
  },
  {
    type: 'Services.v1alpha1.talos.dev',
    display: 'Service',
    namespace: 'runtime',
    owner: 'v1alpha1.ServiceController',
    aliases: ['svc'],
    columns: () => [
      ['Running', '{.running}'],
      ['Healthy', '{.healthy}'],
      ['Health Unknown', '{.unknown}'],
    ],
    since: 0,
    draw: (_, machine) => services(machine),
  },
  {
    type: 'TimeStatuses.v1alpha1.talos.dev',
    display: 'TimeStatus',
    namespace: 'runtime',
    owner: 'time.SyncController',
    columns: () => [['Synced', '{.synced}']],
    since: 0,
    draw: (_, { platform, waitsForTime }) => {
      // Containers have the clock of their host.
      const syncDisabled = platform === 'container'
      const synced = syncDisabled || !waitsForTime
      return [drawn('node', StatusSpecSchema, { synced, syncDisabled }, { synced, epoch: 0, syncDisabled })]
    },
  },
  {
    type: 'SystemDisks.block.talos.dev',
    display: 'SystemDisk',
    namespace: 'runtime',
    owner: 'block.SystemDiskController',
    columns: () => [['Disk', '{.diskID}']],
    since: 8,
    draw: (_, machine) => systemDisk(machine),
  },
  {
    type: 'SystemInformations.hardware.talos.dev',
    display: 'SystemInformation',
    namespace: 'hardware',
    owner: 'hardware.SystemInfoController',
    aliases: ['systeminformation'],
    columns: () => [
      ['Manufacturer', '{.manufacturer}'],
      ['ProductName', '{.productName}'],
      ['Version', '{.version}'],
      ['SerialNumber', '{.serialnumber}'],
      ['UUID', '{.uuid}'],
      ['WakeUpType', '{.wakeUpType}'],
      ['SKUNumber', '{.skuNumber}'],
    ],
    since: 3,
    draw: (_, { uuid, platform }) =>
      uuid === '' || platform === 'container'
        ? []
        : [
            drawn(
              'systeminformation',
              SystemInformationSpecSchema,
              { manufacturer: 'Ichor', productName: 'Simulated machine', uuid },
              { manufacturer: 'Ichor', productName: 'Simulated machine', uuid },
            ),
          ],
  },
  {
    type: 'ImageCacheConfigs.cri.talos.dev',
    display: 'ImageCacheConfig',
    namespace: 'cri',
    owner: 'cri.ImageCacheConfigController',
    columns: () => [
      ['Status', '{.status}'],
      ['CopyStatus', '{.copyStatus}'],
      ['Roots', '{.roots}'],
    ],
    since: 9,
    draw: () => {
      const init = {
        status: CriImageCacheStatus.IMAGE_CACHE_STATUS_DISABLED,
        copyStatus: CriImageCacheCopyStatus.IMAGE_CACHE_COPY_STATUS_SKIPPED,
      }
      return [drawn('image-cache', ImageCacheConfigSpecSchema, init, { status: 'disabled', copyStatus: 'skipped', roots: [] })]
    },
  },
]
