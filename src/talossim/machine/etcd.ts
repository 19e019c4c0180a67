import { EtcdMemberAlarm_AlarmType, MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { EtcdView } from '../../ports/talos.ts'
import type { Answer, Refusal } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { Machine } from '../../world/machine.ts'
import type { Call, UnaryHandler } from '../call.ts'
import { until } from '../call.ts'
import { unary } from '../dispatch.ts'

const methods = MachineService.method

export const notOnWorker = (machine: Machine, what: string): Refusal | undefined =>
  machine.role === 'controlplane' ? undefined : refuse('Unimplemented', `${what} is only available on control plane nodes`)

const number = (id: string): bigint => (id === '' ? 0n : BigInt(`0x${id}`))

/** etcd as one of these machines sees it. The real calls hang while no etcd answers; so do these, until it does or the caller gives up. */
export const viewOf = async (call: Call, machines: () => readonly Machine[]): Promise<Answer<EtcdView>> => {
  const look = (): Answer<EtcdView> | undefined =>
    machines()
      .map(machine => call.site.etcd.view(machine))
      .find(view => view.ok)
  await until(call.site, call.over, () => look() !== undefined)
  return look() ?? refuse('DeadlineExceeded', 'context deadline exceeded')
}

const memberList: UnaryHandler<typeof methods.etcdMemberList> = async (call, request) => {
  const { site, machine } = call
  const refusal = notOnWorker(machine, 'member list')
  if (refusal) return refusal
  // Any control plane's etcd may be asked, the own one first.
  const others = (): readonly Machine[] =>
    request.queryLocal || machine.cut ? [] : site.machines.filter(m => m.role === 'controlplane' && m !== machine && m.powered && !m.cut)
  const view = await viewOf(call, () => [machine, ...others()])
  if (!view.ok) return view
  const members = view.value.members.map(({ id, name, peerURLs, isLearner }) => ({
    id: number(id),
    hostname: name,
    peerUrls: [...peerURLs],
    clientUrls: name === '' ? [] : peerURLs.map(url => url.replace(/:2380$/, ':2379')),
    isLearner,
  }))
  return answer({ messages: [{ legacyMembers: members.map(m => m.hostname), members }] })
}

const etcdStatus: UnaryHandler<typeof methods.etcdStatus> = async call => {
  const refusal = notOnWorker(call.machine, 'etcd status')
  if (refusal) return refusal
  const view = await viewOf(call, () => [call.machine])
  if (!view.ok) return view
  const { status } = view.value
  return answer({
    messages: [
      {
        memberStatus: {
          protocolVersion: status.protocolVersion,
          storageVersion: status.storageVersion,
          dbSize: BigInt(status.dbSize),
          dbSizeInUse: BigInt(status.dbSizeInUse),
          leader: number(status.leader),
          raftIndex: status.raftIndex,
          raftTerm: status.raftTerm,
          raftAppliedIndex: status.raftAppliedIndex,
          errors: [...status.errors],
          isLearner: status.isLearner,
          memberId: number(status.memberID),
        },
      },
    ],
  })
}

const alarmsOf = (view: EtcdView) =>
  view.alarms.map(({ memberID, alarm }) => ({ memberId: number(memberID), alarm: EtcdMemberAlarm_AlarmType[alarm] }))

const alarmList: UnaryHandler<typeof methods.etcdAlarmList> = async call => {
  const refusal = notOnWorker(call.machine, 'etcd alarm list')
  if (refusal) return refusal
  const view = await viewOf(call, () => [call.machine])
  return view.ok ? answer({ messages: [{ memberAlarms: alarmsOf(view.value) }] }) : view
}

/** Its refusal on a worker speaks of the list, as the real one's does. */
const alarmDisarm: UnaryHandler<typeof methods.etcdAlarmDisarm> = async call => {
  const refusal = notOnWorker(call.machine, 'etcd alarm list')
  if (refusal) return refusal
  const view = await viewOf(call, () => [call.machine])
  if (!view.ok) return view
  const memberAlarms = alarmsOf(view.value)
  if (!call.site.etcd.hasQuorum()) return refuse('Unknown', 'failed to disarm etcd alarm: etcdserver: request timed out')
  call.site.etcd.disarm()
  return answer({ messages: [{ memberAlarms }] })
}

const forfeitLeadership: UnaryHandler<typeof methods.etcdForfeitLeadership> = async call => {
  const { site, machine } = call
  const refusal = notOnWorker(machine, 'etcd forfeit leadership')
  if (refusal) return refusal
  const view = await viewOf(call, () => [machine])
  if (!view.ok) return view
  site.journal.write(machine.name, 'forfeit')
  const given = await new Promise<Answer<string>>(resolve => site.etcd.forfeit(machine, resolve))
  return given.ok ? answer({ messages: [{ member: given.value }] }) : given
}

export const etcdMethods = {
  etcdMemberList: unary(methods.etcdMemberList, memberList),
  etcdStatus: unary(methods.etcdStatus, etcdStatus),
  etcdAlarmList: unary(methods.etcdAlarmList, alarmList),
  etcdAlarmDisarm: unary(methods.etcdAlarmDisarm, alarmDisarm),
  etcdForfeitLeadership: unary(methods.etcdForfeitLeadership, forfeitLeadership),
}
