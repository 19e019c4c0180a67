import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Answer } from '../../world/answer.ts'
import { answer } from '../../world/answer.ts'
import { controlService, type ServiceOperation } from '../../world/service-control.ts'
import type { Call } from '../call.ts'
import { unary } from '../dispatch.ts'

const methods = MachineService.method

const control = ({ site, machine }: Call, id: string, operation: ServiceOperation): Answer<{ messages: { resp: string }[] }> => {
  const controlled = controlService(site, machine, id, operation)
  return controlled.ok ? answer({ messages: [{ resp: controlled.value }] }) : controlled
}

export const serviceMethods = {
  serviceStart: unary(methods.serviceStart, (call, { id }) => control(call, id, 'start')),
  serviceStop: unary(methods.serviceStop, (call, { id }) => control(call, id, 'stop')),
  serviceRestart: unary(methods.serviceRestart, (call, { id }) => control(call, id, 'restart')),
}
