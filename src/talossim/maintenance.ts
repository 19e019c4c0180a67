import type { Refusal } from '../world/answer.ts'
import { refuse } from '../world/answer.ts'
import type { Machine } from '../world/machine.ts'
import { versionOf } from '../world/machine.ts'
import { isAtLeast } from '../world/releases.ts'
import { mayCall } from './roles.ts'

const APPLY = '/machine.MachineService/ApplyConfiguration'

/** What the service of before 1.13 does for everybody. */
const OPEN: readonly string[] = [APPLY, '/storage.StorageService/Disks', '/storage.StorageService/BlockDeviceWipe'].concat(
  ['Get', 'List', 'Watch'].map(method => `/cosi.resource.State/${method}`),
)
/** What it does only for callers that come another way than over the network. */
const CLOSED: readonly string[] = ['Version', 'Upgrade', 'Reset', 'MetaWrite', 'MetaDelete'].map(
  method => `/machine.MachineService/${method}`,
)

/** Whoever calls a machine in maintenance: it asks nobody for a certificate. */
export const anybody: ReadonlySet<string> = new Set(['os:reader'])

/** Why a machine in maintenance does not do what it is asked; undefined where it does. */
export const refusalInMaintenance = (machine: Machine, path: string): Refusal | undefined => {
  if (isAtLeast(versionOf(machine), 1, 13))
    return path === APPLY || mayCall(anybody, path) ? undefined : refuse('PermissionDenied', 'not authorized')
  if (OPEN.includes(path)) return undefined
  if (CLOSED.includes(path)) return refuse('Unimplemented', 'API is not implemented in maintenance mode')
  const [, service = '', method = ''] = path.split('/')
  return service === 'machine.MachineService'
    ? refuse('Unimplemented', `method ${method} not implemented`)
    : refuse('Unimplemented', `unknown service ${service}`)
}
