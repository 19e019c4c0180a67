import type { GivingBack, Opening, PlannedMachine, Stage, Step } from '../../core/kind.ts'
import { YES } from '../../core/kind.ts'
import { giveBack } from '../../core/machine-steps/coming-back.ts'
import { etcdNeed } from '../../core/machine-steps/etcd.ts'
import { candidateOf, drainGoal, isControlPlane, machineOf } from '../../core/machine-steps/target.ts'
import { goingNeed, othersServe } from '../../core/machine-steps/other-control-planes.ts'
import { losses } from '../../core/machine-steps/losses.ts'
import { workerTurn } from '../../core/machine-steps/turn.ts'
import type { View } from '../../core/world.ts'
import { machineFacts } from '../../core/world.ts'
import type { Action } from './spec.ts'
import { meant, specOf, wayOf } from './view.ts'

/** What the actions have in common: one machine, and what is chosen when it is opened. */

type Part = {
  readonly summary: string
  /** Whether it takes the machine away from its users, so that others that are away count. */
  readonly takesAway: boolean
  /** What is to be known besides, and chosen, or why nothing is to be done. */
  readonly openNeeds?: Stage['openNeeds']
  readonly open?: (view: View) => Opening
  readonly steps: readonly Step[]
  readonly abandon?: readonly GivingBack[]
  readonly removes?: true
  readonly becomes: (view: View) => string
  readonly loses: (view: View) => readonly string[]
  readonly outcome: NonNullable<Stage['outcome']>
}

export const actionStage = (action: Action, part: Part): Stage => ({
  name: action,
  summary: part.summary,
  applies: operation => specOf(operation).action === action,
  orderNeeds: () => [],
  order: (operation, world) => {
    const machines = meant(operation, world)
    return machines.length === 1 ? machines.map(candidateOf) : []
  },
  turn: view => (!part.takesAway ? YES : isControlPlane(view) ? othersServe(view) : workerTurn(view)),
  openNeeds: view => [...(part.takesAway ? goingNeed(view) : etcdNeed(view)), ...(part.openNeeds?.(view) ?? [])],
  open: view => {
    const facts = machineFacts(view.world, view.target.name)
    if (!facts.ok) return { wait: `it does not answer: ${facts.fault.message}`, reason: 'MachineUnreachable' }
    const recorded = view.world.machines.find(m => m.metadata.name === view.target.name)?.status.nodeID
    if (recorded && facts.value.nodeID !== '' && recorded !== facts.value.nodeID) {
      const message = `${facts.value.address} is answered by ${facts.value.hostname} (Talos node id ${facts.value.nodeID}), not by the machine that was recorded (${recorded}).`
      return { fail: { reason: 'MachineAmbiguous', message } }
    }
    const way = wayOf(view)
    const special = part.open?.(view) ?? { open: { goal: {} } }
    if (!('open' in special)) return special
    const goal = { way, ...drainGoal(view), ...(way === 'orderly' ? {} : { drain: 'none' }), ...special.open.goal }
    return { open: { goal } }
  },
  // A reboot is a reboot whoever caused it, and a service starts with its machine; anything else begins anew on a machine that was rebooted.
  ...(action === 'reboot' || action === 'restart-service' ? {} : { outdated }),
  steps: part.steps,
  ...(part.removes ? { removes: true } : {}),
  abandon: part.abandon ?? [giveBack],
  preview: (view): PlannedMachine => {
    const facts = machineOf(view)
    return { from: facts.ok ? facts.value.stage : 'unknown', to: part.becomes(view), loses: facts.ok ? part.loses(view) : [] }
  },
  outcome: part.outcome,
})

const outdated = (view: View): string | undefined => {
  const facts = machineOf(view)
  return facts.ok && facts.value.bootID !== view.target.before?.bootID ? 'it was rebooted by somebody else; opening it anew' : undefined
}

/** What its users lose while a machine is away. */
export const losesAll =
  (until: string) =>
  (view: View): readonly string[] =>
    losses(view, { drained: wayOf(view) === 'orderly' && drainGoal(view).drain !== 'none', until })
