import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { ResourceDefinition } from '../api/schema.ts'
import { toCrd } from '../api/structural.ts'
import type { Draft, Store } from '../world/store.ts'
import type { Allow, Tokens } from './access.ts'
import { authenticated, readersAndMasters } from './access.ts'
import type { Admission } from './admission.ts'
import { createCatalog, CRD_SHELF } from './catalog.ts'
import { establishedCrd } from './crd-status.ts'
import { aggregated, aggregatedVersion, apiGroup, apiGroups, apiResources, coreVersions } from './discovery.ts'
import { createPages } from './list.ts'
import { openApiDocument, openApiIndex } from './openapi.ts'
import { badRequest, NO_PAGE, noSuchResource, Refusal, unauthorized, unsupportedMediaType } from './refusal.ts'
import { fromProtobuf, PROTOBUF } from './protobuf.ts'
import type { Evict } from './remove.ts'
import type { Answer, Context, Request } from './resource-requests.ts'
import { answerResource } from './resource-requests.ts'
import { unreadableRules } from './rules.ts'
import { PATCH_TYPES } from './write.ts'

export type ServeOptions = Admission & {
  readonly store: Store
  /** Our own resources: their CustomResourceDefinitions are put into the store where they are not there yet. */
  readonly resources: readonly ResourceDefinition[]
  readonly tls: { readonly certPem: string; readonly keyPem: string; readonly clientCaPem: string }
  readonly tokens: Tokens
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  /** As `/version` says it, for example `v1.36.2`: asked each time. */
  readonly version: () => string
  readonly allow?: Allow
  /** Decides evictions. Absent: the status of the PodDisruptionBudgets decides. */
  readonly evict?: Evict
  /** Default: one minute. */
  readonly bookmarkEveryMs?: number
  /** The longest that a watch lasts. Default: half an hour. */
  readonly longestWatchMs?: number
  /** Told every request when it is answered, a watch when it begins. */
  readonly observe?: (request: { method: string; path: string; query: string; user: string; userAgent: string; code: number }) => void
}

export type ServedKubernetes = {
  readonly url: string
  readonly port: number
  /** Validation rules of the resources that are not asked here, because they use more of CEL than is known. */
  readonly unaskedRules: () => readonly string[]
  /** Ends every watch and connection, as a server that dies. */
  readonly close: () => Promise<void>
}

const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system']
/** The real server's limit. */
const LARGEST_BODY = 3 * 1024 * 1024

const seed = (options: ServeOptions): void => {
  const { store } = options
  const now = `${new Date(store.now()).toISOString().slice(0, 19)}Z`
  for (const name of NAMESPACES) {
    if (store.get('namespaces', '', name)) continue
    const metadata = { name, labels: { 'kubernetes.io/metadata.name': name } }
    store.create('namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata,
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    })
  }
  for (const definition of options.resources) {
    const crd = toCrd(definition) as Draft
    if (!store.get(CRD_SHELF, '', crd.metadata.name ?? '')) store.create(CRD_SHELF, establishedCrd(crd, now) as Draft)
  }
}

const readBody = (incoming: IncomingMessage): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= LARGEST_BODY) chunks.push(chunk)
    })
    incoming.on('end', () => {
      if (size > LARGEST_BODY) reject(new Refusal(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${LARGEST_BODY}`))
      else resolve(Buffer.concat(chunks))
    })
    incoming.on('error', reject)
  })

const JSON_TYPES = ['', 'application/json', ...PATCH_TYPES]

const parsed = (contentType: string, body: Buffer): unknown => {
  if (body.length === 0) return undefined
  if (contentType === PROTOBUF) {
    const object = fromProtobuf(body)
    if (!object) throw unsupportedMediaType(['application/json'])
    return object
  }
  if (!JSON_TYPES.includes(contentType)) throw unsupportedMediaType(['application/json'])
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const versionInfo = (version: string) => {
  const [, major = '1', minor = ''] = /^v(\d+)\.(\d+)/.exec(version) ?? []
  return {
    major,
    minor,
    gitVersion: version,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: 'kubesim',
    platform: 'linux/amd64',
  }
}

/** Everything that is not a resource: discovery, schemas, health. Undefined where the path is none of these. */
const answerGeneral = (context: Context, request: Request, version: string, address: string): Answer | string | undefined => {
  const types = context.catalog.types()
  const parts = request.path.split('/').filter(part => part !== '')
  const found = (body: unknown): Answer => {
    if (body !== undefined) return { code: 200, body }
    // The core group knows that it lacks something; elsewhere nobody is there to say so.
    if (request.path.startsWith('/api/')) throw noSuchResource()
    return NOWHERE
  }
  const [root, second, third] = parts
  switch (root) {
    case undefined:
      return found({ paths: ['/api', '/api/v1', '/apis', '/healthz', '/livez', '/openapi/v3', '/readyz', '/version'] })
    case 'healthz':
    case 'livez':
    case 'readyz':
      return 'ok'
    case 'version':
      return found(versionInfo(version))
    case 'openapi':
      if (second !== 'v3') throw noSuchResource()
      return found(parts.length === 2 ? openApiIndex(types, version) : openApiDocument(types, parts.slice(2).join('/'), version))
    case 'api':
    case 'apis': {
      const core = root === 'api'
      const wanted = aggregatedVersion(request.accept)
      if (parts.length === 1 && wanted) {
        const contentType = `application/json;g=apidiscovery.k8s.io;v=${wanted};as=APIGroupDiscoveryList`
        return { code: 200, body: aggregated(types, core, wanted), contentType }
      }
      if (parts.length === 1) return found(core ? coreVersions(address) : apiGroups(types))
      if (core) return parts.length === 2 ? found(apiResources(types, '', second ?? '')) : undefined
      if (parts.length === 2) return found(apiGroup(types, second ?? ''))
      return parts.length === 3 ? found(apiResources(types, second ?? '', third ?? '')) : undefined
    }
    default:
      return NOWHERE
  }
}

const NOWHERE: Answer = { code: 404, body: NO_PAGE, contentType: 'text/plain; charset=utf-8' }

const sendBody = (request: IncomingMessage, response: ServerResponse, code: number, body: unknown, type = 'application/json'): void => {
  if (response.headersSent) {
    response.destroy()
    return
  }
  // People read it as well, in a browser or with curl.
  const forPeople = /curl|Mozilla|wget/i.test(request.headers['user-agent'] ?? '')
  const text = typeof body === 'string' ? body : JSON.stringify(body, null, forPeople ? 2 : 0)
  response.writeHead(code, { 'content-type': type, 'cache-control': 'no-cache, private', 'content-length': Buffer.byteLength(text) })
  response.end(request.method === 'HEAD' ? undefined : text)
}

const statusOf = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error
  const words = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new Refusal(500, 'InternalError', `Internal error occurred: ${words}`)
}

/** Serves the Kubernetes API over a store. The store may be written by others at the same time; what they write is served at once. */
export const serveKubernetes = async (options: ServeOptions): Promise<ServedKubernetes> => {
  seed(options)
  const { store, tls } = options
  const watches = new Set<() => void>()
  const sockets = new Set<Socket>()
  let address = ''
  const context: Context = {
    world: { store, admission: options },
    catalog: createCatalog(store),
    pages: createPages(),
    allow: options.allow ?? readersAndMasters,
    evict: options.evict,
    times: { bookmarkEveryMs: options.bookmarkEveryMs ?? 60_000, longestMs: options.longestWatchMs ?? 1_800_000 },
    watching: (response, end) => {
      watches.add(end)
      response.on('close', () => watches.delete(end))
    },
  }

  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(incoming.url ?? '/', 'https://kubernetes')
    const body = await readBody(incoming)
    const user = authenticated(incoming, options.tokens)
    if (!user) throw unauthorized()
    const [contentType = ''] = (incoming.headers['content-type'] ?? '').split(';').map(part => part.trim())
    const request: Request = {
      method: incoming.method ?? 'GET',
      path: url.pathname,
      query: url.searchParams,
      accept: incoming.headers.accept ?? '',
      contentType,
      userAgent: incoming.headers['user-agent'] ?? '',
      user,
      body: () => parsed(contentType, body),
      warn: text => {
        response.appendHeader('warning', `299 - "${text.replaceAll(/["\\]/g, '\\$&')}"`)
      },
    }
    const general = answerGeneral(context, request, options.version(), address)
    if (typeof general === 'string') return sendBody(incoming, response, 200, general, 'text/plain; charset=utf-8')
    const answer = general ?? answerResource(context, request, response)
    if (answer) sendBody(incoming, response, answer.code, answer.body, answer.contentType)
    else options.observe?.(seen(incoming, url, user.name, 200))
  }

  const seen = (incoming: IncomingMessage, url: URL, user: string, code: number) => ({
    method: incoming.method ?? 'GET',
    path: url.pathname,
    query: url.search,
    user,
    userAgent: incoming.headers['user-agent'] ?? '',
    code,
  })

  const server = createServer(
    { cert: tls.certPem, key: tls.keyPem, ca: tls.clientCaPem, requestCert: true, rejectUnauthorized: false, keepAliveTimeout: 90_000 },
    (incoming, response) => {
      if (options.observe) {
        response.on('finish', () => {
          const url = new URL(incoming.url ?? '/', 'https://kubernetes')
          if (url.searchParams.get('watch') !== 'true') {
            options.observe?.(seen(incoming, url, authenticated(incoming, options.tokens)?.name ?? '', response.statusCode))
          }
        })
      }
      handle(incoming, response).catch((error: unknown) => {
        const { status } = statusOf(error)
        sendBody(incoming, response, status.code, status)
      })
    },
  )
  // From its first byte on: one whose handshake is not over would hold up the end, and be served after it.
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
  const { port } = server.address() as AddressInfo
  const host = options.host.includes(':') ? `[${options.host}]` : options.host
  address = `${host}:${port}`
  return {
    url: `https://${address}`,
    port,
    unaskedRules: () => context.catalog.types().flatMap(type => (type.custom ? unreadableRules(type.custom.schema) : [])),
    close: async () => {
      for (const end of watches) end()
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
