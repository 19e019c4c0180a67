import type { z } from 'zod'
import { durationMs } from '../../api/duration.ts'
import type { TalosMachine } from '../../api/talos-machine.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import type { EtcdGateVerdict } from '../../core/etcd-gate.ts'
import type { Step, Verdict } from '../../core/kind.ts'
import { YES, blockOf, wait } from '../../core/kind.ts'
import { asGuard, etcdViews, gate } from '../../core/machine-steps/etcd.ts'
import { asRecorded, both } from '../../core/machine-steps/guards.ts'
import { othersServe } from '../../core/machine-steps/other-control-planes.ts'
import { hostsCalled } from '../../core/machine-name.ts'
import { chosen, isControlPlane, machineOf } from '../../core/machine-steps/target.ts'
import type { View, World } from '../../core/world.ts'
import type { Fault } from '../../ports/fault.ts'
import { nodeSpec } from './spec.ts'

/** What the stages of this kind ask again and again. */

export type NodeSpec = z.output<typeof nodeSpec>
export const specOf = (operation: TalosOperation): NodeSpec => blockOf({ block: 'node', spec: nodeSpec }, operation)

/** The machines that the operation may mean: the one whose TalosMachine has the name, else those with that host name. */
export const meant = (operation: TalosOperation, world: World): readonly TalosMachine[] => {
  const { machine } = specOf(operation)
  const exact = world.machines.filter(m => m.metadata.name === machine)
  return exact.length > 0 ? exact : hostsCalled(world.machines, m => m.status, machine)
}

export const rebootMs = (view: View): number => durationMs(view.operation.spec.timeouts.reboot)

/** What etcd has to say before the machine goes away for a while. With override it may be unwell itself: then this is its cure. */
export const restartGate = (operation: TalosOperation, world: World, target: string): EtcdGateVerdict =>
  gate(operation, world, { purpose: operation.spec.override ? 'repair' : 'restart', target, etcdStepAllowed: true })

export const mayGoAway = (view: View): Verdict =>
  isControlPlane(view) ? both(asGuard(restartGate(view.operation, view.world, view.target.name)), () => othersServe(view)) : YES

export const settled = ({ operation, world }: View): EtcdGateVerdict =>
  gate(operation, world, { purpose: 'settled', etcdStepAllowed: true })

/** It ran and its etcd answered when it was opened, so that what it holds can be taken from it in good order. */
export const isOrderly = ({ target }: Pick<View, 'target'>): boolean => chosen(target, 'way') !== 'as it is'

/** A step that only one takes which is set aside in good order. */
export const whereOrderly = (step: Step): Step => ({ ...step, applies: view => isOrderly(view) && (step.applies?.(view) ?? true) })

export const wayOf = (view: View): 'orderly' | 'as it is' => {
  const facts = machineOf(view)
  const own = isControlPlane(view) ? etcdViews(view.world).find(v => v.name === view.target.name)?.view.ok === true : true
  return facts.ok && facts.value.stage === 'running' && own ? 'orderly' : 'as it is'
}

/** The act of this step was given since the machine was opened, in this try or in one that failed. */
export const wasAsked = ({ target }: Pick<View, 'target'>, step: string): boolean =>
  target.step === step && (target.firstActedAt !== undefined || target.actedBefore === true)

/** No answer to us, nor, as far as anybody could be asked, to others. */
export const isSilent = ({ kind, runs }: Fault): boolean => kind === 'unreachable' && runs !== true

/** The machine as recorded. Once the act was given, being on its way is what was asked for, and the step's own reason tells when it lasts too long. */
export const stillThere = (view: View): Verdict => {
  const verdict = asRecorded(view)
  if (verdict.may !== 'wait' || view.target.firstActedAt === undefined) return verdict
  return wait(verdict.why)
}
