import type { ServiceEvents } from '../../../proto/gen/machine/machine_pb.ts'
import { MachineService, ResetRequest_WipeMode } from '../../../proto/gen/machine/machine_pb.ts'
import type { Clock } from '../../ports/clock.ts'
import { done, failed, ok, type Result } from '../../ports/fault.ts'
import type { MachineActions, ServiceFacts, Wipe } from '../../ports/machine-actions.ts'
import type { LongCall } from '../../ports/talos.ts'
import { onlyMessage } from './answer.ts'
import type { Calls } from './calls.ts'
import { readMaintenance } from './maintenance.ts'
import { redacted } from './redact.ts'

const minuteMs = 60_000
/** Until the sequence is accepted; it then runs by itself. */
const sequenceDeadlineMs = 30_000
/** A database of many GiB takes minutes, in one call that says nothing meanwhile. */
const defragmentDeadlineMs = 15 * minuteMs
/** The machine itself tries for five minutes. */
const leaveDeadlineMs = 6 * minuteMs

const longestEvent = 300

const { method } = MachineService

export function machineActions(calls: Calls, clock: Clock): MachineActions {
  return {
    service: (address, id) => readService(calls, address, id),
    restartService: (address, id) => restartService(calls, address, id),
    shutdown: async (address, { force }) => {
      const answer = await calls.unary(address, method.shutdown, { force }, { deadlineMs: sequenceDeadlineMs })
      return answer.ok ? accepted(address, 'MachineService.Shutdown', answer.value.messages) : answer
    },
    reset: async (address, { wipe, reboot }) => {
      const request = { graceful: true, reboot, systemPartitionsToWipe: partitionsOf(wipe), mode: ResetRequest_WipeMode.SYSTEM_DISK }
      const answer = await calls.unary(address, method.reset, request, { deadlineMs: sequenceDeadlineMs })
      return answer.ok ? accepted(address, 'MachineService.Reset', answer.value.messages) : answer
    },
    maintenance: address => readMaintenance(address, clock),
    defragment: async (address, { cancellation }) => {
      const answer = await calls.unary(address, method.etcdDefragment, {}, { deadlineMs: defragmentDeadlineMs, cancellation })
      return answer.ok ? accepted(address, 'MachineService.EtcdDefragment', answer.value.messages) : answer
    },
    disarmAlarms: async address => {
      const answer = await calls.unary(address, method.etcdAlarmDisarm, {})
      return answer.ok ? done : answer
    },
    leaveEtcd: (address, call) => leaveEtcd(calls, address, call),
    removeMember: async (address, memberID) => {
      const answer = await calls.unary(address, method.etcdRemoveMemberByID, { memberId: BigInt(`0x${memberID}`) }, { subject: memberID })
      if (!answer.ok) return answer.fault.kind === 'notFound' ? done : answer
      return accepted(address, `MachineService.EtcdRemoveMemberByID ${memberID}`, answer.value.messages)
    },
  }
}

/** None stands for the whole disk. */
function partitionsOf(wipe: Wipe): { label: string; wipe: true }[] {
  return wipe === 'disk' ? [] : ['STATE', 'EPHEMERAL'].map(label => ({ label, wipe: true }))
}

async function readService(calls: Calls, address: string, id: string): Promise<Result<ServiceFacts | undefined>> {
  const answer = await calls.unary(address, method.serviceList, {})
  if (!answer.ok) return answer
  const list = onlyMessage(address, 'MachineService.ServiceList', answer.value.messages)
  if (!list.ok) return list
  const found = list.value.services.find(service => service.id === id)
  if (!found) return ok(undefined)
  const startedAt = found.state === 'Running' ? startOf(found.events) : undefined
  const last = found.events?.events.at(-1)?.msg
  return ok({
    id,
    state: found.state,
    health: !found.health || found.health.unknown ? 'unknown' : found.health.healthy ? 'healthy' : 'unhealthy',
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(last ? { lastEvent: redacted(last, longestEvent) } : {}),
  })
}

/** Health checks tell events in the state Running as well; a run of them that is longer than what is kept tells no begin. */
function startOf(list: ServiceEvents | undefined): number | undefined {
  const events = list?.events ?? []
  const before = events.findLastIndex(event => event.state !== 'Running')
  const ts = before < 0 ? undefined : events[before + 1]?.ts
  return ts && Number(ts.seconds) * 1000 + Math.floor(ts.nanos / 1_000_000)
}

/** Talos says both refusals with the code Unknown. */
async function restartService(calls: Calls, address: string, id: string): Promise<Result<void>> {
  const answer = await calls.unary(address, method.serviceRestart, { id }, { subject: id, deadlineMs: minuteMs })
  if (answer.ok) return accepted(address, `MachineService.ServiceRestart ${id}`, answer.value.messages)
  const { message } = answer.fault
  if (/doesn't support restart/.test(message)) return failed('unsupported', message)
  return /not defined/.test(message) ? failed('notFound', message) : answer
}

async function leaveEtcd(calls: Calls, address: string, { cancellation }: LongCall): Promise<Result<void>> {
  const answer = await calls.unary(address, method.etcdLeaveCluster, {}, { deadlineMs: leaveDeadlineMs, cancellation })
  return answer.ok ? accepted(address, 'MachineService.EtcdLeaveCluster', answer.value.messages) : answer
}

function accepted(address: string, call: string, messages: Parameters<typeof onlyMessage>[2]): Result<void> {
  const message = onlyMessage(address, call, messages)
  return message.ok ? done : message
}
