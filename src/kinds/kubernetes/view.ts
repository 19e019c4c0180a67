import type { z } from 'zod'
import type { TalosMachine } from '../../api/talos-machine.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import { imageVersion, imageTitle } from '../../core/component-image.ts'
import type { Opening, Stage, Verdict } from '../../core/kind.ts'
import { YES, blockOf, wait } from '../../core/kind.ts'
import { openTargets } from '../../core/ledger.ts'
import { asGuard, gate } from '../../core/machine-steps/etcd.ts'
import { machineToOpen } from '../../core/machine-steps/opening.ts'
import { heldBecause, inOrder } from '../../core/machine-steps/order.ts'
import { candidateOf, chosen, controlPlanesOf, machineOf } from '../../core/machine-steps/target.ts'
import { isBelow } from '../../core/versions.ts'
import type { Need, View, World } from '../../core/world.ts'
import { componentFacts, controlPlaneFacts, machineTitle } from '../../core/world.ts'
import type { MachineComponents, StaticComponent } from '../../ports/components.ts'
import type { ControlPlanePod } from '../../ports/control-plane.ts'
import type { Result } from '../../ports/fault.ts'
import { kubernetesSpec } from './spec.ts'

/** What the stages of this kind ask again and again. */

export type KubernetesSpec = z.output<typeof kubernetesSpec>
export const specOf = (operation: TalosOperation): KubernetesSpec => blockOf({ block: 'kubernetes', spec: kubernetesSpec }, operation)

/** The static pods of a control plane, in the order in which they are upgraded. */
export const STATIC_COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const

/** The image that was chosen when the target was opened. */
export const wantedImage = (view: Pick<View, 'target'>): string => chosen(view.target, 'image')
/** The one that was there then. */
export const imageBefore = (view: Pick<View, 'target'>): string => chosen(view.target, 'from')

export const componentsNeed = (view: Pick<View, 'target'>): readonly Need[] => [{ what: 'components', name: view.target.name }]
export const componentsOf = ({ target, world }: View): Result<MachineComponents> => componentFacts(world, target.name)

/** The static pods of a component as the API shows them, those of each control plane. */
export const podsOf = (world: World, component: StaticComponent): Result<readonly ControlPlanePod[]> => {
  const known = controlPlaneFacts(world)
  return known.ok ? { ok: true, value: known.value.pods.filter(p => p.component === component) } : known
}

/** It answers and runs. Nothing that is done to it here depends on its boot. */
export const isThere = (view: View): Verdict => {
  const facts = machineOf(view)
  if (!facts.ok) return wait(`it does not answer: ${facts.fault.message}`, 'MachineUnreachable')
  return facts.value.stage === 'running' ? YES : wait(`it is ${facts.value.stage}`, 'MachineNotReady')
}

export const etcdIsWell = ({ operation, world }: View): Verdict =>
  asGuard(gate(operation, world, { purpose: 'settled', etcdStepAllowed: true }))

/** No program may be newer than any API server. */
export const apiServersAreThere = ({ operation, world }: View): Verdict => {
  const { version } = specOf(operation)
  const pods = podsOf(world, 'kube-apiserver')
  if (!pods.ok) return wait(`the Kubernetes API does not answer: ${pods.fault.message}`)
  for (const machine of controlPlanesOf(world)) {
    const name = machineTitle(machine)
    const pod = pods.value.find(p => p.node === machine.status.nodeName)
    const runs = pod && imageVersion(pod.image)
    if (runs === undefined) return wait(`no kube-apiserver of ${name} is in sight`, 'VersionMismatch')
    if (isBelow(runs, version)) return wait(`kube-apiserver on ${name} is still ${runs}`, 'VersionMismatch')
  }
  return YES
}

export const oneAtATime: Stage['turn'] = ({ operation }) =>
  openTargets(operation.status).length > 0 ? wait('another machine is open') : YES

/** The same as for any machine, but that none of them can be left out: it would stay behind the kubelets. */
export const controlPlaneToOpen = (view: View): ReturnType<typeof machineToOpen> => {
  const machine = view.world.machines.find(m => m.metadata.name === view.target.name)
  const held = machine && heldBecause(view.world, machine)
  return held === undefined
    ? machineToOpen(view)
    : { instead: { wait: `it is ${held}, and a control plane cannot be left out`, reason: 'MachineNotReady' } }
}

/** `v1.35.1 -> v1.36.2`, of the images before and after. */
export const versionsOf = (target: View['target']): string =>
  `${imageTitle(imageBefore({ target }))} -> ${imageTitle(wantedImage({ target }))}`

/** What a stage goes over. */
type Over = {
  readonly machines: (world: World) => readonly TalosMachine[]
  readonly openNeeds: (view: View) => readonly Need[]
  readonly open: (view: View) => Opening
}

/** Machines to which nothing is to be done are skipped when the order is made, all at once, and not one write after the other. */
export const goingOver = ({ machines, openNeeds, open }: Over): Pick<Stage, 'orderNeeds' | 'order' | 'openNeeds' | 'open'> => {
  const viewOf = (operation: TalosOperation, world: World, machine: TalosMachine): View => ({
    operation,
    world,
    target: { ...candidateOf(machine), phase: 'Pending' },
  })
  return {
    orderNeeds: (operation, world) => [
      { what: 'nodes' },
      ...machines(world).flatMap((machine): readonly Need[] => [
        { what: 'machine', name: machine.metadata.name },
        ...openNeeds(viewOf(operation, world, machine)),
      ]),
    ],
    order: (operation, world) =>
      inOrder(world, machines(world)).map(machine => {
        const opening = open(viewOf(operation, world, machine))
        return { ...candidateOf(machine), ...('skip' in opening ? { skip: opening.skip } : {}) }
      }),
    openNeeds,
    open,
  }
}
