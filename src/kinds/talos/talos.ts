import { kind } from '../../core/kind.ts'
import type { PlannedMachine } from '../../core/kind.ts'
import { losses } from '../../core/machine-steps/losses.ts'
import type { View } from '../../core/world.ts'
import { machineFacts } from '../../core/world.ts'
import { checkNeeds, checks } from './checks.ts'
import { rollout } from './rollout.ts'
import { talosSpec } from './spec.ts'
import { chooseImage, specOf } from './view.ts'

const preview = (view: View): PlannedMachine => {
  const { operation, target, world } = view
  const { version } = specOf(operation)
  const machine = world.machines.find(m => m.metadata.name === target.name)
  const known = machineFacts(world, target.name)
  if (!known.ok) return { from: 'unknown', to: version, loses: [] }
  const choice = chooseImage(operation, world, machine, known.value)
  return {
    from: known.value.version,
    to: choice.ok ? choice.image : version,
    loses: losses(view, { drained: operation.spec.drain.policy !== 'skip' }),
  }
}

/** Upgrades Talos and the installer schematic, a machine at a time. */
export const talos = kind({
  name: 'talos',
  block: 'talos',
  summary: 'Upgrades Talos and its schematic one machine at a time, control planes first.',
  spec: talosSpec,
  checkNeeds,
  checks,
  stages: [{ ...rollout, preview }],
})
