import type { TalosCluster, TalosClusterSpec } from '../api/talos-cluster.ts'
import type { TalosMachine } from '../api/talos-machine.ts'
import { withoutLeft } from '../core/left.ts'
import type { Access, ClusterSight } from '../core/looks/cluster-sight.ts'
import { machineName } from '../core/machine-name.ts'
import { ofRecorded } from '../core/recorded-machine.ts'
import { timing } from '../core/timing.ts'
import type { Need, World } from '../core/world.ts'
import { NO_FACTS } from '../core/world.ts'
import type { Clock } from '../ports/clock.ts'
import type { Connections } from '../ports/connections.ts'
import type { Fault, Result } from '../ports/fault.ts'
import { failed, ok } from '../ports/fault.ts'
import type { Home, Key } from '../ports/home.ts'
import type { ClusterMember, Talos } from '../ports/talos.ts'
import { readLock } from './cluster-lock.ts'
import { gather } from './observe.ts'
import { reach } from './reach.ts'

export type Examiner = {
  readonly connections: Connections
  readonly clock: Clock
  /** How long endpoints may take to answer. */
  readonly withinMs: number
  /** The addresses of a name; none where it has none. */
  readonly resolve: (endpoint: string) => Promise<readonly string[]>
}

/** What only whoever asks can know. */
type Beside = Pick<ClusterSight, 'certificates' | 'controllerNodes'>
export const NOTHING_BESIDE: Beside = { certificates: [], controllerNodes: [] }

type Recorded = Pick<ClusterSight, 'isRegistered' | 'hidden' | 'lock' | 'operations'> & {
  readonly cluster: TalosCluster
  /** Undefined: those that Talos knows. */
  readonly machines: readonly TalosMachine[] | undefined
}

/** Looks at a cluster as it stands, with the rights of whoever asks. Reads only. The fault where its TalosCluster or its machines cannot be read. */
export const examineCluster = async (
  examiner: Examiner & { readonly home: Home },
  key: Key,
  beside: Beside = NOTHING_BESIDE,
): Promise<Result<ClusterSight>> => {
  const { home } = examiner
  const cluster = await home.cluster(key)
  if (!cluster.ok) return cluster
  const [machines, lock, operations, hidden] = await Promise.all([
    home.machines(key),
    readLock(home, key.namespace, key.name),
    home.operations(key.namespace),
    unreadableSecret(home, key.namespace, [cluster.value.spec.talosconfigSecretRef]),
  ])
  if (!machines.ok) return machines
  const recorded = {
    cluster: cluster.value,
    isRegistered: true,
    hidden,
    lock,
    operations: operations.ok ? ok(operations.value.filter(({ spec }) => spec.clusterRef.name === key.name)) : operations,
    machines: withoutLeft(machines.value, lock.ok ? lock.value : undefined),
  }
  return ok(await examined(examiner, recorded, beside))
}

/** The same of one that is not registered, by its credentials alone. `spec`: what it would be registered with. */
export const examineStranger = (
  examiner: Examiner,
  { name, namespace }: Key,
  spec: Partial<TalosClusterSpec> = {},
  beside: Beside = NOTHING_BESIDE,
): Promise<ClusterSight> =>
  examined(
    examiner,
    {
      cluster: { metadata: imagined(name, namespace), spec: { talosconfigSecretRef: { name, key: 'talosconfig' }, ...spec }, status: {} },
      isRegistered: false,
      hidden: undefined,
      lock: ok(undefined),
      operations: ok([]),
      machines: undefined,
    },
    beside,
  )

const examined = async (examiner: Examiner, recorded: Recorded, beside: Beside): Promise<ClusterSight> => {
  const { connections, clock, withinMs, resolve } = examiner
  const { cluster, machines: known, lock, operations } = recorded
  const [talos, kube] = await Promise.all([connections.talos(cluster), connections.kube(cluster)])
  const members = talos.ok ? await reach(talos.value, clock, withinMs) : talos
  const machines = (known ?? (members.ok ? members.value.map(member => machineOf(member, cluster)) : [])).toSorted(controlPlanesFirst)
  const world: World = {
    now: clock.now(),
    watchedMs: 0,
    timing: timing(),
    cluster,
    machines,
    lock: lock.ok ? lock.value : undefined,
    others: operations.ok ? operations.value : [],
    self: undefined,
    running: [],
    facts: NO_FACTS,
  }
  const ask = async <T>(question: (port: Talos, address: string) => Promise<Result<T>>): Promise<Record<string, Result<T>>> =>
    Object.fromEntries(
      await Promise.all(
        machines.map(async ({ metadata, spec }) => [metadata.name, talos.ok ? await question(talos.value, spec.address) : talos] as const),
      ),
    )
  // An answer costs nothing beside one that does not come, so all is asked at once.
  const [gathered, clocks, virtual, serverClock, resolved] = await Promise.all([
    gather({ connections, clock, home: NOT_ASKED }, world, needsOf(machines)),
    ask((port, address) => port.clockAhead(address)),
    ask((port, address) => port.virtualAddresses(address)),
    kube.ok ? kube.value.clockAhead() : kube,
    talos.ok ? resolvedOf(talos.value.endpoints, resolve) : {},
  ])
  return {
    ...{ isRegistered: recorded.isRegistered, hidden: recorded.hidden, lock, operations },
    ...{ members, clocks, virtual, serverClock, resolved },
    ...beside,
    access: talos.ok ? ok(accessOf(talos.value)) : talos,
    world: { ...gathered, facts: { ...gathered.facts, machines: ofThemselves(machines, gathered.facts.machines) } },
  }
}

/** None of the needs is about them. */
const NOT_ASKED = {
  texts: () => Promise.resolve(failed('unsupported', 'not asked')),
  policies: () => Promise.resolve(failed('unsupported', 'not asked')),
}

const needsOf = (machines: readonly TalosMachine[]): readonly Need[] => [
  ...machines.map(({ metadata }): Need => ({ what: 'machine', name: metadata.name })),
  ...(['nodes', 'etcd', 'kubernetes', 'addons'] as const).map(what => ({ what })),
]

/** Who answers at the address of another is not that one. */
const ofThemselves = (machines: readonly TalosMachine[], facts: World['facts']['machines']): World['facts']['machines'] =>
  Object.fromEntries(
    machines.flatMap(machine => {
      const told = facts[machine.metadata.name]
      return told ? [[machine.metadata.name, ofRecorded(machine, told)]] : []
    }),
  )

const accessOf = ({ endpoints, roles, credentialBegins, credentialExpires, authorityExpires }: Talos): Access => ({
  ...{ endpoints, roles, credentialBegins, credentialExpires, authorityExpires },
})

const resolvedOf = async (endpoints: readonly string[], resolve: Examiner['resolve']): Promise<Record<string, readonly string[]>> =>
  Object.fromEntries(await Promise.all(endpoints.map(async endpoint => [endpoint, await resolve(endpoint)] as const)))

const controlPlanesFirst = (a: TalosMachine, b: TalosMachine): number =>
  a.spec.role === b.spec.role ? (a.metadata.name < b.metadata.name ? -1 : 1) : a.spec.role === 'controlplane' ? -1 : 1

/** The TalosMachine that discovery would write. */
const machineOf = ({ hostname, nodeID, role, addresses }: ClusterMember, { metadata }: TalosCluster): TalosMachine => ({
  metadata: imagined(machineName(hostname, nodeID), metadata.namespace),
  spec: { clusterRef: { name: metadata.name }, address: addresses[0] ?? '', role },
  status: { hostname, nodeID },
})

const imagined = (name: string, namespace: string): TalosCluster['metadata'] => ({
  ...{ name, namespace, uid: '', resourceVersion: '', generation: 0, creationTimestamp: '' },
  ...{ labels: {}, annotations: {}, finalizers: [] },
})

/** A Secret that whoever asks may not read: then nothing is known from here, and nothing is wrong either. The controller has rights of its own. */
export const unreadableSecret = async (
  home: Pick<Home, 'secret'>,
  namespace: string,
  refs: readonly TalosClusterSpec['kubeconfigSecretRef'][],
): Promise<Fault | undefined> => {
  for (const ref of refs) {
    const read = ref && (await home.secret({ namespace, name: ref.name }))
    if (read && !read.ok && read.fault.kind === 'forbidden') return read.fault
  }
  return undefined
}
