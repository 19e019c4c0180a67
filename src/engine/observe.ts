import type { TalosOperation } from '../api/talos-operation.ts'
import type { TalosCluster } from '../api/talos-cluster.ts'
import type { TalosMachine } from '../api/talos-machine.ts'
import { withoutLeft } from '../core/left.ts'
import { holderNamed, isHeldBy } from '../core/lock-claim.ts'
import type { Timing } from '../core/timing.ts'
import type { Facts, Need, RunningAct, World } from '../core/world.ts'
import { NO_FACTS, dryRunKey, isKnown, lastWordsKey, objectKey, serviceKey, textsKey } from '../core/world.ts'
import type { Clock } from '../ports/clock.ts'
import type { Connections } from '../ports/connections.ts'
import type { Result } from '../ports/fault.ts'
import { ok } from '../ports/fault.ts'
import type { Home, Lease } from '../ports/home.ts'
import type { Kube } from '../ports/kube.ts'
import type { Talos } from '../ports/talos.ts'
import { readLock } from './cluster-lock.ts'

export type Observer = {
  readonly home: Home
  readonly connections: Connections
  readonly clock: Clock
  readonly timing: Timing
  readonly self: World['self']
  /** For how long the operation has been in sight; 0 where nobody has looked at it before. */
  readonly watchedMs?: number
}

/** The world without facts: what lives at home, and the time. */
export const observe = async (
  observer: Observer,
  operation: TalosOperation,
  cluster: TalosCluster,
  running: readonly RunningAct[],
): Promise<Result<World>> => {
  const { home, clock, timing, self, watchedMs = 0 } = observer
  const { namespace } = operation.metadata
  const [machines, lock] = await Promise.all([
    home.machines({ namespace, name: cluster.metadata.name }),
    readLock(home, namespace, cluster.metadata.name),
  ])
  if (!machines.ok) return machines
  if (!lock.ok) return lock
  // Who has the lock, checked under it, asks about nobody else.
  const isAlone = isHeldBy(lock.value, operation) && operation.status.preflight?.underLock === true
  const others = isAlone ? ok([]) : await home.operations(namespace)
  if (!others.ok) return others
  const fresh = await withHolder(home, operation, lock.value, { cluster, machines: machines.value, others: others.value })
  if (!fresh.ok) return fresh
  return ok({
    now: clock.now(),
    watchedMs,
    timing,
    cluster: fresh.value.cluster,
    machines: withoutLeft(fresh.value.machines, lock.value).toSorted(controlPlanesFirst),
    lock: lock.value,
    others: fresh.value.others.filter(o => o.metadata.uid !== operation.metadata.uid && o.spec.clusterRef.name === cluster.metadata.name),
    self,
    running,
    facts: NO_FACTS,
  })
}

type Listed = Pick<World, 'cluster' | 'machines' | 'others'>

/**
 * A list may be old, so whoever else holds the lock is read by itself, and after the Lease: nobody takes the lock from a holder that only looked as if it
 * had failed, or was not yet there.
 */
const withHolder = async (home: Home, operation: TalosOperation, lock: Lease | undefined, listed: Listed): Promise<Result<Listed>> => {
  const holder = lock && !isHeldBy(lock, operation) ? holderNamed(lock.holder) : undefined
  if (!holder) return ok(listed)
  const isAnother = ({ metadata }: Pick<TalosOperation, 'metadata'>): boolean =>
    metadata.namespace !== holder.namespace || metadata.name !== holder.name
  const read = async <T>(asked: Promise<Result<T>>, use: (found: readonly T[]) => Listed): Promise<Result<Listed>> => {
    const found = await asked
    return found.ok ? ok(use([found.value])) : found.fault.kind === 'notFound' ? ok(use([])) : found
  }
  switch (holder.sort) {
    case 'op':
      return read(home.operation(holder), found => ({ ...listed, others: [...listed.others.filter(isAnother), ...found] }))
    case 'machine':
      return read(home.machine(holder), found => ({
        ...listed,
        machines: [...listed.machines.filter(isAnother), ...found.filter(m => m.spec.clusterRef.name === operation.spec.clusterRef.name)],
      }))
    case 'cni':
      return read(home.cluster(holder), ([found]) => ({ ...listed, cluster: found && !isAnother(listed.cluster) ? found : listed.cluster }))
  }
}

/** By role, then by name: a list out of a cache comes in any order, and what is said of machines must not change with it. */
const controlPlanesFirst = (a: TalosMachine, b: TalosMachine): number =>
  a.spec.role === b.spec.role ? (a.metadata.name < b.metadata.name ? -1 : 1) : a.spec.role === 'controlplane' ? -1 : 1

export type Gatherer = Pick<Observer, 'connections' | 'clock'> & { readonly home: Pick<Home, 'texts' | 'policies'> }

/** The same world with the facts that were asked for. What cannot be read stands there as the fault. */
export const gather = async (observer: Gatherer, world: World, needs: readonly Need[]): Promise<World> => {
  const [talos, kube] = await Promise.all([observer.connections.talos(world.cluster), observer.connections.kube(world.cluster)])
  let facts = world.facts
  const read = needs.filter(n => !isKnown(facts, n)).map(n => readFacts(n, world, observer.home, talos, kube))
  for (const more of await Promise.all(read)) facts = merged(facts, more)
  return { ...world, facts, now: observer.clock.now() }
}

const readFacts = async (
  need: Need,
  world: World,
  home: Gatherer['home'],
  talos: Result<Talos>,
  kube: Result<Kube>,
): Promise<Partial<Facts>> => {
  const { machines } = world
  const withMachine = async <T>(name: string, ask: (port: Talos, address: string) => Promise<Result<T>>): Promise<Result<T>> => {
    const machine = machines.find(m => m.metadata.name === name)
    return machine ? withPort(talos, t => ask(t, machine.spec.address)) : gone(name)
  }
  switch (need.what) {
    case 'machine':
      return { machines: { [need.name]: await withMachine(need.name, (t, address) => t.machine(address)) } }
    case 'service':
      return { services: { [serviceKey(need)]: await withMachine(need.name, (t, address) => t.service(address, need.service)) } }
    case 'maintenance':
      return { maintenance: { [need.name]: await withMachine(need.name, (t, address) => t.maintenance(address)) } }
    case 'components':
      return { components: { [need.name]: await withMachine(need.name, (t, address) => t.components(address)) } }
    case 'lastWords':
      return { lastWords: { [lastWordsKey(need)]: await withMachine(need.name, (t, address) => t.lastWords(address, need.component)) } }
    case 'configuration':
      return { configurations: { [need.name]: await withMachine(need.name, (t, address) => t.configuration(address)) } }
    case 'dryRun':
      return { dryRuns: { [dryRunKey(need)]: await withMachine(need.name, (t, address) => t.dryRun(address, need.text, need.mode)) } }
    case 'texts':
      return { texts: { [textsKey(need)]: await home.texts(need.kind, { namespace: world.cluster.metadata.namespace, name: need.name }) } }
    case 'manifests': {
      const manifests = await withMachine(need.name, (t, address) => t.manifests(address))
      return {
        manifests: { [need.name]: manifests.ok ? await withPort(kube, k => k.compareManifests(manifests.value)) : manifests },
      }
    }
    case 'controlPlane':
      return { controlPlane: await withPort(kube, k => k.controlPlane()) }
    case 'deprecatedApis':
      return { deprecatedApis: await withPort(kube, k => k.deprecatedApis()) }
    case 'object':
      return { objects: { [objectKey(need.ref)]: await withPort(kube, k => k.object(need.ref)) } }
    case 'etcd': {
      const controlPlanes = machines.filter(m => m.spec.role === 'controlplane')
      const views = await Promise.all(
        controlPlanes.map(async m => [m.metadata.name, await withPort(talos, t => t.etcd(m.spec.address))] as const),
      )
      return { etcd: Object.fromEntries(views) }
    }
    case 'nodes':
      return { nodes: await withPort(kube, k => k.nodes()) }
    case 'pods':
      return { pods: { [need.node]: await withPort(kube, k => k.podsOn(need.node)) } }
    case 'volumes':
      return { volumes: { [need.node]: await withPort(kube, k => k.volumeAttachments(need.node)) } }
    case 'budgets':
      return { budgets: await withPort(kube, k => k.budgets()) }
    case 'addons':
      return { addons: await withPort(kube, k => k.addons()) }
    case 'policies':
      return { policies: await home.policies() }
    case 'kubernetes':
      return { kubernetes: await withPort(kube, k => k.version()) }
  }
}

const withPort = async <P, T>(port: Result<P>, ask: (port: P) => Promise<Result<T>>): Promise<Result<T>> =>
  port.ok ? ask(port.value) : port

const gone = (name: string): Result<never> => ({ ok: false, fault: { kind: 'notFound', message: `TalosMachine ${name} no longer exists` } })

const merged = (facts: Facts, more: Partial<Facts>): Facts => ({
  ...facts,
  ...more,
  machines: { ...facts.machines, ...more.machines },
  pods: { ...facts.pods, ...more.pods },
  volumes: { ...facts.volumes, ...more.volumes },
  services: { ...facts.services, ...more.services },
  maintenance: { ...facts.maintenance, ...more.maintenance },
  components: { ...facts.components, ...more.components },
  lastWords: { ...facts.lastWords, ...more.lastWords },
  manifests: { ...facts.manifests, ...more.manifests },
  configurations: { ...facts.configurations, ...more.configurations },
  dryRuns: { ...facts.dryRuns, ...more.dryRuns },
  texts: { ...facts.texts, ...more.texts },
  objects: { ...facts.objects, ...more.objects },
})
