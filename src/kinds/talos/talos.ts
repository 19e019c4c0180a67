import { kind } from '../../core/kind.ts'
import type { PlannedMachine } from '../../core/kind.ts'
import { controlPlanesOf, isOnlySchedulable } from '../../core/machine-steps/target.ts'
import type { View } from '../../core/world.ts'
import { machineFacts, nodeFacts, nodeOf } from '../../core/world.ts'
import { checkNeeds, checks } from './checks.ts'
import { rollout } from './rollout.ts'
import { talosSpec } from './spec.ts'
import { chooseImage, specOf } from './view.ts'

const preview = ({ operation, target, world }: View): PlannedMachine => {
  const { version } = specOf(operation)
  const machine = world.machines.find(m => m.metadata.name === target.name)
  const known = machineFacts(world, target.name)
  if (!known.ok) return { from: 'unknown', to: version, loses: [] }
  const choice = chooseImage(operation, world, machine, known.value)
  const nodes = nodeFacts(world)
  const node = nodes.ok && target.node ? nodeOf(nodes.value, target.node) : undefined
  const only = nodes.ok && node !== undefined && isOnlySchedulable(nodes.value, node)
  const members = controlPlanesOf(world).length
  const losesApi =
    members < 3 ? 'the Kubernetes API and etcd, until it is back' : `one of ${members} API servers and etcd members, until it is back`
  const losesPods = only
    ? 'its pods, which are not drained: no other node could take them'
    : operation.spec.drain.policy === 'skip'
      ? 'its pods, which are not drained'
      : 'its pods, which are evicted first'
  return {
    from: known.value.version,
    to: choice.ok ? choice.image : version,
    loses: [...(target.role === 'controlplane' ? [losesApi] : []), ...(node ? [losesPods] : [])],
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
