import type { TalosOperation } from '../../api/talos-operation.ts'
import { carriesSchematic } from '../../core/install-image.ts'
import type { Candidate, Opening, Stage } from '../../core/kind.ts'
import { etcdLeader } from '../../core/machine-steps/etcd.ts'
import { machineToOpen } from '../../core/machine-steps/opening.ts'
import { heldOrNot, inOrder } from '../../core/machine-steps/order.ts'
import { othersNeed } from '../../core/machine-steps/other-control-planes.ts'
import { reportsReady } from '../../core/machine-steps/ready.ts'
import { drainGoal, isSelected } from '../../core/machine-steps/target.ts'
import { controlPlanesFirst } from '../../core/machine-steps/turn.ts'
import type { Need, View, World } from '../../core/world.ts'
import { machineFacts } from '../../core/world.ts'
import { isTriedAnew } from './evidence.ts'
import { isUnproved, offPath } from './path.ts'
import { abandon, steps } from './steps.ts'
import { chooseImage, isLegacyWay, specOf } from './view.ts'

const order = (operation: TalosOperation, world: World): readonly Candidate[] => {
  const machines = world.machines.filter(m => isSelected(operation, m))
  return inOrder(world, machines, etcdLeader(world)).map(machine => heldOrNot(world, machine))
}

const open = (view: View): Opening => {
  const { operation, world } = view
  const { version } = specOf(operation)
  const found = machineToOpen(view)
  if ('instead' in found) return found.instead
  const { machine, facts } = found
  const choice = chooseImage(operation, world, machine, facts)
  if (!choice.ok) return { fail: { reason: 'SchematicMismatch', message: choice.message } }
  if (facts.stage !== 'running') return { wait: `it is ${facts.stage}`, reason: 'MachineNotReady' }
  if (facts.version === version && carriesSchematic(choice, facts.schematic)) return { skip: `already runs ${version}` }
  const off = offPath(view, facts)
  if (off) return off
  if (isUnproved(view, facts)) {
    const answer = reportsReady(facts)
    return { wait: answer.is === 'no' ? answer.why : 'it is not ready', reason: 'MachineNotReady' }
  }
  return {
    open: {
      goal: {
        image: choice.image,
        schematic: choice.schematic ?? 'any',
        way: isLegacyWay(facts.version, version) ? 'legacy' : 'lifecycle',
        ...drainGoal(view),
      },
    },
  }
}

const outdated = (view: View): string | undefined => {
  const { target, world } = view
  const facts = machineFacts(world, target.name)
  if (!facts.ok || target.before?.bootID === undefined || facts.value.bootID === target.before.bootID) return undefined
  return isTriedAnew(view) ? 'tried anew from the begin' : 'it was rebooted by somebody else before its install; opening it anew'
}

const orderNeeds = (): readonly Need[] => [{ what: 'nodes' }, { what: 'etcd' }]

export const rollout: Omit<Stage, 'preview'> = {
  name: 'upgrade',
  summary: 'Control planes one at a time, the leader of etcd last, then workers.',
  orderNeeds,
  order,
  turn: controlPlanesFirst,
  openNeeds: othersNeed,
  open,
  outdated,
  steps,
  abandon,
}
