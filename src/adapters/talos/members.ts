import { MachineType } from '../../../proto/gen/talos/resource/definitions/enums/enums_pb.ts'
import { ok, type Result } from '../../ports/fault.ts'
import type { ClusterMember } from '../../ports/talos.ts'
import { textOfIP } from './address.ts'
import type { Calls } from './calls.ts'
import { listResources } from './cosi.ts'
import { resourceTypes } from './resource-types.ts'

/** The cluster's members as discovery tells this machine, itself included. Empty where discovery is off. */
export async function readMembers(calls: Calls, address: string): Promise<Result<readonly ClusterMember[]>> {
  const listed = await listResources(calls, address, resourceTypes.member)
  if (!listed.ok) return listed
  return ok(
    listed.value.map(({ spec }) => ({
      hostname: spec.hostname,
      nodeID: spec.nodeId,
      role: spec.machineType === MachineType.TYPE_CONTROL_PLANE || spec.machineType === MachineType.TYPE_INIT ? 'controlplane' : 'worker',
      addresses: spec.addresses.flatMap(({ ip }) => textOfIP(ip) ?? []),
      operatingSystem: spec.operatingSystem,
    })),
  )
}
