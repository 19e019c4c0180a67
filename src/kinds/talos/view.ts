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
import type { Verdict } from '../../core/kind.ts'
import { YES, wait } from '../../core/kind.ts'
import { matchesSelector } from '../../core/rollout-order.ts'
import type { View, World } from '../../core/world.ts'
import { etcdFacts, machineFacts, nodeFacts, nodeOf } from '../../core/world.ts'
import type { Result } from '../../ports/fault.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import type { MachineFacts } from '../../ports/talos.ts'
import { talosSpec } from './spec.ts'

/** What the steps of this kind ask again and again. */

export type TalosSpec = z.output<typeof talosSpec>
export const specOf = (operation: TalosOperation): TalosSpec => blockOf({ block: 'talos', spec: talosSpec }, operation)

export const machineOf = ({ target, world }: View): Result<MachineFacts> => machineFacts(world, target.name)

/** The Node of the target; undefined where the machine registers none. The name is the one that was recorded, so that it is known while the machine is away. */
export const nodeOfTarget = ({ target, world }: View): Result<NodeFacts | undefined> => {
  const nodes = nodeFacts(world)
  if (!nodes.ok) return nodes
  return { ok: true, value: target.node ? nodeOf(nodes.value, target.node) : undefined }
}

export const controlPlanesOf = (world: World): readonly TalosMachine[] => world.machines.filter((m) => m.spec.role === 'controlplane')

/** etcd as all control planes see it now. */
export const etcdViews = (world: World): readonly ControlPlaneView[] => {
  const views = etcdFacts(world)
  return controlPlanesOf(world).flatMap((m) => {
    const view = views[m.metadata.name]
    return view ? [{ name: m.metadata.name, address: m.spec.address, view }] : []
  })
}

/** The control plane that leads etcd now; undefined where they do not agree. */
export const etcdLeader = (world: World): string | undefined => leaderName(etcdViews(world))

/** The gate of etcd: may this control plane go away, or is all well again. */
export const gate = (operation: TalosOperation, world: World, purpose: 'restart' | 'settled', target?: string): EtcdGateVerdict => {
  const known = controlPlanesOf(world).flatMap((m) => {
    const facts = world.facts.machines[m.metadata.name]
    return facts?.ok ? [facts.value.etcdQuotaBytes] : []
  })
  return etcdGate({
    controlPlanes: etcdViews(world),
    purpose,
    ...(target ? { target } : {}),
    quotaBytes: Math.min(...known, DEFAULT_QUOTA_BYTES),
    acknowledgeApiOutage: operation.spec.acknowledge.includes('api-outage'),
    etcdStepAllowed: crossesEtcdMinor(operation, world),
  })
}

const crossesEtcdMinor = (operation: TalosOperation, world: World): boolean =>
  controlPlanesOf(world).some((m) => etcdStep({ fromTalos: m.status.talosVersion ?? '', toTalos: specOf(operation).version, runningEtcd: [] }).crossesMinor) ||
  (operation.status.machines ?? []).some((t) => t.before?.version !== undefined && etcdStep({ fromTalos: t.before.version, toTalos: specOf(operation).version, runningEtcd: [] }).crossesMinor)

/** The gate as a guard. What only a person can mend ends the step; anything else is waited for, and never walked past. */
export const gateGuard = (view: View): Verdict => {
  if (view.target.role !== 'controlplane') return YES
  const verdict = gate(view.operation, view.world, 'restart', view.target.name)
  if (verdict.pass) return YES
  const message = verdict.remedy ? `${verdict.message} ${verdict.remedy}` : verdict.message
  return verdict.kind === 'hold' ? wait(message, verdict.reason) : { may: 'no', reason: verdict.reason, message }
}

export const chooseImage = (operation: TalosOperation, world: World, machine: TalosMachine | undefined, facts: MachineFacts): InstallImageChoice => {
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

/** Nobody else could take the pods: they would only be killed, Ichor's own among them. */
export const isOnlySchedulable = (nodes: readonly NodeFacts[], node: NodeFacts): boolean => !nodes.some((n) => n.name !== node.name && n.ready && !n.unschedulable)

export const isSelected = (operation: TalosOperation, machine: TalosMachine): boolean => matchesSelector(operation.spec.machineSelector, machine.metadata.labels)
