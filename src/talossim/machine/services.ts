import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Answer, Refusal } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { Machine } from '../../world/machine.ts'
import type { UnaryHandler } from '../call.ts'
import { unary } from '../dispatch.ts'

const methods = MachineService.method

const notDefined = (machine: Machine, id: string): Refusal | undefined =>
  machine.services.has(id) ? undefined : refuse('Unknown', `service ${JSON.stringify(id)} not defined`)

const refused = (machine: Machine, id: string, operation: string): Answer<never> =>
  notDefined(machine, id) ?? refuse('Unknown', `service ${JSON.stringify(id)} doesn't support ${operation} operation via API`)

/** Starting one that runs is granted, whatever it is. */
const serviceStart: UnaryHandler<typeof methods.serviceStart> = ({ machine }, { id }) => {
  if (machine.services.get(id)?.state !== 'Running') return refused(machine, id, 'start')
  return answer({ messages: [{ resp: `Service ${JSON.stringify(id)} started` }] })
}

/** Only services of extensions can be stopped, and the world has none. */
const serviceStop: UnaryHandler<typeof methods.serviceStop> = ({ machine }, { id }) => refused(machine, id, 'stop')

const serviceRestart: UnaryHandler<typeof methods.serviceRestart> = ({ machine }, { id }) =>
  id === 'kubelet' ? refuse('Unimplemented', 'the simulation restarts no kubelet') : refused(machine, id, 'restart')

export const serviceMethods = {
  serviceStart: unary(methods.serviceStart, serviceStart),
  serviceStop: unary(methods.serviceStop, serviceStop),
  serviceRestart: unary(methods.serviceRestart, serviceRestart),
}
