import { EtcdMemberAlarm_AlarmType, type EtcdMember as WireMember, MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import type { EtcdMember, EtcdView } from '../../ports/talos.ts'
import { onlyMessage } from './answer.ts'
import type { Calls } from './calls.ts'

/**
 * etcd as this machine sees it: four calls, the service first. Where etcd does not run the others would hang, so the answer then is a Fault of
 * kind `busy` that says what the service is doing; on a worker it is `unsupported`.
 */
export async function readEtcd(calls: Calls, address: string): Promise<Result<EtcdView>> {
  const { method } = MachineService
  const services = await calls.unary(address, method.serviceList, {})
  if (!services.ok) return services
  const list = onlyMessage(address, 'MachineService.ServiceList', services.value.messages)
  if (!list.ok) return list
  const service = list.value.services.find(({ id }) => id === 'etcd')
  if (!service) return failed('unsupported', `${address}: this machine has no service etcd: it is no control plane`)
  if (service.state !== 'Running') {
    const last = service.events?.events.at(-1)?.msg
    return failed('busy', `${address}: etcd does not run: the service is ${service.state || 'in no state'}${last ? `: ${last}` : ''}`)
  }

  const [members, status, alarms] = await Promise.all([
    calls.unary(address, method.etcdMemberList, { queryLocal: true }),
    calls.unary(address, method.etcdStatus, {}),
    calls.unary(address, method.etcdAlarmList, {}),
  ])
  if (!members.ok) return members
  if (!status.ok) return status
  if (!alarms.ok) return alarms
  const memberList = onlyMessage(address, 'MachineService.EtcdMemberList', members.value.messages)
  if (!memberList.ok) return memberList
  const own = onlyMessage(address, 'MachineService.EtcdStatus', status.value.messages)
  if (!own.ok) return own
  const member = own.value.memberStatus
  if (!member) return failed('unknown', `${address}: MachineService.EtcdStatus: the answer has no member in it`)
  // No alarm at all may come as no message at all.
  const alarmList =
    alarms.value.messages.length === 0 ? ok(undefined) : onlyMessage(address, 'MachineService.EtcdAlarmList', alarms.value.messages)
  if (!alarmList.ok) return alarmList

  return ok({
    service: { state: service.state, healthy: service.health?.healthy === true && !service.health.unknown },
    members: memberList.value.members.map(memberOf),
    status: {
      memberID: memberID(member.memberId),
      leader: member.leader === 0n ? '' : memberID(member.leader),
      raftTerm: member.raftTerm,
      raftIndex: member.raftIndex,
      raftAppliedIndex: member.raftAppliedIndex,
      dbSize: Number(member.dbSize),
      dbSizeInUse: Number(member.dbSizeInUse),
      errors: member.errors,
      isLearner: member.isLearner,
      protocolVersion: member.protocolVersion,
      storageVersion: member.storageVersion,
    },
    alarms: (alarmList.value?.memberAlarms ?? []).flatMap(one => {
      const alarm = alarmNames[one.alarm]
      return alarm ? [{ memberID: memberID(one.memberId), alarm }] : []
    }),
  })
}

const alarmNames: Readonly<Partial<Record<EtcdMemberAlarm_AlarmType, 'NOSPACE' | 'CORRUPT'>>> = {
  [EtcdMemberAlarm_AlarmType.NOSPACE]: 'NOSPACE',
  [EtcdMemberAlarm_AlarmType.CORRUPT]: 'CORRUPT',
}

function memberOf(member: WireMember): EtcdMember {
  return { id: memberID(member.id), name: member.hostname, peerURLs: member.peerUrls, isLearner: member.isLearner }
}

/** As etcd and Talos write it: 16 lower-case hexadecimal digits. */
export function memberID(id: bigint): string {
  return id.toString(16).padStart(16, '0')
}
