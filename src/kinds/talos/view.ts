import type { z } from 'zod'
import type { TalosOperation } from '../../api/talos-operation.ts'
import type { TalosMachine } from '../../api/talos-machine.ts'
import type { EtcdGateVerdict } from '../../core/etcd-gate.ts'
import { crossesMinor } from '../../core/compatibility/etcd-step.ts'
import type { InstallImageChoice } from '../../core/install-image.ts'
import { chooseInstallImage } from '../../core/install-image.ts'
import { blockOf } from '../../core/kind.ts'
import type { Verdict } from '../../core/kind.ts'
import { YES } from '../../core/kind.ts'
import { asGuard, gate as askGate } from '../../core/machine-steps/etcd.ts'
import { both } from '../../core/machine-steps/guards.ts'
import { othersServe } from '../../core/machine-steps/other-control-planes.ts'
import { chosen, controlPlanesOf, isControlPlane } from '../../core/machine-steps/target.ts'
import { factoryHost } from '../../core/talos-image.ts'
import { isBelow } from '../../core/versions.ts'
import type { View, World } from '../../core/world.ts'
import type { MachineFacts } from '../../ports/talos.ts'
import { talosSpec } from './spec.ts'

/** What the steps of this kind ask again and again. */

export type TalosSpec = z.output<typeof talosSpec>
export const specOf = (operation: TalosOperation): TalosSpec => blockOf({ block: 'talos', spec: talosSpec }, operation)

/** What was chosen when the target was opened. */
export const wish = (view: Pick<View, 'target'>, key: 'image' | 'schematic' | 'way'): string => chosen(view.target, key)

/** LifecycleService, which installs without rebooting, exists from this version on. */
const FIRST_LIFECYCLE = 'v1.13.0'

/** Whether a machine has to be upgraded by the one call that drains, installs and reboots. */
export const isLegacyWay = (from: string, to: string): boolean => [from, to].some(version => isBelow(version, FIRST_LIFECYCLE))

/** From this version on `preserve` switches the look of Talos' own at etcd off. */
const FIRST_UNCHECKED = 'v1.14.0'

/** Where Talos itself refuses to take one of two members of etcd away, whatever was acknowledged. */
export const refusesOneOfTwo = (from: string, to: string): boolean => isLegacyWay(from, to) && isBelow(from, FIRST_UNCHECKED)

export const isLegacy = (view: View): boolean => wish(view, 'way') === 'legacy'

/** The gate of etcd, whose minor an upgrade may change. */
export const gate = (operation: TalosOperation, world: World, purpose: 'restart' | 'settled', target?: string): EtcdGateVerdict =>
  askGate(operation, world, { purpose, ...(target ? { target } : {}), etcdStepAllowed: crossesEtcdMinor(operation, world) })

const crossesEtcdMinor = (operation: TalosOperation, world: World): boolean => {
  const { version: toTalos } = specOf(operation)
  const from = new Set([
    ...controlPlanesOf(world).map(m => m.status.talosVersion ?? ''),
    ...(operation.status.machines ?? []).flatMap(t => t.before?.version ?? []),
  ])
  return [...from].some(fromTalos => crossesMinor({ fromTalos, toTalos, runningEtcd: [] }))
}

/** On a control plane, whether etcd and the other control planes let it go away. */
export const gateGuard = (view: View): Verdict =>
  isControlPlane(view) ? both(asGuard(gate(view.operation, view.world, 'restart', view.target.name)), () => othersServe(view)) : YES

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
    ...(imageFactory ? { clusterFactory: factoryHost(imageFactory) } : {}),
  })
}
