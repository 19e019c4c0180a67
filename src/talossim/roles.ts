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

/** Who may call what, a letter per role. Methods that are not named need the admin. */
const RULES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['Containers', 'CPUFreqStats', 'CPUInfo', 'DiskStats', 'DiskUsage', 'List', 'LoadAvg', 'LogsContainers', 'Memory', 'Mounts', 'Netstat']
      .concat('NetworkDeviceStats', 'Processes', 'Stats')
      .map(method => [`/machine.MachineService/${method}`, 'AOR']),
  ),
  '/machine.MachineService/ApplyConfiguration': 'A',
  '/machine.MachineService/Dmesg': 'AOR',
  '/machine.MachineService/Events': 'AOR',
  '/machine.MachineService/EtcdMemberList': 'AORB',
  '/machine.MachineService/EtcdAlarmList': 'AORB',
  '/machine.MachineService/EtcdAlarmDisarm': 'AO',
  '/machine.MachineService/EtcdDefragment': 'AO',
  '/machine.MachineService/EtcdSnapshot': 'AOB',
  '/machine.MachineService/EtcdStatus': 'AORB',
  '/machine.MachineService/Hostname': 'AOR',
  '/machine.MachineService/ImageList': 'AOR',
  '/machine.MachineService/ImagePull': 'AO',
  '/machine.MachineService/Logs': 'AOR',
  '/machine.MachineService/MetaDelete': 'AM',
  '/machine.MachineService/MetaWrite': 'AM',
  '/machine.MachineService/PacketCapture': 'AO',
  '/machine.MachineService/Reboot': 'AO',
  '/machine.MachineService/Restart': 'AO',
  '/machine.MachineService/ServiceList': 'AOR',
  '/machine.MachineService/ServiceRestart': 'AO',
  '/machine.MachineService/ServiceStart': 'AO',
  '/machine.MachineService/ServiceStop': 'AO',
  '/machine.MachineService/Shutdown': 'AO',
  '/machine.MachineService/SystemStat': 'AOR',
  '/machine.MachineService/Version': 'AOR',
  '/machine.ImageService/List': 'AOR',
  '/machine.ImageService/Pull': 'AO',
  '/cosi.resource.State/Get': 'AOR',
  '/cosi.resource.State/List': 'AOR',
  '/cosi.resource.State/Watch': 'AOR',
}

/** Whether one of these roles may call the method, e.g. `/machine.MachineService/Reboot`. */
export const mayCall = (roles: ReadonlySet<string>, path: string): boolean =>
  Array.from(RULES[path] ?? 'A').some(letter => roles.has(LETTERS[letter] ?? ''))

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
