import type { DescMethod, DescMethodServerStreaming, DescMethodUnary } from '@bufbuild/protobuf'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Refusal } from '../../world/answer.ts'
import { refuse } from '../../world/answer.ts'
import { streaming, unary } from '../dispatch.ts'

const refusalOf = (name: string): Refusal => refuse('Unimplemented', `the simulation has no ${name}`)

/**
 * Methods of MachineService with which nothing happens in the world. They are refused after the check of the role, so that who may not call them
 * cannot tell the difference.
 * @param present Names of the methods that there are.
 */
export const absentMethods = (present: ReadonlySet<string>) => {
  const absent: Record<string, ReturnType<typeof unary> | ReturnType<typeof streaming>> = {}
  for (const [name, method] of Object.entries<DescMethod>(MachineService.method)) {
    if (present.has(name)) continue
    if (method.methodKind === 'unary') absent[name] = unary(method as DescMethodUnary, () => refusalOf(name))
    if (method.methodKind === 'server_streaming') absent[name] = streaming(method as DescMethodServerStreaming, async () => refusalOf(name))
  }
  return absent
}
