import { advertise } from './etcd-membership.ts'
import type { Machine } from './machine.ts'
import type { Site } from './site.ts'

/** The machine is at these addresses from now on. Everybody else finds out by and by: discovery at once, its Node with the next boot, etcd when it can. */
export const readdress = (site: Site, machine: Machine, addresses: readonly string[]): void => {
  machine.addresses = [...addresses]
  machine.nextAddresses = undefined
  site.journal.write(machine.name, 'addresses', addresses.join(' '))
  site.tell(machine, 'addresses')
  advertise(site, machine)
}
