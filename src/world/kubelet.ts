import { imageVersion, kubernetesConfigOf } from './kubernetes-config.ts'
import type { Machine } from './machine.ts'
import { setServiceState, startService, stopService } from './services.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import { beginStaticPodsAnew, hasProgram } from './static-pods.ts'

/** The addresses that a kubelet is told to be at: the first of each family. */
export const nodeIPsOf = ({ addresses }: Machine): readonly string[] =>
  addresses.filter((address, at) => addresses.findIndex(other => other.includes(':') === address.includes(':')) === at)

/** What its process is started with. */
export const kubeletRunOf = (site: Site, machine: Machine): Machine['kubeletRun'] => {
  const { image, rendered } = kubernetesConfigOf(site, machine).kubelet
  return { image, rendered: `${rendered} ${nodeIPsOf(machine).join()}` }
}

/** The service of the kubelet has its image and starts; without one it fails, and stays so until it is told to start or configured otherwise. */
export const startKubelet = (site: Site, machine: Machine): void => {
  const { denied } = kubernetesConfigOf(site, machine).kubelet
  const { image, rendered } = kubeletRunOf(site, machine)
  // What Talos cannot make a specification of is no service.
  if (denied !== undefined) {
    site.journal.write(machine.name, 'kubelet-denied', denied)
    machine.services.delete('kubelet')
    return site.tell(machine, 'services')
  }
  if (machine.kubeletRun.image !== image && !hasProgram(site, machine, image)) {
    machine.kubeletRun = { image: '', rendered }
    site.journal.write(machine.name, 'pull-failed', image)
    const why = `failed to pull image "${image}": failed to resolve reference "${image}": ${image}: not found`
    setServiceState(site, machine, 'kubelet', 'Failed', `Failed to run pre stage: ${why}`)
    return
  }
  const before = machine.kubeletRun.image
  machine.kubeletRun = { image, rendered }
  startService(site, machine, 'kubelet')
  machine.kubelet = true
  site.tell(machine, 'kubelet-up')
  if (before !== '' && minorOf(before) !== minorOf(image))
    later(site, machine, site.durations.fixed(BEGINS_ANEW_MS), () => beginStaticPodsAnew(site, machine))
}

/** So long after its start a kubelet of another minor ends the containers that it finds, to begin them anew. */
const BEGINS_ANEW_MS = 2000
const minorOf = (image: string): string => imageVersion(image).split('.').slice(0, 2).join('.')

export const endKubelet = (site: Site, machine: Machine): void => {
  stopService(site, machine, 'kubelet')
  if (!machine.kubelet) return
  machine.kubelet = false
  site.tell(machine, 'kubelet-down')
}

/** From the order to start until its process runs, or cannot. */
export const beginKubelet = (site: Site, machine: Machine): void => {
  setServiceState(site, machine, 'kubelet', 'Starting', 'Starting service')
  setServiceState(site, machine, 'kubelet', 'Waiting', 'Waiting for service "cri" to be "up"')
  setServiceState(site, machine, 'kubelet', 'Preparing', 'Running pre state')
  setServiceState(site, machine, 'kubelet', 'Preparing', 'Creating service runner')
  const { kubeletStartMs } = site.faults.of(machine)
  later(site, machine, kubeletStartMs ?? site.durations.draw('kubeletStart'), () => {
    if (machine.services.get('kubelet')?.state === 'Preparing') startKubelet(site, machine)
  })
}

/** One that starts takes the configuration that is there by then. */
const BEGUN: readonly string[] = ['Running', 'Failed']

/** Talos restarts the kubelet when what it was started with is configured otherwise. Pods go on meanwhile. */
export const followKubelet = (site: Site): void => {
  site.listen((machine, change) => {
    if (
      (change !== 'config' && change !== 'addresses') ||
      machine.config === '' ||
      !BEGUN.includes(machine.services.get('kubelet')?.state ?? '')
    )
      return
    const { denied } = kubernetesConfigOf(site, machine).kubelet
    if (machine.kubeletRun.rendered === kubeletRunOf(site, machine).rendered || denied !== undefined) return
    site.journal.write(machine.name, 'kubelet-restart', 'another configuration')
    endKubelet(site, machine)
    beginKubelet(site, machine)
  })
}
