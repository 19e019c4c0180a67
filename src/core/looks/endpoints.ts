import type { ClusterSight } from './cluster-sight.ts'
import { answering, nameOf, silence } from './cluster-sight.ts'
import { fine, type Finding, listed, type Look, orFine, unseen, unseenFor, warning, wrong } from './look.ts'

/**
 * Whether the Talos API is talked to at addresses that stay with their machines (procedures 1.2, endpoint trap). A virtual address goes to another machine
 * while its holder reboots, and with it every stream that was opened there.
 */
export const endpoints: Look<ClusterSight> = {
  name: 'endpoints',
  look: sight => {
    if (!sight.access.ok) return [unseenFor('Endpoints', sight.hidden ?? sight.access.fault)]
    const own = sight.access.value.endpoints
    const controlPlanes = answering(sight).filter(({ facts }) => facts.role === 'controlplane')
    const better = controlPlanes.map(({ facts }) => facts.address)
    const setThem = {
      remedy: `Name the control planes' own addresses in the talosconfig${sight.isRegistered ? ' of its Secret' : ''}.`,
      command: `talosctl config endpoint ${better.length > 0 ? better.join(' ') : 'CONTROL-PLANE'}`,
    }
    const silent = silence(sight)
    const virtual = virtualAddressesOf(sight)
    const found: readonly Finding[] = [
      ...own.flatMap(endpoint => {
        const host = hostOf(endpoint)
        const address = [host, ...(sight.resolved[endpoint] ?? [])].find(one => virtual.has(plain(one)))
        if (address === undefined) return []
        const named = address === host ? host : `${host} (${address})`
        return [
          warning(
            `Endpoint ${named} is a virtual address: it goes from one control plane to another, and is nobody's while etcd has no quorum.`,
            setThem,
          ),
        ]
      }),
      ...sight.world.machines
        .filter(({ spec }) => virtual.has(plain(spec.address)))
        .map(machine =>
          wrong(
            `The address of ${nameOf(machine)}, ${machine.spec.address}, is a virtual one: another machine may answer there.`,
            sight.isRegistered
              ? {
                  remedy: 'Delete its TalosMachine: it is discovered anew, at an address of its own.',
                  command: `kubectl delete talosmachine ${machine.metadata.name} -n ${machine.metadata.namespace}`,
                }
              : {},
          ),
        ),
      ...(own.length === 0 ? [wrong('The talosconfig names no endpoints: nobody can be asked which machines there are.', setThem)] : []),
      ...(own.length === 1 && better.length > 1 && isAddress(own[0] ?? '') && !virtual.has(plain(hostOf(own[0] ?? '')))
        ? [warning(`${own[0]} is the only endpoint: while that machine is away nobody can be asked which machines there are.`, setThem)]
        : []),
    ]
    if (!sight.members.ok && !silent && own.length > 0)
      return [
        ...found,
        unseen(`No endpoint answers here: ${sight.members.fault.message}`, {
          remedy: 'The machines themselves do; the controller needs one to find new ones.',
        }),
      ]
    if (found.length > 0) return found
    if (silent) return [unseenFor('Whether an endpoint is a virtual address', silent)]
    return orFine(found, fine(`${listed(own)}.`).message)
  },
}

const virtualAddressesOf = ({ virtual }: ClusterSight): ReadonlySet<string> =>
  new Set(Object.values(virtual).flatMap(addresses => (addresses.ok ? addresses.value.map(plain) : [])))

/** Without a port and without brackets. */
const hostOf = (endpoint: string): string =>
  /^\[([^\]]+)\]/.exec(endpoint)?.[1] ?? (endpoint.split(':').length > 2 ? endpoint : (endpoint.split(':')[0] ?? ''))

/** As addresses are compared: of IPv6 in full, lower case. */
const plain = (address: string): string => {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.toLowerCase().split('::')
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':').map(group => group.replace(/^0+(?=.)/, '')))
  const [left, right] = [groups(head), groups(tail ?? '')]
  return tail === undefined
    ? left.join(':')
    : [...left, ...Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0'), ...right].join(':')
}

const isAddress = (endpoint: string): boolean => /^[\d.]+$/.test(hostOf(endpoint)) || hostOf(endpoint).includes(':')
