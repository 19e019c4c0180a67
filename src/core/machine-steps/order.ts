import { ANNOTATION } from '../../api/names.ts'
import type { TalosMachine } from '../../api/talos-machine.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import type { Candidate } from '../kind.ts'
import { holdOf, rolloutOrder } from '../rollout-order.ts'
import type { Candidate as OrderCandidate } from '../rollout-order.ts'
import type { World } from '../world.ts'
import { nodeFacts, nodeOf } from '../world.ts'
import { candidateOf } from './target.ts'

/** In which order a rollout takes its machines, and which of them somebody holds back. */

const nodeOfMachine = (world: World, machine: TalosMachine): NodeFacts | undefined => {
  const nodes = nodeFacts(world)
  return nodes.ok && machine.status.nodeName ? nodeOf(nodes.value, machine.status.nodeName) : undefined
}

const marksOf = (world: World, machine: TalosMachine): OrderCandidate => {
  const node = nodeOfMachine(world, machine)
  return {
    name: machine.metadata.name,
    ...(machine.status.hostname ? { hostname: machine.status.hostname } : {}),
    role: machine.spec.role,
    machine: { labels: machine.metadata.labels, annotations: machine.metadata.annotations },
    ...(node ? { node: { labels: node.labels, annotations: node.annotations } } : {}),
  }
}

/** Why the machine is left alone, in the words of whoever held it; undefined where nobody does. */
export const heldBecause = (world: World, machine: TalosMachine): string | undefined => {
  const hold = holdOf(marksOf(world, machine))
  if (hold === undefined) return undefined
  return `held by the annotation ${ANNOTATION.upgradeHold}${hold === '' || hold === 'true' ? '' : `: ${hold}`}`
}

/** By tier, label and name; `leader`, where one is named, is the last of the control planes. Needs the Nodes. */
export const inOrder = (world: World, machines: readonly TalosMachine[], leader?: string): readonly TalosMachine[] =>
  rolloutOrder(
    machines.map(m => marksOf(world, m)),
    leader,
  ).order.flatMap(name => machines.filter(m => m.metadata.name === name))

/** As a candidate that is skipped where somebody holds it. */
export const heldOrNot = (world: World, machine: TalosMachine): Candidate => {
  const skip = heldBecause(world, machine)
  return { ...candidateOf(machine), ...(skip === undefined ? {} : { skip }) }
}
