import type { Answer } from './answer.ts'
import { answer, refuse } from './answer.ts'
import { beginKubelet, endKubelet } from './kubelet.ts'
import type { Machine } from './machine.ts'
import { serviceOperations, setServiceState, startService, stopService } from './services.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'

export type ServiceOperation = 'start' | 'stop' | 'restart'

const PAST: Readonly<Record<ServiceOperation, string>> = { start: 'started', stop: 'stopped', restart: 'restarted' }

const begin = (site: Site, machine: Machine, id: string): void => {
  if (id === 'kubelet') return beginKubelet(site, machine)
  setServiceState(site, machine, id, 'Starting', 'Starting service')
  setServiceState(site, machine, id, 'Waiting', 'Waiting for service "cri" to be "up"')
  setServiceState(site, machine, id, 'Preparing', 'Running pre state')
  setServiceState(site, machine, id, 'Preparing', 'Creating service runner')
  later(site, machine, site.durations.draw('kubeletStart'), () => {
    if (machine.services.get(id)?.state === 'Preparing') startService(site, machine, id)
  })
}

const end = (site: Site, machine: Machine, id: string): void =>
  id === 'kubelet' ? endKubelet(site, machine) : stopService(site, machine, id)

/**
 * What the Talos API does to a service: the kubelet can be started again, services of extensions can be stopped, all others are Talos' own. Answers
 * with its own words as soon as the service begins to start. Pods that run go on running without their kubelet.
 */
export const controlService = (site: Site, machine: Machine, id: string, operation: ServiceOperation): Answer<string> => {
  const name = JSON.stringify(id)
  const service = machine.services.get(id)
  if (!service) return refuse('Unknown', `service ${name} not defined`)
  const isOn = service.state !== 'Finished' && service.state !== 'Failed' && service.state !== 'Initialized' && service.state !== 'Skipped'
  const done = answer(`Service ${name} ${PAST[operation]}`)
  // What is as it shall be is granted, whatever the service.
  if (operation === 'start' ? isOn : operation === 'stop' && !isOn) return done
  if (!serviceOperations(id).includes(operation)) return refuse('Unknown', `service ${name} doesn't support ${operation} operation via API`)
  site.journal.write(machine.name, `service-${operation}`, id)
  if (operation !== 'start' && isOn) end(site, machine, id)
  if (operation !== 'stop') begin(site, machine, id)
  return done
}
