import type { Metadata } from '../../api/schema.ts'
import { API_VERSION, CONTROLLER } from '../../api/names.ts'
import type { TalosCluster } from '../../api/talos-cluster.ts'
import type { TalosMachine } from '../../api/talos-machine.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Result } from '../../ports/fault.ts'
import { done, failed } from '../../ports/fault.ts'
import type { Home, Key, Lease, Texts, TextSource, Watched } from '../../ports/home.ts'
import type { ApiResult } from './classify.ts'
import { apiFault } from './classify.ts'
import type { CallOptions, KubeClient, KubeObject } from './client.ts'
import { eventRecorder } from './events.ts'
import type { Json } from './json.ts'
import { mergePatchOf, record, text } from './json.ts'
import { clusterOf, leaseOf, leaseSpecOf, machineOf, operationOf } from './objects.ts'
import { type Reflector, startReflector } from './reflector.ts'
import type { Resource } from './resource.ts'
import { type InstalledPolicy, policyGaps } from './policies.ts'
import { RESOURCE } from './resource.ts'

export type HomeOptions = {
  readonly client: KubeClient
  readonly clock: Clock
  /** Between 0 and 1, for jitter. */
  readonly random: () => number
  /** Only this namespace is watched and listed. Absent: all. */
  readonly namespace?: string
  /** Who writes the Events: the pod's name. */
  readonly instance?: string
  /** The admission policies as they have to be for a controller that is this user. Absent: who only plans does not ask, and the controller will. */
  readonly policies?: (user: string) => readonly InstalledPolicy[]
  /** What goes wrong in the background, for the log. */
  readonly problem?: (message: string) => void
}

export type OpenHome = Home & {
  /** Milliseconds since the oldest of the caches was known to be current; 0 where nothing is watched, Infinity before the first list. */
  readonly stalenessMs: () => number
  /** Ends all watches. */
  readonly close: () => void
}

/** Half the time in which a leader has to renew its own, as client-go has it: one request that hangs must not cost it its leadership. */
const LEASE: CallOptions = { deadlineMs: 5_000 }

/** Leases that Ichor made. Without it a watch would bring the heartbeat of every kubelet. */
const MANAGED_BY = { name: 'app.kubernetes.io/managed-by', value: 'ichor' } as const

const WATCHED = {
  TalosOperation: { resource: RESOURCE.talosOperation, parse: operationOf, labelSelector: undefined },
  TalosCluster: { resource: RESOURCE.talosCluster, parse: clusterOf, labelSelector: undefined },
  TalosMachine: { resource: RESOURCE.talosMachine, parse: machineOf, labelSelector: undefined },
  Lease: { resource: RESOURCE.lease, parse: leaseOf, labelSelector: `${MANAGED_BY.name}=${MANAGED_BY.value}` },
} as const satisfies Record<Watched, unknown>

type Parsed = {
  readonly TalosOperation: TalosOperation
  readonly TalosCluster: TalosCluster
  readonly TalosMachine: TalosMachine
  readonly Lease: Lease
}
type Listener = (key: Key, resourceVersion: string | undefined) => void
type Cache<T> = { readonly reflector: Reflector<T>; readonly listeners: Set<Listener> }

/** The cluster that Ichor's own resources live in. Reflectors start with the first list or watch of their type and run until `close`. */
export const openHome = (options: HomeOptions): OpenHome => {
  const { client, clock } = options
  const caches = new Map<Watched, Cache<unknown>>()
  let isClosed = false

  const cacheOf = <W extends Watched>(what: W): Cache<Parsed[W]> => {
    const known = caches.get(what)
    if (known) return known as Cache<Parsed[W]>
    const listeners = new Set<Listener>()
    const { resource, labelSelector } = WATCHED[what]
    const parse = WATCHED[what].parse as (object: KubeObject) => Parsed[W]
    const selection = { namespace: options.namespace, labelSelector }
    const versionOf = (key: string): string | undefined => versionIn(reflector.get(key))
    const tell = (key: string): void => {
      for (const listener of [...listeners]) {
        try {
          listener(splitKey(key), versionOf(key))
        } catch (error) {
          options.problem?.(`handler of ${resource.plural}: ${error instanceof Error ? error.message : String(error)}`)
        }
      }
    }
    const reflector: Reflector<Parsed[W]> = startReflector({
      source: {
        list: signal => client.list(resource, { ...selection, signal }),
        watch: (watch, on) => client.watch(resource, { ...selection, ...watch }, on),
      },
      parse,
      clock,
      random: options.random,
      changed: ({ key }) => tell(key),
      // After a gap anything may have happened to any of them.
      listed: () => reflector.keys().forEach(tell),
      problem: ({ doing, message }) => options.problem?.(`${doing} ${resource.plural}: ${message}`),
    })
    const cache = { reflector, listeners }
    if (isClosed) reflector.stop()
    caches.set(what, cache as unknown as Cache<unknown>)
    return cache
  }

  const read = async <T>(resource: Resource, key: Key, parse: (object: KubeObject) => T, options?: CallOptions): Promise<Result<T>> =>
    parsed(await client.get(resource, key, options), parse)

  /** From the cache while its watch is open; else from the server, so that nobody works for long on what was. */
  const cached = async <W extends 'TalosOperation' | 'TalosCluster' | 'TalosMachine'>(
    what: W,
    namespace: string | undefined,
  ): Promise<Result<readonly Parsed[W][]>> => {
    const { reflector } = cacheOf(what)
    const within = (all: readonly Parsed[W][]) => (namespace === undefined ? all : all.filter(one => one.metadata.namespace === namespace))
    const ready = await reflector.ready()
    if (!ready.ok) return ready
    if (reflector.isHealthy()) return { ok: true, value: within(reflector.all()) }
    const listed = await client.list(WATCHED[what].resource, { namespace: namespace ?? options.namespace })
    if (!listed.ok) return listed
    return { ok: true, value: listed.value.items.map(WATCHED[what].parse as (object: KubeObject) => Parsed[W]) }
  }

  const writeStatus = async <T>(
    resource: Resource,
    object: { readonly metadata: Metadata; readonly spec: unknown },
    status: unknown,
    parse: (object: KubeObject) => T,
  ): Promise<Result<T>> => {
    const { name, namespace, uid, resourceVersion } = object.metadata
    const body = {
      apiVersion: API_VERSION,
      kind: resource.kind,
      metadata: { name, namespace, uid, resourceVersion },
      spec: object.spec,
      status,
    }
    return parsed(await client.replace(resource, { namespace, name, subresource: 'status' }, body), parse)
  }

  /** A merge patch that only applies to the version that it was decided on. */
  const change = async <T>(
    resource: Resource,
    { namespace, name, resourceVersion }: Key & { readonly resourceVersion: string },
    patch: Json,
    parse: (object: KubeObject) => T,
    options?: CallOptions,
  ): Promise<Result<T>> =>
    parsed(
      await client.patch(resource, { namespace, name }, { ...patch, metadata: { ...record(patch['metadata']), resourceVersion } }, options),
      parse,
    )

  return {
    operation: key => read(RESOURCE.talosOperation, key, operationOf),
    cluster: key => read(RESOURCE.talosCluster, key, clusterOf),
    machine: key => read(RESOURCE.talosMachine, key, machineOf),
    lease: key => read(RESOURCE.lease, key, leaseOf, LEASE),
    secret: key => read(RESOURCE.secret, key, secretDataOf),
    texts: async (kind, key) => {
      const got = await client.get(kind === 'Secret' ? RESOURCE.secret : RESOURCE.configMap, key)
      return got.ok ? textsOf(kind, got.value) : got
    },

    operations: namespace => cached('TalosOperation', namespace),
    clusters: namespace => cached('TalosCluster', namespace),
    machines: async cluster => {
      const machines = await cached('TalosMachine', cluster.namespace)
      return machines.ok ? { ok: true, value: machines.value.filter(({ spec }) => spec.clusterRef.name === cluster.name) } : machines
    },

    writeOperationStatus: (operation, status) => writeStatus(RESOURCE.talosOperation, operation, status, operationOf),
    changeOperation: ({ metadata }, { annotations, finalizers }) =>
      change(
        RESOURCE.talosOperation,
        metadata,
        { metadata: { ...(annotations ? { annotations } : {}), ...(finalizers ? { finalizers } : {}) } },
        operationOf,
      ),
    deleteOperation: async ({ metadata: { namespace, name, uid, resourceVersion } }) => {
      const deleted = await client.delete(
        RESOURCE.talosOperation,
        { namespace, name },
        { preconditions: { uid, resourceVersion }, propagation: 'Background' },
      )
      return deleted.ok || deleted.fault.kind === 'notFound' ? done : deleted
    },
    writeClusterStatus: (cluster, status) => writeStatus(RESOURCE.talosCluster, cluster, status, clusterOf),

    createMachine: async ({ namespace, name }, spec, { labels, annotations }) => {
      const body = { apiVersion: API_VERSION, kind: RESOURCE.talosMachine.kind, metadata: { namespace, name, labels, annotations }, spec }
      return parsed(await client.create(RESOURCE.talosMachine, { namespace }, body), machineOf)
    },
    writeMachineSpec: (machine, spec, labels) =>
      change(RESOURCE.talosMachine, machine.metadata, { metadata: { labels }, spec: mergePatchOf(machine.spec, spec) }, machineOf),
    writeMachineStatus: (machine, status) => writeStatus(RESOURCE.talosMachine, machine, status, machineOf),

    createLease: async ({ namespace, name }, write) => {
      const labels = { [MANAGED_BY.name]: MANAGED_BY.value, ...write.labels }
      const body = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { namespace, name, labels, annotations: write.annotations },
        spec: withoutNulls(leaseSpecOf(write)),
      }
      return parsed(await client.create(RESOURCE.lease, { namespace }, body, LEASE), leaseOf)
    },
    replaceLease: (lease, write) => {
      // Only what is ours is replaced: labels and owners that others set stay.
      const labels = { [MANAGED_BY.name]: MANAGED_BY.value, ...write.labels }
      return change(
        RESOURCE.lease,
        lease,
        { metadata: { labels, annotations: mergePatchOf(lease.annotations, write.annotations) }, spec: leaseSpecOf(write) },
        leaseOf,
        LEASE,
      )
    },

    policies: () => (options.policies ? policyGaps(client, options.policies) : Promise.resolve({ ok: true, value: [] })),

    event: eventRecorder(client, clock, options.instance ?? CONTROLLER),

    watch: (what, changed) => {
      const stops = what.map(one => {
        const { reflector, listeners } = cacheOf(one)
        const listener: Listener = (key, version) => changed(one, key, version)
        listeners.add(listener)
        // Who comes after the first list is told of what is there, as those before were; not within the call, as those before were not.
        const cancel = clock.after(0, () => reflector.keys().forEach(key => listeners.has(listener) && listener(splitKey(key), undefined)))
        return () => {
          cancel()
          listeners.delete(listener)
        }
      })
      return () => stops.forEach(stop => stop())
    },

    stalenessMs: () => Math.max(0, ...[...caches.values()].map(({ reflector }) => reflector.lastSyncAgeMs())),
    close: () => {
      isClosed = true
      for (const { reflector } of caches.values()) reflector.stop()
    },
  }
}

const withoutNulls = (fields: Json): Json => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))

const splitKey = (key: string): Key => {
  const [namespace = '', name = ''] = key.split('/')
  return { namespace, name }
}

const parsed = <T>(answer: ApiResult<KubeObject>, parse: (object: KubeObject) => T): Result<T> => {
  if (!answer.ok) return answer
  try {
    return { ok: true, value: parse(answer.value) }
  } catch (error) {
    return apiFault('unknown', error instanceof Error ? error.message : String(error))
  }
}

const secretDataOf = (secret: KubeObject): Readonly<Record<string, Uint8Array>> =>
  Object.fromEntries(
    Object.entries(record(secret['data'])).map(([name, value]) => [name, Uint8Array.from(Buffer.from(text(value), 'base64'))]),
  )

const textsOf = (kind: TextSource, object: KubeObject): Result<Texts> => {
  const data: Record<string, string> = {}
  for (const [name, value] of Object.entries(record(object['data']))) {
    const bytes = Buffer.from(text(value), kind === 'Secret' ? 'base64' : 'utf8')
    const read = bytes.toString('utf8')
    if (!Buffer.from(read).equals(bytes))
      return failed('invalid', `${kind} ${text(record(object['metadata'])['name'])}: its key ${name} is not UTF-8`)
    data[name] = read
  }
  return { ok: true, value: { uid: text(record(object['metadata'])['uid']), data } }
}

/** Leases carry theirs beside the rest, the others in their metadata. */
const versionIn = (object: Parsed[Watched] | undefined): string | undefined =>
  object === undefined ? undefined : 'metadata' in object ? object.metadata.resourceVersion : object.resourceVersion
