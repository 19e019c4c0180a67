import type { Machine } from './machine.ts'
import type { Site } from './site.ts'

export type ServiceState = 'Initialized' | 'Preparing' | 'Waiting' | 'Running' | 'Stopping' | 'Finished' | 'Failed' | 'Skipped' | 'Starting'

export type Service = {
  readonly id: string
  state: ServiceState
  health: 'unknown' | 'healthy' | 'unhealthy'
  healthMessage: string
  /** When the health changed last, milliseconds since 1970. */
  healthChangedAt: number
  /** The last 64, oldest first. */
  readonly events: { readonly at: number; readonly state: ServiceState; readonly message: string }[]
}

/** Up with the first word of the machine. A container has no devices, console and logs of its own. */
export const earlyServices = ({ platform }: Machine): readonly string[] =>
  platform === 'container'
    ? ['apid', 'containerd', 'machined']
    : ['apid', 'auditd', 'containerd', 'dashboard', 'machined', 'syslogd', 'udevd']

/** Services without a health check: their health stays unknown. */
const WITHOUT_HEALTH: readonly string[] = ['dashboard']

const EVENTS_KEPT = 64

const serviceOf = (machine: Machine, id: string): Service => {
  const found = machine.services.get(id)
  if (found) return found
  const service: Service = { id, state: 'Initialized', health: 'unknown', healthMessage: '', healthChangedAt: 0, events: [] }
  machine.services.set(id, service)
  return service
}

export const setServiceState = (site: Site, machine: Machine, id: string, state: ServiceState, message: string): void => {
  const service = serviceOf(machine, id)
  service.state = state
  service.events.push({ at: site.schedule.now(), state, message })
  if (service.events.length > EVENTS_KEPT) service.events.shift()
  if (state !== 'Running') {
    // Whoever had a health keeps one when it has ended.
    const hasEnded = state === 'Finished' && service.healthChangedAt > 0
    service.health = hasEnded ? 'unhealthy' : 'unknown'
    service.healthMessage = hasEnded ? 'service not running' : ''
  }
  machine.events.publish(site.schedule.now(), '', { type: 'ServiceStateEvent', service: id, state, message })
  site.tell(machine, 'services')
}

export const setServiceHealth = (site: Site, machine: Machine, id: string, healthy: boolean, message = ''): void => {
  const service = serviceOf(machine, id)
  const health = healthy ? 'healthy' : 'unhealthy'
  if (service.state !== 'Running' || service.health === health || WITHOUT_HEALTH.includes(id)) return
  service.health = health
  service.healthMessage = message
  service.healthChangedAt = site.schedule.now()
  const text = healthy ? 'Health check successful' : `Health check failed: ${message}`
  service.events.push({ at: site.schedule.now(), state: 'Running', message: text })
  site.tell(machine, 'services')
}

/** Running, and healthy where it has a health check. */
export const startService = (site: Site, machine: Machine, id: string): void => {
  setServiceState(site, machine, id, 'Running', `Started task ${id} for container ${id}`)
  setServiceHealth(site, machine, id, true)
}

export const stopService = (site: Site, machine: Machine, id: string): void => {
  const service = machine.services.get(id)
  if (!service || service.state === 'Finished') return
  setServiceState(site, machine, id, 'Stopping', `Sending SIGTERM to task ${id}`)
  setServiceState(site, machine, id, 'Finished', 'Service finished successfully')
}

/** Running and known to be healthy, as the boot sequence waits for. */
export const isServiceUp = (machine: Machine, id: string): boolean => {
  const service = machine.services.get(id)
  return service?.state === 'Running' && (service.health === 'healthy' || WITHOUT_HEALTH.includes(id))
}

/** What the Talos API lets one do with a service, beside a look at it. */
export const serviceOperations = (id: string): readonly ('start' | 'stop' | 'restart')[] => {
  if (id === 'kubelet') return ['start', 'restart']
  return id.startsWith('ext-') ? ['start', 'stop', 'restart'] : []
}
