import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { StringDecoder } from 'node:string_decoder'
import type { Clock } from '../../ports/clock.ts'
import { type ApiResult, apiFault, type Asked, faultOfAnswer, faultOfError, ownError } from './classify.ts'
import { credentialSource, type Credentials, type TlsMaterial } from './credentials.ts'
import { text } from './json.ts'
import type { KubeConfig } from './kubeconfig.ts'

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'

/** One finished request; for a watch, when it was answered. `code` is 0 where there was no answer. */
export type RequestRecord = { readonly verb: Verb; readonly resource: string; readonly code: number; readonly ms: number }

export type Call = {
  readonly verb: Verb
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path with query. */
  readonly path: string
  /** For the metrics: `talosoperations/status`. */
  readonly resource: string
  /** For messages: `talosoperations/status ichor-system/up-1`. */
  readonly what: string
  readonly group?: string
  readonly body?: unknown
  readonly contentType?: string
  readonly accept?: string
  readonly deadlineMs?: number
  readonly signal?: AbortSignal
}

export type TransportOptions = {
  readonly config: KubeConfig
  readonly clock: Clock
  /** `ichor/0.1.0`. */
  readonly userAgent: string
  readonly onRequest?: (record: RequestRecord) => void
  /** For calls that name none. */
  readonly deadlineMs?: number
  readonly maxSockets?: number
  /**
   * For so long it asks again where the server refuses and says when to come back, as one does that is only starting (429 or 503 with Retry-After).
   * Without it that is told at once, for those who have a queue of their own.
   */
  readonly patienceMs?: number
  /** HTTPS_PROXY, NO_PROXY and their like; a `proxy-url` of the kubeconfig wins. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** One API server: a pool of kept connections, a deadline on every call, JSON in and out. Nothing throws. */
export type Transport = {
  /** `10.0.0.1:6443`, for messages. */
  readonly peer: string
  /** The body of a 2xx answer, parsed; text where it is no JSON. Asks again for `patienceMs`. */
  readonly send: (call: Call) => Promise<ApiResult<unknown>>
  /** What the server's clock says, milliseconds since 1970: by the Date of its answers, which name the second that has begun. */
  readonly time: () => Promise<ApiResult<number>>
  /** How far the server's clock is ahead of ours, milliseconds: by the Date of its answers, so right to about a second. */
  readonly clockAhead: () => Promise<ApiResult<number>>
  /**
   * An answer that goes on, line by line. `opened` when its head is there. Ends with ok when the server ended it, with `cancelled` when `signal`
   * did. The deadline is for the head.
   */
  readonly stream: (call: Call, on: { readonly opened: () => void; readonly line: (line: string) => void }) => Promise<ApiResult<void>>
  /** Cuts everything, also what is under way. */
  readonly close: () => void
}

const DEADLINE_MS = 15_000
const MAX_SOCKETS = 32

type Agent = HttpAgent | HttpsAgent

export const openTransport = (options: TransportOptions): Transport => {
  const { config, clock } = options
  const url = new URL(config.server)
  const isPlain = url.protocol === 'http:'
  const port = Number(url.port) || (isPlain ? 80 : 443)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const prefix = url.pathname.replace(/\/+$/, '')
  const peer = `${url.hostname}:${port}`
  const source = credentialSource(config, clock)

  let pool: { readonly tls: TlsMaterial; readonly agent: Agent } | undefined
  const retired = new Set<Agent>()
  let isClosed = false

  const agentFor = (tls: TlsMaterial): Agent => {
    if (pool?.tls === tls) return pool.agent
    if (pool) retire(pool.agent, retired)
    pool = { tls, agent: newAgent(options, isPlain, tls) }
    return pool.agent
  }

  /** Sends the head and the body, and waits for the head of the answer. */
  const exchange = async (call: Call, stop: AbortSignal, secrets: (found: readonly string[]) => void): Promise<IncomingMessage> => {
    if (isClosed) throw ownError('ICHOR_CANCELLED', 'the connection was closed')
    const credentials = await orStopped(source.current(), stop)
    secrets(credentials.secrets)
    stop.throwIfAborted()
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body))
    const requestOptions: RequestOptions = {
      host,
      port,
      path: prefix + call.path,
      method: call.method,
      agent: agentFor(credentials.tls),
      headers: headersOf(call, credentials, options.userAgent, body),
      signal: stop,
    }
    const once = (): Promise<IncomingMessage> => answerTo((isPlain ? httpRequest : httpsRequest)(requestOptions), body)
    try {
      return await once()
    } catch (error) {
      // A kept connection that the server closed just now. Asking again is safe where nothing is written; elsewhere the effect is unknown.
      if (call.method === 'GET' && !stop.aborted && (error as { onKeptSocket?: boolean }).onKeptSocket) return await once()
      throw error
    }
  }

  /** Runs one call from start to end: deadline, cancellation, the record, and the fault where it fails. */
  const run = async <T>(
    call: Call,
    use: (stop: Stop, secrets: (found: readonly string[]) => void) => Promise<ApiResult<T>>,
    started: number,
  ): Promise<ApiResult<T>> => {
    let secrets: readonly string[] = []
    const stop = stopAfter(clock, call.deadlineMs ?? options.deadlineMs ?? DEADLINE_MS, call.signal)
    try {
      return await use(stop, found => (secrets = found))
    } catch (error) {
      const cause = stop.signal.aborted ? stop.signal.reason : error
      const fault = faultOfError(cause, asked(call, secrets))
      if (fault.kind === 'unauthenticated' || fault.kind === 'wrongPeer' || fault.kind === 'invalid') source.refused()
      // Who does not answer on one connection will not on the other kept ones: the next call opens its own.
      if (fault.kind === 'unreachable' && pool) dropIdle(pool.agent)
      if (!stop.wasAnswered) options.onRequest?.({ verb: call.verb, resource: call.resource, code: 0, ms: clock.monotonic() - started })
      return { ok: false, fault }
    } finally {
      stop.settle()
    }
  }

  const asked = (call: Call, secrets: readonly string[]): Asked => ({ peer, call: `${call.verb} ${call.what}`, group: call.group, secrets })

  const refusalIn = async (call: Call, response: IncomingMessage, secrets: readonly string[]): Promise<ApiResult<never>> => {
    const code = response.statusCode ?? 0
    const fault = faultOfAnswer(
      code,
      parseBody(await bodyOf(response), response),
      asked(call, secrets),
      text(response.headers['retry-after']),
    )
    if (code === 401) source.refused()
    return { ok: false, fault }
  }

  const isSuccess = (response: IncomingMessage): boolean => (response.statusCode ?? 0) >= 200 && (response.statusCode ?? 0) < 300

  const sendOnce = (call: Call): Promise<ApiResult<unknown>> => {
    const started = clock.monotonic()
    return run(
      call,
      async (stop, keep) => {
        let secrets: readonly string[] = []
        const response = await exchange(call, stop.signal, found => keep((secrets = found)))
        const answer: ApiResult<unknown> = isSuccess(response)
          ? { ok: true, value: parseBody(await bodyOf(response), response) }
          : await refusalIn(call, response, secrets)
        stop.answered()
        options.onRequest?.({ verb: call.verb, resource: call.resource, code: response.statusCode ?? 0, ms: clock.monotonic() - started })
        return answer
      },
      started,
    )
  }

  /** Something about the Date of an answer, and about what our own clock said meanwhile. */
  const dated = (read: (date: number, now: number) => number): Promise<ApiResult<number>> => {
    const call: Call = { verb: 'get', method: 'GET', path: '/version', resource: 'version', what: 'the time' }
    return run<number>(
      call,
      async (stop, keep) => {
        let secrets: readonly string[] = []
        const before = clock.now()
        const response = await exchange(call, stop.signal, found => keep((secrets = found)))
        const after = clock.now()
        stop.answered()
        if (!isSuccess(response)) return refusalIn(call, response, secrets)
        response.resume()
        const date = Date.parse(text(response.headers.date))
        return Number.isNaN(date)
          ? apiFault('unknown', `${peer}: its answers have no Date`)
          : { ok: true, value: read(date, (before + after) / 2) }
      },
      clock.monotonic(),
    )
  }

  return {
    peer,
    send: async call => {
      const patientUntil = clock.monotonic() + (options.patienceMs ?? 0)
      for (;;) {
        const answer = await sendOnce(call)
        const waitMs = answer.ok ? undefined : answer.fault.retryAfterMs
        // Nothing was done of what is refused so: asking again is safe for writes, too.
        if (waitMs === undefined || clock.monotonic() + waitMs > patientUntil || call.signal?.aborted) return answer
        await passed(clock, waitMs, call.signal)
      }
    },
    time: () => dated(date => date),
    // The second that it names has begun.
    clockAhead: () => dated((date, now) => date + 500 - now),
    stream: (call, on) => {
      const started = clock.monotonic()
      return run<void>(
        call,
        async (stop, keep) => {
          let secrets: readonly string[] = []
          const response = await exchange(call, stop.signal, found => keep((secrets = found)))
          stop.answered()
          options.onRequest?.({ verb: call.verb, resource: call.resource, code: response.statusCode ?? 0, ms: clock.monotonic() - started })
          if (!isSuccess(response)) return refusalIn(call, response, secrets)
          stop.liftDeadline()
          on.opened()
          await linesOf(response, on.line)
          return { ok: true, value: undefined }
        },
        started,
      )
    },
    close: () => {
      isClosed = true
      pool?.agent.destroy()
      for (const agent of retired) agent.destroy()
      retired.clear()
      pool = undefined
    },
  }
}

/** Ends early when `signal` does. */
const passed = (clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise(resolve => {
    const end = (): void => {
      cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    signal?.addEventListener('abort', end)
  })

const newAgent = ({ config, env, maxSockets }: TransportOptions, isPlain: boolean, tls: TlsMaterial): Agent => {
  const proxy = text(config.cluster['proxy-url'])
  const settings = {
    keepAlive: true,
    keepAliveMsecs: 15_000,
    maxSockets: maxSockets ?? MAX_SOCKETS,
    // Idle connections go before load balancers drop them without a word.
    timeout: 55_000,
    proxyEnv: proxy === '' ? { ...env } : { HTTP_PROXY: proxy, HTTPS_PROXY: proxy },
  }
  return isPlain ? new HttpAgent(settings) : new HttpsAgent({ ...settings, ...tls })
}

const dropIdle = (agent: Agent): void => {
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
}

/** Lets what is under way come to its end, and keeps nothing after it. */
const retire = (agent: Agent, retired: Set<Agent>): void => {
  agent.maxFreeSockets = 0
  dropIdle(agent)
  for (const one of retired) if (Object.keys(one.sockets).length === 0) retired.delete(one)
  retired.add(agent)
}

const headersOf = (call: Call, credentials: Credentials, userAgent: string, body: Buffer | undefined) => ({
  ...credentials.headers,
  accept: call.accept ?? 'application/json',
  'user-agent': userAgent,
  ...(body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json', 'content-length': body.byteLength }),
})

const answerTo = (outgoing: ClientRequest, body: Buffer | undefined): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    outgoing.once('response', resolve)
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      const wasCut = error.code === 'ECONNRESET' || error.code === 'EPIPE'
      reject(wasCut && outgoing.reusedSocket ? Object.assign(error, { onKeptSocket: true }) : error)
    })
    outgoing.end(body)
  })

const bodyOf = async (response: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

const parseBody = (body: string, response: IncomingMessage): unknown => {
  if (!/json/.test(text(response.headers['content-type']))) return body
  try {
    return JSON.parse(body)
  } catch {
    throw ownError('ICHOR_BODY', 'the answer is not the JSON that it says it is; the address must be that of a Kubernetes API server')
  }
}

const linesOf = async (response: IncomingMessage, line: (line: string) => void): Promise<void> => {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  for await (const chunk of response) {
    const parts = (rest + decoder.write(chunk as Buffer)).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) if (part !== '') line(part)
  }
  if (rest !== '') line(rest)
}

type Stop = {
  readonly signal: AbortSignal
  readonly wasAnswered: boolean
  readonly answered: () => void
  readonly liftDeadline: () => void
  /** Nothing is left behind. */
  readonly settle: () => void
}

/** The deadline and the caller's own signal as one. */
const stopAfter = (clock: Clock, deadlineMs: number, outer: AbortSignal | undefined): Stop => {
  const controller = new AbortController()
  const cancel = () => controller.abort(ownError('ICHOR_CANCELLED', 'stopped by us'))
  const seconds = Math.round(deadlineMs / 100) / 10
  const lift = clock.after(deadlineMs, () =>
    controller.abort(ownError('ICHOR_DEADLINE', `no answer within ${seconds} s; whether the call took effect is unknown`)),
  )
  let wasAnswered = false
  if (outer?.aborted) cancel()
  else outer?.addEventListener('abort', cancel, { once: true })
  return {
    signal: controller.signal,
    get wasAnswered() {
      return wasAnswered
    },
    answered: () => (wasAnswered = true),
    liftDeadline: lift,
    settle: () => {
      lift()
      outer?.removeEventListener('abort', cancel)
    },
  }
}

const orStopped = <T>(work: Promise<T>, stop: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const stopped = () => reject(stop.reason)
    if (stop.aborted) stopped()
    stop.addEventListener('abort', stopped, { once: true })
    work.then(resolve, reject).finally(() => stop.removeEventListener('abort', stopped))
  })
