import { ANNOTATION } from '../../api/names.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import type { TalosMachine } from '../../api/talos-machine.ts'
import type { Candidate, Opening, Stage, Verdict } from '../../core/kind.ts'
import { YES, wait } from '../../core/kind.ts'
import { openTargets, targetsOf } from '../../core/ledger.ts'
import { holdOf, rolloutOrder } from '../../core/rollout-order.ts'
import type { Candidate as OrderCandidate } from '../../core/rollout-order.ts'
import { etcdLeader } from '../../core/machine-steps/etcd.ts'
import { candidateOf, drainGoal } from '../../core/machine-steps/target.ts'
import { workerTurn } from '../../core/machine-steps/turn.ts'
import { sameSchematic } from '../../core/talos-image.ts'
import { compareVersions, parseVersion } from '../../core/versions.ts'
import type { Need, View, World } from '../../core/world.ts'
import { machineFacts, nodeFacts, nodeOf } from '../../core/world.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import { isTriedAnew } from './evidence.ts'
import { abandon, steps } from './steps.ts'
import { chooseImage, isLegacyWay, isSelected, specOf } from './view.ts'

const nodesOf = (world: World): readonly NodeFacts[] => {
  const nodes = nodeFacts(world)
  return nodes.ok ? nodes.value : []
}

const nodeOfMachine = (world: World, machine: TalosMachine): NodeFacts | undefined =>
  machine.status.nodeName ? nodeOf(nodesOf(world), machine.status.nodeName) : undefined

const marksOf = (world: World, machine: TalosMachine): OrderCandidate => {
  const node = nodeOfMachine(world, machine)
  return {
    name: machine.metadata.name,
    ...(machine.status.hostname ? { hostname: machine.status.hostname } : {}),
    role: machine.spec.role,
    machine: { labels: machine.metadata.labels, annotations: machine.metadata.annotations },
    ...(node ? { node: { labels: node.labels, annotations: node.annotations } } : {}),
  }
}

/** Why the machine is left alone, in the words of whoever held it; undefined where nobody does. */
const heldBecause = (world: World, machine: TalosMachine): string | undefined => {
  const hold = holdOf(marksOf(world, machine))
  if (hold === undefined) return undefined
  return `held by the annotation ${ANNOTATION.upgradeHold}${hold === '' || hold === 'true' ? '' : `: ${hold}`}`
}

const order = (operation: TalosOperation, world: World): readonly Candidate[] => {
  const machines = world.machines.filter(m => isSelected(operation, m))
  const names = rolloutOrder(
    machines.map(m => marksOf(world, m)),
    etcdLeader(world),
  ).order
  return names.flatMap(name => {
    const machine = machines.find(m => m.metadata.name === name)
    if (!machine) return []
    const skip = heldBecause(world, machine)
    return [{ ...candidateOf(machine), ...(skip === undefined ? {} : { skip }) }]
  })
}

/** All control planes before any worker, and strictly one at a time; then workers, as many as `maxUnavailable` leaves. */
const turn = (view: View): Verdict => {
  const { operation, target } = view
  const targets = targetsOf(operation.status)
  const open = openTargets(operation.status)
  const controlPlane = targets.find(t => t.role === 'controlplane' && (t.phase === 'Running' || t.phase === 'Failed'))
  if (controlPlane) return wait(`control plane ${controlPlane.hostname ?? controlPlane.name} is not done`)
  if (target.role === 'controlplane') return open.length > 0 ? wait('another machine is open') : YES
  if (targets.some(t => t.role === 'controlplane' && t.phase === 'Pending')) return wait('control planes go first')
  return workerTurn(view)
}

const open = (view: View): Opening => {
  const { operation, target, world } = view
  const { version } = specOf(operation)
  const machine = world.machines.find(m => m.metadata.name === target.name)
  if (!machine) return { skip: 'its TalosMachine was deleted' }
  const held = heldBecause(world, machine)
  if (held !== undefined) return { skip: held }
  const known = machineFacts(world, target.name)
  if (!known.ok) return { wait: `it does not answer: ${known.fault.message}`, reason: 'MachineUnreachable' }
  const facts = known.value
  // Early in a boot a machine has not read its own identity yet.
  if (facts.nodeID === '') return { wait: 'it does not tell its Talos node id yet', reason: 'MachineNotReady' }
  if (machine.status.nodeID && machine.status.nodeID !== facts.nodeID) {
    return {
      fail: {
        reason: 'MachineAmbiguous',
        message: `${machine.spec.address} is answered by ${facts.hostname} (Talos node id ${facts.nodeID}), not by the machine that was recorded (${machine.status.nodeID}).`,
      },
    }
  }
  const choice = chooseImage(operation, world, machine, facts)
  if (!choice.ok) return { fail: { reason: 'SchematicMismatch', message: choice.message } }
  if (facts.stage !== 'running') return { wait: `it is ${facts.stage}`, reason: 'MachineNotReady' }
  const schematicIsTold = choice.factory !== '' || choice.schematic !== '' || !specOf(operation).image
  if (facts.version === version && (!schematicIsTold || sameSchematic(facts.schematic, choice.schematic)))
    return { skip: `already runs ${version}` }
  const [running, wanted] = [parseVersion(facts.version), parseVersion(version)]
  if (running && wanted && compareVersions(running, wanted) > 0 && !operation.spec.override) {
    return {
      fail: { reason: 'VersionMismatch', message: `${facts.hostname} runs ${facts.version} by now, which is newer than ${version}.` },
    }
  }
  return {
    open: {
      goal: {
        image: choice.image,
        schematic: schematicIsTold ? choice.schematic : 'any',
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
  turn,
  open,
  outdated,
  steps,
  abandon,
}
