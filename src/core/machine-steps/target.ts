import type { TalosMachine } from '../../api/talos-machine.ts'
import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import type { Result } from '../../ports/fault.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import type { MachineFacts } from '../../ports/talos.ts'
import type { Answer, Candidate } from '../kind.ts'
import { YES, no, unknown } from '../kind.ts'
import { ofRecorded } from '../recorded-machine.ts'
import { matchesSelector } from '../rollout-order.ts'
import type { View, World } from '../world.ts'
import { displayName, machineFacts, nodeFacts, nodeOf } from '../world.ts'

/** What steps of any kind ask about the machine of a target, and its Node. */

/** Only its own word: at its address another machine may answer by now. */
export const machineOf = (view: View): Result<MachineFacts> => {
  const machine = ownMachine(view)
  const facts = machineFacts(view.world, view.target.name)
  return machine ? ofRecorded(machine, facts) : facts
}

/** What was chosen when the target was opened; empty where nothing was. */
export const chosen = (target: Pick<Target, 'goal'>, key: string): string => target.goal?.[key] ?? ''

export const isControlPlane = ({ target }: Pick<View, 'target'>): boolean => target.role === 'controlplane'

/** Where the machine is now: its address may have changed since it was opened. */
export const addressOf = (view: View): string => {
  const { address = '' } = ownMachine(view)?.spec ?? view.target
  return address
}

/**
 * The name of the target's Node; undefined where the machine registers none. What the machine itself said when it was opened (`goal.node`) goes before
 * what was known when the order was made: a machine may have been discovered only just then.
 */
export const nodeNameOf = ({ target }: Pick<View, 'target'>): string | undefined => chosen(target, 'node') || target.node || undefined

/** The Node of the target, by the recorded name, so that it is known while the machine is away. */
export const nodeOfTarget = (view: View): Result<NodeFacts | undefined> => {
  const nodes = nodeFacts(view.world)
  if (!nodes.ok) return nodes
  const name = nodeNameOf(view)
  return { ok: true, value: name === undefined ? undefined : nodeOf(nodes.value, name) }
}

/** What is done to the Node of the target; nothing where there is none. */
export const onNode = async (view: View, act: (node: NodeFacts) => Promise<Result<void>>): Promise<Result<void>> => {
  const node = nodeOfTarget(view)
  return node.ok && node.value ? act(node.value) : { ok: true, value: undefined }
}

/** The machine that took the place of this one while it was away: its Node has the same name, and Talos knows it by another id. */
export const replacementOf = (view: View): TalosMachine | undefined => {
  const own = ownMachine(view)
  const node = nodeNameOf(view)
  // Its TalosMachine may have been deleted meanwhile, and another one tells of the very same machine.
  const nodeID = own?.status.nodeID ?? view.target.before?.nodeID
  if (node === undefined || nodeID === undefined || machineOf(view).ok) return undefined
  return view.world.machines.find(m => m !== own && m.status.nodeName === node && (m.status.nodeID ?? nodeID) !== nodeID)
}

const ownMachine = ({ target, world }: View): TalosMachine | undefined => world.machines.find(m => m.metadata.name === target.name)

/** What waits for a machine to come back waits in vain where another one came in its place. */
export const replaced = (view: View): Extract<Answer, { is: 'failed' }> | undefined => {
  const other = replacementOf(view)
  if (!other) return undefined
  const name = displayName(view.target)
  const forget = ownMachine(view) ? `Delete TalosMachine ${view.target.name}, cancel` : 'Cancel'
  return {
    is: 'failed',
    reason: 'MachineAmbiguous',
    message: `${name} was replaced while it was away: another machine has its name now (TalosMachine ${other.metadata.name}, Talos node id ${other.status.nodeID}), to which nothing was done. ${forget} this operation, and start another one for the machine that is there.`,
  }
}

/** Whether Kubernetes sees the machine in the boot in which it is. */
export const isBackAsNode = (view: View): Answer => {
  const [facts, node] = [machineOf(view), nodeOfTarget(view)]
  if (!facts.ok) return unknown(`it does not answer: ${facts.fault.message}`)
  if (facts.value.nodename === '') return YES
  if (!node.ok) return unknown(`the Kubernetes API does not answer: ${node.fault.message}`)
  if (node.value === undefined) return no(`there is no Node ${facts.value.nodename}`)
  if (node.value.bootID !== facts.value.bootID) return no('its Node still tells of the boot before')
  return node.value.ready ? YES : no('its Node is not Ready')
}

export const controlPlanesOf = (world: World): readonly TalosMachine[] => world.machines.filter(m => m.spec.role === 'controlplane')

/** Whether the operation is about this machine at all. */
export const isSelected = ({ spec: { machineSelector } }: TalosOperation, { metadata }: TalosMachine): boolean =>
  (machineSelector?.names?.includes(metadata.name) ?? true) && matchesSelector(machineSelector, metadata.labels)

/** A machine as the order of a stage names it. */
export const candidateOf = ({ metadata, spec, status }: TalosMachine): Candidate => ({
  name: metadata.name,
  ...(status.hostname ? { hostname: status.hostname } : {}),
  ...(status.nodeName ? { node: status.nodeName } : {}),
  address: spec.address,
  role: spec.role,
})

const others = (nodes: readonly NodeFacts[], node: string): readonly NodeFacts[] =>
  nodes.filter(n => n.name !== node && n.ready && !n.unschedulable)

/** Nobody else could take the pods: they would only be killed, Ichor's own among them. */
export const isOnlySchedulable = (nodes: readonly NodeFacts[], node: NodeFacts): boolean => others(nodes, node.name).length === 0

/** Another Node takes any pod, also one that tolerates no taint. */
export const hasRoomElsewhere = (nodes: readonly NodeFacts[], node: string): boolean => others(nodes, node).some(n => n.tainted !== true)

/** What is chosen about Node and drain when a target is opened: the Node by the machine's own word, and whether it is drained at all. */
export const drainGoal = (view: View): { readonly drain: string; readonly node?: string } => {
  const { operation, target, world } = view
  const [facts, nodes] = [machineOf(view), nodeFacts(world)]
  // The name may not have been known yet when the order was made, and without it nothing would be drained.
  const nodename = (facts.ok && facts.value.nodename) || target.node
  const all = nodes.ok ? nodes.value : []
  const node = nodename ? nodeOf(all, nodename) : undefined
  const { policy } = operation.spec.drain
  return {
    drain: policy === 'skip' || node === undefined || isOnlySchedulable(all, node) ? 'none' : policy,
    ...(nodename ? { node: node?.name ?? nodename } : {}),
  }
}
