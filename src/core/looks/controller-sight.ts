import { formatDuration } from '../../api/duration.ts'
import { CONTROLLER } from '../../api/names.ts'
import type { ClusterSight } from './cluster-sight.ts'
import { inNamespace, nameOf, workOn } from './cluster-sight.ts'
import { fine, type Look, warning, wrong } from './look.ts'
import { targetsOf } from '../ledger.ts'
import { isFinished } from '../../api/phases.ts'

/** What the controller says of the cluster from where it runs: it may reach what we do not, and the other way round. */
export const controllerSight: Look<ClusterSight> = {
  name: 'controller',
  look: sight => {
    if (!sight.isRegistered) return []
    const { cluster } = sight.world
    const ready = cluster.status.conditions?.find(({ type }) => type === 'Ready')
    const look = { command: inNamespace(sight, `ichor cluster get ${cluster.metadata.name}`) }
    if (!ready)
      return [
        warning('No controller has looked at this cluster yet.', {
          remedy: 'Is one at work, and does it look after this namespace?',
          ...look,
        }),
      ]
    if (sight.controllerSilentMs !== undefined)
      return [
        warning(`It has not looked for ${formatDuration(sight.controllerSilentMs)}. Then it said: ${ready.message || ready.reason}`, {
          remedy: 'What it says of machines is that old, too: let a controller work first.',
          ...look,
        }),
      ]
    if (ready.reason === 'DuplicateCluster')
      return [
        wrong(`The controller says: ${ready.message}`, {
          remedy: `This one is the younger: ${cluster.metadata.name} can go, its machines stay as they are.`,
          command: inNamespace(sight, `kubectl delete taloscluster ${cluster.metadata.name}`),
        }),
      ]
    const operation = workOn(sight, () => true)
    if (ready.reason === 'MachinesNotReady' && operation)
      return [warning(`The controller says: ${ready.message} Operation ${operation} is at work.`, look)]
    if (ready.status !== 'True') return [wrong(`The controller says: ${ready.message || ready.reason}`, look)]
    return [fine(`It says: ${ready.message}`)]
  },
}

/** Whether all of the controller stands on a machine that an operation will drain. */
export const drain: Look<ClusterSight> = {
  name: 'drain',
  look: sight => {
    const places = [...new Set(sight.controllerNodes)]
    const [node] = places
    if (node === undefined || places.length > 1) return []
    const nodes = sight.world.facts.nodes
    if (!nodes?.ok || !nodes.value.some(({ name }) => name === node) || nodes.value.length < 2) return []
    const machine = sight.world.machines.find(({ status }) => status.nodeName === node)
    const name = machine ? nameOf(machine) : node
    const next = sight.operations.ok
      ? sight.operations.value.find(
          ({ status }) =>
            !isFinished(status.phase) &&
            targetsOf(status).some(({ node: of, phase }) => of === node && (phase === 'Pending' || phase === 'Running')),
        )
      : undefined
    return [
      warning(
        next
          ? `All of the controller runs on ${name}, which operation ${next.metadata.name} is to drain: until its pod is back elsewhere, nothing goes on.`
          : `All of the controller runs on ${name}: whenever that machine is drained, nothing goes on until its pod is back elsewhere.`,
        {
          remedy: 'Let two replicas run, on two machines.',
          command: `kubectl scale deployment ${CONTROLLER} --replicas 2 -n ${sight.controllerNamespace ?? sight.world.cluster.metadata.namespace}`,
        },
      ),
    ]
  },
}
