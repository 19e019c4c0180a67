import type { Metadata } from '@grpc/grpc-js'
import type { Answer, Refusal } from '../world/answer.ts'
import { answer, refuse } from '../world/answer.ts'
import { clockOf, isValidAt } from '../world/certificates.ts'
import type { Machine } from '../world/machine.ts'
import { isInMaintenance } from '../world/machine.ts'
import type { Site } from '../world/site.ts'
import { until } from './call.ts'

/** Where apid of the endpoint sends a call: to itself, to one machine by its name as given, or to several. */
export type Route =
  | { readonly to: 'self' }
  | { readonly to: 'one'; readonly target: string }
  | { readonly to: 'many'; readonly targets: readonly string[] }

const FANS_OUT = [
  '/machine.MachineService/',
  '/cluster.ClusterService/',
  '/inspect.InspectService/',
  '/storage.StorageService/',
  '/time.TimeService/',
]

/** HTTP/2 may have joined several values of one key. */
export const valuesOf = (metadata: Metadata, key: string): readonly string[] =>
  metadata.get(key).flatMap(value =>
    value
      .toString()
      .split(',')
      .map(part => part.trim()),
  )

const isNameOf = (machine: Machine, target: string): boolean =>
  machine.addresses.includes(target) || machine.hostname.toLowerCase() === target.toLowerCase()

/** What `node` and `nodes` say, under the rules of the endpoint. */
export const routeOf = (endpoint: Machine, metadata: Metadata, path: string): Answer<Route> => {
  if (metadata.get('proxyfrom').length > 0 || isInMaintenance(endpoint)) return answer({ to: 'self' })
  const node = valuesOf(metadata, 'node')
  const nodes = valuesOf(metadata, 'nodes')
  if (node.length > 1) return refuse('InvalidArgument', 'node metadata must be single-valued')
  const targets = node.length > 0 ? node : nodes
  const [first] = targets
  if (first === undefined) return answer({ to: 'self' })
  for (const target of targets)
    if (target === '' || /^\[.*\]:\d+$|^[^:]+:\d+$/.test(target)) return refuse('Internal', `invalid target ${JSON.stringify(target)}`)
  if (endpoint.role === 'worker') {
    const isSelf = targets.length === 1 && isNameOf(endpoint, first)
    return isSelf ? answer({ to: 'self' }) : refuse('PermissionDenied', 'no request forwarding')
  }
  if (node.length > 0) return answer({ to: 'one', target: first })
  if (!FANS_OUT.some(service => path.startsWith(service)))
    return refuse('InvalidArgument', `one-2-many proxying is not supported for method ${path}`)
  return answer({ to: 'many', targets })
}

const noConnection = (target: string, why: string): Refusal =>
  refuse('Unavailable', `connection error: desc = "transport: Error while dialing: dial tcp ${target}:50000: connect: ${why}"`)

/** A machine in maintenance has a certificate of its own making. */
const STRANGER = refuse(
  'Unavailable',
  'connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"',
)

/** What a client hears of a server that finds its certificate expired, or not valid yet: the same. */
export const EXPIRED = refuse(
  'Unavailable',
  'connection error: desc = "error reading server preface: remote error: tls: expired certificate"',
)

/** Both show a certificate to the other, and each looks at it with its own clock. The endpoint's is as old as the one that it serves with. */
const ofAnotherTime = (site: Site, endpoint: Machine, target: Machine): Refusal | undefined => {
  if (target.certificate && !isValidAt(target.certificate, clockOf(site, endpoint)))
    return refuse(
      'Unavailable',
      'connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate has expired or is not yet valid"',
    )
  if (endpoint.certificate && !isValidAt(endpoint.certificate, clockOf(site, target))) return EXPIRED
  return undefined
}

const isAddress = (target: string): boolean => /^[0-9.]+$/.test(target) || target.includes(':')

/** Connects the endpoint with a machine. Waits for one that is cut off, as TCP would, until the call is over. */
export const reach = async (site: Site, endpoint: Machine, target: string, over: AbortSignal): Promise<Answer<Machine>> => {
  const machine = site.machines.find(m => m.addresses.includes(target))
  if (!machine)
    return isAddress(target)
      ? noConnection(target, 'no route to host')
      : // Names of members mean nothing to apid: it asks DNS.
        refuse('Unavailable', `dns: A record lookup error: lookup ${target}: no such host`)
  if (machine === endpoint) return answer(machine)
  if (!(await until(site, over, () => !machine.cut && !endpoint.cut))) return refuse('DeadlineExceeded', 'context deadline exceeded')
  if (!machine.powered) return noConnection(target, 'no route to host')
  if (!machine.apid) return noConnection(target, 'connection refused')
  if (isInMaintenance(machine)) return STRANGER
  return ofAnotherTime(site, endpoint, machine) ?? answer(machine)
}
