import { DependencyEdgeType, InspectService } from '../../proto/gen/inspect/inspect_pb.ts'
import { answer } from '../world/answer.ts'
import { versionOf } from '../world/machine.ts'
import { kindsOf } from './cosi/kinds.ts'
import { unary } from './dispatch.ts'

const methods = InspectService.method

/** Who writes what: the simulation has no more of the controllers than their names. */
export const inspectMethods = {
  controllerRuntimeDependencies: unary(methods.controllerRuntimeDependencies, ({ machine }) => {
    const edges = kindsOf(versionOf(machine))
      .filter(({ owner }) => owner !== '')
      .map(({ owner, namespace, type }) => ({
        controllerName: owner,
        edgeType: DependencyEdgeType.OUTPUT_EXCLUSIVE,
        resourceNamespace: namespace,
        resourceType: type,
      }))
    return answer({ messages: [{ edges }] })
  }),
}
