import type { ConfigDocument } from '../../core/config-patch/documents.ts'
import { differsAt, placeOf, saidAt } from '../../core/config-patch/places.ts'
import type { Known } from '../../core/preflight.ts'
import type { Change } from './change.ts'
import type { Objection } from './objections.ts'

/** What has to be another on each machine, and is the same where one patch is for several. */

/** `machine.network.hostname`, and since Talos 1.12 a document of its own. The name of the Node comes from it. */
const HOSTNAMES = ['machine.network.hostname', 'HostnameConfig.hostname'].map(placeOf)

/** The places of static addresses: lists of texts, or of mappings with `address`. A shared address (VIP) has places of its own, a dummy link may have the same everywhere. */
const ADDRESSES = ['LinkConfig', 'BondConfig', 'BridgeConfig', 'VLANConfig', 'WireguardConfig'].map(kind => placeOf(`${kind}.addresses`))
const INTERFACES = placeOf('machine.network.interfaces')

const hostnameIn = (documents: readonly ConfigDocument[]): string | undefined =>
  HOSTNAMES.flatMap(place => saidAt(documents, place)).find(name => typeof name === 'string' && name !== '') as string | undefined

/** Each machine with the hostname that it will have. */
export const sameHostname = (known: readonly Known[], changes: readonly Change[]): readonly Objection[] => {
  const renamed = changes.flatMap(change => {
    const hostname = hostnameIn(change.after)
    const isNew = HOSTNAMES.some(place => differsAt(change.before, change.after, place))
    return isNew && hostname !== undefined ? [{ ...change, hostname }] : []
  })
  const nameOf = (k: Known): string => renamed.find(r => r.machine === k.machine)?.hostname ?? k.facts.hostname
  return renamed.flatMap(({ name, machine, hostname }) => {
    const twin = known.find(k => k.machine !== machine && nameOf(k).toLowerCase() === hostname.toLowerCase())
    if (!twin) return []
    const other = renamed.some(r => r.machine === twin.machine) ? `which ${twin.name} would get, too` : `which ${twin.name} has`
    return [
      {
        ...{ name, machine: machine.metadata.name, rule: 'HostnameTwice' },
        what: `would get the hostname ${hostname}, ${other}: its Node is named by it, and two machines cannot be one Node. Give each its own with \`--machines\``,
      },
    ]
  })
}

/** Empty for nothing. */
const record = (value: unknown): Readonly<Record<string, unknown>> => Object(value) as Readonly<Record<string, unknown>>
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const addressesIn = (documents: readonly ConfigDocument[]): readonly string[] => {
  const interfaces = saidAt(documents, INTERFACES)
    .flatMap(list)
    .map(record)
    .filter(one => one['dummy'] !== true && one['interface'] !== 'lo')
  const devices = [...interfaces, ...interfaces.flatMap(one => list(one['vlans']).map(record))]
  const texts = [
    ...devices.flatMap(one => [one['cidr'], ...list(one['addresses'])]),
    ...ADDRESSES.flatMap(place => saidAt(documents, place).flatMap(list)).map(one => record(one)['address']),
  ]
  return texts.filter((text): text is string => typeof text === 'string' && text !== '')
}

/** A note and no refusal: networks that have nothing to do with each other may use the same addresses. */
export const sameAddresses = (changes: readonly Change[]): readonly string[] => {
  const owners = new Map<string, string[]>()
  for (const { name, before, after } of changes) {
    const had = addressesIn(before)
    for (const address of new Set(addressesIn(after)))
      if (!had.includes(address)) owners.set(address, [...(owners.get(address) ?? []), name])
  }
  return [...owners]
    .filter(([, names]) => names.length > 1)
    .map(
      ([address, names]) =>
        `${names.join(', ')} would all have the static address ${address}, which one machine of a network can have only. Give each its own with \`--machines\`; an address that moves between control planes is a VIP.`,
    )
}
