import type { Verdict } from '../kind.ts'
import { YES, wait } from '../kind.ts'
import { openTargets, targetsOf } from '../ledger.ts'
import { workerQuota } from '../rollout-order.ts'
import type { View } from '../world.ts'
import { nodeFacts } from '../world.ts'

/** Whether one more worker may go away: as many as `maxUnavailable` leaves, counting those that are away by nobody's order. */
export const workerTurn = ({ operation, target, world }: View): Verdict => {
  const targets = targetsOf(operation.status)
  const open = openTargets(operation.status)
  const hostname = (name: string): string => world.machines.find(m => m.metadata.name === name)?.status.hostname ?? name
  const nodes = nodeFacts(world)
  if (!nodes.ok) return wait(`the Kubernetes API does not answer: ${nodes.fault.message}`)
  const closed = new Set(targets.filter(t => t.phase === 'Completed').map(t => t.name))
  const known = new Set(world.machines.map(m => m.metadata.name))
  const quota = workerQuota({
    workers: [
      ...world.machines
        .filter(m => m.spec.role === 'worker')
        .map(m => ({
          name: m.metadata.name,
          ...(m.status.nodeName ? { node: m.status.nodeName } : {}),
          // What discovery wrote may be half a minute old; a machine that we closed ourselves was seen running after that.
          running: closed.has(m.metadata.name) || m.status.conditions?.find(c => c.type === 'Ready')?.status === 'True',
        })),
      // A machine that is worked on is away, also while its TalosMachine is not there: somebody deleted it, and it is discovered anew.
      ...open.filter(t => !known.has(t.name)).map(t => ({ name: t.name, running: false })),
    ],
    nodes: nodes.value,
    open: open.map(t => t.name),
    maxUnavailable: operation.spec.maxUnavailable,
  })
  return quota.mayOpen(target.name)
    ? YES
    : quota.unready.length > 0
      ? wait(`${quota.unready.map(hostname).join(', ')} not ready, and maxUnavailable allows ${quota.limit}`, 'NodeNotReady')
      : wait(`maxUnavailable allows ${quota.limit}`)
}
