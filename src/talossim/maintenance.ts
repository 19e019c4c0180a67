import type { Refusal } from '../world/answer.ts'
import { refuse } from '../world/answer.ts'
import type { Machine } from '../world/machine.ts'
import { versionOf } from '../world/machine.ts'
import { isAtLeast } from '../world/releases.ts'
import { mayCall } from './roles.ts'

const APPLY = '/machine.MachineService/ApplyConfiguration'

const CLIENT_CONFIGURATION = '/machine.MachineService/GenerateClientConfiguration'

/** What the service of before 1.13 does for everybody. */
const OPEN: readonly string[] = [APPLY, '/storage.StorageService/Disks', '/storage.StorageService/BlockDeviceWipe'].concat(
  ['Get', 'List', 'Watch'].map(method => `/cosi.resource.State/${method}`),
)
/** What it does only for callers that come over SideroLink. */
const CLOSED: readonly string[] = ['Version', 'Upgrade', 'Reset', 'MetaWrite', 'MetaDelete'].map(
  method => `/machine.MachineService/${method}`,
)

/**
 * The roles of whoever calls a machine in maintenance. It asks nobody for a certificate: over SideroLink all are its administrators, over the network
 * they may look since 1.13, and had no role before.
 */
export const rolesInMaintenance = (machine: Machine): ReadonlySet<string> => {
  if (machine.siderolink) return new Set(['os:admin'])
  return new Set(isAtLeast(versionOf(machine), 1, 13) ? ['os:reader'] : [])
}

/** Why a machine in maintenance does not do what it is asked; undefined where it does. */
export const refusalInMaintenance = (machine: Machine, path: string): Refusal | undefined => {
  const version = versionOf(machine)
  const roles = rolesInMaintenance(machine)
  if (isAtLeast(version, 1, 13)) return mayCall(roles, path, version) ? undefined : refuse('PermissionDenied', 'not authorized')
  if (OPEN.includes(path)) return undefined
  if (CLOSED.includes(path))
    return roles.has('os:admin') ? undefined : refuse('Unimplemented', 'API is not implemented in maintenance mode')
  const [, service = '', method = ''] = path.split('/')
  if (path === CLIENT_CONFIGURATION)
    return refuse('Unimplemented', "client configuration (talosconfig) can't be generated in the maintenance mode")
  return service === 'machine.MachineService'
    ? refuse('Unimplemented', `method ${method} not implemented`)
    : refuse('Unimplemented', `unknown service ${service}`)
}
