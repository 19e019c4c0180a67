import type { Site } from './site.ts'
import { RESOURCE, change, conditionOf, selects } from './objects.ts'
import type { KubeObject } from './store.ts'

/** What the Eviction API answers: done, or a status with its code and the text of the real one. */
export type Evicted =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly code: 404 | 409 | 429 | 500
      readonly reason: 'NotFound' | 'Conflict' | 'TooManyRequests' | 'InternalError'
      readonly message: string
      /** Where a budget forbids it: the budget's name and what the status' details say. */
      readonly budget?: string
      readonly cause?: string
    }

type BudgetSpec = { selector?: unknown; minAvailable?: number | string; maxUnavailable?: number | string }
type PodStatus = { phase?: string }

const share = (amount: number | string, of: number): number =>
  typeof amount === 'number' ? amount : amount.endsWith('%') ? Math.ceil((Number(amount.slice(0, -1)) / 100) * of) : Number(amount)

const isHealthy = (pod: KubeObject): boolean => pod.metadata.deletionTimestamp === undefined && conditionOf(pod, 'Ready')?.status === 'True'

/** How many pods the owners of these pods want; a bare pod wants itself. */
const wanted = (site: Site, pods: readonly KubeObject[]): number => {
  const sets = new Set<string>()
  let count = 0
  for (const pod of pods) {
    const owner = pod.metadata.ownerReferences?.find(o => o.controller)
    if (!owner) count++
    else if (!sets.has(owner.uid)) {
      sets.add(owner.uid)
      const set = owner.kind === 'ReplicaSet' ? site.store.get(RESOURCE.replicaSets, pod.metadata.namespace ?? '', owner.name) : undefined
      count +=
        (set?.spec as { replicas?: number } | undefined)?.replicas ??
        pods.filter(p => p.metadata.ownerReferences?.some(o => o.uid === owner.uid)).length
    }
  }
  return count
}

const numbers = (site: Site, budget: KubeObject) => {
  const spec = budget.spec as BudgetSpec
  const namespace = budget.metadata.namespace ?? ''
  const pods = site.store.list(RESOURCE.pods, namespace).items.filter(pod => selects(spec.selector, pod.metadata.labels))
  const expectedPods = wanted(site, pods)
  const desiredHealthy =
    spec.maxUnavailable === undefined
      ? share(spec.minAvailable ?? 0, expectedPods)
      : Math.max(0, expectedPods - share(spec.maxUnavailable, expectedPods))
  const currentHealthy = pods.filter(isHealthy).length
  const closed = site.faults.closedBudgets.has(`${namespace}/${budget.metadata.name}`)
  const disruptionsAllowed = closed || expectedPods === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy)
  return { expectedPods, desiredHealthy, currentHealthy, disruptionsAllowed }
}

/** The disruption controller: brings the status of every budget up to date. */
export const countBudgets = (site: Site): void => {
  for (const budget of site.store.list(RESOURCE.budgets).items) {
    const status = { ...(budget.status as object), ...numbers(site, budget), observedGeneration: budget.metadata.generation }
    change(site.store, RESOURCE.budgets, budget.metadata.namespace ?? '', budget.metadata.name, current => ({ ...current, status }))
  }
}

/** The Eviction API: a graceful deletion that a PodDisruptionBudget may forbid. `uid` makes it about this very pod. */
export const evict = (site: Site, namespace: string, name: string, uid?: string): Evicted => {
  const pod = site.store.get(RESOURCE.pods, namespace, name)
  if (!pod) return { ok: false, code: 404, reason: 'NotFound', message: `pods "${name}" not found` }
  if (uid !== undefined && uid !== pod.metadata.uid) {
    const message = `Operation cannot be fulfilled on Pod "${name}": the UID in the precondition (${uid}) does not match the UID in record (${pod.metadata.uid}). The object might have been deleted and then recreated`
    return { ok: false, code: 409, reason: 'Conflict', message }
  }
  const phase = (pod.status as PodStatus | undefined)?.phase
  const counts = phase === 'Running' && pod.metadata.deletionTimestamp === undefined
  const budgets = site.store
    .list(RESOURCE.budgets, namespace)
    .items.filter(b => selects((b.spec as BudgetSpec).selector, pod.metadata.labels))
  const node = (pod.spec as { nodeName?: string }).nodeName ?? ''
  if (counts && budgets.length > 1) {
    const message = 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.'
    return { ok: false, code: 500, reason: 'InternalError', message }
  }
  const budget = budgets[0]
  if (counts && budget) {
    const { disruptionsAllowed, desiredHealthy, currentHealthy } = numbers(site, budget)
    const mayGoUnhealthy = !isHealthy(pod) && currentHealthy >= desiredHealthy && currentHealthy > 0
    if (disruptionsAllowed <= 0 && !mayGoUnhealthy) {
      site.journal.write(node, 'evict-refused', `${namespace}/${name} by ${budget.metadata.name}`)
      return {
        ok: false,
        code: 429,
        reason: 'TooManyRequests',
        message: "Cannot evict pod as it would violate the pod's disruption budget.",
        budget: budget.metadata.name,
        cause: `The disruption budget ${budget.metadata.name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
      }
    }
  }
  const removed = site.store.remove(RESOURCE.pods, namespace, name, { uid: pod.metadata.uid })
  if (removed.ok) site.journal.write(node, 'evicted', `${namespace}/${name}`)
  countBudgets(site)
  return { ok: true }
}
