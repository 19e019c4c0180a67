import { frozen, same } from './json.ts'

export type OwnerReference = {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

export type ObjectMeta = {
  name: string
  namespace?: string
  uid: string
  resourceVersion: string
  generation: number
  creationTimestamp: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  generateName?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
  ownerReferences?: OwnerReference[]
  managedFields?: unknown[]
}

/** An object of the Kubernetes API. What the store hands out is frozen to the bottom. */
export type KubeObject = { apiVersion: string; kind: string; metadata: ObjectMeta; [field: string]: unknown }

/** An object as a writer brings it: a name or a generateName; what is the server's may be absent. */
export type Draft = { apiVersion: string; kind: string; metadata: Partial<ObjectMeta>; [field: string]: unknown }

export type StoreFault = {
  code: 404 | 409 | 410 | 422
  reason: 'NotFound' | 'Conflict' | 'AlreadyExists' | 'Expired' | 'Invalid'
  message: string
}
export type StoreResult = { ok: true; value: KubeObject } | { ok: false; fault: StoreFault }
/** A deleted object carries the version of its deletion. `previous` is the object before, where there was one. */
export type StoreEvent = { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: KubeObject; previous?: KubeObject }

export type RemoveOptions = { uid?: string; resourceVersion?: string; gracePeriodSeconds?: number }

/**
 * What etcd and the generic registry of an API server do together, without its types. A resource is named as in error messages of the real
 * one: `pods`, `leases.coordination.k8s.io`. The namespace of cluster-scoped objects is ''. Resource versions are one growing counter.
 */
export type Store = {
  /** Milliseconds since 1970. */
  now: () => number
  get(resource: string, namespace: string, name: string): KubeObject | undefined
  /** In the order of namespace and name; without a namespace, those of all. The version is that of the whole store. */
  list(resource: string, namespace?: string): { items: readonly KubeObject[]; resourceVersion: string }
  /** Fills uid, resourceVersion, generation and creationTimestamp, and the name from generateName. `uid`: where it is not to be drawn. */
  create(resource: string, object: Draft, uid?: string): StoreResult
  /**
   * Replaces the whole object, status included. Compare-and-swap where metadata.resourceVersion (or uid) is given. The generation grows when
   * anything but metadata and status changed. A write without effect keeps the version and tells nobody. Taking the last finalizer from an
   * object that is being deleted deletes it.
   */
  update(resource: string, object: Draft): StoreResult
  /**
   * Deletes, or sets deletionTimestamp only: while there are finalizers, or for a pod that is bound to a node and has a grace period (a
   * kubelet then removes it with grace 0). The value is the object as it is afterwards, or was last.
   */
  remove(resource: string, namespace: string, name: string, options?: RemoveOptions): StoreResult
  /**
   * Calls back with every change after a version, first with those that already happened, each before the writing call returns; without a
   * version, with those from now on. Changes are told in their order even when a listener writes. `Expired` when the history does not
   * reach back so far.
   */
  watch(
    resource: string,
    sinceResourceVersion: string | undefined,
    listener: (event: StoreEvent) => void,
  ): { ok: true; stop(): void } | { ok: false; fault: StoreFault }
}

type Watcher = { after: number; listener: (event: StoreEvent) => void; stopped: boolean }
type Change = { version: number; event: StoreEvent }
type Shelf = {
  objects: Map<string, KubeObject>
  /** The keys in order, until an object comes or goes. */
  order: string[] | undefined
  history: Change[]
  /** The version of the last change that the history lost. */
  lost: number
}

const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`
const fault = (code: StoreFault['code'], reason: StoreFault['reason'], message: string): { ok: false; fault: StoreFault } => ({
  ok: false,
  fault: { code, reason, message },
})

/** To the second, as Kubernetes writes times. */
const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

const uuid = (random: () => number): string => {
  const digits = Array.from({ length: 32 }, () => Math.floor(random() * 16))
  digits[12] = 4
  digits[16] = 8 + ((digits[16] ?? 0) % 4)
  const hex = digits.map(digit => digit.toString(16)).join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The letters of generated names: no vowels, so that no words come out. */
const LETTERS = 'bcdfghjklmnpqrstvwxz2456789'
const suffix = (random: () => number): string => Array.from({ length: 5 }, () => LETTERS[Math.floor(random() * LETTERS.length)]).join('')

const exceptMetadataAndStatus = (object: Draft): Record<string, unknown> => {
  const { metadata: _metadata, status: _status, ...rest } = object
  return rest
}

/** Seconds that a deletion leaves the object; 0 where it goes at once. */
const graceOf = (resource: string, object: KubeObject, asked: number | undefined): number => {
  if (resource !== 'pods') return 0
  const spec = (object.spec ?? {}) as { nodeName?: string; terminationGracePeriodSeconds?: number }
  const phase = (object.status as { phase?: string } | undefined)?.phase
  if (!spec.nodeName || phase === 'Succeeded' || phase === 'Failed') return 0
  return Math.max(0, asked ?? spec.terminationGracePeriodSeconds ?? 30)
}

/**
 * An empty store. `history` is the number of changes of each resource that a watch can go back (default 2000). `random` answers numbers in
 * [0, 1) and is asked for uids and generated names only.
 */
export const createStore = (options: { now: () => number; random: () => number; history?: number }): Store => {
  const { now, random } = options
  const historyLength = options.history ?? 2000
  const shelves = new Map<string, Shelf>()
  /** By resource. Never changed in place: one that comes or goes while a change is told does not matter to that change. */
  const watchers = new Map<string, readonly Watcher[]>()
  const untold: { resource: string; change: Change }[] = []
  let telling = false
  let version = 0

  const shelfOf = (resource: string): Shelf => {
    const found = shelves.get(resource)
    if (found) return found
    const shelf: Shelf = { objects: new Map(), order: undefined, history: [], lost: 0 }
    shelves.set(resource, shelf)
    return shelf
  }

  // Told from a queue: a listener that writes must not make others see the later change first.
  const tell = (): void => {
    if (telling) return
    telling = true
    try {
      for (let next = untold.shift(); next; next = untold.shift()) {
        for (const watcher of watchers.get(next.resource) ?? []) {
          if (watcher.stopped || next.change.version <= watcher.after) continue
          watcher.after = next.change.version
          watcher.listener(next.change.event)
        }
      }
    } finally {
      telling = false
    }
  }

  const record = (resource: string, type: StoreEvent['type'], object: KubeObject): KubeObject => {
    version++
    const written = frozen({ ...object, metadata: { ...object.metadata, resourceVersion: String(version) } })
    const shelf = shelfOf(resource)
    const key = keyOf(written.metadata.namespace ?? '', written.metadata.name)
    const previous = shelf.objects.get(key)
    if (type === 'DELETED') shelf.objects.delete(key)
    else shelf.objects.set(key, written)
    if (type !== 'MODIFIED') shelf.order = undefined
    const change: Change = { version, event: Object.freeze({ type, object: written, ...(previous ? { previous } : {}) }) }
    shelf.history.push(change)
    if (shelf.history.length > historyLength) shelf.lost = shelf.history.shift()?.version ?? shelf.lost
    untold.push({ resource, change })
    tell()
    return written
  }

  const notFound = (resource: string, name: string) => fault(404, 'NotFound', `${resource} "${name}" not found`)

  const create: Store['create'] = (resource, object, uid) => {
    const meta = object.metadata
    const name = meta.name || (meta.generateName ? `${meta.generateName}${suffix(random)}` : '')
    if (!name) return fault(422, 'Invalid', 'metadata.name: Required value: name or generateName is required')
    const existing = shelfOf(resource).objects.get(keyOf(meta.namespace ?? '', name))
    if (existing) {
      const leaving = existing.metadata.deletionTimestamp === undefined ? '' : 'object is being deleted: '
      return fault(409, 'AlreadyExists', `${leaving}${resource} "${name}" already exists`)
    }
    const { namespace, deletionTimestamp: _at, deletionGracePeriodSeconds: _grace, ...kept } = meta
    const metadata: ObjectMeta = {
      ...kept,
      name,
      ...(namespace ? { namespace } : {}),
      uid: uid ?? uuid(random),
      resourceVersion: '',
      generation: 1,
      creationTimestamp: timestamp(now()),
    }
    return { ok: true, value: record(resource, 'ADDED', { ...object, metadata }) }
  }

  const update: Store['update'] = (resource, object) => {
    const meta = object.metadata
    const name = meta.name ?? ''
    const old = shelfOf(resource).objects.get(keyOf(meta.namespace ?? '', name))
    if (!old) return notFound(resource, name)
    const refused = `Operation cannot be fulfilled on ${resource} "${name}": `
    if (meta.uid && meta.uid !== old.metadata.uid) {
      return fault(
        409,
        'Conflict',
        `${refused}Precondition failed: UID in precondition: ${meta.uid}, UID in object meta: ${old.metadata.uid}`,
      )
    }
    if (meta.resourceVersion && meta.resourceVersion !== old.metadata.resourceVersion) {
      return fault(409, 'Conflict', `${refused}the object has been modified; please apply your changes to the latest version and try again`)
    }
    const leaving = old.metadata.deletionTimestamp !== undefined
    const added = (meta.finalizers ?? []).filter(finalizer => !old.metadata.finalizers?.includes(finalizer))
    if (leaving && added.length > 0) {
      const words = added.map(finalizer => `"${finalizer}"`).join(', ')
      return fault(
        422,
        'Invalid',
        `metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${words}}`,
      )
    }
    const grew = !same(exceptMetadataAndStatus(object), exceptMetadataAndStatus(old))
    const { uid, resourceVersion, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, namespace, generateName } = old.metadata
    const metadata: ObjectMeta = {
      ...meta,
      name,
      namespace,
      generateName,
      uid,
      resourceVersion,
      creationTimestamp,
      deletionTimestamp,
      deletionGracePeriodSeconds,
      generation: old.metadata.generation + (grew ? 1 : 0),
    }
    const next: KubeObject = { ...object, metadata }
    if (same(next, old)) return { ok: true, value: old }
    const ends = leaving && !meta.finalizers?.length && !deletionGracePeriodSeconds
    return { ok: true, value: record(resource, ends ? 'DELETED' : 'MODIFIED', next) }
  }

  const remove: Store['remove'] = (resource, namespace, name, asked = {}) => {
    const old = shelfOf(resource).objects.get(keyOf(namespace, name))
    if (!old) return notFound(resource, name)
    const meta = old.metadata
    const refused = `Operation cannot be fulfilled on ${resource} "${name}": Precondition failed: `
    if (asked.uid && asked.uid !== meta.uid)
      return fault(409, 'Conflict', `${refused}UID in precondition: ${asked.uid}, UID in object meta: ${meta.uid}`)
    if (asked.resourceVersion && asked.resourceVersion !== meta.resourceVersion) {
      return fault(
        409,
        'Conflict',
        `${refused}ResourceVersion in precondition: ${asked.resourceVersion}, ResourceVersion in object meta: ${meta.resourceVersion}`,
      )
    }
    const grace = graceOf(resource, old, asked.gracePeriodSeconds)
    if (grace === 0 && !meta.finalizers?.length) return { ok: true, value: record(resource, 'DELETED', old) }
    // A later deletion may only shorten the time that an earlier one gave.
    const before = meta.deletionGracePeriodSeconds
    if (meta.deletionTimestamp !== undefined && (before === undefined || before <= grace)) return { ok: true, value: old }
    const metadata: ObjectMeta = {
      ...meta,
      deletionTimestamp: timestamp(now() + grace * 1000),
      deletionGracePeriodSeconds: grace,
      generation: meta.generation + (meta.deletionTimestamp === undefined ? 1 : 0),
    }
    return { ok: true, value: record(resource, 'MODIFIED', { ...old, metadata }) }
  }

  return {
    now,
    get: (resource, namespace, name) => shelfOf(resource).objects.get(keyOf(namespace, name)),
    list: (resource, namespace) => {
      const shelf = shelfOf(resource)
      shelf.order ??= [...shelf.objects.keys()].toSorted()
      const prefix = namespace === undefined ? '' : `${namespace}/`
      const items = shelf.order.filter(key => key.startsWith(prefix)).map(key => shelf.objects.get(key) as KubeObject)
      return { items, resourceVersion: String(version) }
    },
    create,
    update,
    remove,
    watch: (resource, sinceResourceVersion, listener) => {
      const shelf = shelfOf(resource)
      const since = sinceResourceVersion === undefined ? version : Number(sinceResourceVersion)
      if (since < shelf.lost) return fault(410, 'Expired', `too old resource version: ${since} (${shelf.lost})`)
      const watcher: Watcher = { after: since, listener, stopped: false }
      const past = shelf.history.filter(change => change.version > since)
      for (const change of past) {
        if (watcher.stopped) break
        watcher.after = change.version
        listener(change.event)
      }
      const of = (): readonly Watcher[] => watchers.get(resource) ?? []
      watchers.set(resource, [...of(), watcher])
      // What listeners wrote while they heard of the past is in the history by now, but told to the others only.
      for (const change of shelf.history) {
        if (change.version <= watcher.after || watcher.stopped) continue
        watcher.after = change.version
        listener(change.event)
      }
      return {
        ok: true,
        stop: () => {
          watcher.stopped = true
          watchers.set(
            resource,
            of().filter(one => one !== watcher),
          )
        },
      }
    },
  }
}
