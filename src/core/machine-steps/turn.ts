import type { TalosMachine } from '../../api/talos-machine.ts'
import type { Turn } from '../kind.ts'
import { YES, wait } from '../kind.ts'
import { openTargets, targetsOf } from '../ledger.ts'
import type { WorkerState } from '../rollout-order.ts'
import { allowedUnavailable, countMachines, workerQuota } from '../rollout-order.ts'
import type { View, World } from '../world.ts'
import { displayName, isKnown, machineFacts, machineTitle, nodeFacts } from '../world.ts'
import { othersServe } from './other-control-planes.ts'

const isWorker = (machine: TalosMachine): boolean => machine.spec.role === 'worker'
const named = ({ metadata, status }: TalosMachine): Omit<WorkerState, 'running'> => ({
  name: metadata.name,
  ...(status.nodeName ? { node: status.nodeName } : {}),
  ...(status.nodeName || status.nodeID ? {} : { unseen: true }),
})

/** As it was seen just now where it was asked; what discovery wrote may be half a minute old. */
const isRunning = (world: World, { metadata: { name }, status }: TalosMachine): boolean => {
  if (!isKnown(world.facts, { what: 'machine', name })) return status.conditions?.find(c => c.type === 'Ready')?.status === 'True'
  const facts = machineFacts(world, name)
  return facts.ok && facts.value.stage === 'running' && facts.value.ready
}

/** Whether one more worker may go away: as many as `maxUnavailable` leaves, counting those that are away by nobody's order. */
export const workerTurn = ({ operation, target, world }: View): Turn => {
  const targets = targetsOf(operation.status)
  const open = openTargets(operation.status)
  const nodes = nodeFacts(world)
  if (!nodes.ok) return wait(`the Kubernetes API does not answer: ${nodes.fault.message}`)
  const closed = new Set(targets.filter(t => t.phase === 'Completed').map(t => t.name))
  const known = new Set(world.machines.map(m => m.metadata.name))
  // It takes nothing away from anybody; what becomes of it is for its opening to say.
  if (!known.has(target.name)) return YES
  const quota = workerQuota({
    workers: [
      ...world.machines.filter(isWorker).map(m => ({
        ...named(m),
        // A machine that we closed ourselves was seen running since.
        running: closed.has(m.metadata.name) || isRunning(world, m),
      })),
      // A machine that is worked on is away, also while its TalosMachine is not there: somebody deleted it, and it is discovered anew.
      // One that was replaced is known by its Node, and counts once.
      ...open.filter(t => !known.has(t.name)).map(t => ({ name: t.name, ...(t.node ? { node: t.node } : {}), running: false })),
    ],
    nodes: nodes.value,
    open: open.map(t => t.name),
    maxUnavailable: operation.spec.maxUnavailable,
  })
  return quota.mayOpen(target.name)
    ? YES
    : quota.unready.length > 0
      ? wait(
          `${world.machines
            .filter(m => quota.unready.includes(m.metadata.name))
            .map(machineTitle)
            .join(', ')} not ready, and maxUnavailable allows ${quota.limit}`,
          'NodeNotReady',
        )
      : wait(`maxUnavailable allows ${quota.limit}`)
}

/** All control planes before any worker, strictly one at a time, and only while all others are well; then workers, as many as `maxUnavailable` leaves. */
export const controlPlanesFirst = (view: View): Turn => {
  const { operation, target } = view
  const waits = afterControlPlanes(view)
  if (waits) return waits
  if (target.role === 'controlplane') return openTargets(operation.status).length > 0 ? wait('another machine is open') : othersServe(view)
  return workerTurn(view)
}

/** The same where nothing is taken away from anybody: then workers that are away keep no others back. */
export const fewAtATime = (view: View): Turn => {
  const { operation, target, world } = view
  const waits = afterControlPlanes(view)
  if (waits) return waits
  const open = openTargets(operation.status).length
  const limit = allowedUnavailable(operation.spec.maxUnavailable, countMachines(world.machines.filter(isWorker).map(named)))
  return open < (target.role === 'controlplane' ? 1 : limit) ? YES : wait('other machines are open')
}

const afterControlPlanes = ({ operation, target }: View): Turn | undefined => {
  const targets = targetsOf(operation.status)
  const controlPlane = targets.find(t => t.role === 'controlplane' && (t.phase === 'Running' || t.phase === 'Failed'))
  if (controlPlane) return wait(`control plane ${displayName(controlPlane)} is not done`)
  return target.role === 'worker' && targets.some(t => t.role === 'controlplane' && t.phase === 'Pending')
    ? wait('control planes go first')
    : undefined
}
