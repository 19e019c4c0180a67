import type { TalosMachine } from '../../api/talos-machine.ts'
import type { Fault } from '../../ports/fault.ts'
import { identity } from '../preflight.ts'
import type { ClusterSight } from './cluster-sight.ts'
import { answering, inNamespace, nameOf, silence, workOn } from './cluster-sight.ts'
import { type Finding, type Look, orFine, plural, unseen, unseenFor, warning, wrong } from './look.ts'

/** Whether every machine answers, runs, is who it was, and is known to Ichor. */
export const machines: Look<ClusterSight> = {
  name: 'machines',
  look: sight => {
    const fault = silence(sight)
    if (fault) return [unseenFor('The machines', fault)]
    const { world, members } = sight
    const known = answering(sight)
    return orFine(
      [
        ...world.machines.flatMap(machine => {
          const facts = world.facts.machines[machine.metadata.name]
          if (!facts || facts.ok) return []
          const operation = workOn(sight, target => target.name === machine.metadata.name)
          return [
            operation
              ? warning(`${nameOf(machine)} is away while operation ${operation} is at work on it.`)
              : away(machine, facts.fault, sight),
          ]
        }),
        ...known.flatMap(({ machine, name, facts }) =>
          (facts.stage === 'running' && facts.ready) || workOn(sight, target => target.name === machine.metadata.name) !== undefined
            ? []
            : [
                warning(
                  `${name} is not ready: stage ${facts.stage}${facts.unmet.length > 0 ? `; ${facts.unmet.join('; ')}` : ''}. Nothing is begun on other machines meanwhile.`,
                  { command: `talosctl -n ${facts.address} dmesg` },
                ),
              ],
        ),
        ...known
          .filter(({ facts }) => facts.fallbackArmed && facts.stage === 'running' && facts.ready)
          .map(({ name, facts }) =>
            warning(`${name} has not confirmed its last upgrade: at its next failed boot it would go back to the version before.`, {
              command: `talosctl -n ${facts.address} get metakeys`,
            }),
          ),
        ...identity(world, known, []).map(({ message }) => wrong(message)),
        ...(sight.isRegistered ? unregistered(sight) : []),
        ...(members.ok && members.value.length === 0
          ? [
              warning('Talos knows no members of the cluster: is cluster discovery switched off?', {
                remedy: 'Write a TalosMachine for each machine by hand.',
              }),
            ]
          : []),
      ],
      `${plural(known.length, 'machine')}, all running and ready.`,
    )
  },
}

/** A machine whose clock is wrong refuses certificates, or shows one that is not valid here; it can be asked through another. */
const clockCure = (address: string, sight: ClusterSight) => {
  const [other] = answering(sight).filter(({ facts }) => facts.role === 'controlplane')
  return {
    remedy: 'What is shown as a certificate of another time is often a wrong clock.',
    command: `talosctl${other ? ` -e ${other.facts.address}` : ''} -n ${address} time`,
  }
}

const away = (machine: TalosMachine, fault: Fault, sight: ClusterSight): Finding => {
  const { metadata, spec } = machine
  const name = `${nameOf(machine)} (${spec.address})`
  switch (fault.kind) {
    case 'unreachable':
    case 'busy':
    case 'unauthenticated':
      if (/certificate/.test(fault.message)) return wrong(`${name} does not answer: ${fault.message}`, clockCure(spec.address, sight))
      return wrong(`${name} does not answer: ${fault.message}`, {
        remedy:
          'Bring it back, or let its port 50000 be reached from here. If it is gone for good: take it out of etcd and Kubernetes first.',
        ...(sight.isRegistered
          ? { command: `kubectl delete talosmachine ${metadata.name} -n ${sight.world.cluster.metadata.namespace}` }
          : {}),
      })
    case 'cancelled':
      return unseen(`${name} was not asked.`)
    default:
      return wrong(`${name}: ${fault.message}`)
  }
}

/** Members that Talos tells of, for which there is no TalosMachine. */
const unregistered = (sight: ClusterSight): readonly Finding[] => {
  const { world, members } = sight
  if (!members.ok) return []
  const known = answering(sight)
  return members.value
    .filter(
      member =>
        !known.some(({ facts }) => facts.nodeID === member.nodeID) &&
        !world.machines.some(({ spec, status }) => status.nodeID === member.nodeID || member.addresses.includes(spec.address)),
    )
    .map(({ hostname, addresses }) =>
      warning(`${hostname} (${addresses[0] ?? 'no address'}) is a member of the cluster and has no TalosMachine.`, {
        remedy: 'A controller at work writes one within a minute; where it does not, its log says why.',
        command: inNamespace(sight, `ichor cluster get ${world.cluster.metadata.name}`),
      }),
    )
}
