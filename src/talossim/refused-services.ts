import type { DescMethodServerStreaming, DescMethodUnary, DescService } from '@bufbuild/protobuf'
import { DebugService } from '../../proto/gen/machine/debug_pb.ts'
import { LVMService } from '../../proto/gen/machine/lvm_pb.ts'
import { MDService } from '../../proto/gen/machine/md_pb.ts'
import type { Refusal } from '../world/answer.ts'
import { refuse } from '../world/answer.ts'
import { isInMaintenance } from '../world/machine.ts'
import type { Call } from './call.ts'
import { streaming, unary } from './dispatch.ts'

/** Services with which nothing happens in the world. They are refused where the version has them and after the check of the role, as if they were there. */
export const REFUSED_SERVICES: readonly DescService[] = [DebugService, LVMService, MDService]

/** A handler for every method of such a service, by its local name. */
export const refusedMethods = (service: DescService) => {
  // The rule of the role lets readers pass for the sake of machines in maintenance; the handler sends them away elsewhere.
  const refusal = ({ machine, roles }: Call): Refusal =>
    roles.has('os:admin') || isInMaintenance(machine)
      ? refuse('Unimplemented', `the simulation has no ${service.typeName}`)
      : refuse('PermissionDenied', 'not authorized')
  return Object.fromEntries(
    service.methods.map(method => [
      method.localName,
      // A call that streams both ways is refused before it is read, like one that only answers with a stream.
      method.methodKind === 'unary'
        ? unary(method as DescMethodUnary, refusal)
        : streaming(method as unknown as DescMethodServerStreaming, async call => refusal(call)),
    ]),
  )
}
