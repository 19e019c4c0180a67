import { create, type DescMethod, type DescService, type MessageInitShape, toBinary, type DescMessage } from '@bufbuild/protobuf'
import {
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { connect, createServer, type Socket } from 'node:net'
import {
  type CertificateAndKey,
  createTalosCa,
  createTalosClient,
  createTalosServer,
  talosPemToNode,
  validFor,
} from '../src/adapters/pki/talos-pki.ts'
import { writeTalosconfig } from '../src/adapters/talos/talosconfig.ts'
import type { Clock } from '../src/ports/clock.ts'
import { State } from '../proto/gen/cosi/resource/state_pb.ts'
import { grpcService } from '../proto/grpc.ts'

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

/** Thrown by a handler: what the machine answers instead. */
export class Refusal extends Error {
  readonly code: number
  constructor(code: status, details: string) {
    super(details)
    this.code = code
  }
}

type Methods<S extends DescService> = S['method']
type Answer<M extends DescMethod> = MessageInitShape<M['output']>
/** A unary method answers one message, a stream yields many. Requests are as they came; `node` is whom the call is to be passed on to. */
export type Handlers<S extends DescService> = {
  readonly [K in keyof Methods<S>]?: Methods<S>[K] extends { methodKind: 'unary' }
    ? (request: any, node?: string) => Answer<Methods<S>[K]> | Promise<Answer<Methods<S>[K]>>
    : (request: any) => AsyncIterable<Answer<Methods<S>[K]>>
}
export type Served = { readonly service: DescService; readonly handlers: Record<string, unknown> }

export function serve<S extends DescService>(service: S, handlers: Handlers<S>): Served {
  return { service, handlers: handlers as Record<string, unknown> }
}

/** A resource of a COSI state: `type/id` and its spec. */
export type ScriptedResource = { readonly namespace: string; readonly type: string; readonly id: string; readonly spec: Uint8Array }

export function resource<S extends DescMessage>(
  of: { readonly namespace: string; readonly type: string; readonly schema: S },
  id: string,
  spec: MessageInitShape<S>,
): ScriptedResource {
  return { namespace: of.namespace, type: of.type, id, spec: toBinary(of.schema, create(of.schema, spec)) }
}

/** `cosi.resource.State` over the resources there are at the moment of a call; `unknownTypes` are answered as a release that lacks them does. */
export function stateOf(
  resources: () => readonly ScriptedResource[],
  options: { readonly unknownTypes?: readonly string[]; readonly forbiddenTypes?: readonly string[] } = {},
): Served {
  const check = (type: string) => {
    if (options.unknownTypes?.includes(type)) throw new Refusal(status.PERMISSION_DENIED, `resource type "${type}" is not supported`)
    if (options.forbiddenTypes?.includes(type)) throw new Refusal(status.PERMISSION_DENIED, 'not authorized')
  }
  const wire = ({ namespace, type, id, spec }: ScriptedResource) => ({
    resource: { metadata: { namespace, type, id, version: '1', phase: 'running' }, spec: { protoSpec: spec } },
  })
  return serve(State, {
    get: request => {
      check(request.type)
      const found = resources().find(one => one.type === request.type && one.id === request.id && one.namespace === request.namespace)
      if (!found)
        throw new Refusal(status.NOT_FOUND, `resource ${request.type}(${request.namespace}/${request.id}@undefined) doesn't exist`)
      return wire(found)
    },
    async *list(request) {
      check(request.type)
      for (const one of resources()) if (one.type === request.type && one.namespace === request.namespace) yield wire(one)
    },
  })
}

export type ScriptedTalos = { readonly address: string; readonly port: number; readonly stop: () => void }

export async function startTalos(options: {
  readonly ca: CertificateAndKey
  readonly services: readonly Served[]
  /** What its certificate is for; 127.0.0.1 unless said otherwise. */
  readonly hosts?: readonly string[]
  /** The authority it accepts clients of; its own unless said otherwise. */
  readonly clientCa?: CertificateAndKey
}): Promise<ScriptedTalos> {
  const { ca, hosts = ['127.0.0.1'], clientCa = ca } = options
  const { crt, key } = await createTalosServer({
    ca,
    commonName: 'machine',
    hosts,
    validity: validFor(new Date(Date.now() - 3_600_000), 24),
  })
  const server = new Server({ 'grpc.max_send_message_length': -1 })
  for (const { service, handlers } of options.services) {
    const implementation: UntypedServiceImplementation = {}
    for (const method of service.methods) {
      const handler = handlers[method.localName]
      if (handler)
        implementation[method.localName] =
          method.methodKind === 'unary' ? unary(method, handler as UnaryHandler) : streaming(method, handler as StreamHandler)
    }
    server.addService(grpcService(service), implementation)
  }
  const credentials = ServerCredentials.createSsl(
    Buffer.from(clientCa.crt),
    [{ cert_chain: Buffer.from(crt), private_key: Buffer.from(talosPemToNode(key)) }],
    true,
  )
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound)))
  })
  return { address: `127.0.0.1:${port}`, port, stop: () => server.forceShutdown() }
}

type UnaryHandler = (request: unknown, node?: string) => unknown
type StreamHandler = (request: unknown) => AsyncIterable<any>

function unary(method: DescMethod, handler: UnaryHandler) {
  const answered = async (call: ServerUnaryCall<unknown, unknown>, answer: sendUnaryData<unknown>) => {
    try {
      answer(
        null,
        create(method.output, (await handler(call.request, call.metadata.get('node')[0]?.toString())) as MessageInitShape<DescMessage>),
      )
    } catch (error) {
      answer(refusalOf(error))
    }
  }
  return (call: ServerUnaryCall<unknown, unknown>, answer: sendUnaryData<unknown>) => void answered(call, answer)
}

function streaming(method: DescMethod, handler: StreamHandler) {
  const streamed = async (call: ServerWritableStream<unknown, unknown>) => {
    try {
      for await (const message of handler(call.request)) {
        if (call.cancelled) return
        call.write(create(method.output, message))
      }
      call.end()
    } catch (error) {
      call.emit('error', refusalOf(error))
    }
  }
  return (call: ServerWritableStream<unknown, unknown>) => void streamed(call)
}

function refusalOf(error: unknown) {
  return error instanceof Refusal ? { code: error.code, details: error.message } : { code: status.INTERNAL, details: String(error) }
}

/** A talosconfig for a scripted machine. `hours` below zero: expired so long ago. */
export async function talosconfigFor(
  ca: CertificateAndKey,
  options: {
    readonly roles?: readonly string[]
    readonly trusts?: CertificateAndKey
    readonly endpoints?: readonly string[]
    readonly hours?: number
    readonly from?: Date
  } = {},
): Promise<string> {
  const from = options.from ?? new Date(Date.now() - 3_600_000)
  const client = await createTalosClient({ ca, roles: options.roles ?? ['os:admin'], validity: validFor(from, options.hours ?? 8_760) })
  return writeTalosconfig({
    contextName: 'prod',
    endpoints: options.endpoints ?? ['127.0.0.1'],
    caPem: (options.trusts ?? ca).crt,
    crtPem: client.crt,
    keyPem: client.key,
  })
}

export function newTalosCa(): Promise<CertificateAndKey> {
  return createTalosCa({ from: new Date(Date.now() - 7_200_000) })
}

export type Passage = {
  readonly address: string
  /** How many connections are open from the caller's side. */
  readonly open: () => number
  /** New and old connections fall silent: nothing is refused, nothing passes. */
  readonly freeze: () => void
  /** New connections pass again; those that fell silent stay so. */
  readonly thaw: () => void
  readonly stop: () => void
}

/** A TCP way to a machine that can fall silent, as a machine or a network does that hangs. */
export async function startPassage(toPort: number): Promise<Passage> {
  let isFrozen = false
  const pairs = new Map<Socket, Socket | undefined>()
  const server = createServer(from => {
    from.on('error', () => {})
    from.once('close', () => {
      pairs.get(from)?.destroy()
      pairs.delete(from)
    })
    pairs.set(from, undefined)
    if (isFrozen) return void from.resume()
    const to = connect(toPort, '127.0.0.1')
    to.on('error', () => {})
    to.once('close', () => from.destroy())
    pairs.set(from, to)
    from.pipe(to)
    to.pipe(from)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return {
    address: `127.0.0.1:${address.port}`,
    open: () => pairs.size,
    freeze: () => {
      isFrozen = true
      for (const [from, to] of pairs) {
        if (!to) continue
        from.unpipe(to)
        to.unpipe(from)
        // Read on, so that a close is seen, and drop it.
        from.resume()
        to.pause()
      }
    },
    thaw: () => {
      isFrozen = false
    },
    stop: () => {
      server.close()
      for (const from of pairs.keys()) from.destroy()
    },
  }
}
