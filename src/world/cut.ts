import type { Machine } from './machine.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import { STREAM_DEADLINE_MS } from './stream.ts'
import { at, readYaml, textAt } from './yaml-tree.ts'

/** Cuts the machine off the network, or lets it back. It goes on running. */
export const cut = (site: Site, machine: Machine, on: boolean): void => {
  if (machine.cut === on) return
  machine.cut = on
  site.journal.write(machine.name, on ? 'cut' : 'healed')
  const member = site.etcd.memberOf(machine)
  if (on && member?.running) member.frozenIndex = site.etcd.index()
  site.etcd.look()
  // Nobody is told: an open stream ends when its reader finds that the machine no longer answers.
  if (on)
    later(site, machine, STREAM_DEADLINE_MS, () => {
      if (!machine.cut) return
      for (const broken of [...machine.streams]) broken()
    })
  if (machine.kubelet) site.tell(machine, on ? 'kubelet-down' : 'kubelet-up')
}

const networkOf = (address: string): string => address.split('.').slice(0, 3).join('.')

/** A way out through a gateway that is in none of the networks of the machine, as a configuration of the first kind names it: then nothing comes back from it. */
const hasNoWayOut = ({ config, addresses }: Machine): boolean => {
  const networks = new Set(addresses.map(networkOf))
  const [main] = readYaml(config)
  const interfaces = at(main, 'machine', 'network', 'interfaces')
  const routes = Array.isArray(interfaces) ? interfaces.flatMap(one => at(one, 'routes') ?? []) : []
  return routes.some(route => {
    const gateway = textAt(route, 'gateway')
    return gateway !== undefined && !networks.has(networkOf(gateway))
  })
}

/** Whether its configuration cuts it off is seen whenever it has another one. What somebody else cut stays so. */
export const cutByConfig = (site: Site, machine: Machine): void => {
  if (!machine.config.includes('gateway:') && !machine.cutByConfig) return
  const isCut = hasNoWayOut(machine)
  if (isCut === machine.cutByConfig) return
  machine.cutByConfig = isCut
  cut(site, machine, isCut)
}
