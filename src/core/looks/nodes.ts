import { identity } from '../preflight.ts'
import { nodeOf } from '../world.ts'
import type { ClusterSight, SeenMachine } from './cluster-sight.ts'
import { answering, silence, workOn } from './cluster-sight.ts'
import { type Look, orFine, plural, unseenFor, warning, wrong } from './look.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import type { MachineFacts } from '../../ports/talos.ts'

/** Whether the Kubernetes that is talked to is that of these machines, each machine has its Node, and each Node its machine. */
export const nodes: Look<ClusterSight> = {
  name: 'nodes',
  look: sight => {
    const { world } = sight
    const found = world.facts.nodes
    if (!found) return []
    if (!found.ok) return [unseenFor('The Nodes', found.fault)]
    const fault = silence(sight)
    if (fault) return [unseenFor('Which machines the Nodes are', fault)]
    const known = answering(sight)
    const pairs = known.map(one => ({ ...one, node: nodeOf(found.value, one.facts.nodename) }))
    if (isAnother(sight, found.value, pairs))
      return [
        wrong(
          `The Nodes of this Kubernetes (${found.value
            .slice(0, 3)
            .map(({ name }) => name)
            .join(', ')}) are none of the machines of the talosconfig: it is another cluster.`,
          {
            remedy: world.cluster.spec.kubeconfigSecretRef
              ? 'Give a kubeconfig and a talosconfig of the same cluster.'
              : 'Where Ichor runs in another cluster than the one that it works on, it needs a kubeconfig of that one: --managed-kubeconfig FILE with ichor cluster add.',
          },
        ),
      ]
    return orFine(
      [
        ...pairs.flatMap(({ node, name, facts }) =>
          node || facts.nodename === ''
            ? []
            : [
                warning(`${name} has no Node: its kubelet has not registered ${facts.nodename}. Operations wait for it.`, {
                  command: `talosctl -n ${facts.address} service kubelet`,
                }),
              ],
        ),
        ...identity(world, known, found.value)
          .filter(({ rule }) => rule === 'UnknownNode')
          .map(({ message }) => wrong(message)),
        ...found.value
          .filter(({ ready, name }) => !ready && workOn(sight, ({ node }) => node === name) === undefined)
          .map(({ name }) => warning(`Node ${name} is not Ready.`, { command: `kubectl describe node ${name}` })),
      ],
      `${plural(found.value.length, 'Node')}, each with its machine.`,
    )
  },
}

type Pair = SeenMachine & { readonly node: NodeFacts | undefined }

/** Of no machine that is known there is a Node by name; or each that is there is of another machine of that name. */
const isAnother = ({ world }: ClusterSight, all: readonly NodeFacts[], pairs: readonly Pair[]): boolean => {
  if (all.length === 0 || pairs.length === 0) return false
  const named = pairs.flatMap(({ node, facts }) => (node ? [{ node, facts }] : []))
  if (named.length > 0) return named.every(({ node, facts }) => isOther(node, facts))
  // Those that do not answer, or have just joined, may be there all the same.
  return !world.machines.some(({ status }) => status.nodeName !== undefined && nodeOf(all, status.nodeName) !== undefined)
}

/** After a boot its kubelet takes a while to tell the new boot id; the hardware stays the same, where it tells of itself. */
const isOther = ({ bootID, systemUUID }: NodeFacts, { bootID: own, uuid }: MachineFacts): boolean => {
  const isSameHardware = /[1-9a-z]/i.test(uuid) && systemUUID.toLowerCase() === uuid.toLowerCase()
  return bootID !== '' && bootID !== own && !isSameHardware
}
