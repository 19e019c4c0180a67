import type { TalosMachine } from '../../api/talos-machine.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import type { EtcdGateVerdict } from '../../core/etcd-gate.ts'
import type { Checked, Refusal } from '../../core/kind.ts'
import { gate, gateText } from '../../core/machine-steps/etcd.ts'
import { candidateOf, controlPlanesOf, isOnlySchedulable } from '../../core/machine-steps/target.ts'
import { bootsPending } from '../../core/pending-configuration.ts'
import type { Known } from '../../core/preflight.ts'
import {
  besideUnwell,
  impostors,
  knownOf,
  nodesRefusal,
  once,
  overridable,
  refuse,
  unanswered,
  unregistered,
} from '../../core/preflight.ts'
import { versionOrder, versionSpan } from '../../core/versions.ts'
import type { Need, World } from '../../core/world.ts'
import { nodeFacts, nodeOf, serviceFacts, machineTitle } from '../../core/world.ts'
import { removalGate } from './reset.ts'
import type { Action } from './spec.ts'
import { meant, restartGate, specOf } from './view.ts'

/** These look at the machine itself, and at etcd where it is a control plane. Other machines may be away: a reboot may be part of a cure. */
export const checkNeeds = (operation: TalosOperation, world: World): readonly Need[] => [
  ...meant(operation, world).map((m): Need => ({ what: 'machine', name: m.metadata.name })),
  ...(meant(operation, world).some(m => m.spec.role === 'controlplane')
    ? [{ what: 'etcd' } as const, ...controlPlanesOf(world).map((m): Need => ({ what: 'machine', name: m.metadata.name }))]
    : []),
  ...serviceNeeds(operation, world),
  ...(BOOTING.includes(specOf(operation).action)
    ? meant(operation, world).map((m): Need => ({ what: 'configuration', name: m.metadata.name }))
    : []),
  { what: 'nodes' },
]

const serviceNeeds = (operation: TalosOperation, world: World): readonly (Need & { readonly what: 'service' })[] => {
  const { action, service } = specOf(operation)
  return action === 'restart-service' && service !== undefined
    ? meant(operation, world).map(m => ({ what: 'service', name: m.metadata.name, service }))
    : []
}

const ETCD_ACTIONS: readonly Action[] = ['etcd-defrag', 'forfeit-leadership']
/** After these the machine boots with the configuration that is on its disk. */
const BOOTING: readonly Action[] = ['reboot', 'shutdown']
const DRAINING: readonly Action[] = ['reboot', 'shutdown', 'reset']

/** Everything that speaks against the action, at once. */
export const checks = (operation: TalosOperation, world: World): Checked => {
  const found = { found: {}, notes: [] }
  const missing = unregistered(world)
  if (missing.length > 0) return { ...found, refusals: missing }
  const machines = meant(operation, world)
  const [machine] = machines
  if (!machine || machines.length > 1) return { ...found, refusals: [unclear(operation, world, machines)] }

  const { action } = specOf(operation)
  const known = knownOf(world, [machine])
  const nodes = nodeFacts(world)
  const refusals = [
    ...unanswered(world, [machine]),
    ...impostors(known),
    ...(nodes.ok || !DRAINING.includes(action) ? [] : [nodesRefusal(nodes.fault)]),
    ...known.flatMap(k => [...platform(operation, k), ...health(operation, k), ...role(action, k, world), ...version(operation, k)]),
    ...known.flatMap(k => service(operation, k, world)),
    ...(machine.spec.role === 'controlplane' && known.length > 0 ? quorum(operation, world, machine) : []),
    ...(DRAINING.includes(action) ? besideUnwell(world, [machine]) : []),
  ]
  const talos = versionSpan(known.map(k => k.facts.version))
  return { found: talos ? { talos } : {}, refusals: once(refusals), notes: known.flatMap(k => notes(operation, world, k)) }
}

const unclear = (operation: TalosOperation, world: World, machines: readonly TalosMachine[]): Refusal => {
  const { machine } = specOf(operation)
  const cluster = world.cluster.metadata.name
  return machines.length > 1
    ? refuse('MachineAmbiguous', `${machine} is the host name of ${machines.map(m => m.metadata.name).join(' and ')}. Name one of these.`)
    : refuse('UnknownMachine', `Cluster ${cluster} has no machine ${machine} (it has: ${world.machines.map(machineTitle).join(', ')}).`)
}

const platform = (operation: TalosOperation, { facts, name, machine }: Known): readonly Refusal[] => {
  if (facts.platform !== 'container') return []
  const { action, wipe = 'state' } = specOf(operation)
  const refused = (message: string) => [refuse('ContainerMode', `${name} runs in container mode, ${message}`, machine.metadata.name)]
  if (action === 'reboot' || action === 'shutdown')
    return refused(`in which Talos does not ${action === 'reboot' ? 'reboot' : 'shut down'}.`)
  if (action === 'reset' && wipe === 'state')
    return refused('which has no partitions to wipe; Talos resets it with --wipe disk only, which ends it and wipes nothing.')
  return []
}

const health = (operation: TalosOperation, { facts, name, machine }: Known): readonly Refusal[] => {
  const { mode } = specOf(operation)
  return facts.stage === 'running' || mode === 'force'
    ? []
    : [
        refuse(
          'MachineNotReady',
          `${name} is in stage ${facts.stage}. Wait until it runs; a reboot with mode force also frees one that hangs.`,
          machine.metadata.name,
        ),
      ]
}

const role = (action: Action, { name, machine }: Known, world: World): readonly Refusal[] => {
  const isMember = machine.spec.role === 'controlplane'
  if (ETCD_ACTIONS.includes(action) && !isMember)
    return [refuse('NotAControlPlane', `${name} is a worker; ${action} is for control planes.`, machine.metadata.name)]
  if (action === 'forfeit-leadership' && controlPlanesOf(world).length < 2)
    return [refuse('OnlyMember', `${name} is the only control plane: there is nobody to lead instead.`, machine.metadata.name)]
  if (action === 'reset' && isMember && controlPlanesOf(world).length < 2)
    return [refuse('LastControlPlane', `${name} is the only control plane: without it there is no cluster.`, machine.metadata.name)]
  return []
}

const FIRST_WITH_FORCE = 'v1.12.0'

const version = (operation: TalosOperation, { facts, name, machine }: Known): readonly Refusal[] =>
  specOf(operation).mode === 'force' && versionOrder(facts.version, FIRST_WITH_FORCE) === -1
    ? [refuse('ModeUnsupported', `${name} runs ${facts.version}; the mode force came with Talos 1.12.`, machine.metadata.name)]
    : []

const service = (operation: TalosOperation, { facts, name }: Known, world: World): readonly Refusal[] =>
  serviceNeeds(operation, world).flatMap(need => {
    const seen = serviceFacts(world, need.name, need.service)
    if (!seen.ok || seen.value) return []
    const message = `${name} has no service ${need.service}; \`talosctl -n ${facts.address} services\` tells which it has.`
    return [refuse('UnknownService', message, need.name)]
  })

/** What etcd has to say. Where only the machine itself is unwell, its reboot may be the cure, and override passes. */
const quorum = (operation: TalosOperation, world: World, machine: TalosMachine): readonly Refusal[] => {
  const { action } = specOf(operation)
  const { name } = machine.metadata
  const target = { ...candidateOf(machine), phase: 'Pending' as const }
  const told = (verdict: EtcdGateVerdict): readonly Refusal[] =>
    verdict.pass ? [] : [refuse(verdict.reason, gateText(verdict), verdict.machine)]
  switch (action) {
    case 'reset':
      return controlPlanesOf(world).length < 2 ? [] : told(removalGate({ operation, world, target }))
    case 'etcd-defrag':
      return told(gate(operation, world, { purpose: 'restart', target: name, etcdStepAllowed: true, makesRoom: true }))
    case 'forfeit-leadership':
    case 'restart-service': {
      const verdict = gate(operation, world, { purpose: 'settled', etcdStepAllowed: true })
      return action === 'restart-service' && !verdict.pass
        ? [overridable(verdict.reason, gateText(verdict), verdict.machine)]
        : told(verdict)
    }
    case 'reboot':
    case 'shutdown': {
      const verdict = restartGate({ ...operation, spec: { ...operation.spec, override: false } }, world, name)
      const isCure = !verdict.pass && gate(operation, world, { purpose: 'repair', target: name, etcdStepAllowed: true }).pass
      return isCure && action === 'reboot'
        ? [overridable(verdict.reason, `${gateText(verdict)} All other members are well, so with override it is rebooted as it is.`, name)]
        : told(verdict)
    }
  }
}

const notes = (operation: TalosOperation, world: World, known: Known): readonly string[] => {
  const { facts, machine } = known
  const { action, wipe, rebootAfter } = specOf(operation)
  const nodes = nodeFacts(world)
  const node = nodes.ok ? nodeOf(nodes.value, facts.nodename) : undefined
  const list: string[] = BOOTING.includes(action) ? [...bootsPending(world, [known])] : []
  if (DRAINING.includes(action) && nodes.ok && !node) list.push('It has no Node, so nothing is cordoned or drained.')
  if (DRAINING.includes(action) && nodes.ok && node && isOnlySchedulable(nodes.value, node))
    list.push('No other Node could take its pods, so it is neither cordoned nor drained.')
  const isCordoned = node && !isOnlySchedulable(nodes.ok ? nodes.value : [], node) && operation.spec.drain.policy !== 'skip'
  if (action === 'shutdown') list.push(`It is started again by hand${isCordoned ? '; its Node stays cordoned until it is back' : ''}.`)
  if (action !== 'reset') return list
  if (machine.spec.role === 'controlplane') {
    list.push('Take its address out of load balancers, DNS and the endpoints of talosconfigs first: nobody will answer there.')
    list.push('No snapshot storage is configured for this cluster, so no etcd snapshot is taken first; `talosctl etcd snapshot` takes one.')
  }
  if (wipe === 'disk' && rebootAfter) list.push('With its system disk wiped it boots only from other media, or not at all.')
  list.push(
    `Its TalosMachine stays; delete it afterwards with: kubectl delete talosmachine ${machine.metadata.name} -n ${machine.metadata.namespace}`,
  )
  return list
}
