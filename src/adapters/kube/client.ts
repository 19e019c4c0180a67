import type { ApiFault, ApiResult } from './classify.ts'
import { apiFault, faultOfAnswer, isExpired, redact } from './classify.ts'
import type { Json } from './json.ts'
import { at, isRecord, list, number, record, text } from './json.ts'
import type { Place, Resource } from './resource.ts'
import { describe, groupVersion, pathOf } from './resource.ts'
import type { Transport, Verb } from './transport.ts'

/** An object as it came, not yet read. */
export type KubeObject = Json

export type Selection = { readonly labelSelector?: string; readonly fieldSelector?: string }
export type CallOptions = { readonly signal?: AbortSignal; readonly deadlineMs?: number }
export type ListOptions = Place & Selection & CallOptions
export type Listed = { readonly items: readonly KubeObject[]; readonly resourceVersion: string }
export type Page = Listed & {
  /** Empty on the last page. */
  readonly next: string
}

export type PatchType = 'merge' | 'json' | 'strategic' | 'apply'

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
export type WatchOptions = Place & Selection & CallOptions & { readonly resourceVersion: string; readonly timeoutSeconds: number }
export type WatchHandlers = { readonly opened: () => void; readonly event: (type: WatchEventType, object: KubeObject) => void }

/** `meta.k8s.io/v1` Table: what the server thinks people want to see. */
export type Table = {
  readonly columns: readonly { readonly name: string; readonly type: string; readonly priority: number; readonly description: string }[]
  readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: KubeObject }[]
}

export type ServedType = {
  readonly resource: Resource
  readonly namespaced: boolean
  /** `storageVersionHash`: the same for as long as it is stored as the same version. Empty where the server does not say. */
  readonly storageHash: string
}

/** How writes name their author in `metadata.managedFields`. */
export type WriteOptions = CallOptions & { readonly fieldManager?: string; readonly dryRun?: boolean }

/** What can be asked of any type of object. Nothing throws. */
export type KubeClient = {
  /** `10.0.0.1:6443`. */
  readonly peer: string
  readonly get: (resource: Resource, place: Place, options?: CallOptions) => Promise<ApiResult<KubeObject>>
  /** All of them, in pages of 500. */
  readonly list: (resource: Resource, options?: ListOptions) => Promise<ApiResult<Listed>>
  readonly page: (resource: Resource, options: ListOptions, limit: number, next: string) => Promise<ApiResult<Page>>
  readonly create: (resource: Resource, place: Place, body: Json, options?: WriteOptions) => Promise<ApiResult<KubeObject>>
  readonly replace: (resource: Resource, place: Place, body: Json, options?: WriteOptions) => Promise<ApiResult<KubeObject>>
  readonly patch: (
    resource: Resource,
    place: Place,
    patch: Json | readonly Json[],
    options?: WriteOptions & { readonly type?: PatchType; readonly force?: boolean },
  ) => Promise<ApiResult<KubeObject>>
  readonly delete: (
    resource: Resource,
    place: Place,
    options?: WriteOptions & {
      readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
      readonly propagation?: 'Background' | 'Foreground' | 'Orphan'
      readonly gracePeriodSeconds?: number
    },
  ) => Promise<ApiResult<KubeObject>>
  /** Until the server ends it (ok), `signal` does (`cancelled`) or something breaks. An ERROR event ends it as its fault. */
  readonly watch: (resource: Resource, options: WatchOptions, on: WatchHandlers) => Promise<ApiResult<void>>
  /** As a table: one object where a name is given, else all of them. The rows' objects are whole when `objects` is `whole`. */
  readonly table: (resource: Resource, options?: ListOptions & { readonly objects?: 'metadata' | 'whole' }) => Promise<ApiResult<Table>>
  /** The server's own version, for example `v1.36.2`. */
  readonly version: () => Promise<ApiResult<string>>
  /** As `Transport.time`. */
  readonly time: () => Promise<ApiResult<number>>
  /** As `Transport.clockAhead`. */
  readonly clockAhead: () => Promise<ApiResult<number>>
  /** Its own metrics, as text. */
  readonly metrics: () => Promise<ApiResult<string>>
  /** All that it serves: `v1`, `apps/v1`, … */
  readonly apiVersions: () => Promise<ApiResult<readonly string[]>>
  /** The type of that kind, found by discovery; undefined where it is not served. */
  readonly typeOf: (group: string, version: string, kind: string) => Promise<ApiResult<ServedType | undefined>>
  /** Whether it serves that very type. */
  readonly serves: (resource: Resource) => Promise<ApiResult<boolean>>
}

const PAGE_SIZE = 500
const LIST_DEADLINE_MS = 30_000

const CONTENT_TYPE: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>

const queryOf = (query: Query): string => {
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== '' && value !== false)
  return set.length === 0 ? '' : `?${set.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}`
}

export const kubeClient = (transport: Transport, defaults: { readonly fieldManager?: string } = {}): KubeClient => {
  type Request = CallOptions & { readonly query?: Query; readonly body?: unknown; readonly contentType?: string; readonly accept?: string }

  const callOf = (verb: Verb, method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', resource: Resource, place: Place, request: Request) => ({
    verb,
    method,
    path: pathOf(resource, place) + queryOf(request.query ?? {}),
    resource: place.subresource ? `${resource.plural}/${place.subresource}` : resource.plural,
    what: describe(resource, place),
    group: resource.group,
    body: request.body,
    contentType: request.contentType,
    accept: request.accept,
    deadlineMs: request.deadlineMs,
    signal: request.signal,
  })

  const send = (...call: Parameters<typeof callOf>): Promise<ApiResult<unknown>> => transport.send(callOf(...call))

  const object = async (...call: Parameters<typeof callOf>): Promise<ApiResult<KubeObject>> => {
    const answer = await send(...call)
    if (!answer.ok) return answer
    return isRecord(answer.value) ? { ok: true, value: answer.value } : notAnApi(call[2], call[3])
  }

  const notAnApi = (resource: Resource, place: Place) =>
    apiFault(
      'unknown',
      `${transport.peer}: ${describe(resource, place)}: the answer is no Kubernetes object; the address must be that of a Kubernetes API server`,
    )

  const written = ({ fieldManager, dryRun }: WriteOptions): Query => ({
    fieldManager: fieldManager ?? defaults.fieldManager,
    dryRun: dryRun ? 'All' : undefined,
  })

  /** What discovery tells of a group and version; nothing where it is not served. */
  const served = async (resource: Pick<Resource, 'group' | 'version'>): Promise<ApiResult<readonly Json[]>> => {
    const path = resource.group === '' ? `/api/${resource.version}` : `/apis/${groupVersion(resource)}`
    const what = `the types of ${groupVersion(resource)}`
    const answer = await transport.send({ verb: 'get', method: 'GET', path, resource: 'apis', what })
    if (!answer.ok) return answer.fault.code === 404 ? { ok: true, value: [] } : answer
    return { ok: true, value: list(record(answer.value)['resources']).map(record) }
  }

  const page: KubeClient['page'] = async (resource, options, limit, next) => {
    const { labelSelector, fieldSelector, namespace, signal } = options
    const query = { labelSelector, fieldSelector, limit: limit > 0 ? limit : undefined, continue: next }
    const answer = await object(
      'list',
      'GET',
      resource,
      { namespace },
      { query, signal, deadlineMs: options.deadlineMs ?? LIST_DEADLINE_MS },
    )
    if (!answer.ok) return answer
    if (!Array.isArray(answer.value['items'])) return notAnApi(resource, { namespace })
    const metadata = record(answer.value['metadata'])
    return {
      ok: true,
      value: {
        items: answer.value['items'].map(record),
        resourceVersion: text(metadata['resourceVersion']),
        next: text(metadata['continue']),
      },
    }
  }

  const allPages = async <T extends { readonly next: string }>(
    read: (limit: number, next: string) => Promise<ApiResult<T>>,
  ): Promise<ApiResult<readonly T[]>> => {
    const pages: T[] = []
    for (let next = ''; ;) {
      const answer = await read(PAGE_SIZE, next)
      if (!answer.ok) {
        // The pages so far are of a moment that the server has forgotten: all at once then, which cannot expire.
        if (!isExpired(answer.fault) || next === '') return answer
        const whole = await read(0, '')
        return whole.ok ? { ok: true, value: [whole.value] } : whole
      }
      pages.push(answer.value)
      next = answer.value.next
      if (next === '') return { ok: true, value: pages }
    }
  }

  return {
    peer: transport.peer,
    get: (resource, place, options = {}) => object('get', 'GET', resource, place, options),
    page,
    list: async (resource, options = {}) => {
      const pages = await allPages((limit, next) => page(resource, options, limit, next))
      if (!pages.ok) return pages
      return {
        ok: true,
        value: { items: pages.value.flatMap(({ items }) => items), resourceVersion: pages.value[0]?.resourceVersion ?? '' },
      }
    },
    // The name of what is created is in the body; only a subresource has it in the path.
    create: (resource, place, body, options = {}) => {
      const { namespace, name, subresource } = place
      return object('create', 'POST', resource, subresource ? { namespace, name, subresource } : { namespace }, {
        ...options,
        query: written(options),
        body,
      })
    },
    replace: (resource, place, body, options = {}) =>
      object('update', 'PUT', resource, place, { ...options, query: written(options), body }),
    patch: (resource, place, patch, options = {}) => {
      const query = { ...written(options), force: options.force }
      return object('patch', 'PATCH', resource, place, {
        ...options,
        query,
        body: patch,
        contentType: CONTENT_TYPE[options.type ?? 'merge'],
      })
    },
    delete: (resource, place, options = {}) => {
      const { preconditions, propagation, gracePeriodSeconds } = options
      const body = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        preconditions,
        propagationPolicy: propagation,
        gracePeriodSeconds,
        dryRun: options.dryRun ? ['All'] : undefined,
      }
      return object('delete', 'DELETE', resource, place, { ...options, body })
    },
    watch: async (resource, options, on) => {
      const { namespace, labelSelector, fieldSelector, resourceVersion, timeoutSeconds, signal } = options
      const query = { watch: 1, allowWatchBookmarks: true, resourceVersion, timeoutSeconds, labelSelector, fieldSelector }
      const place = { namespace }
      // An ERROR event is the end, but the server need not close the stream with it.
      const ended = new AbortController()
      const both = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal
      let fault: ApiFault | undefined
      const line = (content: string): void => {
        if (fault) return
        const event = parseEvent(content)
        const type = text(event?.['type'])
        if (event && (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK'))
          return on.event(type, record(event['object']))
        const status = record(event?.['object'])
        fault = event
          ? faultOfAnswer(number(status['code']) || 500, status, {
              peer: transport.peer,
              call: `watch ${describe(resource, place)}`,
              group: resource.group,
            })
          : apiFault(
              'unreachable',
              redact(`${transport.peer}: watch ${describe(resource, place)}: the stream broke in the middle of an event`),
            ).fault
        ended.abort()
      }
      const call = callOf('watch', 'GET', resource, place, { query, signal: both, deadlineMs: options.deadlineMs })
      const answer = await transport.stream(call, { opened: on.opened, line })
      return fault ? { ok: false, fault } : answer
    },
    table: async (resource, options = {}) => {
      const { namespace, name, labelSelector, fieldSelector, signal } = options
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
      const read = async (limit: number, next: string) => {
        const query = {
          labelSelector,
          fieldSelector,
          limit: name || limit === 0 ? undefined : limit,
          continue: next,
          includeObject: options.objects === 'whole' ? 'Object' : undefined,
        }
        const answer = await object(
          name ? 'get' : 'list',
          'GET',
          resource,
          { namespace, name },
          { query, signal, accept, deadlineMs: options.deadlineMs ?? LIST_DEADLINE_MS },
        )
        return answer.ok
          ? { ok: true as const, value: { table: answer.value, next: text(at(answer.value, 'metadata', 'continue')) } }
          : answer
      }
      const pages = await allPages(read)
      if (!pages.ok) return pages
      const first = pages.value[0]?.table
      if (text(first?.['kind']) !== 'Table') return notAnApi(resource, { namespace, name })
      return {
        ok: true,
        value: {
          columns: list(first?.['columnDefinitions']).map(columnOf),
          rows: pages.value.flatMap(({ table }) => list(table['rows']).map(rowOf)),
        },
      }
    },
    version: async () => {
      const answer = await transport.send({ verb: 'get', method: 'GET', path: '/version', resource: 'version', what: 'the version' })
      if (!answer.ok) return answer
      const version = text(record(answer.value)['gitVersion'])
      return version === ''
        ? apiFault('unknown', `${transport.peer}: /version names no version; the address must be that of a Kubernetes API server`)
        : { ok: true, value: version }
    },
    time: () => transport.time(),
    clockAhead: () => transport.clockAhead(),
    metrics: async () => {
      const answer = await transport.send({
        ...{ verb: 'get', method: 'GET', path: '/metrics', resource: 'metrics', what: 'the metrics' },
        ...{ accept: 'text/plain', deadlineMs: LIST_DEADLINE_MS },
      })
      return answer.ok ? { ok: true, value: text(answer.value) } : answer
    },
    apiVersions: async () => {
      const core = await transport.send({ verb: 'get', method: 'GET', path: '/api', resource: 'api', what: 'the API versions' })
      if (!core.ok) return core
      const groups = await transport.send({ verb: 'get', method: 'GET', path: '/apis', resource: 'apis', what: 'the API groups' })
      if (!groups.ok) return groups
      const named = list(record(groups.value)['groups']).flatMap(group =>
        list(record(group)['versions']).map(version => text(record(version)['groupVersion'])),
      )
      return { ok: true, value: [...list(record(core.value)['versions']).map(text), ...named] }
    },
    typeOf: async (group, version, kind) => {
      const types = await served({ group, version })
      if (!types.ok) return types
      // A subresource has the kind of what it takes, for example Scale.
      const type = types.value.find(one => one['kind'] === kind && !text(one['name']).includes('/'))
      if (!type) return { ok: true, value: undefined }
      return {
        ok: true,
        value: {
          resource: { group, version, kind, plural: text(type['name']) },
          namespaced: type['namespaced'] === true,
          storageHash: text(type['storageVersionHash']),
        },
      }
    },
    serves: async resource => {
      const types = await served(resource)
      return types.ok ? { ok: true, value: types.value.some(one => text(one['name']) === resource.plural) } : types
    },
  }
}

const parseEvent = (line: string): Json | undefined => {
  try {
    const event: unknown = JSON.parse(line)
    return isRecord(event) ? event : undefined
  } catch {
    return undefined
  }
}

const columnOf = (column: unknown) => {
  const c = record(column)
  return { name: text(c['name']), type: text(c['type']), priority: number(c['priority']), description: text(c['description']) }
}

const rowOf = (row: unknown) => ({ cells: list(record(row)['cells']), object: record(record(row)['object']) })
