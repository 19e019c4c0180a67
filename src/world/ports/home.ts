import { API_VERSION, CONTROLLER, LABEL } from '../../api/names.ts'
import { retryAppliedBy } from '../../api/retry-manager.ts'
import type { Metadata, ResourceDefinition } from '../../api/schema.ts'
import type { TalosCluster } from '../../api/talos-cluster.ts'
import { talosCluster } from '../../api/talos-cluster.ts'
import type { TalosMachine } from '../../api/talos-machine.ts'
import { talosMachine } from '../../api/talos-machine.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import type { Fault, Result } from '../../ports/fault.ts'
import { done, failed, ok } from '../../ports/fault.ts'
import type { Home, Key, Lease, LeaseWrite, Watched } from '../../ports/home.ts'
import type { World } from '../cluster.ts'
import { disowned } from '../field-owners.ts'
import { RESOURCE, change, timestamp } from '../objects.ts'
import type { Draft, KubeObject, StoreFault, StoreResult } from '../store.ts'
import { asciiText, decodeBase64 } from './base64.ts'
import type { Client } from './client.ts'
import { apiObjection } from './client.ts'

export const ICHOR = {
  operations: 'talosoperations.ichor.maesh.dev',
  clusters: 'talosclusters.ichor.maesh.dev',
  machines: 'talosmachines.ichor.maesh.dev',
} as const

const WATCHED: Readonly<Record<Watched, string>> = {
  TalosOperation: ICHOR.operations,
  TalosCluster: ICHOR.clusters,
  TalosMachine: ICHOR.machines,
  Lease: RESOURCE.leases,
}

const storeFault = ({ code, reason, message }: StoreFault): Fault => {
  if (code === 404) return { kind: 'notFound', message }
  if (code === 409) return { kind: reason === 'AlreadyExists' ? 'alreadyExists' : 'conflict', message }
  return { kind: code === 422 ? 'invalid' : 'busy', message }
}

const metadataOf = ({ metadata }: KubeObject): Metadata => {
  const manager = retryAppliedBy(metadata.managedFields)
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    generation: metadata.generation,
    creationTimestamp: metadata.creationTimestamp,
    ...(metadata.deletionTimestamp === undefined ? {} : { deletionTimestamp: metadata.deletionTimestamp }),
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    finalizers: metadata.finalizers ?? [],
    ...(manager === undefined ? {} : { retryAppliedBy: manager }),
  }
}

/** What is in the store never changes, so each of its objects is read once. */
const known = new WeakMap<KubeObject, { readonly definition: ResourceDefinition | undefined; readonly parsed: Result<unknown> }>()

/** An object as the contracts describe it, defaults filled in; `invalid` where it does not fit its schema. */
const read = <T>(object: KubeObject, definition: ResourceDefinition | undefined): Result<T> => {
  const before = known.get(object)
  if (before && before.definition === definition) return before.parsed as Result<T>
  const parsed = parsedBy<T>(object, definition)
  known.set(object, { definition, parsed })
  return parsed
}

const parsedBy = <T>(object: KubeObject, definition: ResourceDefinition | undefined): Result<T> => {
  const status = object.status ?? {}
  if (!definition) return ok({ metadata: metadataOf(object), spec: object.spec, status } as T)
  const spec = specBy(object.spec, definition)
  if (!spec.success) return failed('invalid', `${object.kind} ${object.metadata.namespace}/${object.metadata.name}: ${spec.error.message}`)
  return ok({ metadata: metadataOf(object), spec: spec.data, status } as T)
}

type Parsed = ReturnType<ResourceDefinition['spec']['safeParse']>

/** Most writes change the status alone, and objects of the store share what is the same in them. */
const knownSpecs = new WeakMap<object, { readonly definition: ResourceDefinition; readonly parsed: Parsed }>()

const specBy = (spec: unknown, definition: ResourceDefinition): Parsed => {
  if (typeof spec !== 'object' || spec === null) return definition.spec.safeParse(spec)
  const before = knownSpecs.get(spec)
  if (before?.definition === definition) return before.parsed
  const parsed = definition.spec.safeParse(spec)
  knownSpecs.set(spec, { definition, parsed })
  return parsed
}

type LeaseSpec = {
  holderIdentity?: string
  leaseDurationSeconds?: number
  acquireTime?: string
  renewTime?: string
  leaseTransitions?: number
}

const readLease = (object: KubeObject): Lease => {
  const spec = (object.spec ?? {}) as LeaseSpec
  return {
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name,
    uid: object.metadata.uid,
    resourceVersion: object.metadata.resourceVersion,
    holder: spec.holderIdentity ?? '',
    durationSeconds: spec.leaseDurationSeconds ?? 0,
    acquireTime: spec.acquireTime ?? '',
    renewTime: spec.renewTime ?? '',
    transitions: spec.leaseTransitions ?? 0,
    annotations: object.metadata.annotations ?? {},
  }
}

const leaseDraft = (
  { namespace, name }: Key,
  write: LeaseWrite,
  old?: { readonly lease: Lease; readonly object: KubeObject | undefined },
): Draft => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    ...old?.object?.metadata,
    name,
    namespace,
    annotations: { ...write.annotations },
    ...(old ? { uid: old.lease.uid, resourceVersion: old.lease.resourceVersion } : {}),
  },
  spec: {
    holderIdentity: write.holder,
    leaseDurationSeconds: write.durationSeconds,
    acquireTime: write.acquireTime || undefined,
    renewTime: write.renewTime || undefined,
    leaseTransitions: write.transitions,
  },
})

/**
 * The cluster in which Ichor's resources live, over the store, for one client. With the definition of TalosOperation (which knows the kinds) operations
 * are checked against it and get its defaults; without, they are taken as they are.
 */
export const createHome = (world: World, client: Client, operationDefinition?: ResourceDefinition): Home => {
  const { store, schedule, faults, site } = world
  const call = <T>(name: keyof Home, target: string, changes: boolean, run: () => Result<T>): Promise<Result<T>> =>
    client.call({ port: 'home', name, target, changes }, () => (world.homeOutside ? undefined : apiObjection(world)) ?? run())
  const path = ({ namespace, name }: Key): string => `${namespace}/${name}`

  const get = <T>(name: keyof Home, resource: string, key: Key, parse: (object: KubeObject) => Result<T>): Promise<Result<T>> =>
    call(name, path(key), false, () => {
      const object = store.get(resource, key.namespace, key.name)
      return object ? parse(object) : failed('notFound', `${resource} "${key.name}" not found`)
    })
  /** Objects that do not fit their schema are left out, as a list must not fail for one of them. */
  const list = <T>(
    name: keyof Home,
    resource: string,
    namespace: string | undefined,
    definition: ResourceDefinition | undefined,
    keep: (object: KubeObject) => boolean = () => true,
  ) =>
    call<readonly T[]>(name, namespace ?? '', false, () =>
      ok(
        store
          .list(resource, namespace)
          .items.filter(keep)
          .flatMap(object => {
            const parsed = read<T>(object, definition)
            return parsed.ok ? [parsed.value] : []
          }),
      ),
    )
  /** Writes parts of an object that was read before, if it is still what was read. */
  const write = <T>(
    resource: string,
    old: { readonly metadata: Metadata },
    definition: ResourceDefinition | undefined,
    edit: (now: KubeObject) => Draft,
  ): Result<T> => {
    const { namespace, name, uid, resourceVersion } = old.metadata
    const now = store.get(resource, namespace, name)
    if (!now) return failed('notFound', `${resource} "${name}" not found`)
    const edited = edit(now)
    const written: StoreResult = store.update(resource, { ...edited, metadata: { ...edited.metadata, uid, resourceVersion } })
    return written.ok ? read<T>(written.value, definition) : { ok: false, fault: storeFault(written.fault) }
  }
  const lease = (written: StoreResult): Result<Lease> =>
    written.ok ? ok(readLease(written.value)) : { ok: false, fault: storeFault(written.fault) }

  return {
    operation: key => get('operation', ICHOR.operations, key, object => read<TalosOperation>(object, operationDefinition)),
    cluster: key => get('cluster', ICHOR.clusters, key, object => read<TalosCluster>(object, talosCluster)),
    machine: key => get('machine', ICHOR.machines, key, object => read<TalosMachine>(object, talosMachine)),
    lease: key => get('lease', RESOURCE.leases, key, object => ok(readLease(object))),
    secret: key =>
      get('secret', RESOURCE.secrets, key, object =>
        ok(
          Object.fromEntries(
            Object.entries((object.data ?? {}) as Record<string, string>).map(([name, value]) => [name, decodeBase64(value)]),
          ),
        ),
      ),

    texts: (kind, key) =>
      get('texts', kind === 'Secret' ? RESOURCE.secrets : RESOURCE.configMaps, key, ({ metadata, data }) =>
        ok({
          uid: metadata.uid,
          data: Object.fromEntries(
            Object.entries((data ?? {}) as Record<string, string>).map(([name, value]) => [
              name,
              kind === 'Secret' ? asciiText(decodeBase64(value)) : value,
            ]),
          ),
        }),
      ),

    operations: namespace => list<TalosOperation>('operations', ICHOR.operations, namespace, operationDefinition),
    clusters: namespace => list<TalosCluster>('clusters', ICHOR.clusters, namespace, talosCluster),
    machines: cluster =>
      list<TalosMachine>(
        'machines',
        ICHOR.machines,
        cluster.namespace,
        talosMachine,
        object => (object.spec as { clusterRef?: { name?: string } }).clusterRef?.name === cluster.name,
      ),

    writeOperationStatus: (operation, status) =>
      call('writeOperationStatus', path(operation.metadata), true, () => {
        if (faults.statusConflicts > 0) {
          faults.statusConflicts--
          change(store, ICHOR.operations, operation.metadata.namespace, operation.metadata.name, now => ({
            ...now,
            metadata: {
              ...now.metadata,
              annotations: { ...now.metadata.annotations, 'example.com/touched': String(faults.statusConflicts) },
            },
          }))
        }
        return write<TalosOperation>(ICHOR.operations, operation, operationDefinition, now => ({ ...now, status }))
      }),
    changeOperation: (operation, { annotations, finalizers }) =>
      call('changeOperation', path(operation.metadata), true, () =>
        write<TalosOperation>(ICHOR.operations, operation, operationDefinition, now => {
          const merged = Object.entries({ ...now.metadata.annotations, ...annotations }).filter(
            (entry): entry is [string, string] => entry[1] !== null,
          )
          const gone = Object.entries(annotations ?? {}).flatMap(([name, value]) => (value === null ? [name] : []))
          const owners = (left: readonly unknown[] | undefined, name: string) =>
            disowned(left, ['f:metadata', 'f:annotations', `f:${name}`])
          return {
            ...now,
            metadata: {
              ...now.metadata,
              managedFields: [...(gone.reduce(owners, now.metadata.managedFields) ?? [])],
              annotations: Object.fromEntries(merged),
              finalizers: finalizers ? [...finalizers] : now.metadata.finalizers,
            },
          }
        }),
      ),
    deleteOperation: operation =>
      call('deleteOperation', path(operation.metadata), true, () => {
        const { namespace, name, uid, resourceVersion } = operation.metadata
        const removed = store.remove(ICHOR.operations, namespace, name, { uid, resourceVersion })
        return removed.ok ? done : { ok: false, fault: storeFault(removed.fault) }
      }),

    writeClusterStatus: (cluster, status) =>
      call('writeClusterStatus', path(cluster.metadata), true, () =>
        write<TalosCluster>(ICHOR.clusters, cluster, talosCluster, now => ({ ...now, status })),
      ),

    createMachine: (key, spec, meta) =>
      call('createMachine', path(key), true, () => {
        const written = store.create(ICHOR.machines, {
          apiVersion: API_VERSION,
          kind: 'TalosMachine',
          metadata: { ...key, labels: { [LABEL.cluster]: spec.clusterRef.name, ...meta.labels }, annotations: { ...meta.annotations } },
          spec,
        })
        return written.ok ? read<TalosMachine>(written.value, talosMachine) : { ok: false, fault: storeFault(written.fault) }
      }),
    writeMachineSpec: (machine, spec, labels) =>
      call('writeMachineSpec', path(machine.metadata), true, () =>
        write<TalosMachine>(ICHOR.machines, machine, talosMachine, now => ({
          ...now,
          metadata: { ...now.metadata, labels: { ...now.metadata.labels, ...labels } },
          spec,
        })),
      ),
    writeMachineStatus: (machine, status) =>
      call('writeMachineStatus', path(machine.metadata), true, () =>
        write<TalosMachine>(ICHOR.machines, machine, talosMachine, now => ({ ...now, status })),
      ),

    createLease: (key, content) =>
      call('createLease', path(key), true, () => lease(store.create(RESOURCE.leases, leaseDraft(key, content)))),
    replaceLease: (old, content) =>
      call('replaceLease', path(old), true, () => {
        const object = store.get(RESOURCE.leases, old.namespace, old.name)
        return lease(store.update(RESOURCE.leases, leaseDraft(old, content, { lease: old, object })))
      }),

    policies: () => call('policies', '', false, () => ok(site.faults.policyGaps)),

    event: async ({ regarding, type, reason, message }) => {
      await call('event', `${regarding.namespace}/${regarding.name}`, true, () => {
        const { kind, namespace, name, uid } = regarding
        const at = timestamp(schedule.now())
        const written = store.create(RESOURCE.events, {
          apiVersion: 'v1',
          kind: 'Event',
          metadata: { name: `${name}.${schedule.random.hex(16)}`, namespace },
          involvedObject: { apiVersion: API_VERSION, kind, namespace, name, uid },
          type,
          reason,
          message,
          count: 1,
          firstTimestamp: at,
          lastTimestamp: at,
          source: { component: CONTROLLER },
        })
        return written.ok ? done : { ok: false, fault: storeFault(written.fault) }
      })
    },

    watch: (what, changed) => {
      let on = true
      const deliver = (sort: Watched, object: KubeObject): void => {
        schedule.after(site.durations.draw('watchDelay'), () => {
          const tell = (): void => {
            if (!on || !client.isAlive()) return
            changed(sort, { namespace: object.metadata.namespace ?? '', name: object.metadata.name }, object.metadata.resourceVersion)
          }
          if (world.homeOutside) tell()
          else world.api.whenAvailable(tell)
        })
      }
      const stops = what.map(sort => {
        for (const object of store.list(WATCHED[sort]).items) deliver(sort, object)
        return store.watch(WATCHED[sort], undefined, event => deliver(sort, event.object))
      })
      const stop = (): void => {
        on = false
        for (const watch of stops) if (watch.ok) watch.stop()
      }
      client.onKill(stop)
      return stop
    },
  }
}
