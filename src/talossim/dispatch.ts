import type {
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf'
import { create } from '@bufbuild/protobuf'
import type {
  handleClientStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  Metadata,
  ServerUnaryCall,
  ServerWritableStream,
} from '@grpc/grpc-js'
import { status } from '@grpc/grpc-js'
import { grpcPath } from '../../proto/grpc.ts'
import type { MetadataSchema } from '../../proto/gen/common/common_pb.ts'
import type { Answer, Code, Refusal } from '../world/answer.ts'
import { answer, refuse } from '../world/answer.ts'
import type { Machine } from '../world/machine.ts'
import { isInMaintenance, versionOf } from '../world/machine.ts'
import type { Call, Ground, StreamHandler, UnaryHandler, UploadHandler } from './call.ts'
import { until } from './call.ts'
import { refusalInMaintenance, rolesInMaintenance } from './maintenance.ts'
import { notYetIn } from './methods-by-version.ts'
import { holdsAt, mayCall, rolesOf } from './roles.ts'
import { EXPIRED, reach, type Route, routeOf, valuesOf } from './routing.ts'

type AnyCall = ServerUnaryCall<never, never> | ServerWritableStream<never, never>

const NUMBERS: Readonly<Record<Code, status>> = {
  Unknown: status.UNKNOWN,
  InvalidArgument: status.INVALID_ARGUMENT,
  DeadlineExceeded: status.DEADLINE_EXCEEDED,
  NotFound: status.NOT_FOUND,
  AlreadyExists: status.ALREADY_EXISTS,
  PermissionDenied: status.PERMISSION_DENIED,
  FailedPrecondition: status.FAILED_PRECONDITION,
  Unimplemented: status.UNIMPLEMENTED,
  Internal: status.INTERNAL,
  Unavailable: status.UNAVAILABLE,
  ResourceExhausted: status.RESOURCE_EXHAUSTED,
}

const statusOf = (refusal: Refusal): { readonly code: status; readonly details: string } => ({
  code: NUMBERS[refusal.code],
  details: refusal.message,
})

/** What stands in the place of an answer in a fan-out where one machine failed. */
const failureEntry = (hostname: string, refusal: Refusal): MessageInitShape<typeof MetadataSchema> => ({
  hostname,
  error: `rpc error: code = ${refusal.code} desc = ${refusal.message}`,
  status: { code: NUMBERS[refusal.code], message: refusal.message },
})

/** Aborted when the caller hangs up, its deadline passes, or its connection breaks. */
const signalOf = (call: AnyCall): AbortController => {
  const controller = new AbortController()
  if (call.cancelled) controller.abort()
  call.on('cancelled', () => controller.abort())
  return controller
}

/** A handler that throws has a fault of its own; it is told as the real server tells a panic. */
const guarded = async <T>(run: () => Answer<T> | Promise<Answer<T>>): Promise<Answer<T>> => {
  try {
    return await run()
  } catch (error) {
    return refuse('Internal', `panic: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  }
}

type Caller = {
  readonly ground: Ground
  readonly endpoint: Machine
  readonly path: string
  readonly roles: ReadonlySet<string>
  /** By the endpoint's clock, what the caller showed is of another time. */
  readonly isOfAnotherTime: boolean
  readonly over: AbortSignal
}

/** Runs a method on one machine: connects, checks the role there, and ends when that machine goes away. */
const runOn = async <T>(
  caller: Caller,
  target: string | undefined,
  run: (call: Call) => Answer<T> | Promise<Answer<T>>,
): Promise<Answer<T>> => {
  const { ground, endpoint, path } = caller
  const reached = target === undefined ? answer(endpoint) : await reach(ground.site, endpoint, target, caller.over)
  if (!reached.ok) return reached
  const machine = reached.value
  if (!machine.apid) return refuse('Unavailable', 'transport is closing')
  const missing = notYetIn(versionOf(machine), path)
  if (missing !== undefined) return refuse('Unimplemented', missing)
  const isOpen = isInMaintenance(machine)
  const roles = isOpen ? rolesInMaintenance(machine) : caller.roles
  const closed = isOpen ? refusalInMaintenance(machine, path) : undefined
  if (closed) return closed
  if (!isOpen && !mayCall(roles, path, versionOf(machine))) return refuse('PermissionDenied', 'not authorized')
  const away = new AbortController()
  const over = AbortSignal.any([caller.over, away.signal])
  const broken = Promise.withResolvers<Answer<T>>()
  // What was answered before the machine went still gets out.
  const hangUp = (): void => {
    if (machine.apid) return
    setImmediate(() => {
      broken.resolve(refuse('Unavailable', 'error reading from server: EOF'))
      away.abort()
    })
  }
  machine.streams.add(hangUp)
  const result = await Promise.race([broken.promise, guarded(() => run({ ...ground, machine, roles, over }))])
  machine.streams.delete(hangUp)
  // Whatever else the handler began ends with the call.
  away.abort()
  // An answer that has to cross a cut network arrives when it heals, or never.
  if (machine !== endpoint) await until(ground.site, caller.over, () => !machine.cut && !endpoint.cut)
  return result
}

const callerOf = (ground: Ground, endpoint: Machine, path: string, call: AnyCall, over: AbortSignal): Caller => {
  const certificate = call.getAuthContext().sslPeerCertificate
  return {
    ...{ ground, endpoint, path, over, roles: rolesOf(certificate, valuesOf(call.metadata, 'talos-role')) },
    isOfAnotherTime: certificate !== undefined && !holdsAt(certificate, Date.now() + ground.site.faults.of(endpoint).clockOffsetMs),
  }
}

/** Where a call goes. A machine whose clock is wrong has turned its caller away before. */
const routed = ({ endpoint, path, isOfAnotherTime }: Caller, metadata: Metadata): Answer<Route> =>
  isOfAnotherTime && !isInMaintenance(endpoint) ? EXPIRED : routeOf(endpoint, metadata, path)

type Messages = { messages: { metadata?: MessageInitShape<typeof MetadataSchema> }[] }

const fanOut = async <T>(targets: readonly string[], run: (target: string) => Promise<Answer<T>>): Promise<T> => {
  const messages: Messages['messages'] = []
  await Promise.all(
    targets.map(async hostname => {
      const result = await run(hostname)
      if (!result.ok) messages.push({ metadata: failureEntry(hostname, result) })
      else for (const message of (result.value as Messages).messages) messages.push({ ...message, metadata: { hostname } })
    }),
  )
  return { messages } satisfies Messages as T
}

/** A method with one answer, as the server of a machine handles it. */
export const unary =
  <M extends DescMethodUnary>(method: M, handler: UnaryHandler<M>) =>
  (ground: Ground, endpoint: Machine): handleUnaryCall<MessageShape<M['input']>, MessageShape<M['output']>> =>
  (call, callback) => {
    type Output = MessageInitShape<M['output']>
    const path = grpcPath(method)
    const { signal } = signalOf(call as AnyCall)
    const caller = callerOf(ground, endpoint, path, call as AnyCall, signal)
    const run = (target?: string): Promise<Answer<Output>> => runOn<Output>(caller, target, c => handler(c, call.request))
    const result = (): Promise<Answer<Output>> => {
      const route = routed(caller, call.metadata)
      if (!route.ok) return Promise.resolve(route)
      if (route.value.to === 'self') return run()
      if (route.value.to === 'one') return run(route.value.target)
      return fanOut(route.value.targets, run).then(answer)
    }
    void result().then(given => {
      if (given.ok) callback(null, create(method.output as M['output'], given.value))
      else callback(statusOf(given))
    })
  }

async function* again<T>(messages: readonly T[]): AsyncGenerator<T> {
  yield* messages
}

/** A method that takes a stream and answers once. */
export const uploading =
  <M extends DescMethodClientStreaming>(method: M, handler: UploadHandler<M>) =>
  (ground: Ground, endpoint: Machine): handleClientStreamingCall<MessageShape<M['input']>, MessageShape<M['output']>> =>
  (call, callback) => {
    type Input = MessageShape<M['input']>
    type Output = MessageInitShape<M['output']>
    const path = grpcPath(method)
    const any = call as unknown as AnyCall
    const { signal } = signalOf(any)
    const caller = callerOf(ground, endpoint, path, any, signal)
    const run = (messages: AsyncIterable<Input>, target?: string): Promise<Answer<Output>> =>
      runOn<Output>(caller, target, c => handler(c, messages))
    const result = async (): Promise<Answer<Output>> => {
      const route = routed(caller, call.metadata)
      if (!route.ok) return route
      if (route.value.to === 'self') return run(call)
      if (route.value.to === 'one') return run(call, route.value.target)
      const { targets } = route.value
      if (targets.length === 1) return answer(await fanOut(targets, target => run(call, target)))
      // Each gets all of it.
      const messages: Input[] = []
      for await (const message of call) messages.push(message as Input)
      return answer(await fanOut(targets, target => run(again(messages), target)))
    }
    void result().then(given => {
      if (given.ok) callback(null, create(method.output as M['output'], given.value))
      else callback(statusOf(given))
    })
  }

/** A method that answers with a stream. */
export const streaming =
  <M extends DescMethodServerStreaming>(method: M, handler: StreamHandler<M>) =>
  (ground: Ground, endpoint: Machine): handleServerStreamingCall<MessageShape<M['input']>, MessageShape<M['output']>> =>
  call => {
    type Output = MessageInitShape<M['output']>
    const path = grpcPath(method)
    const { signal } = signalOf(call as AnyCall)
    const caller = callerOf(ground, endpoint, path, call as AnyCall, signal)
    const write = (message: Output): void => {
      if (!signal.aborted && !call.writableEnded) call.write(create(method.output as M['output'], message))
    }
    const drained = async (): Promise<void> => {
      if (!call.writableNeedDrain || signal.aborted) return
      await new Promise<void>(resolve => {
        const go = (): void => {
          call.removeListener('drain', go)
          signal.removeEventListener('abort', go)
          resolve()
        }
        call.on('drain', go)
        signal.addEventListener('abort', go)
      })
    }
    const run = (target: string | undefined, hostname?: string): Promise<Answer<void>> =>
      runOn<void>(caller, target, async c => {
        // Messages keep their order when some have to wait for a cut to heal.
        let sent = Promise.resolve()
        const send = (message: Output): void => {
          const { metadata } = message as { metadata?: object }
          const labelled =
            hostname === undefined ? message : ({ ...(message as object), metadata: { ...metadata, hostname } } as unknown as Output)
          if (c.machine === endpoint) return write(labelled)
          sent = sent.then(async () => {
            if (await until(ground.site, c.over, () => !c.machine.cut && !endpoint.cut)) write(labelled)
          })
        }
        const result = await handler(c, call.request, send, drained)
        await sent
        return result
      })
    const result = async (): Promise<Answer<void>> => {
      const route = routed(caller, call.metadata)
      if (!route.ok) return route
      if (route.value.to === 'self') return run(undefined)
      if (route.value.to === 'one') return run(route.value.target)
      await Promise.all(
        route.value.targets.map(async hostname => {
          const one = await run(hostname, hostname)
          if (!one.ok) write({ metadata: failureEntry(hostname, one) } as unknown as Output)
        }),
      )
      return answer(undefined)
    }
    void result().then(given => {
      if (given.ok) call.end()
      else call.emit('error', statusOf(given))
    })
  }
