import type { KubeObject, RemoveOptions, Store } from '../world/store.ts'
import { admit } from './admission.ts'
import { fieldsAt, listAt, numberAt, textAt, valueAt } from './fields.ts'
import { objectSelector } from './select.ts'
import { badRequest, fromStore, invalid, notFound, Refusal } from './refusal.ts'
import type { ResourceType } from './resource-types.ts'
import type { World, Write } from './write.ts'
import { checkStorage, currentObject } from './write.ts'
import { served } from './view.ts'

/** DeleteOptions from the body, or from the query where there is none. */
export const deleteOptions = (body: unknown, query: URLSearchParams): RemoveOptions => {
  const asked =
    valueAt(body, 'gracePeriodSeconds') ?? (query.has('gracePeriodSeconds') ? Number(query.get('gracePeriodSeconds')) : undefined)
  const conditions = fieldsAt(body, 'preconditions')
  return {
    uid: textAt(conditions, 'uid') || undefined,
    resourceVersion: textAt(conditions, 'resourceVersion') || undefined,
    gracePeriodSeconds: typeof asked === 'number' ? asked : undefined,
  }
}

/** Whether the options in a body ask for a trial only: deletions and evictions say it there, not in the query. */
export const isTrial = (options: unknown): boolean => {
  const asked = listAt(options, 'dryRun')
  if (asked.some(value => value !== 'All')) {
    const message = `Unsupported value: ${JSON.stringify(asked)}: supported values: "All"`
    const type = { group: 'meta.k8s.io', plural: 'deleteoptions', kind: 'DeleteOptions' }
    throw invalid(type, '', [{ field: 'dryRun', reason: 'FieldValueNotSupported', message }])
  }
  return asked.length > 0
}

/** A pod that is given time and an object with finalizers are marked first, which is a write; what goes at once needs no space. */
const checkMarking = (world: World, type: ResourceType, object: KubeObject, { gracePeriodSeconds }: RemoveOptions): void => {
  const isGone = ['Succeeded', 'Failed'].includes(textAt(object, 'status', 'phase'))
  const grace = gracePeriodSeconds ?? valueAt(object, 'spec', 'terminationGracePeriodSeconds')
  const isGivenTime = type.shelf === 'pods' && textAt(object, 'spec', 'nodeName') !== '' && !isGone && grace !== 0
  if (isGivenTime || object.metadata.finalizers?.length) checkStorage(world)
}

/** Types whose deletion answers with the object; the others answer with a Status. */
const ANSWERED_BY_OBJECT = ['pods', 'services', 'serviceaccounts']

const success = (type: ResourceType, object: KubeObject) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  details: { name: object.metadata.name, ...(type.group === '' ? {} : { group: type.group }), kind: type.plural, uid: object.metadata.uid },
})

/** Without a namespace controller, what is in a namespace goes with it at once. */
const emptyNamespace = (store: Store, shelves: readonly string[], namespace: string): void => {
  for (const shelf of shelves) {
    for (const { metadata } of store.list(shelf, namespace).items) store.remove(shelf, namespace, metadata.name, { gracePeriodSeconds: 0 })
  }
}

const checkPreconditions = (type: ResourceType, { metadata }: KubeObject, options: RemoveOptions): void => {
  const refuse = (what: string, asked: string, found: string, guess: string): Refusal => {
    const words = `the ${what} in the precondition (${asked}) does not match the ${what} in record (${found}). The object might have been ${guess}`
    const [kind, group] = [type.custom ? type.plural : type.kind, type.group]
    const named = type.custom && group !== '' ? `${kind}.${group}` : kind
    return new Refusal(409, 'Conflict', `Operation cannot be fulfilled on ${named} "${metadata.name}": ${words}`, {
      name: metadata.name,
      ...(group === '' ? {} : { group }),
      kind,
    })
  }
  const { uid, resourceVersion } = options
  if (uid && uid !== metadata.uid) throw refuse('UID', uid, metadata.uid, 'deleted and then recreated')
  if (resourceVersion && resourceVersion !== metadata.resourceVersion) {
    throw refuse('ResourceVersion', resourceVersion, metadata.resourceVersion, 'modified')
  }
}

/** A pod that goes at once is answered as if its time had just run out. */
const goneAtOnce = (pod: KubeObject, nowMs: number): KubeObject => ({
  ...pod,
  metadata: {
    ...pod.metadata,
    generation: pod.metadata.generation + (pod.metadata.deletionTimestamp === undefined ? 1 : 0),
    deletionTimestamp: pod.metadata.deletionTimestamp ?? `${new Date(nowMs).toISOString().slice(0, 19)}Z`,
    deletionGracePeriodSeconds: 0,
  },
})

export const deleteObject = (world: World, write: Write, options: RemoveOptions, shelves: readonly string[]): { body: unknown } => {
  const { type } = write
  const current = currentObject(world, write)
  admit(
    type,
    {
      operation: 'DELETE',
      user: write.user,
      resource: type.shelf,
      subresource: '',
      namespace: write.namespace,
      name: write.name,
      old: current,
    },
    world.admission,
  )
  checkPreconditions(type, current, options)
  if (write.dryRun) return { body: success(type, current) }
  checkMarking(world, type, current, options)
  if (type.shelf === 'namespaces') emptyNamespace(world.store, shelves, write.name)
  const result = world.store.remove(type.shelf, write.namespace, write.name, options)
  if (!result.ok) throw fromStore(type, write.name, result.fault)
  const stays = world.store.get(type.shelf, write.namespace, write.name) !== undefined
  const whole = stays || ANSWERED_BY_OBJECT.includes(type.shelf)
  if (!whole) return { body: success(type, result.value) }
  const last = served(type, result.value)
  return { body: stays || type.shelf !== 'pods' ? last : goneAtOnce(last, world.store.now()) }
}

/** What became of an eviction that the world decides on. */
export type EvictionOutcome =
  /** It is done: the pod is leaving or gone. */
  | { readonly evicted: true }
  /** 429: a budget holds it, as the message says. 500: it never will be let go, for example because two budgets cover it. */
  | { readonly evicted: false; readonly code: 429 | 500; readonly message: string }

export type Evict = (namespace: string, name: string, options: RemoveOptions) => EvictionOutcome

const BUDGETS = 'poddisruptionbudgets.policy'

const blocked = (message: string): Refusal =>
  new Refusal(429, 'TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.", {
    causes: [{ reason: 'DisruptionBudget', message }],
  })

/** A PodDisruptionBudget's own count decides, as it stands in its status; who computes it is not here. */
const spendBudget = (store: Store, pod: KubeObject): void => {
  const labels = pod.metadata.labels ?? {}
  const budgets = store
    .list(BUDGETS, pod.metadata.namespace)
    .items.filter(budget => objectSelector(valueAt(budget, 'spec', 'selector'))(labels))
  if (budgets.length > 1) {
    const words = 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.'
    throw new Refusal(500, undefined, words)
  }
  const [budget] = budgets
  if (!budget) return
  const { name, generation } = budget.metadata
  const status = fieldsAt(budget, 'status')
  const [allowed, healthy, desired] = ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy'].map(field => numberAt(status, field))
  // A pod that is not ready is no loss, as long as the others are enough (or always, where the budget says so).
  const ready = listAt(pod, 'status', 'conditions').some(each => textAt(each, 'type') === 'Ready' && textAt(each, 'status') === 'True')
  const always = textAt(budget, 'spec', 'unhealthyPodEvictionPolicy') === 'AlwaysAllow'
  if (!ready && (always || ((healthy ?? 0) >= (desired ?? 0) && (desired ?? 0) > 0))) return
  if (numberAt(status, 'observedGeneration') < generation) {
    throw blocked(`The disruption budget ${name} is still being processed by the server.`)
  }
  if (!allowed || allowed <= 0) {
    throw blocked(
      (healthy ?? 0) <= (desired ?? 0)
        ? `The disruption budget ${name} needs ${desired ?? 0} healthy pods and has ${healthy ?? 0} currently`
        : `The disruption budget ${name} does not allow evicting pods currently`,
    )
  }
  const disruptedPods = {
    ...fieldsAt(status, 'disruptedPods'),
    [pod.metadata.name]: `${new Date(store.now()).toISOString().slice(0, 19)}Z`,
  }
  const written = store.update(BUDGETS, { ...budget, status: { ...status, disruptionsAllowed: allowed - 1, disruptedPods } })
  if (!written.ok) throw blocked(`The disruption budget ${name} is still being processed by the server.`)
}

/** POST to pods/eviction. */
export const evictPod = (world: World, write: Write, body: unknown, evict: Evict | undefined): unknown => {
  const pod = currentObject(world, write)
  const name = textAt(body, 'metadata', 'name')
  if (name !== write.name) throw badRequest(`name in URL does not match name in Eviction object`)
  const options = deleteOptions(valueAt(body, 'deleteOptions'), new URLSearchParams())
  const evicted = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }
  if (write.dryRun || isTrial(valueAt(body, 'deleteOptions'))) return evicted
  checkMarking(world, write.type, pod, options)
  if (evict) {
    checkPreconditions(write.type, pod, options)
    const outcome = evict(write.namespace, write.name, options)
    if (outcome.evicted) return evicted
    if (outcome.code === 429) throw blocked(outcome.message)
    throw new Refusal(500, undefined, outcome.message)
  }
  const finished = ['Succeeded', 'Failed', 'Pending'].includes(textAt(pod, 'status', 'phase'))
  if (!finished && pod.metadata.deletionTimestamp === undefined) spendBudget(world.store, pod)
  checkPreconditions(write.type, pod, options)
  const result = world.store.remove('pods', write.namespace, write.name, options)
  if (!result.ok) throw result.fault.code === 404 ? notFound(write.type, write.name) : fromStore(write.type, write.name, result.fault)
  return evicted
}
