import { ANNOTATION, API_VERSION, leaseName } from '../../api/names.ts'
import { change, RESOURCE } from '../../world/objects.ts'
import { registerCluster, writeTalosconfig } from '../../world/ports/connections.ts'
import { ICHOR } from '../../world/ports/home.ts'
import type { KubeObject } from '../../world/store.ts'
import { machinesOf } from '../plan.ts'
import type { Plan, Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'
import { CLUSTER, NAMESPACE } from '../story.ts'

/** What people do to the objects by which Ichor knows a cluster, and to those that it finds there; and put right again. */

type Deed = (stage: Stage, index: number) => (() => void) | undefined

const cluster = ({ story: { world } }: Stage): KubeObject | undefined => world.store.get(ICHOR.clusters, NAMESPACE, CLUSTER)

/** The TalosMachine of a machine. */
const objectOf = ({ story: { world } }: Stage, index: number): KubeObject | undefined => {
  const [address] = world.machine(index).addresses
  return world.store.list(ICHOR.machines).items.find(m => (m['spec'] as { address?: string }).address === address)
}

/** Somebody wants something of a cluster of which nothing will come. */
const asksOf = (stage: Stage, name: string, end: () => void): (() => void) => {
  const operation = `on-${name}`
  if (!stage.story.operation(operation))
    stage.story.create({
      name: operation,
      spec: { kind: 'node', clusterRef: { name }, node: { action: 'reboot', machine: stage.machine(0).name } },
    })
  return () => {
    end()
    stage.ask(operation, { cancelled: true })
  }
}

const writeMachineStatus = (stage: Stage, name: string, edit: (now: object) => object): void =>
  void change(stage.story.world.store, ICHOR.machines, NAMESPACE, name, now => ({ ...now, status: edit((now['status'] ?? {}) as object) }))

/** Somebody else holds the lock for a while. */
const lend = (stage: Stage, holderIdentity: string): (() => void) | undefined => {
  const { store } = stage.story.world
  const write = (holder: string): void =>
    void change(store, RESOURCE.leases, NAMESPACE, leaseName(CLUSTER), now => ({
      ...now,
      spec: { ...(now['spec'] as object), holderIdentity: holder },
    }))
  if (!store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))) return undefined
  write(holderIdentity)
  return () => write('')
}

const ONCE_MORE = 'registers the cluster once more'

/** Who deletes the cluster then gives its machines to the other registration, with a lock of its own, which is not the one that is looked at. */
export const isRegisteredTwice = ({ strikes }: Plan): boolean => strikes.some(s => s.what === ONCE_MORE)

const DEEDS: Readonly<Record<string, Deed>> = {
  'deletes the cluster': stage => {
    const { store } = stage.story.world
    const object = cluster(stage)
    if (!object || isRegisteredTwice(stage.plan)) return undefined
    store.remove(ICHOR.clusters, NAMESPACE, CLUSTER)
    return () => {
      if (cluster(stage)) return
      const { apiVersion, kind, spec } = object
      // As it is written down somewhere, without what somebody was trying just then.
      const { windows = [], gates = [] } = stage.plan.shape.setting ?? {}
      store.create(ICHOR.clusters, {
        apiVersion,
        kind,
        metadata: { name: CLUSTER, namespace: NAMESPACE },
        spec: { ...(spec as object), maintenanceWindows: windows, healthGates: gates },
      })
    }
  },
  [ONCE_MORE]: stage => {
    const { world } = stage.story
    // Of two that are made in one second either may be the first, and has the machines.
    if (world.schedule.now() - Date.parse(cluster(stage)?.metadata.creationTimestamp ?? '') < 1000) return undefined
    registerCluster(world, { namespace: NAMESPACE, name: 'home-again' })
    return asksOf(stage, 'home-again', () => void world.store.remove(ICHOR.clusters, NAMESPACE, 'home-again'))
  },
  'registers a cluster that cannot be reached': stage => {
    const { world } = stage.story
    writeTalosconfig(world, { namespace: NAMESPACE, name: 'of-another' }, { clusterID: 'another' })
    if (!world.store.get(ICHOR.clusters, NAMESPACE, 'unreachable'))
      world.store.create(ICHOR.clusters, {
        apiVersion: API_VERSION,
        kind: 'TalosCluster',
        metadata: { name: 'unreachable', namespace: NAMESPACE },
        spec: { talosconfigSecretRef: { name: 'of-another', key: 'talosconfig' } },
      })
    return asksOf(stage, 'unreachable', () => void world.store.remove(ICHOR.clusters, NAMESPACE, 'unreachable'))
  },
  'lets no window open': stage => {
    const { world } = stage.story
    const write = (maintenanceWindows: readonly object[]): void =>
      void change(world.store, ICHOR.clusters, NAMESPACE, CLUSTER, now => ({
        ...now,
        spec: { ...(now['spec'] as object), maintenanceWindows },
      }))
    write([{ schedule: '0 0 31 2 *', duration: '1h', timeZone: 'UTC' }])
    return () => write(stage.plan.shape.setting?.windows ?? [])
  },
  'deletes all machine objects': stage => {
    const { store } = stage.story.world
    for (const { metadata } of store.list(ICHOR.machines).items) store.remove(ICHOR.machines, NAMESPACE, metadata.name)
    return undefined
  },
  'writes the id of another machine into a machine object': (stage, index) => {
    const name = objectOf(stage, index)?.metadata.name
    if (name === undefined) return undefined
    writeMachineStatus(stage, name, now => ({ ...now, nodeID: 'of-somebody-else', uuid: '' }))
    return () => writeMachineStatus(stage, name, () => ({}))
  },
  'writes a second machine object for a machine': (stage, index) => {
    const { store } = stage.story.world
    const { addresses, role } = stage.machine(index)
    const [address, another = address] = addresses
    // A name stays that of one machine: who gives it to another has edited what the operation goes by.
    const name = `once-more-${index}`
    const object = objectOf(stage, index)
    if (!object || address === undefined || store.get(ICHOR.machines, NAMESPACE, name)) return undefined
    store.create(ICHOR.machines, {
      apiVersion: API_VERSION,
      kind: 'TalosMachine',
      metadata: { name, namespace: NAMESPACE, labels: object.metadata.labels ?? {} },
      spec: { clusterRef: { name: CLUSTER }, address: another, role },
    })
    return () => void store.remove(ICHOR.machines, NAMESPACE, name)
  },
  'writes a Node that no machine is': stage => {
    const { store } = stage.story.world
    if (store.get(RESOURCE.nodes, '', 'stranger')) return undefined
    store.create(RESOURCE.nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'stranger' }, spec: {}, status: {} })
    return () => void store.remove(RESOURCE.nodes, '', 'stranger')
  },
  // Only where it tells of nothing yet: what was done once must not be forgotten.
  'writes something else in the place of the deeds': stage => {
    const { store } = stage.story.world
    const lease = store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    if (!lease || lease.metadata.annotations?.[ANNOTATION.deeds] !== undefined) return undefined
    const annotations = { ...lease.metadata.annotations, [ANNOTATION.deeds]: '{"none":true}' }
    store.update(RESOURCE.leases, { ...lease, metadata: { ...lease.metadata, annotations } })
    return undefined
  },
  'writes the lease of the CNI of a cluster that never was': stage => lend(stage, `ichor-controller/cni/${NAMESPACE}/never`),
}

export const objects: Trouble<Stage> = {
  family: 'objects',
  harmless: false,
  draw: ({ random, shape, horizonMs, calls }) => ({
    family: 'objects',
    what: random.pick(Object.keys(DEEDS)),
    when: random.chance(0.3) ? { call: random.between(1, calls) } : { at: random.chance(0.2) ? 0 : random.between(0, horizonMs) },
    machine: random.between(0, machinesOf(shape) - 1),
    forMs: random.between(2000, 240_000),
  }),
  strike: (stage, { what, machine = 0 }) => {
    const deed = DEEDS[what]
    if (!deed) throw new Error(`nobody ${what}`)
    stage.note(`a person ${what}${/machine/.test(what) ? `, ${stage.machine(machine).name}` : ''}`)
    const end = stage.byHand(undefined, () => deed(stage, machine))
    return end && ((): void => stage.byHand(undefined, end))
  },
}
