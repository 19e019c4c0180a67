import type { ClusterMember, MachineFacts } from '../../ports/talos.ts'
import { machinesOf } from '../plan.ts'
import type { Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'

/** What machines say of themselves and of each other that is true for a moment only, or less than one would like to know; the world goes on as it is. */

type OfItself = (facts: MachineFacts) => MachineFacts
type OfAll = (members: readonly ClusterMember[]) => readonly ClusterMember[]

const without =
  (...fields: readonly ('hostname' | 'nodename' | 'uuid' | 'nodeID' | 'clusterID')[]): OfItself =>
  facts => ({ ...facts, ...Object.fromEntries(fields.map(field => [field, ''])) })

const OF_ITSELF: Readonly<Record<string, OfItself>> = {
  // A machine reads its own names one after the other.
  'knows little of itself while it starts': facts =>
    facts.stage === 'running' && facts.ready ? facts : without('hostname', 'nodename', 'uuid', 'nodeID', 'clusterID')(facts),
  'has no host name': without('hostname'),
  'has no UUID': without('uuid'),
  'does not know its own id': without('nodeID'),
  'does not know its cluster': without('clusterID'),
  'is not ready, and does not say why': facts => ({ ...facts, ready: false, unmet: [] }),
  'is not ready for two reasons': facts => ({ ...facts, ready: false, unmet: ['time: it is not in sync', 'services: one is not healthy'] }),
}

const first =
  (edit: (one: ClusterMember, others: readonly ClusterMember[]) => ClusterMember): OfAll =>
  ([one, ...others]) =>
    one ? [edit(one, others), ...others] : []

const OF_ALL: Readonly<Record<string, OfAll>> = {
  'know no members': () => [],
  'know of one no address': first(one => ({ ...one, addresses: [] })),
  'know of one no id': first(one => ({ ...one, nodeID: '' })),
  'know of one no host name': first(one => ({ ...one, hostname: '' })),
  'know of one an address that is that of another': first((one, others) => ({
    ...one,
    addresses: [...(others[0]?.addresses ?? []), ...one.addresses],
  })),
}

export const machineSays: Trouble<Stage> = {
  family: 'machine-says',
  harmless: false,
  draw: ({ random, shape, horizonMs }) => ({
    family: 'machine-says',
    what: random.pick([...Object.keys(OF_ITSELF), ...Object.keys(OF_ITSELF), ...Object.keys(OF_ALL)]),
    when: { at: random.chance(0.3) ? 0 : random.between(0, horizonMs) },
    machine: random.between(0, machinesOf(shape) - 1),
    forMs: random.between(2000, 300_000),
  }),
  strike: (stage, { what, machine: index = 0 }) => {
    const { weather } = stage
    const [ofItself, ofAll] = [OF_ITSELF[what], OF_ALL[what]]
    if (ofAll) {
      stage.note(`the machines ${what}`)
      weather.membersSay = ofAll
      return () => void (weather.membersSay = undefined)
    }
    if (!ofItself) throw new Error(`no machine says ${what}`)
    const { name, addresses } = stage.machine(index)
    stage.note(`${name} ${what}`)
    for (const address of addresses) weather.machineSays.set(address, ofItself)
    return () => {
      for (const address of addresses) weather.machineSays.delete(address)
    }
  },
}
