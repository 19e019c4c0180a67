import { frozen } from '../world/json.ts'
import type { KubeObject } from '../world/store.ts'
import type { Fields } from './fields.ts'
import { fieldsAt, textAt, valueAt, without } from './fields.ts'
import type { ResourceType } from './resource-types.ts'
import { apiVersionOf } from './resource-types.ts'

/** `events.k8s.io/v1` and `v1` are two spellings of the same Event; the store holds `v1`. Each pair: here, there. */
const EVENT_FIELDS = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
] as const

/** What an Event shows where nothing was written. */
const EMPTY_EVENT = {
  eventTime: null,
  firstTimestamp: null,
  lastTimestamp: null,
  source: {},
  reportingComponent: '',
  reportingInstance: '',
}

const renamed = (object: Fields, pairs: readonly (readonly [string, string])[]): Record<string, unknown> => {
  const names = new Map(pairs)
  return Object.fromEntries(Object.entries(object).map(([field, value]) => [names.get(field) ?? field, value]))
}

const seen = new WeakMap<KubeObject, Map<ResourceType, KubeObject>>()

/** A stored object as a resource shows it. Asked often for the same object, so the answer is kept beside it. */
export const served = (type: ResourceType, kept: KubeObject): KubeObject => {
  const views = seen.get(kept) ?? new Map<ResourceType, KubeObject>()
  const known = views.get(type)
  if (known) return known
  const metadata = type.generation ? kept.metadata : without(kept.metadata, 'generation')
  const object: KubeObject = type.shelf === 'events' ? { ...EMPTY_EVENT, ...kept } : kept
  // The newer spelling leaves out what is empty.
  const told = type.group === 'events.k8s.io' ? Object.fromEntries(Object.entries(object).filter(([, value]) => value !== '')) : object
  const shown = type.group === 'events.k8s.io' ? renamed(told, EVENT_FIELDS) : told
  const view = frozen({ ...shown, kind: type.kind, apiVersion: apiVersionOf(type), metadata }) as KubeObject
  views.set(type, view)
  seen.set(kept, views)
  return view
}

const EMPTY_META = ['annotations', 'finalizers', 'labels', 'managedFields', 'ownerReferences']

const isEmpty = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Some maps and lists do not exist while nothing is in them. */
const withoutEmpty = (object: Fields, fields: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(object).filter(([field, value]) => !fields.includes(field) || !isEmpty(value)))

/** An object as a client sent it, as the store keeps it. */
export const stored = (type: ResourceType, object: Fields): Fields => {
  const back =
    type.group === 'events.k8s.io'
      ? renamed(
          object,
          EVENT_FIELDS.map(([here, there]) => [there, here]),
        )
      : object
  const apiVersion = type.shelf === 'events' ? 'v1' : apiVersionOf(type)
  return {
    ...withoutEmpty(back, type.custom ? [] : ['data', 'binaryData']),
    apiVersion,
    kind: type.kind,
    metadata: withoutEmpty(fieldsAt(back, 'metadata'), EMPTY_META),
  }
}

const base64 = (text: unknown): string => Buffer.from(String(text)).toString('base64')

/** What the server adds to a new object of a built-in type, or takes from it, where our clients can see it. */
const NEW: Record<string, (object: Fields) => Fields> = {
  pods: object => ({
    ...object,
    spec: { restartPolicy: 'Always', terminationGracePeriodSeconds: 30, ...fieldsAt(object, 'spec') },
    status: { phase: 'Pending' },
  }),
  namespaces: object => ({
    ...object,
    metadata: {
      ...fieldsAt(object, 'metadata'),
      labels: { ...fieldsAt(object, 'metadata', 'labels'), 'kubernetes.io/metadata.name': textAt(object, 'metadata', 'name') },
    },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }),
  secrets: object => {
    const plain = fieldsAt(object, 'stringData')
    const data = { ...fieldsAt(object, 'data'), ...Object.fromEntries(Object.entries(plain).map(([key, text]) => [key, base64(text)])) }
    const { stringData: _plain, ...rest } = object
    return { ...rest, ...(Object.keys(data).length > 0 ? { data } : {}), type: textAt(object, 'type') || 'Opaque' }
  },
  services: object => ({ ...object, spec: { type: 'ClusterIP', ...fieldsAt(object, 'spec') }, status: { loadBalancer: {} } }),
  nodes: object => object,
}

export const prepared = (type: ResourceType, object: Fields): Fields => {
  const prepare = NEW[type.shelf]
  if (prepare) return prepare(object)
  return type.subresources.some(({ name }) => name === 'status') ? without(object, 'status') : object
}

/** Secrets may be changed through stringData too. */
export const preparedUpdate = (type: ResourceType, object: Fields): Fields =>
  type.shelf === 'secrets' && valueAt(object, 'stringData') !== undefined ? (NEW['secrets']?.(object) ?? object) : object
