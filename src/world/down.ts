import type { Machine } from './machine.ts'
import type { Site } from './site.ts'

/** apid stops: every open stream breaks, every later call is refused. */
export const closeApi = (machine: Machine): void => {
  machine.apid = false
  for (const broken of [...machine.streams]) broken()
  machine.streams.clear()
}

/** The kubelet ends; the Node stays as it is until the node monitor misses it. */
export const stopKubelet = (site: Site, machine: Machine): void => {
  if (!machine.kubelet) return
  machine.kubelet = false
  site.tell(machine, 'kubelet-down')
}

export const stopStaticPods = (site: Site, machine: Machine): void => {
  if (!machine.staticPods) return
  machine.staticPods = false
  machine.pods.clear()
  site.journal.write(machine.name, 'static-pods', 'stopped')
  site.tell(machine, 'static-pods')
}

/** Memory and power are gone, or the kernel is. What was planned in this life will not happen. */
export const goDown = (site: Site, machine: Machine, why: string): void => {
  site.journal.write(machine.name, 'down', why)
  closeApi(machine)
  machine.life++
  machine.sequence = undefined
  machine.installing = false
  machine.applying = undefined
  machine.endTrial = undefined
  machine.configured = undefined
  stopKubelet(site, machine)
  stopStaticPods(site, machine)
  site.etcd.stop(machine)
  machine.services.clear()
  machine.events.clear()
  machine.stage = 'unknown'
  machine.waitsForTime = false
  machine.toldStatus = ''
}
