import type { DescMethod, DescMethodServerStreaming, DescMethodUnary } from '@bufbuild/protobuf'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Refusal } from '../../world/answer.ts'
import { refuse } from '../../world/answer.ts'
import type { Machine } from '../../world/machine.ts'
import { streaming, unary } from '../dispatch.ts'

const NOT_IN_CONTAINERS: readonly string[] = ['shutdown', 'rollback', 'metaWrite', 'metaDelete']

const refusalOf = (name: string, machine: Machine): Refusal => {
  if (NOT_IN_CONTAINERS.includes(name) && machine.platform === 'container')
    return refuse('FailedPrecondition', 'method is not supported in container mode')
  return refuse('Unimplemented', `the simulation has no ${name}`)
}

/**
 * Methods of MachineService with which nothing happens in the world. They are refused after the check of the role and by the reasons of the real
 * machines first, so that who may not call them cannot tell the difference.
 * @param present Names of the methods that there are.
 */
export const absentMethods = (present: ReadonlySet<string>) => {
  const absent: Record<string, ReturnType<typeof unary> | ReturnType<typeof streaming>> = {}
  for (const [name, method] of Object.entries<DescMethod>(MachineService.method)) {
    if (present.has(name)) continue
    if (method.methodKind === 'unary') absent[name] = unary(method as DescMethodUnary, ({ machine }) => refusalOf(name, machine))
    if (method.methodKind === 'server_streaming')
      absent[name] = streaming(method as DescMethodServerStreaming, async ({ machine }) => refusalOf(name, machine))
  }
  return absent
}
