import type { Draft, KubeObject, Store } from './store.ts'

/** The resources that the world's own actors keep, by the names under which the store has them. */
export const RESOURCE = {
  nodes: 'nodes',
  pods: 'pods',
  namespaces: 'namespaces',
  configMaps: 'configmaps',
  secrets: 'secrets',
  events: 'events',
  deployments: 'deployments.apps',
  replicaSets: 'replicasets.apps',
  daemonSets: 'daemonsets.apps',
  budgets: 'poddisruptionbudgets.policy',
  volumes: 'persistentvolumes',
  attachments: 'volumeattachments.storage.k8s.io',
  leases: 'leases.coordination.k8s.io',
  definitions: 'customresourcedefinitions.apiextensions.k8s.io',
} as const

/** To the second, as Kubernetes writes times. */
export const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

export type Condition = {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime: string
}

export const conditionOf = (object: KubeObject | undefined, type: string): Condition | undefined =>
  (object?.status as { conditions?: readonly Condition[] } | undefined)?.conditions?.find(c => c.type === type)

/** The conditions of an object with one changed; its transition time moves only with its status. */
export const withCondition = (
  object: KubeObject | undefined,
  now: number,
  changed: Omit<Condition, 'lastTransitionTime'>,
): readonly Condition[] => {
  const conditions = (object?.status as { conditions?: readonly Condition[] } | undefined)?.conditions ?? []
  const old = conditions.find(c => c.type === changed.type)
  const lastTransitionTime = old?.status === changed.status ? old.lastTransitionTime : timestamp(now)
  return [...conditions.filter(c => c.type !== changed.type), { ...changed, lastTransitionTime }]
}

/** Writes an object anew from what it is now; the actors of the world run one after the other, so no one comes between. */
export const change = (
  store: Store,
  resource: string,
  namespace: string,
  name: string,
  edit: (object: KubeObject) => Draft,
): KubeObject | undefined => {
  const object = store.get(resource, namespace, name)
  if (!object) return undefined
  const written = store.update(resource, edit(object))
  return written.ok ? written.value : undefined
}

/** Creates, or answers what is already there. */
export const ensure = (store: Store, resource: string, object: Draft): KubeObject => {
  const created = store.create(resource, object)
  if (created.ok) return created.value
  const found = store.get(resource, object.metadata.namespace ?? '', object.metadata.name ?? '')
  if (!found) throw new Error(created.fault.message)
  return found
}

/** A label selector of matchLabels and the four operators of matchExpressions. An empty selector selects all, an absent one nothing. */
export const selects = (selector: unknown, labels: Readonly<Record<string, string>> | undefined): boolean => {
  if (typeof selector !== 'object' || selector === null) return false
  const { matchLabels = {}, matchExpressions = [] } = selector as {
    matchLabels?: Record<string, string>
    matchExpressions?: { key: string; operator: string; values?: string[] }[]
  }
  const own = labels ?? {}
  return (
    Object.entries(matchLabels).every(([key, value]) => own[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = own[key]
      if (operator === 'Exists') return value !== undefined
      if (operator === 'DoesNotExist') return value === undefined
      if (operator === 'In') return value !== undefined && values.includes(value)
      return value === undefined || !values.includes(value)
    })
  )
}
