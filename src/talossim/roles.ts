import type { PeerCertificate } from 'node:tls'
import { isAtLeast } from '../world/releases.ts'

type TalosRole = 'os:admin' | 'os:operator' | 'os:reader' | 'os:etcd:backup' | 'os:image:verifier' | 'os:meta:writer' | 'os:impersonator'

const LETTERS: Readonly<Record<string, TalosRole>> = {
  A: 'os:admin',
  O: 'os:operator',
  R: 'os:reader',
  B: 'os:etcd:backup',
  V: 'os:image:verifier',
  M: 'os:meta:writer',
}

/** Of a caller; apid's own role among them grants nothing by itself. */
export const ROLES: readonly TalosRole[] = Object.values(LETTERS)

/** Methods by service and by who may call them since 1.13, a letter per role. What is not named needs the admin. */
const RULES: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'machine.MachineService': {
    AOR: [
      ...[
        'Containers',
        'CPUFreqStats',
        'CPUInfo',
        'DiskStats',
        'DiskUsage',
        'Dmesg',
        'Events',
        'Hostname',
        'ImageList',
        'List',
        'LoadAvg',
        'Logs',
      ],
      ...[
        'LogsContainers',
        'Memory',
        'Mounts',
        'Netstat',
        'NetworkDeviceStats',
        'Processes',
        'ServiceList',
        'Stats',
        'SystemStat',
        'Version',
      ],
    ],
    AORB: ['EtcdAlarmList', 'EtcdMemberList', 'EtcdStatus'],
    AOB: ['EtcdSnapshot'],
    AO: [
      ...['EtcdAlarmDisarm', 'EtcdDefragment', 'ImagePull', 'PacketCapture', 'Reboot', 'Restart', 'Shutdown'],
      ...['ServiceRestart', 'ServiceStart', 'ServiceStop'],
    ],
    AM: ['MetaDelete', 'MetaWrite'],
    // A reader only where the machine has no configuration yet, which the handler looks at.
    AR: ['ApplyConfiguration'],
  },
  'machine.ImageService': { AOR: ['List'], AO: ['Pull'], AORV: ['Verify'] },
  'cluster.ClusterService': { AOR: ['HealthCheck'] },
  'machine.LVMService': { AR: ['LogicalVolumeRemove', 'VolumeGroupRemove', 'PhysicalVolumeRemove'] },
  'machine.MDService': { AR: ['Destroy'] },
  'storage.StorageService': { AOR: ['Disks'], AR: ['BlockDeviceWipe'] },
  'time.TimeService': { AOR: ['Time', 'TimeCheck'] },
  'inspect.InspectService': { AOR: ['ControllerRuntimeDependencies'] },
  'cosi.resource.State': { AOR: ['Get', 'List', 'Watch'] },
}

const BY_PATH: ReadonlyMap<string, string> = new Map(
  Object.entries(RULES).flatMap(([service, groups]) =>
    Object.entries(groups).flatMap(([letters, methods]) => methods.map(method => [`/${service}/${method}`, letters] as const)),
  ),
)

/** Before 1.13 a machine in maintenance had another server with rules of its own, and nobody but the admin wrote META. */
const ADMINS_UNTIL_1_13: readonly string[] = [
  ...['ApplyConfiguration', 'MetaDelete', 'MetaWrite'].map(method => `/machine.MachineService/${method}`),
  '/storage.StorageService/BlockDeviceWipe',
]

const lettersOf = (path: string, version: string): string =>
  ADMINS_UNTIL_1_13.includes(path) && !isAtLeast(version, 1, 13) ? 'A' : (BY_PATH.get(path) ?? 'A')

/**
 * Whether one of these roles passes the rule of a method, e.g. `/machine.MachineService/Reboot`.
 * @param version Of the machine that is called, with `v`.
 */
export const mayCall = (roles: ReadonlySet<string>, path: string, version: string): boolean =>
  Array.from(lettersOf(path, version)).some(letter => roles.has(LETTERS[letter] ?? ''))

/** Whether a clock that shows this, milliseconds since 1970, finds a client's certificate good. */
export const holdsAt = ({ valid_from: from, valid_to: to }: Pick<PeerCertificate, 'valid_from' | 'valid_to'>, clock: number): boolean =>
  Date.parse(from) <= clock && clock <= Date.parse(to)

/**
 * The roles of a caller: the Organizations of its certificate. Another machine's apid, known by `os:impersonator`, speaks for its own caller.
 * @param claimed Values of the metadata `talos-role`.
 */
export const rolesOf = (certificate: PeerCertificate | undefined, claimed: readonly string[]): ReadonlySet<string> => {
  // Node gives one Organization as a text and several as a list, whatever its types say.
  const organizations: unknown = certificate?.subject.O
  const own = [organizations ?? []].flat().map(String)
  return new Set(own.includes('os:impersonator' satisfies TalosRole) ? claimed : own)
}
