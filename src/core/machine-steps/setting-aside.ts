import { durationMs } from '../../api/duration.ts'
import { agreedLeader } from '../etcd-members.ts'
import type { Step, Verdict } from '../kind.ts'
import { YES, no, unknown } from '../kind.ts'
import { ms } from '../ledger.ts'
import type { View } from '../world.ts'
import { blockedBy, deleteAll, drainDone, drainNeeds, drainStableMs, evictAll } from './drain.ts'
import { etcdNeed, etcdViews } from './etcd.ts'
import { GATE_HOLD_MS, asRecorded, both, mayNotWriteNodes, since } from './guards.ts'
import { addressOf, chosen, controlPlanesOf, isControlPlane, nodeOfTarget, onNode } from './target.ts'

/** What is taken from a machine before it goes away: leadership, new pods, pods. `gate`: what etcd has to say to it, on control planes. */

const MINUTE = 60_000
const TRANSFER_MS = 2 * MINUTE
const CALL_MS = 5 * MINUTE

export const transferLeadership = (gate: (view: View) => Verdict): Step => ({
  name: 'transfer-leadership',
  summary: 'Moves the leadership of etcd away from this member, so that its stop causes no election.',
  applies: view => isControlPlane(view) && controlPlanesOf(view.world).length > 1,
  needs: etcdNeed,
  done: view => {
    const views = etcdViews(view.world)
    const own = views.find(v => v.name === view.target.name)
    const leader = agreedLeader(views.filter(v => v.view.ok))
    if (!own?.view.ok) return unknown('its etcd does not answer')
    if (leader === undefined) return no('the members do not agree on a leader')
    return leader === own.view.value.status.memberID ? no('it leads etcd') : YES
  },
  guard: view => both(asRecorded(view), () => gate(view)),
  act: {
    long: false,
    disruptive: true,
    describe: () => 'moving the leadership of etcd',
    run: ({ talos }, view) => talos.forfeitLeadership(addressOf(view)),
  },
  settleMs: ({ world }) => 5 * world.timing.pollMs,
  deadlineMs: view => since(view, TRANSFER_MS),
  failure: 'EtcdUnhealthy',
})

/** Whether the Node is cordoned and drained at all; chosen when the machine was opened. */
const drains = ({ target }: View): boolean => chosen(target, 'drain') !== 'none'

export const cordon = (gate: (view: View) => Verdict): Step => ({
  name: 'cordon',
  summary: 'Makes the Node unschedulable and marks the cordon as its own.',
  applies: drains,
  guardNeeds: etcdNeed,
  done: view => {
    const node = nodeOfTarget(view)
    if (!node.ok) return unknown(`the Kubernetes API does not answer: ${node.fault.message}`)
    return node.value === undefined || node.value.unschedulable ? YES : no('its Node is schedulable')
  },
  guard: view => both(asRecorded(view), () => gate(view)),
  act: {
    long: false,
    disruptive: true,
    describe: () => 'cordoning its Node',
    run: ({ kube }, view) => onNode(view, node => kube.cordon(node, view.operation.metadata.uid)),
    fatal: mayNotWriteNodes,
  },
  // Where somebody takes it away again and again, this is no race.
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: view => since(view, CALL_MS),
  failure: 'NodeNotReady',
})

const drainTimeout = (view: View): number => durationMs(view.operation.spec.drain.timeout)
const isForced = (view: View): boolean => view.operation.spec.drain.policy === 'force'

/** So many rounds of evictions, the last of them in sight without a gap, before anything is deleted. */
const ROUNDS_BEFORE_FORCE = 5

/**
 * The time of a drain runs from its first round of evictions: while the controller, the API or the machine was away nobody could ask, and no budget has
 * said No. Whoever comes back after a while asks a few times before it goes past the budgets, which may only be counting anew.
 */
const isOverdue = (view: View): boolean => {
  const { firstActedAt, attempts = 0 } = view.target
  const { now, watchedMs, timing } = view.world
  const timeout = drainTimeout(view)
  const fewRounds = Math.min(timeout, ROUNDS_BEFORE_FORCE * timing.pollMs)
  const isAsked = attempts * timing.pollMs >= fewRounds && watchedMs >= fewRounds
  return firstActedAt !== undefined && now - ms(firstActedAt) >= timeout && isAsked
}

export const drain: Step = {
  name: 'drain',
  summary: 'Evicts the pods by the Eviction API and waits until they and their volumes are gone.',
  applies: drains,
  needs: drainNeeds,
  done: drainDone,
  stableMs: drainStableMs,
  guard: asRecorded,
  act: {
    long: false,
    disruptive: true,
    describe: view => (isForced(view) && isOverdue(view) ? 'deleting the pods that would not be evicted' : 'evicting its pods'),
    run: ({ kube }, view) => (isForced(view) && isOverdue(view) ? deleteAll(kube, view) : evictAll(kube, view)),
    fatal: mayNotWriteNodes,
  },
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: view => {
    const effect = drainTimeout(view) + (isForced(view) ? CALL_MS : 0)
    return since(view, effect, Math.max(effect, GATE_HOLD_MS))
  },
  failure: view => (blockedBy(view).length > 0 ? 'DrainBlocked' : 'DrainTimeout'),
}
