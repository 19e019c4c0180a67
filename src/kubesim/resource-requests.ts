import type { ServerResponse } from 'node:http'
import type { KubeObject } from '../world/store.ts'
import type { Allow } from './access.ts'
import { accessReview, forbidden, selfReview } from './access.ts'
import type { User } from './admission.ts'
import type { Catalog } from './catalog.ts'
import type { Pages } from './list.ts'
import { checkVersion, listBody, listObjects } from './list.ts'
import { badRequest, methodNotAllowed, noSuchResource, notFound, NO_PAGE, verbNotSupported } from './refusal.ts'
import type { Evict } from './remove.ts'
import { deleteObject, deleteOptions, evictPod, isTrial } from './remove.ts'
import type { ResourceType } from './resource-types.ts'
import { BUILT_IN } from './resource-types.ts'
import type { Target, Verb } from './route.ts'
import { targetOf, verbOf } from './route.ts'
import { tableOf, wantsMetadata, wantsTable } from './table.ts'
import type { WatchTimes } from './watch.ts'
import { serveWatch } from './watch.ts'
import type { World, Write } from './write.ts'
import { createObject, currentObject, patchObject, replaceObject } from './write.ts'
import { served } from './view.ts'

export type Context = {
  readonly world: World
  readonly catalog: Catalog
  readonly pages: Pages
  readonly allow: Allow
  readonly evict?: Evict
  readonly times: WatchTimes
  /** Told the end of every watch that begins, so that a closing server can end it. */
  readonly watching: (response: ServerResponse, end: () => void) => void
}

/** A request past authentication, its body read. */
export type Request = {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly accept: string
  readonly contentType: string
  readonly userAgent: string
  readonly user: User
  readonly body: () => unknown
  readonly warn: (text: string) => void
}

export type Answer = { readonly code: number; readonly body: unknown; readonly contentType?: string }

/** A Table, metadata alone, or the whole, as the client asked. */
const shown = (context: Context, request: Request, type: ResourceType, object: KubeObject, header = true): unknown => {
  if (wantsTable(request.accept)) {
    const metadata = { resourceVersion: object.metadata.resourceVersion }
    const include = request.query.get('includeObject') ?? ''
    // A bookmark is no row, but its object carries what the bookmark says.
    const rows = object.metadata.uid === undefined ? [] : [object]
    const table = tableOf(type, rows, { metadata, include, nowMs: context.world.store.now(), header })
    if (rows.length > 0) return table
    return {
      ...table,
      rows: [{ cells: [], object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata } }],
    }
  }
  if (wantsMetadata(request.accept) !== '')
    return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata }
  return object
}

const listAnswer = (context: Context, request: Request, type: ResourceType, target: Target): unknown => {
  const list = listObjects(context.world.store, context.pages, type, target, request.query)
  if (wantsTable(request.accept)) {
    const include = request.query.get('includeObject') ?? ''
    return tableOf(type, list.items, { metadata: list.metadata, include, nowMs: context.world.store.now(), header: true })
  }
  if (wantsMetadata(request.accept) !== '') {
    const items = list.items.map(({ metadata }) => ({ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata }))
    return { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1', metadata: list.metadata, items }
  }
  return listBody(type, list)
}

const writeOf = (request: Request, type: ResourceType, target: Target): Write => {
  const { query } = request
  const dryRun = query.getAll('dryRun')
  if (dryRun.some(value => value !== 'All')) throw badRequest(`invalid dryRun: only All is known`)
  const [agent = 'unknown'] = request.userAgent.split('/')
  return {
    type,
    namespace: target.namespace,
    name: target.name,
    subresource: target.subresource,
    user: request.user,
    manager: query.get('fieldManager') || agent || 'unknown',
    namedManager: Boolean(query.get('fieldManager')),
    dryRun: dryRun.length > 0,
    strictness: query.get('fieldValidation') || 'Warn',
    force: query.get('force') === 'true',
    warn: request.warn,
  }
}

const shelvesOf = (context: Context): string[] => [
  ...new Set(
    context.catalog
      .types()
      .filter(type => type.namespaced)
      .map(type => type.shelf),
  ),
]

const removeCollection = (context: Context, request: Request, type: ResourceType, target: Target): unknown => {
  const list = listObjects(context.world.store, context.pages, type, target, request.query)
  const options = deleteOptions(request.body(), request.query)
  const dryRun = isTrial(request.body())
  for (const { metadata } of list.items) {
    const one = { ...target, namespace: metadata.namespace ?? '', name: metadata.name }
    const write = writeOf(request, type, one)
    deleteObject(context.world, { ...write, dryRun: write.dryRun || dryRun }, options, shelvesOf(context))
  }
  return listBody(type, list)
}

const perform = (context: Context, request: Request, verb: Verb, type: ResourceType, target: Target): Answer => {
  const { world } = context
  const one = (object: KubeObject, code = 200): Answer => ({ code, body: shown(context, request, type, object) })
  const write = (): Write => writeOf(request, type, target)
  switch (verb) {
    case 'get':
      checkVersion(world.store, request.query.get('resourceVersion') ?? '')
      return one(served(type, currentObject(world, { type, ...target })))
    case 'list':
    case 'watch':
      return { code: 200, body: listAnswer(context, request, type, target) }
    case 'create':
      if (type.plural === 'selfsubjectreviews') return { code: 201, body: selfReview(request.user) }
      if (type.plural === 'selfsubjectaccessreviews') return { code: 201, body: accessReview(request.user, request.body(), context.allow) }
      if (target.subresource === 'eviction') return { code: 201, body: evictPod(world, write(), request.body(), context.evict) }
      if (target.name !== '') throw methodNotAllowed()
      return one(createObject(world, write(), request.body()), 201)
    case 'update':
      return one(replaceObject(world, write(), request.body()))
    case 'patch': {
      const { object, created } = patchObject(world, write(), request.contentType, request.body())
      return one(object, created ? 201 : 200)
    }
    case 'delete': {
      const options = deleteOptions(request.body(), request.query)
      const asked = write()
      const trial = { ...asked, dryRun: asked.dryRun || isTrial(request.body()) }
      return { code: 200, body: deleteObject(world, trial, options, shelvesOf(context)).body }
    }
    case 'deletecollection':
      return { code: 200, body: removeCollection(context, request, type, target) }
  }
}

/** Answers a request for a resource; undefined where it was a watch, which now writes to the response by itself. */
export const answerResource = (context: Context, request: Request, response: ServerResponse): Answer | undefined => {
  const target = targetOf(request.path)
  if (!target) throw noSuchResource()
  const watching = ['true', '1'].includes(request.query.get('watch') ?? '')
  const verb = verbOf(request.method, target, watching)
  if (!verb) throw methodNotAllowed()
  const attributes = {
    group: target.group,
    resource: target.plural,
    subresource: target.subresource,
    // A namespace is asked for within itself, as the real server sees it.
    namespace: target.plural === 'namespaces' ? target.name : target.namespace,
    name: target.name,
  }
  if (!context.allow(request.user, verb, attributes)) throw forbidden(request.user, verb, attributes)
  const type = context.catalog.find(target.group, target.version, target.plural)
  if (!type || (target.namespace !== '' && !type.namespaced)) {
    const builtIn = BUILT_IN.some(each => each.group === target.group)
    if (builtIn) throw noSuchResource()
    return { code: 404, body: NO_PAGE, contentType: 'text/plain; charset=utf-8' }
  }
  if (target.subresource === '') {
    if (!type.verbs.includes(verb)) throw methodNotAllowed()
  } else {
    const subresource = type.subresources.find(each => each.name === target.subresource)
    if (!subresource) throw type.custom ? notFound(type, target.name) : noSuchResource()
    if (!subresource.verbs.includes(verb)) throw type.custom ? verbNotSupported(type, verb) : methodNotAllowed()
  }
  if (type.namespaced && target.namespace === '' && !['list', 'watch', 'deletecollection'].includes(verb)) throw methodNotAllowed()
  if (verb !== 'watch') return perform(context, request, verb, type, target)

  let first = true
  const show = (shownType: ResourceType, object: KubeObject): unknown => {
    // Only the first Table of a watch says what its columns are.
    const header = first
    first = false
    return shown(context, request, shownType, object, header)
  }
  const end = serveWatch(context.world.store, type, target, request.query, response, { show, times: context.times })
  context.watching(response, end)
  return undefined
}
