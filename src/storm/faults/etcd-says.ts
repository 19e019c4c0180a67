import type { EtcdView } from '../../ports/talos.ts'
import { machinesOf } from '../plan.ts'
import type { Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'

/** What members of etcd say of themselves that is true for a moment only, or comes out of broken data; the etcd of the world goes on as it is. */

type Edit = (view: EtcdView, index: number) => EtcdView

const status =
  (edit: (now: EtcdView['status'], index: number) => Partial<EtcdView['status']>): Edit =>
  (view, index) => ({ ...view, status: { ...view.status, ...edit(view.status, index) } })
const members =
  (edit: (now: EtcdView['members']) => EtcdView['members']): Edit =>
  view => ({ ...view, members: edit(view.members) })
const stranger = (name: string): EtcdView['members'][number] => ({
  id: 'f00d',
  name,
  isLearner: false,
  peerURLs: ['https://192.0.2.77:2380'],
})

const anotherThan = ({ members: all, status: { memberID } }: EtcdView) => all.find(m => m.id !== memberID)

/** As every member of an older Talos: then there is nothing to compare. */
const NO_PROTOCOL = 'speaks no protocol that is known'

const SAYS: Readonly<Record<string, Edit>> = {
  'knows another member': members(now => [...now, stranger('old-1')]),
  'knows two other members': members(now => [...now, stranger('old-1'), { ...stranger(''), id: 'f00e', peerURLs: [] }]),
  'knows one that never started': members(now => now.map((m, i) => (i === 0 ? { ...m, name: '' } : m))),
  'knows a learner': members(now => now.map((m, i) => (i === 0 ? { ...m, isLearner: true } : m))),
  'is a learner': status(() => ({ isLearner: true })),
  'knows one member less': members(now => now.slice(1)),
  'knows nobody': members(() => []),
  'has the id of another': view => ({ ...view, status: { ...view.status, memberID: anotherThan(view)?.id ?? 'f00d' } }),
  'has an id that nobody knows': status(() => ({ memberID: 'f00d' })),
  'sees no leader': status(() => ({ leader: '' })),
  'sees another leader': view => {
    const { leader, memberID } = view.status
    return { ...view, status: { ...view.status, leader: leader === memberID ? (anotherThan(view)?.id ?? 'f00d') : memberID } }
  },
  'sees a leader that nobody knows': status(() => ({ leader: 'f00d' })),
  'is in another term': status(({ raftTerm }, index) => ({ raftTerm: raftTerm + 1n + BigInt(index) })),
  'has raised an alarm': view => ({ ...view, alarms: [{ memberID: view.status.memberID, alarm: 'CORRUPT' }] }),
  'repeats an alarm': status(({ memberID }) => ({ errors: [`memberID:${memberID} alarm:CORRUPT`] })),
  'has an error': status(() => ({ errors: ['etcdserver: no leader'] })),
  'lags behind': status(({ raftIndex }) => ({ raftAppliedIndex: raftIndex - 50_000n })),
  'is almost full': status(({ dbSizeInUse }) => ({ dbSize: 2 ** 34, dbSizeInUse: dbSizeInUse })),
  'is full of data': status(() => ({ dbSize: 2 ** 34, dbSizeInUse: 2 ** 34 })),
  [NO_PROTOCOL]: status(() => ({ protocolVersion: 'unknown' })),
  // More than one minor from any other, whichever of them is not asked.
  'speaks a far protocol': status(({ protocolVersion }, index) => ({
    protocolVersion: `3.${Number(protocolVersion.split('.')[1] ?? 0) + 2 * (index + 1)}.0`,
  })),
  'is starting': view => ({ ...view, service: { state: 'Preparing', healthy: false } }),
  'is not well': view => ({ ...view, service: { ...view.service, healthy: false } }),
  'is stopping': view => ({ ...view, service: { state: 'Finished', healthy: true } }),
  'is not there': view => ({ ...view, service: { state: '', healthy: false } }),
}
const WHATS = Object.keys(SAYS)

export const etcdSays: Trouble<Stage> = {
  family: 'etcd-says',
  harmless: false,
  draw: ({ random, shape, horizonMs }) => ({
    family: 'etcd-says',
    what: random.pick(WHATS),
    when: { at: random.chance(0.3) ? 0 : random.between(0, horizonMs) },
    // One says it, or all do.
    times: random.between(0, 1),
    machine: random.between(0, Math.min(shape.controlPlanes, machinesOf(shape)) - 1),
    forMs: random.between(2000, 300_000),
  }),
  strike: (stage, { what, times = 0, machine: index = 0 }) => {
    const { world } = stage.story
    const edit = SAYS[what]
    if (!edit) throw new Error(`etcd does not say ${what}`)
    const controlPlanes = world.machines.filter(m => m.role === 'controlplane')
    const tellers = times > 0 ? controlPlanes : controlPlanes.filter(m => m.index === index)
    stage.note(`etcd of ${tellers.map(m => m.name).join(', ')} ${what}`)
    const addresses = tellers.flatMap(m => m.addresses.map(address => [address, m.index] as const))
    const told = addresses.map(([address, at]) => {
      const said = { since: world.schedule.now(), isOdd: what !== NO_PROTOCOL, edit: (view: EtcdView) => edit(view, at) }
      stage.weather.etcdSays.set(address, said)
      return [address, said] as const
    })
    return () => {
      // It may say something else by now.
      for (const [address, said] of told) if (stage.weather.etcdSays.get(address) === said) stage.weather.etcdSays.delete(address)
    }
  },
}
