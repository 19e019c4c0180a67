import type { KubeObject, Store } from '../world/store.ts'
import type { FieldFault } from './refusal.ts'
import { badRequest, expired, invalid, Refusal } from './refusal.ts'
import type { ResourceType } from './resource-types.ts'
import { apiVersionOf } from './resource-types.ts'
import { selects } from './select.ts'
import { served } from './view.ts'

export type ListAnswer = {
  readonly items: readonly KubeObject[]
  readonly metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number }
}

export type Pages = {
  keep(items: readonly KubeObject[], resourceVersion: string): string
  take(token: string): { items: readonly KubeObject[]; resourceVersion: string; start: number } | undefined
}

/** Lists that were begun, so that their later pages show the same moment. The oldest are forgotten, as the real server compacts. */
export const createPages = (capacity = 64): Pages => {
  const begun = new Map<string, { items: readonly KubeObject[]; resourceVersion: string }>()
  let count = 0
  return {
    keep: (items, resourceVersion) => {
      const id = String(++count)
      begun.set(id, { items, resourceVersion })
      const oldest = begun.keys().next().value
      if (begun.size > capacity && oldest !== undefined) begun.delete(oldest)
      return id
    },
    take: token => {
      const [, id = '', start = ''] = /^(\d+)\.(\d+)$/.exec(Buffer.from(token, 'base64url').toString()) ?? []
      const list = begun.get(id)
      return list && { ...list, start: Number(start) }
    },
  }
}

/** Waits for nobody: a version that is still to come is refused, as the real server does after its patience ends. */
export const checkVersion = (store: Store, asked: string): void => {
  if (asked === '' || asked === '0') return
  if (!/^\d+$/.test(asked)) {
    throw badRequest(
      `invalid resource version: resourceVersion: Invalid value: "${asked}": strconv.ParseUint: parsing "${asked}": invalid syntax`,
    )
  }
  const current = store.list('namespaces').resourceVersion
  if (Number(asked) <= Number(current)) return
  const refusal = new Refusal(504, 'Timeout', `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })
  throw refusal
}

const GONE =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'

const LIST_OPTIONS = { group: 'meta.k8s.io', plural: 'listoptions', kind: 'ListOptions' }

/** What goes together in a query, for lists and watches. */
export const checkListOptions = (query: URLSearchParams, watching: boolean): void => {
  const faults: FieldFault[] = []
  const forbid = (field: string, words: string): void =>
    void faults.push({ field, reason: 'FieldValueForbidden', message: `Forbidden: ${words}` })
  const [match, initial] = [query.get('resourceVersionMatch'), query.get('sendInitialEvents')]
  if (watching) {
    if (initial !== null && match !== 'NotOlderThan') {
      forbid('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
    }
    if (initial === null && match !== null) {
      forbid('resourceVersionMatch', 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')
    }
  } else {
    if (match !== null && !query.get('resourceVersion')) {
      forbid('resourceVersionMatch', 'resourceVersionMatch is forbidden unless resourceVersion is provided')
    }
    if (initial !== null) forbid('sendInitialEvents', 'sendInitialEvents is forbidden for list')
  }
  if (faults.length > 0) throw invalid(LIST_OPTIONS, '', faults)
}

/** The objects of a type that a query asks for, a page at a time. */
export const listObjects = (
  store: Store,
  pages: Pages,
  type: ResourceType,
  place: { readonly namespace: string; readonly name: string },
  query: URLSearchParams,
): ListAnswer => {
  checkListOptions(query, false)
  const chosen = selects(type, { labels: query.get('labelSelector') ?? '', fields: query.get('fieldSelector') ?? '' })
  const selective = Boolean(query.get('labelSelector') || query.get('fieldSelector'))
  const token = query.get('continue') ?? ''
  const limit = Number(query.get('limit') ?? 0)
  const begun = token === '' ? undefined : pages.take(token)
  if (token !== '' && !begun) throw expired(GONE)
  const asked = query.get('resourceVersion') ?? ''
  if (token !== '' && asked !== '' && asked !== '0') throw badRequest('specifying resource version is not allowed when using continue')
  checkVersion(store, asked)
  const whole = begun ?? { ...store.list(type.shelf, place.namespace || undefined), start: 0 }
  if (!begun && query.get('resourceVersionMatch') === 'Exact' && asked !== whole.resourceVersion) {
    throw expired(`The resourceVersion for the provided list is too old.`)
  }
  const items: KubeObject[] = []
  let at = whole.start
  for (; at < whole.items.length && (limit <= 0 || items.length < limit); at++) {
    const object = whole.items[at]
    if (object && chosen(object)) items.push(served(type, object))
  }
  const rest = whole.items.slice(at)
  const more = selective ? rest.some(chosen) : rest.length > 0
  if (!more) return { items, metadata: { resourceVersion: whole.resourceVersion } }
  const id = begun ? Buffer.from(token, 'base64url').toString().split('.')[0] : pages.keep(whole.items, whole.resourceVersion)
  return {
    items,
    metadata: {
      resourceVersion: whole.resourceVersion,
      continue: Buffer.from(`${id}.${at}`).toString('base64url'),
      ...(selective ? {} : { remainingItemCount: rest.length }),
    },
  }
}

export const listBody = (type: ResourceType, { items, metadata }: ListAnswer) => ({
  kind: type.listKind,
  apiVersion: apiVersionOf(type),
  metadata,
  items: type.custom ? items : items.map(({ kind: _kind, apiVersion: _version, ...rest }) => rest),
})
