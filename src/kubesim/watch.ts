import type { ServerResponse } from 'node:http'
import type { KubeObject, Store, StoreEvent } from '../world/store.ts'
import { checkListOptions, checkVersion } from './list.ts'
import { fromStore, Refusal } from './refusal.ts'
import type { ResourceType } from './resource-types.ts'
import { apiVersionOf } from './resource-types.ts'
import type { Selects } from './select.ts'
import { selects } from './select.ts'
import { served } from './view.ts'

/** Bookmarks come about once a minute and a moment before the end of a watch. */
export type WatchTimes = { readonly bookmarkEveryMs: number; readonly longestMs: number }

/** An event as a selecting watch tells it: what begins to match is added, what ceases to match is deleted as it was before. */
const told = ({ type, object, previous }: StoreEvent, chosen: Selects): StoreEvent | undefined => {
  if (type === 'DELETED') return chosen(object) ? { type, object } : undefined
  const [was, is] = [previous !== undefined && chosen(previous), chosen(object)]
  if (is) return { type: was ? 'MODIFIED' : 'ADDED', object }
  if (!was || !previous) return undefined
  const { resourceVersion } = object.metadata
  return { type: 'DELETED', object: { ...previous, metadata: { ...previous.metadata, resourceVersion } } }
}

export type Shown = (type: ResourceType, object: KubeObject) => unknown

/**
 * Answers a watch with one JSON document per event until the client leaves, the time it asked for is over, or the server closes. Nothing is
 * written before the request is known to be good. The answer ends the watch.
 */
export const serveWatch = (
  store: Store,
  type: ResourceType,
  place: { readonly namespace: string; readonly name: string },
  query: URLSearchParams,
  response: ServerResponse,
  how: { readonly show: Shown; readonly times: WatchTimes },
): (() => void) => {
  const fields = [query.get('fieldSelector') ?? '', ...(place.name === '' ? [] : [`metadata.name=${place.name}`])].filter(Boolean).join(',')
  const select = selects(type, { labels: query.get('labelSelector') ?? '', fields })
  const within: Selects = object => place.namespace === '' || object.metadata.namespace === place.namespace
  const chosen: Selects = object => within(object) && select(object)
  const asked = query.get('resourceVersion') ?? ''
  checkListOptions(query, true)
  const initialEvents = query.get('sendInitialEvents') === 'true'
  const bookmarks = query.get('allowWatchBookmarks') === 'true'
  if (initialEvents) checkVersion(store, asked)
  if (!/^\d*$/.test(asked)) {
    const words = `resourceVersion: Invalid value: "${asked}": strconv.ParseUint: parsing "${asked}": invalid syntax`
    throw new Refusal(500, undefined, words)
  }

  const replays = initialEvents || asked === '' || asked === '0'
  let last = asked
  const lines: string[] = []
  let send = (line: string): void => void lines.push(line)
  const sendEvent = (event: { type: string; object: unknown }): void => send(`${JSON.stringify(event)}\n`)
  const bookmark = (resourceVersion: string, annotations?: Record<string, string>): void => {
    const metadata = { resourceVersion, ...(annotations ? { annotations } : {}) }
    const object = { kind: type.kind, apiVersion: apiVersionOf(type), metadata } as unknown as KubeObject
    sendEvent({ type: 'BOOKMARK', object: how.show(type, object) })
  }
  const tell = (event: StoreEvent): void => {
    last = event.object.metadata.resourceVersion
    const telling = told(event, chosen)
    if (telling) sendEvent({ type: telling.type, object: how.show(type, served(type, telling.object)) })
  }

  const now = store.list(type.shelf, place.namespace || undefined)
  if (replays && query.get('sendInitialEvents') !== 'false') {
    last = now.resourceVersion
    for (const object of now.items) {
      if (!chosen(object)) continue
      sendEvent({ type: 'ADDED', object: how.show(type, served(type, object)) })
    }
    if (initialEvents && bookmarks) bookmark(last, { 'k8s.io/initial-events-end': 'true' })
  } else if (replays) last = now.resourceVersion
  const watch = store.watch(type.shelf, last, tell)
  if (!watch.ok && replays) throw fromStore(type, '', watch.fault)

  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-cache, private' })
  response.flushHeaders()
  if (!watch.ok) {
    const { code, reason, message } = watch.fault
    const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code }
    response.end(`${JSON.stringify({ type: 'ERROR', object: status })}\n`)
    return () => undefined
  }
  response.write(lines.join(''))
  send = line => void response.write(line)

  const wantedMs = Number(query.get('timeoutSeconds') ?? 0) * 1000
  const lengthMs = wantedMs > 0 ? Math.min(wantedMs, how.times.longestMs) : how.times.longestMs
  // The version of the whole store: nothing of this type is missing up to there.
  const mark = (): void => {
    if (bookmarks) bookmark(store.list(type.shelf, '\u0000').resourceVersion)
  }
  const ticking = setInterval(mark, how.times.bookmarkEveryMs)
  const end = (): void => {
    clearInterval(ticking)
    clearTimeout(ending)
    watch.stop()
    response.end()
  }
  const ending = setTimeout(() => {
    mark()
    end()
  }, lengthMs)
  response.on('close', end)
  return end
}
