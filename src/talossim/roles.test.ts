import { expect, test } from 'vitest'
import { ClusterService } from '../../proto/gen/cluster/cluster_pb.ts'
import { State } from '../../proto/gen/cosi/resource/state_pb.ts'
import { InspectService } from '../../proto/gen/inspect/inspect_pb.ts'
import { DebugService } from '../../proto/gen/machine/debug_pb.ts'
import { ImageService } from '../../proto/gen/machine/image_pb.ts'
import { LifecycleService } from '../../proto/gen/machine/lifecycle_pb.ts'
import { LVMService } from '../../proto/gen/machine/lvm_pb.ts'
import { MachineService } from '../../proto/gen/machine/machine_pb.ts'
import { MDService } from '../../proto/gen/machine/md_pb.ts'
import { StorageService } from '../../proto/gen/storage/storage_pb.ts'
import { TimeService } from '../../proto/gen/time/time_pb.ts'
import { grpcPath } from '../../proto/grpc.ts'
import { mayCall, rolesOf } from './roles.ts'

// A for os:admin, O os:operator, R os:reader, B os:etcd:backup, V os:image:verifier, M os:meta:writer. The rules of machined since 1.13; what a reader
// may do only where the machine has no configuration yet, the handlers look at.
const DOCUMENTED = `
ApplyConfiguration AR         EtcdMemberList AORB           Hostname AOR             Read A               Shutdown AO
Bootstrap A                   EtcdRemoveMemberByID A        Kubeconfig A             Reboot AO            Stats AOR
Containers AOR                EtcdLeaveCluster A            List AOR                 Restart AO           SystemStat AOR
Copy A                        EtcdForfeitLeadership A       DiskUsage AOR            Rollback A           Upgrade A
CPUFreqStats AOR              EtcdRecover A                 LoadAvg AOR              Reset A              Version AOR
CPUInfo AOR                   EtcdSnapshot AOB              Logs AOR                 ServiceList AOR      GenerateClientConfiguration A
DiskStats AOR                 EtcdAlarmList AORB            LogsContainers AOR       ServiceRestart AO    PacketCapture AO
Dmesg AOR                     EtcdAlarmDisarm AO            Memory AOR               ServiceStart AO      Netstat AOR
Events AOR                    EtcdDefragment AO             Mounts AOR               ServiceStop AO       MetaWrite AM
EtcdStatus AORB               EtcdDowngradeValidate A       NetworkDeviceStats AOR   ImageList AOR        MetaDelete AM
EtcdDowngradeEnable A         EtcdDowngradeCancel A         Processes AOR            ImagePull AO
`
const others = `
LifecycleService.Install A    ImageService.List AOR         ClusterService.HealthCheck AOR                              State.Get AOR
LifecycleService.Upgrade A    ImageService.Pull AO          InspectService.ControllerRuntimeDependencies AOR            State.List AOR
StorageService.Disks AOR      ImageService.Import A         ImageService.Remove A                                       State.Watch AOR
TimeService.Time AOR          TimeService.TimeCheck AOR     ImageService.Verify AORV                                    State.Create A
StorageService.BlockDeviceWipe AR                           State.Update A                                              State.Destroy A
LVMService.LogicalVolumeRemove AR                           LVMService.VolumeGroupRemove AR                             MDService.Destroy AR
LVMService.PhysicalVolumeRemove AR                          DebugService.ContainerRun A
`
/** Where 1.12 and older have another rule. */
const UNTIL_1_12 = { ApplyConfiguration: 'A', MetaWrite: 'A', MetaDelete: 'A', 'StorageService.BlockDeviceWipe': 'A' }
const VERSIONS = ['v1.10.9', 'v1.11.6', 'v1.12.1', 'v1.13.9', 'v1.14.0-rc.1']
const ROLES = {
  A: 'os:admin',
  O: 'os:operator',
  R: 'os:reader',
  B: 'os:etcd:backup',
  V: 'os:image:verifier',
  M: 'os:meta:writer',
  none: 'os:impersonator',
}

const table = (text: string): [string, string][] =>
  [...text.matchAll(/(\S+) ([AORBVM]+)(?=\s)/g)].map(([, name = '', letters = '']) => [name, letters])
const allowed = (path: string, version: string): string =>
  Object.entries(ROLES)
    .filter(([, role]) => mayCall(new Set([role]), path, version))
    .map(([letter]) => letter)
    .join('')
const documentedFor = (version: string, text: string): Record<string, string> => {
  const documented = Object.fromEntries(table(text))
  if (VERSIONS.indexOf(version) > 2) return documented
  const changed = Object.entries(UNTIL_1_12).filter(([name]) => name in documented)
  return { ...documented, ...Object.fromEntries(changed) }
}

test.each(VERSIONS)('every method of MachineService of %s is for the roles that are documented, and for no other', version => {
  const methods = MachineService.methods.map(method => [method.name, allowed(grpcPath(method), version)])
  expect(methods).toHaveLength(54)
  expect(Object.fromEntries(methods)).toEqual(documentedFor(version, DOCUMENTED))
})

test.each(VERSIONS)('so is every method of the other services of %s', version => {
  const services = [
    ...[LifecycleService, ImageService, ClusterService, StorageService, TimeService, InspectService, State],
    ...[DebugService, LVMService, MDService],
  ]
  const methods = services.flatMap(service =>
    service.methods.map(method => [`${service.typeName.split('.').at(-1)}.${method.name}`, allowed(grpcPath(method), version)] as const),
  )
  const documented = documentedFor(version, others)
  for (const [name, letters] of methods) expect(letters, name).toBe(documented[name] ?? 'A')
  expect(methods.map(([name]) => name)).toEqual(expect.arrayContaining(Object.keys(documented)))
})

test('several roles add up; unknown ones grant nothing; only an impersonator speaks for others', () => {
  expect(mayCall(new Set(['os:meta:writer', 'os:etcd:backup']), '/machine.MachineService/EtcdSnapshot', 'v1.13.9')).toBe(true)
  expect(mayCall(new Set(['os:nosuch']), '/machine.MachineService/Version', 'v1.13.9')).toBe(false)
  expect(mayCall(new Set(), '/machine.MachineService/Version', 'v1.13.9')).toBe(false)
  const certificate = (organizations: unknown) => ({ subject: { O: organizations } }) as Parameters<typeof rolesOf>[0]
  expect(rolesOf(certificate(['os:reader', 'x']), ['os:admin'])).toEqual(new Set(['os:reader', 'x']))
  expect(rolesOf(certificate('os:impersonator'), ['os:admin'])).toEqual(new Set(['os:admin']))
  expect(rolesOf(undefined, ['os:admin'])).toEqual(new Set())
})
