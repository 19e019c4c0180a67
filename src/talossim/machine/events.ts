import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf'
import { create, toBinary } from '@bufbuild/protobuf'
import type { Any } from '@bufbuild/protobuf/wkt'
import { AnySchema } from '@bufbuild/protobuf/wkt'
import { Code } from '../../../proto/gen/common/common_pb.ts'
import type { Event, EventSchema, EventsRequest, MachineStatusEvent_MachineStage } from '../../../proto/gen/machine/machine_pb.ts'
import {
  MachineService,
  MachineStatusEventSchema,
  PhaseEvent_Action,
  PhaseEventSchema,
  RestartEventSchema,
  SequenceEvent_Action,
  SequenceEventSchema,
  ServiceStateEvent_Action,
  ServiceStateEventSchema,
  TaskEvent_Action,
  TaskEventSchema,
} from '../../../proto/gen/machine/machine_pb.ts'
import type { Answer } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { Machine } from '../../world/machine.ts'
import type { MachineEvent } from '../../world/machine-events.ts'
import type { StreamHandler } from '../call.ts'
import { untilOver } from '../call.ts'
import { conditionOf, STAGES } from '../cosi/runtime-kinds.ts'
import { streaming } from '../dispatch.ts'

const methods = MachineService.method

/** Not the usual prefix of an Any: Talos has its own. */
const packed = <S extends DescMessage>(schema: S, init: MessageInitShape<S>): Any =>
  create(AnySchema, { typeUrl: `talos/runtime/${schema.typeName}`, value: toBinary(schema, create(schema, init)) })

const dataOf = (event: MachineEvent): Any => {
  switch (event.type) {
    case 'SequenceEvent': {
      const { sequence, action, error } = event
      return packed(SequenceEventSchema, {
        sequence,
        action: SequenceEvent_Action[action],
        ...(error ? { error: { code: Code[error.code], message: error.message } } : {}),
      })
    }
    case 'PhaseEvent':
      return packed(PhaseEventSchema, { phase: event.phase, action: PhaseEvent_Action[event.action] })
    case 'TaskEvent':
      return packed(TaskEventSchema, { task: event.task, action: TaskEvent_Action[event.action] })
    case 'ServiceStateEvent': {
      const action = ServiceStateEvent_Action[event.state.toUpperCase() as keyof typeof ServiceStateEvent_Action]
      return packed(ServiceStateEventSchema, { service: event.service, action, message: event.message })
    }
    case 'MachineStatusEvent': {
      const stage = STAGES.findIndex(name => name === event.stage) as MachineStatusEvent_MachineStage
      return packed(MachineStatusEventSchema, { stage, status: { ready: event.ready, unmetConditions: event.unmet.map(conditionOf) } })
    }
    case 'RestartEvent':
      return packed(RestartEventSchema, { cmd: BigInt(event.cmd) })
  }
}

/** The events of before that a request wants to see first. */
const historyFor = (machine: Machine, request: EventsRequest, now: number): Answer<readonly MachineEvent[]> => {
  const { tailEvents, tailId, tailSeconds } = request
  const asked = [tailEvents !== 0, tailId !== '', tailSeconds !== 0].filter(Boolean).length
  if (asked > 1) return refuse('Unknown', 'only one of tail_events, tail_id and tail_seconds can be specified')
  const all = machine.events.list()
  if (tailId !== '') {
    if (!/^[0-9a-v]{20}$/.test(tailId)) return refuse('Unknown', 'error parsing tail_id: xid: invalid ID')
    return answer(all.filter(event => event.id > tailId))
  }
  if (tailSeconds !== 0) return answer(all.filter(event => event.at >= now - tailSeconds * 1000))
  if (tailEvents === 0) return answer([])
  return answer(tailEvents < 0 ? [...all] : all.slice(-tailEvents))
}

const wireEvent = (event: MachineEvent): MessageInitShape<typeof EventSchema> & Pick<Event, 'id'> => ({
  id: event.id,
  actorId: event.actorID,
  data: dataOf(event),
})

const events: StreamHandler<typeof methods.events> = async ({ site, machine, over }, request, send) => {
  const history = historyFor(machine, request, site.schedule.now())
  if (!history.ok) return history
  // Clients wait for this word before they do what they want to watch.
  const id = Math.floor(site.schedule.now()).toString(32).padStart(20, '0')
  send({ id, actorId: request.withActorId, data: create(AnySchema) })
  const tell = (event: MachineEvent): void => {
    if (request.withActorId === '' || event.actorID === request.withActorId) send(wireEvent(event))
  }
  const stop = machine.events.onEvent(tell)
  for (const event of history.value) tell(event)
  await untilOver(over)
  stop()
  return answer(undefined)
}

export const eventMethods = { events: streaming(methods.events, events) }
