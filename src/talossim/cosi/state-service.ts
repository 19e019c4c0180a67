import type { MessageInitShape } from '@bufbuild/protobuf'
import { create } from '@bufbuild/protobuf'
import type { Resource } from '../../../proto/gen/cosi/resource/state_pb.ts'
import type { EventSchema } from '../../../proto/gen/cosi/resource/state_pb.ts'
import { EventType, ResourceSchema, State } from '../../../proto/gen/cosi/resource/state_pb.ts'
import type { Answer } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import { versionOf } from '../../world/machine.ts'
import type { Call, StreamHandler, UnaryHandler } from '../call.ts'
import { untilOver } from '../call.ts'
import { streaming, unary } from '../dispatch.ts'
import type { ResourceKind } from './kind.ts'
import { isSensitive } from './kind.ts'
import { isNamespace, kindsOf } from './kinds.ts'
import { selection } from './queries.ts'
import type { ResourceEvent } from './states.ts'

type Wanted = { readonly namespace: string; readonly type: string }

/** The type asked for, if this caller may read it. */
const kindFor = (call: Call, { namespace, type }: Wanted): Answer<ResourceKind> => {
  const kind = kindsOf(versionOf(call.machine)).find(known => known.type === type)
  if (!kind) return refuse('PermissionDenied', `resource type ${JSON.stringify(type)} is not supported`)
  if (!isNamespace(namespace)) return refuse('PermissionDenied', `namespace ${JSON.stringify(namespace)} is not supported`)
  if (isSensitive(kind, versionOf(call.machine)) && !call.roles.has('os:admin')) return refuse('PermissionDenied', 'not authorized')
  return answer(kind)
}

const listed = (call: Call, kind: ResourceKind, namespace: string): readonly Resource[] =>
  namespace === kind.namespace ? call.resources.list(call.machine, kind) : []

/** Stands for a resource that is not there; its spec must not be missing. */
const tombstone = ({ namespace, type }: Wanted, id: string): Resource =>
  create(ResourceSchema, { metadata: { namespace, type, id, version: 'undefined', phase: 'running' }, spec: {} })

const get: UnaryHandler<typeof State.method.get> = (call, request) => {
  const kind = kindFor(call, request)
  if (!kind.ok) return kind
  const resource = listed(call, kind.value, request.namespace).find(r => r.metadata?.id === request.id)
  const name = `${request.type}(${request.namespace}/${request.id}@undefined)`
  return resource ? answer({ resource }) : refuse('NotFound', `resource ${name} doesn't exist`)
}

const list: StreamHandler<typeof State.method.list> = async (call, request, send) => {
  const kind = kindFor(call, request)
  if (!kind.ok) return kind
  const selects = selection(request.options?.labelQuery ?? [], request.options?.idQuery)
  if (!selects.ok) return selects
  for (const resource of listed(call, kind.value, request.namespace).filter(selects.value)) send({ resource })
  return answer(undefined)
}

/** A place in the events of one type since one boot; worth nothing after the next. */
const bookmark = (bootID: string, at: number): Uint8Array => new TextEncoder().encode(`${bootID}/${at}`)

/** The events after a bookmark, if all of them are still known. */
const eventsSince = (call: Call, kind: ResourceKind, mark: Uint8Array): Answer<readonly ResourceEvent[]> => {
  const { events, count } = call.resources.history(call.machine, kind)
  const [bootID, place] = new TextDecoder().decode(mark).split('/')
  const at = Number(place)
  const isKnown = bootID === call.machine.bootID && at >= (events[0]?.at ?? count + 1) - 1 && at <= count
  return isKnown ? answer(events.filter(event => event.at > at)) : refuse('FailedPrecondition', 'invalid bookmark')
}

const watch: StreamHandler<typeof State.method.watch> = async (call, request, send) => {
  const { namespace, id, options, apiVersion } = request
  const kind = kindFor(call, request)
  if (!kind.ok) return kind
  const wantsContents = options?.bootstrapContents ?? false
  if (id !== undefined && (wantsContents || (options?.labelQuery.length ?? 0) > 0))
    return refuse('Unimplemented', 'watching one resource takes neither contents nor labels')
  const selects = selection(options?.labelQuery ?? [], options?.idQuery)
  if (!selects.ok) return selects
  const mark = options?.startFromBookmark
  const missed = mark === undefined ? undefined : eventsSince(call, kind.value, mark)
  if (missed && !missed.ok) return missed
  const { events: past, count } = call.resources.history(call.machine, kind.value)

  const tell = (event: MessageInitShape<typeof EventSchema>, at = count): void =>
    send({ event: [{ ...event, bookmark: bookmark(call.machine.bootID, at) }] })
  const isWanted = (resource: Resource): boolean => (id === undefined ? selects.value(resource) : resource.metadata?.id === id)
  const pass = (event: ResourceEvent): void => {
    if (!isWanted(event.resource)) return
    tell({ eventType: EventType[event.type], resource: event.resource, ...(event.type === 'UPDATED' ? { old: event.old } : {}) }, event.at)
  }

  // The client waits for this one before it takes the watch for begun.
  send({ event: [] })
  const present = listed(call, kind.value, namespace)
  if (missed) for (const event of missed.value) pass(event)
  else if (id !== undefined) {
    const resource = present.find(r => r.metadata?.id === id)
    tell(resource ? { eventType: EventType.CREATED, resource } : { eventType: EventType.DESTROYED, resource: tombstone(request, id) })
  } else if (wantsContents) {
    for (const resource of present.filter(isWanted)) tell({ eventType: EventType.CREATED, resource })
    // Clients of the first version of the protocol do not know it.
    if (apiVersion >= 1) tell({ eventType: EventType.BOOTSTRAPPED, resource: tombstone(request, '') })
  } else if (options && options.tailEvents > 0) for (const event of past.slice(-options.tailEvents)) pass(event)
  else if (options?.bootstrapBookmark) tell({ eventType: EventType.NOOP, resource: tombstone(request, '') })

  const stop = namespace === kind.value.namespace ? call.resources.watch(call.machine, kind.value, pass) : () => {}
  await untilOver(call.over)
  stop()
  return answer(undefined)
}

/** The rule of roles lets only the admin come this far. */
const readOnly = (): Answer<never> => refuse('PermissionDenied', 'write access is not allowed')

export const stateMethods = {
  get: unary(State.method.get, get),
  list: streaming(State.method.list, list),
  watch: streaming(State.method.watch, watch),
  create: unary(State.method.create, readOnly),
  update: unary(State.method.update, readOnly),
  destroy: unary(State.method.destroy, readOnly),
  teardown: unary(State.method.teardown, readOnly),
  teardownAndDestroy: unary(State.method.teardownAndDestroy, readOnly),
}
