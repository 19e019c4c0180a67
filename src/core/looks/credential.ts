import { seen } from './look.ts'
import type { ClusterSight } from './cluster-sight.ts'
import { fine, lackOf, listed, type Look, unseen, wrong } from './look.ts'

const NEEDED = 'os:admin'

/** Whether the talosconfig can be used at all, and has the role that Ichor needs (spec 2, talos-api 1.6). */
export const credential: Look<ClusterSight> = {
  name: 'talosconfig',
  look: sight => {
    const cure = {
      remedy: `Write a talosconfig of this very cluster with the role ${NEEDED}${sight.isRegistered ? ` into ${secretOf(sight)}` : ''}; one that has it makes another.`,
      command: `talosctl --talosconfig ADMIN config new --roles ${NEEDED} FILE`,
    }
    if (sight.hidden)
      return [
        unseen(`${secretOf(sight)} is not for you to read: ${sight.hidden.message}`, {
          remedy: `Nothing is wrong with that.${sight.isSeenBesides ? '' : ' To look at its machines all the same, bring a talosconfig of your own: --talosconfig FILE.'}`,
          ...lackOf(sight.hidden),
        }),
      ]
    if (!sight.access.ok && (sight.access.fault.kind === 'unreachable' || sight.access.fault.kind === 'busy'))
      return seen('The talosconfig', sight.access, () => [])
    if (!sight.access.ok) return [wrong(sight.access.fault.message, cure)]
    const { roles } = sight.access.value
    if (!roles.includes(NEEDED))
      return [wrong(`Its certificate has ${roles.length === 0 ? 'no role' : `the role ${listed(roles)}`}; Ichor needs ${NEEDED}.`, cure)]
    const { members } = sight
    if (!members.ok && refusing.has(members.fault.kind)) return [wrong(`The machines do not take it: ${members.fault.message}`, cure)]
    return [fine(`Role ${NEEDED}.`)]
  },
}

const refusing: ReadonlySet<string> = new Set(['wrongPeer', 'unauthenticated', 'forbidden'])

const secretOf = ({ world: { cluster } }: ClusterSight): string =>
  `Secret ${cluster.metadata.namespace}/${cluster.spec.talosconfigSecretRef.name}, key ${cluster.spec.talosconfigSecretRef.key}`
