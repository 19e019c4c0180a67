import type { Reason } from '../../api/reasons.ts'
import type { TalosMachine } from '../../api/talos-machine.ts'
import type { Turn } from '../kind.ts'
import { YES, wait } from '../kind.ts'
import type { Need, View, World } from '../world.ts'
import { isKnown, machineFacts, machineTitle, nodeFacts, nodeOf } from '../world.ts'
import { etcdNeed } from './etcd.ts'
import { reportsReady } from './ready.ts'
import { controlPlanesOf, isControlPlane } from './target.ts'

/**
 * etcd may be well on a control plane on which nothing else is: its API server, or its kubelet. To take another one away then leaves one API server less
 * than anybody has agreed to.
 */

const others = (world: World, target: string): readonly TalosMachine[] => controlPlanesOf(world).filter(m => m.metadata.name !== target)

/** Their own words, fresh. */
export const othersNeed = (view: View): readonly Need[] =>
  isControlPlane(view) ? others(view.world, view.target.name).map(m => ({ what: 'machine', name: m.metadata.name })) : []

/** What is looked at right before a control plane goes away. */
export const goingNeed = (view: View): readonly Need[] => [...etcdNeed(view), ...othersNeed(view)]

type Ailment = { readonly machine: TalosMachine; readonly reason: Reason; readonly what: string }

/**
 * By Talos' word, where it was asked, and by its Node. One without a Node, because it registers none or somebody deleted it, serves as before, and only its
 * own restart brings its Node back.
 */
export const ailmentOf = (world: World, machine: TalosMachine): Ailment | undefined => {
  const { name } = machine.metadata
  const ails = (reason: Reason, why: string): Ailment => ({ machine, reason, what: `${machineTitle(machine)} is not well: ${why}` })
  const nodes = nodeFacts(world)
  if (isKnown(world.facts, { what: 'machine', name })) {
    const facts = machineFacts(world, name)
    if (!facts.ok) return ails('MachineUnreachable', `it does not answer: ${facts.fault.message}`)
    const unmet = facts.value.unmet.filter(condition => !(nodes.ok && condition.startsWith('nodeReady:')))
    const ready = facts.value.ready || (unmet.length === 0 && facts.value.unmet.length > 0)
    const answer = reportsReady({ ...facts.value, unmet, ready })
    if (answer.is === 'no') return ails('MachineNotReady', answer.why)
  }
  const node = nodes.ok && machine.status.nodeName ? nodeOf(nodes.value, machine.status.nodeName) : undefined
  return node && !node.ready ? ails('NodeNotReady', 'its Node is not Ready') : undefined
}

/**
 * A control plane waits for the others. One that ails itself waits for nobody who is well: what is done to it takes nothing more away, and may be its cure.
 * Whoever overrides knows what he leaves.
 */
export const othersServe = ({ operation, target, world }: View): Turn => {
  if (target.role !== 'controlplane' || operation.spec.override) return YES
  const ailments = others(world, target.name).flatMap(m => ailmentOf(world, m) ?? [])
  const [first] = ailments
  return first ? wait(ailments.map(a => a.what).join('; '), first.reason) : YES
}
