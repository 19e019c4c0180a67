import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import { timestampMs } from '@bufbuild/protobuf/wkt'
import { type Resource, State } from '../../../proto/gen/cosi/resource/state_pb.ts'
import { failed, type Fault, ok, type Result } from '../../ports/fault.ts'
import type { Calls, CallOptions } from './calls.ts'

/** Where resources of one type are, and the message that their `proto_spec` holds. */
export type ResourceType<S extends DescMessage> = { readonly namespace: string; readonly type: string; readonly schema: S }

export type CosiResource<S extends DescMessage> = {
  readonly id: string
  /** A counter that grows with each write. */
  readonly version: string
  /** When it was written last, by the clock of its machine: milliseconds since 1970. */
  readonly updated: number
  readonly spec: MessageShape<S>
}

/** One resource; undefined where it does not exist, or this release of Talos has no such type. */
export async function getResource<S extends DescMessage>(
  calls: Calls,
  address: string,
  of: ResourceType<S>,
  id: string,
  options?: CallOptions,
): Promise<Result<CosiResource<S> | undefined>> {
  const { namespace, type } = of
  const subject = `${type}/${id}`
  const answer = await calls.unary(address, State.method.get, { namespace, type, id }, { ...options, subject })
  if (!answer.ok) return isAbsence(answer.fault) ? ok(undefined) : answer
  return decoded(address, `State.Get ${subject}`, of, answer.value.resource)
}

/** More than any type that is read here has: then it is no list, but something that does not end. */
export const mostResources = 10_000
export const mostBytes = 64 * 1024 ** 2

/** All resources of a type; none where this release of Talos has no such type. */
export async function listResources<S extends DescMessage>(
  calls: Calls,
  address: string,
  of: ResourceType<S>,
  options?: CallOptions,
): Promise<Result<readonly CosiResource<S>[]>> {
  const { namespace, type } = of
  const found: Resource[] = []
  let bytes = 0
  let isTooMuch = false
  const answer = await calls.stream(
    address,
    State.method.list,
    { namespace, type },
    message => {
      if (!message.resource) return undefined
      found.push(message.resource)
      bytes += message.resource.spec?.protoSpec.length ?? 0
      isTooMuch = found.length > mostResources || bytes > mostBytes
      return isTooMuch ? 'stop' : undefined
    },
    { ...options, subject: type },
  )
  if (!answer.ok) return isAbsence(answer.fault) ? ok([]) : answer
  if (isTooMuch)
    return failed(
      'unknown',
      `${address}: State.List ${type}: the list does not end, so its first ${mostResources} resources or ${mostBytes / 1024 ** 2} MiB are no answer`,
    )
  const resources: CosiResource<S>[] = []
  for (const resource of found) {
    const one = decoded(address, `State.List ${type}`, of, resource)
    if (!one.ok) return one
    resources.push(one.value)
  }
  return ok(resources)
}

function isAbsence(fault: Fault): boolean {
  return fault.kind === 'notFound' || fault.kind === 'unsupported'
}

/** A resource as it came over the wire; a Fault where it is not what its type says. `call` is for the message. */
export function decoded<S extends DescMessage>(
  address: string,
  call: string,
  of: ResourceType<S>,
  resource: Resource | undefined,
): Result<CosiResource<S>> {
  if (!resource?.metadata || !resource.spec) return failed('unknown', `${address}: ${call}: the answer has no resource in it`)
  try {
    const spec = fromBinary(of.schema, resource.spec.protoSpec)
    const { id, version, updated } = resource.metadata
    return ok({ id, version, updated: updated ? timestampMs(updated) : 0, spec })
  } catch {
    // What was wrong with the bytes may quote them.
    return failed('unknown', `${address}: ${call}: its content is not a ${of.schema.typeName}`)
  }
}
