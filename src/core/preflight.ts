import { LABEL } from '../api/names.ts'
import type { TalosMachine } from '../api/talos-machine.ts'
import type { OperationSpec, TalosOperation } from '../api/talos-operation.ts'
import type { Fault } from '../ports/fault.ts'
import type { NodeFacts } from '../ports/kube.ts'
import type { MachineFacts } from '../ports/talos.ts'
import type { Refusal } from './kind.ts'
import { ailmentOf } from './machine-steps/other-control-planes.ts'
import { controlPlanesOf, isSelected } from './machine-steps/target.ts'
import type { World } from './world.ts'
import { machineFacts, nodeOf, machineTitle } from './world.ts'

/** Refusals that checks of several kinds give. */

/** A machine that answered. */
export type Known = { readonly machine: TalosMachine; readonly facts: MachineFacts; readonly name: string }

export const knownOf = (world: World, machines: readonly TalosMachine[]): readonly Known[] =>
  machines.flatMap(machine => {
    const facts = machineFacts(world, machine.metadata.name)
    return facts.ok ? [{ machine, facts: facts.value, name: facts.value.hostname || machine.metadata.name }] : []
  })

export const refuse = (rule: string, message: string, machine?: string): Refusal =>
  machine ? { rule, message, machine, overridable: false } : { rule, message, overridable: false }
export const overridable = (rule: string, message: string, machine?: string): Refusal => ({
  ...refuse(rule, message, machine),
  overridable: true,
})

/** The same sentence about several machines is told once. */
export const once = (refusals: readonly Refusal[]): readonly Refusal[] =>
  refusals.filter((r, i) => refusals.findIndex(o => o.rule === r.rule && o.message === r.message) === i)

/** It does not run, or not all of it does. */
export const notReady = ({ facts: { stage, unmet }, name, machine }: Known): Refusal =>
  refuse(
    'MachineNotReady',
    `${name} is not ready: ${[`stage ${stage}`, ...unmet].join('; ')}. Wait until it is, or mend it first.`,
    machine.metadata.name,
  )

/**
 * Control planes that are not well, while others are to go away: that leaves fewer API servers than it has to. One of those that goes itself is none of
 * them: its own going may be its cure.
 */
export const besideUnwell = (world: World, going: readonly TalosMachine[]): readonly Refusal[] => {
  const names = going.filter(m => m.spec.role === 'controlplane').map(m => m.metadata.name)
  const ailing = names.length > 0 ? controlPlanesOf(world).filter(m => !names.includes(m.metadata.name)) : []
  return ailing.flatMap(machine => {
    const ailment = ailmentOf(world, machine)
    return ailment && ailment.reason !== 'MachineUnreachable'
      ? [
          overridable(
            ailment.reason,
            `${ailment.what}. While another control plane is away, its API server would be missed. Mend it first, or override.`,
            machine.metadata.name,
          ),
        ]
      : []
  })
}

/** What stands between us and the Nodes. */
export const nodesRefusal = (fault: Fault): Refusal => {
  const rules: Partial<Record<Fault['kind'], string>> = {
    unauthenticated: 'CredentialRejected',
    forbidden: 'PermissionDenied',
    wrongPeer: 'WrongCluster',
  }
  return refuse(rules[fault.kind] ?? 'KubernetesUnreachable', `The Nodes of the cluster cannot be read: ${sentence(fault.message)}`)
}

export const sentence = (text: string): string => text.replace(/\.?$/, '.')

/** The cluster has not been discovered, so nothing can be said of its machines. */
export const unregistered = (world: World): readonly Refusal[] => {
  const cluster = world.cluster.metadata.name
  const ready = world.cluster.status.conditions?.find(c => c.type === 'Ready')
  if (ready?.reason === 'DuplicateCluster') return [refuse('DuplicateCluster', ready.message)]
  if (world.machines.length === 0) {
    if (ready?.reason === 'TalosUnreachable')
      return [
        refuse(
          'TalosUnreachable',
          `The machines of TalosCluster ${cluster} cannot be discovered: ${sentence(ready.message)} Mend that first; they are then discovered by themselves.`,
        ),
      ]
    const why = ready ? sentence(ready.message) : 'It has not been discovered yet; wait for its condition Ready.'
    return [refuse('NoMachines', `TalosCluster ${cluster} has no machines. ${why}`)]
  }
  return []
}

/** The operation is about none of the machines that there are. */
export const noneSelected = (operation: TalosOperation, { cluster, machines }: World): readonly Refusal[] => {
  if (machines.some(m => isSelected(operation, m))) return []
  // Which cluster they are of says the same of all.
  const labels = machines
    .flatMap(m => Object.entries(m.metadata.labels).filter(([key]) => key !== LABEL.cluster))
    .map(([key, value]) => `${key}=${value}`)
  const there = [
    `The machines are ${some(machines.map(m => m.metadata.name))}`,
    labels.length > 0 ? `the labels of TalosMachines ${some([...new Set(labels)].toSorted())}` : 'no TalosMachine has a label',
  ]
  return [
    refuse(
      'NoMachines',
      `spec.machineSelector (${selectorText(operation.spec.machineSelector)}) matches none of the ${machines.length} machines of ${cluster.metadata.name}. ${there.join('; ')}.`,
    ),
  ]
}

/** As it was typed, or would be. */
const selectorText = ({ names = [], matchLabels = {}, matchExpressions = [] }: OperationSpec['machineSelector'] = {}): string =>
  [
    ...(names.length > 0 ? [`one of ${some(names)}`] : []),
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(({ key, operator, values = [] }) => {
      if (operator === 'Exists') return key
      if (operator === 'DoesNotExist') return `!${key}`
      return values.length === 1
        ? `${key}${operator === 'In' ? '=' : '!='}${values[0]}`
        : `${key} ${operator === 'In' ? 'in' : 'notin'} (${values.join(', ')})`
    }),
  ].join(', ')

const MOST = 12
const some = (texts: readonly string[]): string =>
  texts.length > MOST ? `${texts.slice(0, MOST).join(', ')} and ${texts.length - MOST} more` : texts.join(', ')

/** Each of these has to answer. */
export const unanswered = (world: World, machines: readonly TalosMachine[]): readonly Refusal[] => {
  const faults = machines.flatMap(machine => {
    const facts = machineFacts(world, machine.metadata.name)
    return facts.ok ? [] : [{ machine, fault: facts.fault }]
  })
  const silent = faults.filter(f => accessRule(f.fault) === undefined)
  const [first] = silent
  if (first && silent.length > 1 && silent.length === machines.length) {
    return [
      refuse(
        'MachineUnreachable',
        `None of the ${silent.length} machines of ${world.cluster.metadata.name} answers; ${machineTitle(first.machine)} (${first.machine.spec.address}): ${sentence(first.fault.message)} Their port 50000 has to be reachable from where Ichor runs, and the talosconfig has to be of this cluster.`,
      ),
    ]
  }
  return [
    ...ACCESS.flatMap(rule => access(world, rule, faults)),
    ...silent.map(({ machine, fault }) =>
      refuse(
        'MachineUnreachable',
        `${machineTitle(machine)} (${machine.spec.address}) does not answer: ${sentence(fault.message)} Bring it back first; if it is gone for good, take it out of the cluster and delete its TalosMachine.`,
        machine.metadata.name,
      ),
    ),
  ]
}

const ACCESS = ['CredentialRejected', 'PermissionDenied', 'WrongCluster', 'TalosconfigInvalid'] as const

/** What is wrong with our own access, and not with the machine; undefined where it is the machine. */
const accessRule = ({ kind }: Fault): (typeof ACCESS)[number] | undefined => {
  if (kind === 'unauthenticated') return 'CredentialRejected'
  if (kind === 'forbidden') return 'PermissionDenied'
  if (kind === 'wrongPeer') return 'WrongCluster'
  return kind === 'notFound' || kind === 'invalid' ? 'TalosconfigInvalid' : undefined
}

/** One credential serves all machines: what is wrong with it is told once, and not once for each of them. */
const access = (
  world: World,
  rule: (typeof ACCESS)[number],
  faults: readonly { readonly machine: TalosMachine; readonly fault: Fault }[],
): readonly Refusal[] => {
  const [first, ...others] = faults.filter(f => accessRule(f.fault) === rule)
  if (!first) return []
  const { name, namespace } = world.cluster.metadata
  const { talosconfigSecretRef: secret } = world.cluster.spec
  const where = `the Secret ${namespace}/${secret.name}, key ${secret.key}, that TalosCluster ${name} refers to`
  const remedies = {
    CredentialRejected: `Write a fresh talosconfig with the role os:admin into ${where} (\`talosctl config new --roles os:admin\`).`,
    // Who is denied what is said by the message itself: a role of the talosconfig, or the right to read its Secret.
    PermissionDenied: '',
    WrongCluster: `Put the talosconfig of this very cluster into ${where}, or correct the address of the TalosMachine.`,
    TalosconfigInvalid: `Put a talosconfig with the role os:admin into ${where}.`,
  }
  const more = others.some(o => o.fault.message !== first.fault.message) ? ` (and ${others.length} more machines)` : ''
  return [refuse(rule, `${first.fault.message.replace(/\.$/, '')}${more}. ${remedies[rule]}`.trimEnd())]
}

/** Machines at whose address another one answers than was recorded. */
export const impostors = (known: readonly Known[]): readonly Refusal[] =>
  known
    .filter(k => k.machine.status.nodeID !== undefined && k.machine.status.nodeID !== k.facts.nodeID)
    .map(k =>
      refuse(
        'MachineAmbiguous',
        `${k.machine.spec.address} is answered by ${k.facts.hostname} (Talos node id ${k.facts.nodeID}), but TalosMachine ${k.machine.metadata.name} was recorded with the id ${k.machine.status.nodeID}.`,
        k.machine.metadata.name,
      ),
    )

/** Whether every machine is one, and each Node has its machine. */
export const identity = (world: World, known: readonly Known[], nodes: readonly NodeFacts[]): readonly Refusal[] => {
  const twins = (what: string, key: (k: Known) => string, remedy: string): readonly Refusal[] =>
    known.flatMap((k, i) => {
      const twin = known.slice(0, i).find(o => key(o) === key(k) && key(k) !== '')
      return twin
        ? [
            refuse(
              'MachineAmbiguous',
              `TalosMachines ${twin.machine.metadata.name} and ${k.machine.metadata.name} have the same ${what} ${key(k)}: ${remedy}`,
              k.machine.metadata.name,
            ),
          ]
        : []
    })
  const addresses = world.machines.flatMap((m, i) => {
    const twin = world.machines.slice(0, i).find(o => o.spec.address === m.spec.address)
    return twin
      ? [
          refuse(
            'MachineAmbiguous',
            `TalosMachines ${twin.metadata.name} and ${m.metadata.name} have the same address ${m.spec.address}. Delete the one that is wrong.`,
            m.metadata.name,
          ),
        ]
      : []
  })
  const strangers = nodes
    .filter(n => !known.some(k => nodeOf([n], k.facts.nodename) !== undefined) && unansweredCount(world, known) === 0)
    .map(n =>
      refuse(
        'UnknownNode',
        `Node ${n.name} (${n.addresses.join(', ') || 'no address known'}) belongs to no TalosMachine: its machine would be left behind. Write a TalosMachine for it, or delete the Node if its machine is gone.`,
      ),
    )
  const same = twins(
    'Talos node id',
    k => k.facts.nodeID,
    'one of them is not what it says. Delete the TalosMachine that is wrong; it is discovered anew.',
  )
  const namesakes = twins(
    'Node name',
    k => k.facts.nodename.toLowerCase(),
    'only one of them can be that Node. Give the other another host name.',
  )
  const doubles = [addresses, same, namesakes].find(found => found.length > 0) ?? []
  return [...doubles, ...impostors(known), ...strangers]
}

const unansweredCount = (world: World, known: readonly Known[]): number => world.machines.length - known.length
