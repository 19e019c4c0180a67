import type { PeerCertificate } from 'node:tls'

type TalosRole = 'os:admin' | 'os:operator' | 'os:reader' | 'os:etcd:backup' | 'os:image:verifier' | 'os:meta:writer' | 'os:impersonator'

const LETTERS: Readonly<Record<string, TalosRole>> = {
  A: 'os:admin',
  O: 'os:operator',
  R: 'os:reader',
  B: 'os:etcd:backup',
  V: 'os:image:verifier',
  M: 'os:meta:writer',
}

/** Methods by service and by who may call them, a letter per role. What is not named needs the admin. */
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
  },
  'machine.ImageService': { AOR: ['List'], AO: ['Pull'], AORV: ['Verify'] },
  'cluster.ClusterService': { AOR: ['HealthCheck'] },
  'storage.StorageService': { AOR: ['Disks'] },
  'time.TimeService': { AOR: ['Time', 'TimeCheck'] },
  'inspect.InspectService': { AOR: ['ControllerRuntimeDependencies'] },
  'cosi.resource.State': { AOR: ['Get', 'List', 'Watch'] },
}

const BY_PATH: ReadonlyMap<string, string> = new Map(
  Object.entries(RULES).flatMap(([service, groups]) =>
    Object.entries(groups).flatMap(([letters, methods]) => methods.map(method => [`/${service}/${method}`, letters] as const)),
  ),
)

/** Whether one of these roles may call the method, e.g. `/machine.MachineService/Reboot`. */
export const mayCall = (roles: ReadonlySet<string>, path: string): boolean =>
  Array.from(BY_PATH.get(path) ?? 'A').some(letter => roles.has(LETTERS[letter] ?? ''))

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
