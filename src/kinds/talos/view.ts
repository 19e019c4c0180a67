import type { z } from 'zod'
import type { TalosOperation } from '../../api/talos-operation.ts'
import type { TalosMachine } from '../../api/talos-machine.ts'
import type { EtcdGateVerdict } from '../../core/etcd-gate.ts'
import { DEFAULT_QUOTA_BYTES, etcdGate } from '../../core/etcd-gate.ts'
import type { ControlPlaneView } from '../../core/etcd-members.ts'
import { leaderName } from '../../core/etcd-members.ts'
import { etcdStep } from '../../core/compatibility/etcd-step.ts'
import type { InstallImageChoice } from '../../core/install-image.ts'
import { chooseInstallImage } from '../../core/install-image.ts'
import { blockOf } from '../../core/kind.ts'
import type { Answer, Verdict } from '../../core/kind.ts'
import { YES, no, unknown, wait } from '../../core/kind.ts'
import { matchesSelector } from '../../core/rollout-order.ts'
import type { Need, View, World } from '../../core/world.ts'
import { etcdFacts, machineFacts, nodeFacts, nodeOf } from '../../core/world.ts'
import type { Result } from '../../ports/fault.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import type { MachineFacts } from '../../ports/talos.ts'
import { talosSpec } from './spec.ts'

/** What the steps of this kind ask again and again. */

export type TalosSpec = z.output<typeof talosSpec>
export const specOf = (operation: TalosOperation): TalosSpec => blockOf({ block: 'talos', spec: talosSpec }, operation)

export const machineOf = ({ target, world }: View): Result<MachineFacts> => machineFacts(world, target.name)

/** What was chosen when the target was opened. */
export const wish = (view: Pick<View, 'target'>, key: 'image' | 'schematic' | 'way' | 'drain' | 'node'): string =>
  view.target.goal?.[key] ?? ''
export const isLegacy = (view: View): boolean => wish(view, 'way') === 'legacy'
export const isControlPlane = (view: View): boolean => view.target.role === 'controlplane'
export const addressOf = (view: View): string =>
  view.world.machines.find(m => m.metadata.name === view.target.name)?.spec.address ?? view.target.address ?? ''
export const etcdNeed = (view: View): readonly Need[] => (isControlPlane(view) ? [{ what: 'etcd' }] : [])
/** etcd is sampled twice before a member of it is touched; other machines need not wait for that. */
export const etcdSampleMs = (view: View): number | undefined => (isControlPlane(view) ? view.world.timing.etcdSampleMs : undefined)

/**
 * The name of the target's Node; undefined where the machine registers none. What the machine itself said when it was opened goes before what was known
 * when the order was made: a machine may have been discovered only just then.
 */
export const nodeNameOf = (view: View): string | undefined => wish(view, 'node') || view.target.node || undefined

/** The Node of the target, by the recorded name, so that it is known while the machine is away. */
export const nodeOfTarget = (view: View): Result<NodeFacts | undefined> => {
  const nodes = nodeFacts(view.world)
  if (!nodes.ok) return nodes
  const name = nodeNameOf(view)
  return { ok: true, value: name === undefined ? undefined : nodeOf(nodes.value, name) }
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

/** etcd as all control planes see it now. */
export const etcdViews = (world: World): readonly ControlPlaneView[] => {
  const views = etcdFacts(world)
  return controlPlanesOf(world).flatMap(m => {
    const view = views[m.metadata.name]
    return view ? [{ name: m.metadata.name, address: m.spec.address, view }] : []
  })
}

/** The control plane that leads etcd now; undefined where they do not agree. */
export const etcdLeader = (world: World): string | undefined => leaderName(etcdViews(world))

/** The gate of etcd: may this control plane go away, or is all well again. */
export const gate = (operation: TalosOperation, world: World, purpose: 'restart' | 'settled', target?: string): EtcdGateVerdict => {
  const known = controlPlanesOf(world).flatMap(m => {
    const facts = world.facts.machines[m.metadata.name]
    return facts?.ok ? [facts.value.etcdQuotaBytes] : []
  })
  const verdict = etcdGate({
    controlPlanes: etcdViews(world),
    purpose,
    ...(target ? { target } : {}),
    quotaBytes: known.length > 0 ? Math.min(...known) : DEFAULT_QUOTA_BYTES,
    acknowledgeApiOutage: operation.spec.acknowledge.includes('api-outage'),
    etcdStepAllowed: crossesEtcdMinor(operation, world),
  })
  return verdict.pass ? verdict : { ...verdict, message: asPeopleSay(verdict.message, controlPlanesOf(world)) }
}

/** With host names in place of the names of TalosMachines, which end in a hash and so occur nowhere else. */
const asPeopleSay = (message: string, machines: readonly TalosMachine[]): string =>
  machines.reduce((text, { metadata, status }) => (status.hostname ? text.replaceAll(metadata.name, status.hostname) : text), message)

const crossesEtcdMinor = (operation: TalosOperation, world: World): boolean =>
  controlPlanesOf(world).some(
    m => etcdStep({ fromTalos: m.status.talosVersion ?? '', toTalos: specOf(operation).version, runningEtcd: [] }).crossesMinor,
  ) ||
  (operation.status.machines ?? []).some(
    t =>
      t.before?.version !== undefined &&
      etcdStep({ fromTalos: t.before.version, toTalos: specOf(operation).version, runningEtcd: [] }).crossesMinor,
  )

/** The gate as a guard. What only a person can mend ends the step; anything else is waited for, and never walked past. */
export const gateGuard = (view: View): Verdict => {
  if (view.target.role !== 'controlplane') return YES
  const verdict = gate(view.operation, view.world, 'restart', view.target.name)
  if (verdict.pass) return YES
  const message = verdict.remedy ? `${verdict.message} ${verdict.remedy}` : verdict.message
  return verdict.kind === 'hold' ? wait(message, verdict.reason) : { may: 'no', reason: verdict.reason, message }
}

export const chooseImage = (
  operation: TalosOperation,
  world: World,
  machine: TalosMachine | undefined,
  facts: MachineFacts,
): InstallImageChoice => {
  const { version, schematic, image } = specOf(operation)
  const { imageFactory } = world.cluster.spec
  return chooseInstallImage({
    machine: facts,
    version,
    ...(schematic ? { schematic } : {}),
    ...(image ? { image } : {}),
    ...(machine?.spec.installImage ? { machineImage: machine.spec.installImage } : {}),
    ...(imageFactory ? { clusterFactory: imageFactory } : {}),
  })
}

const others = (nodes: readonly NodeFacts[], node: string): readonly NodeFacts[] =>
  nodes.filter(n => n.name !== node && n.ready && !n.unschedulable)

/** Nobody else could take the pods: they would only be killed, Ichor's own among them. */
export const isOnlySchedulable = (nodes: readonly NodeFacts[], node: NodeFacts): boolean => others(nodes, node.name).length === 0

/** Another Node takes any pod, also one that tolerates no taint. */
export const hasRoomElsewhere = (nodes: readonly NodeFacts[], node: string): boolean => others(nodes, node).some(n => n.tainted !== true)

export const isSelected = (operation: TalosOperation, machine: TalosMachine): boolean =>
  matchesSelector(operation.spec.machineSelector, machine.metadata.labels)
