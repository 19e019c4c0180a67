import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf'
import { EmptySchema } from '@bufbuild/protobuf/wkt'
import { Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { grpcMethod } from '../../../proto/grpc.ts'
import type { Cancellation, Clock } from '../../ports/clock.ts'
import { failed, type Fault, ok, type Result } from '../../ports/fault.ts'
import { parseAddress } from './address.ts'
import { type Channel, type Credential, openChannel, secureContextOf } from './channel.ts'
import { type CallFailure, type CallSite, classify, faultAt, noMessage, noStatus } from './classify.ts'

/** One finished call, for counting and measuring. `code` is the gRPC status; `ms` is monotonic. */
export type CallReport = { readonly address: string; readonly method: string; readonly code: number; readonly ms: number }

export type CallOptions = {
  /** From the start to the last byte. 10 s unless said otherwise. */
  readonly deadlineMs?: number
  readonly cancellation?: Cancellation
  /** What the call is about, for messages: `MachineStatuses.runtime.talos.dev/machine`. */
  readonly subject?: string
  /** The machine that is asked passes the call on to this one, a host without a port, and its answer back. Control planes do. */
  readonly node?: string
  /**
   * Whoever asks begins it again when it ends, as a watch is. So it is no reason to keep a connection on which other calls get no answer, it is
   * proved alive less often, and `close` ends it.
   */
  readonly isRenewable?: boolean
}

type Each<O extends DescMessage> = (message: MessageShape<O>) => void | 'stop' | Promise<void | 'stop'>

/** Calls to machines, each at its own address (`host` or `host:port`), each with a deadline. Nothing throws. */
export type Calls = {
  readonly unary: <I extends DescMessage, O extends DescMessage>(
    address: string,
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ) => Promise<Result<MessageShape<O>>>
  /**
   * A server stream, read to its end. `each` may answer `stop`: then the rest is not wanted and the call succeeds. It may take its time with a
   * promise: nothing more is read meanwhile, and what the machine sends ahead is bounded.
   */
  readonly stream: <I extends DescMessage, O extends DescMessage>(
    address: string,
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    each: Each<O>,
    options?: CallOptions,
  ) => Promise<Result<void>>
  /** Takes no new calls; what runs may end, then its connections close. */
  readonly close: () => void
  /** Ends what runs, too. */
  readonly destroy: () => void
}

export type CallsOptions = {
  readonly credential: Credential
  /** When the client certificate runs out, to explain a machine that hangs up on it. */
  readonly credentialExpires: Date
  /** When it begins to be valid, to explain the same of a clock that is wrong. */
  readonly credentialBegins: Date
  /** Real time: deadlines go over the wire, where nobody else's time counts. */
  readonly clock: Clock
  readonly onCall?: ((report: CallReport) => void) | undefined
  readonly onFault?: ((fault: Fault) => void) | undefined
  /** How often a quiet long call is proved alive. */
  readonly probeMs?: number
}

const usualDeadlineMs = 10_000
/** Calls that may take longer than this are proved alive beside. */
const longMs = 60_000
const usualProbeMs = 10_000
const missesAllowed = 3
/** How many times less often a renewable call is proved alive: hundreds of machines may be watched. */
const renewableProbes = 6
/** An address that was not called for so long is forgotten when another one comes. */
const forgottenMs = 1_800_000
/** grpc-js ends a call at its deadline; this much later we do not wait for it any more. */
const graceMs = 1_000

type Line = Channel & {
  /** When a call was begun on it last; monotonic. */
  usedAt: number
  /** When an answer last proved that the connection works; monotonic. */
  heardAt: number
  running: Set<() => void>
  /** Those of them that `close` ends, and that begin again elsewhere when the connection is given up. */
  renewable: Set<{ readonly destroy: () => void; readonly lose: () => void }>
  longRunning: number
}

type Ended<T> = (outcome: { readonly value: T } | { readonly failure: CallFailure }) => void
type Sent = { readonly deadline: Date; readonly metadata: Metadata }
/** Starts the call on the wire; the answer cancels it. */
type Begin<T> = (line: Line, sent: Sent, heard: () => void, ended: Ended<T>) => () => void

export function talosCalls(options: CallsOptions): Calls {
  const { clock, credentialExpires, credentialBegins } = options
  const probeMs = options.probeMs ?? usualProbeMs
  const context = secureContextOf(options.credential)
  const lines = new Map<string, Line>()
  /** Given up: no call is begun on them, those that run may end. */
  const retired = new Set<Line>()
  let isClosed = false

  const allLines = (): readonly Line[] => [...lines.values(), ...retired]

  /** More likely dead than slow. The next call must not inherit it, and one that has just begun on it must not be dropped with it. */
  function retire(address: string, line: Line): void {
    if (lines.get(address) !== line) return
    lines.delete(address)
    retired.add(line)
    for (const { lose } of [...line.renewable]) lose()
  }

  function lineTo(address: string): Line | undefined {
    const now = clock.monotonic()
    const existing = lines.get(address)
    if (existing) {
      existing.usedAt = now
      return existing
    }
    const machine = parseAddress(address)
    if (!machine) return undefined
    // Machines go, and addresses change: what nobody asked for long is let go before there is more.
    for (const [old, line] of lines) {
      if (line.running.size > 0 || now - line.usedAt < forgottenMs) continue
      line.close()
      lines.delete(old)
    }
    const line: Line = {
      ...openChannel(machine, context, clock),
      ...{ usedAt: now, heardAt: -Infinity, running: new Set(), renewable: new Set(), longRunning: 0 },
    }
    lines.set(address, line)
    return line
  }

  function call<T>(
    site: CallSite,
    line: Line,
    method: string,
    begin: Begin<T>,
    { deadlineMs = usualDeadlineMs, cancellation, node, isRenewable = false }: CallOptions,
  ): Promise<Result<T>> {
    return new Promise(resolve => {
      const startedAt = clock.monotonic()
      const undo: (() => void)[] = []
      let isSettled = false
      const settle = (code: number, result: Result<T>) => {
        if (isSettled) return
        isSettled = true
        for (const stop of undo) stop()
        line.running.delete(destroy)
        line.renewable.delete(renewable)
        if (line.running.size === 0 && (isClosed || retired.delete(line))) line.close()
        options.onCall?.({ address: site.address, method, code, ms: clock.monotonic() - startedAt })
        if (!result.ok) options.onFault?.(result.fault)
        resolve(result)
      }
      const heard = () => {
        line.heardAt = clock.monotonic()
      }
      const fail = (failure: CallFailure) => settle(failure.code, { ok: false, fault: classify(failure, siteNow(site)) })
      const passed = () => {
        // Nothing at all was heard since.
        if (line.heardAt < startedAt && line.longRunning === 0) retire(site.address, line)
        fail({ code: status.DEADLINE_EXCEEDED, details: `no answer within ${deadlineMs / 1000} s` })
      }
      let cancel = () => {}
      const abort = (code: number, result: Result<T>) => {
        settle(code, result)
        cancel()
      }
      const destroy = () => abort(status.CANCELLED, { ok: false, fault: faultAt(site, 'cancelled', 'stopped by us') })
      const lost = (why: string) => abort(status.UNAVAILABLE, { ok: false, fault: faultAt(site, 'unreachable', why) })
      const renewable = { destroy, lose: () => lost('the machine gave other calls no answer on this connection') }
      line.running.add(destroy)
      if (isRenewable) line.renewable.add(renewable)
      const metadata = new Metadata()
      if (node !== undefined) metadata.set('node', node)
      cancel = begin(line, { deadline: new Date(Date.now() + deadlineMs), metadata }, heard, outcome => {
        if ('value' in outcome) {
          heard()
          return settle(status.OK, ok(outcome.value))
        }
        const { code } = outcome.failure
        if (code === status.DEADLINE_EXCEEDED && clock.monotonic() - startedAt >= deadlineMs - 50) return passed()
        if (code !== status.UNAVAILABLE && code !== status.CANCELLED && code !== status.DEADLINE_EXCEEDED) heard()
        fail(outcome.failure)
      })

      const watchdog = clock.after(deadlineMs + graceMs, () => {
        passed()
        cancel()
      })
      undo.push(watchdog)
      if (deadlineMs > longMs) {
        if (!isRenewable) line.longRunning += 1
        const everyMs = isRenewable ? probeMs * renewableProbes : probeMs
        const stopProof = proveAlive(site.address, line, everyMs, () => {
          lost(`the machine stopped answering while the call ran: ${missesAllowed} probes in a row were lost`)
          line.hangUp()
        })
        undo.push(stopProof, () => {
          if (!isRenewable) line.longRunning -= 1
        })
      }
      // Last: it runs at once where the cancellation came before.
      if (cancellation) undo.push(cancellation.onCancel(destroy))
      if (isSettled) for (const stop of undo) stop()
    })
  }

  /** A small call every so often beside a long one: an answer, whatever it says, proves the machine. */
  function proveAlive(address: string, line: Line, everyMs: number, lost: () => void): () => void {
    let misses = 0
    let isStopped = false
    let stopTimer = () => {}
    const wait = () => {
      stopTimer = clock.after(everyMs, () => {
        if (clock.monotonic() - line.heardAt < everyMs) {
          misses = 0
          return wait()
        }
        void probe()
      })
    }
    const probe = async () => {
      const answer = await version(address, line, probeMs)
      if (isStopped) return
      misses = answer.ok || (answer.fault.kind !== 'unreachable' && answer.fault.kind !== 'cancelled') ? 0 : misses + 1
      if (misses >= missesAllowed) lost()
      else wait()
    }
    wait()
    return () => {
      isStopped = true
      stopTimer()
    }
  }

  const version = (address: string, line: Line, deadlineMs: number) => {
    const method = MachineService.method.version
    return call({ address, call: 'MachineService.Version' }, line, pathOf(method), beginUnary(method, create(EmptySchema)), { deadlineMs })
  }

  const siteNow = (site: CallSite): CallSite => {
    if (clock.now() >= credentialExpires.getTime()) return { ...site, credentialExpired: credentialExpires }
    return clock.now() < credentialBegins.getTime() ? { ...site, credentialBegins } : site
  }

  function start<T>(
    address: string,
    method: DescMethodUnary | DescMethodServerStreaming,
    begin: Begin<T>,
    callOptions: CallOptions,
  ): Promise<Result<T>> {
    const name = `${method.parent.name}.${method.name}`
    const site: CallSite = { address, call: callOptions.subject ? `${name} ${callOptions.subject}` : name }
    if (isClosed)
      return Promise.resolve({
        ok: false,
        fault: faultAt(site, 'cancelled', 'this connection was closed, because its credential was replaced or the process ends'),
      })
    const line = lineTo(address)
    if (!line)
      return Promise.resolve(failed('invalid', `${address}: ${site.call}: this is no address of a machine; host or host:port would be`))
    return call(site, line, pathOf(method), begin, callOptions)
  }

  const shut = () => {
    for (const line of allLines()) if (line.running.size === 0) line.close()
  }

  return {
    unary: (address, method, request, callOptions = {}) =>
      start(address, method, beginUnary(method, create(method.input, request)), callOptions),
    stream: (address, method, request, each, callOptions = {}) =>
      start(address, method, beginStream(method, create(method.input, request), each), callOptions),
    close: () => {
      isClosed = true
      for (const line of allLines()) for (const { destroy } of [...line.renewable]) destroy()
      shut()
    },
    destroy: () => {
      isClosed = true
      for (const line of allLines()) for (const end of [...line.running]) end()
      shut()
    },
  }
}

function beginUnary<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageShape<I>,
): Begin<MessageShape<O>> {
  const { path, requestSerialize, responseDeserialize } = grpcMethod(method)
  return (line, { deadline, metadata }, _heard, ended) => {
    const running = line.client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      metadata,
      { deadline },
      (error, answer) => {
        ended(error || answer === undefined ? { failure: failureOf(error) } : { value: answer })
      },
    )
    return () => running.cancel()
  }
}

function beginStream<I extends DescMessage, O extends DescMessage>(
  method: DescMethodServerStreaming<I, O>,
  request: MessageShape<I>,
  each: Each<O>,
): Begin<void> {
  const { path, requestSerialize, responseDeserialize } = grpcMethod(method)
  return (line, { deadline, metadata }, heard, ended) => {
    const running = line.client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadata, { deadline })
    let isOver = false
    let failure: CallFailure | undefined
    const leave = () => {
      isOver = true
      running.cancel()
    }
    const stop = () => {
      ended({ value: undefined })
      leave()
    }
    const spoil = (error: unknown) => {
      ended({ failure: { code: status.INTERNAL, details: `a message of the stream could not be used: ${String(error)}` } })
      leave()
    }
    const goOn = (wish: void | 'stop') => {
      if (wish === 'stop') stop()
      else running.resume()
    }
    running.on('data', (message: MessageShape<O>) => {
      if (isOver) return
      heard()
      try {
        const wish = each(message)
        if (wish === 'stop') stop()
        if (!(wish instanceof Promise)) return
        running.pause()
        wish.then(goOn, spoil)
      } catch (error) {
        spoil(error)
      }
    })
    // The status may outrun messages that are still buffered; only the end comes after all of them, and it comes after an error too.
    running.on('error', (error: ServiceError) => {
      failure = failureOf(error)
    })
    running.on('end', () => ended(failure ? { failure } : { value: undefined }))
    return leave
  }
}

function failureOf(error: ServiceError | null): CallFailure {
  if (!error) return { code: status.INTERNAL, details: noMessage }
  // A status that is no number, or an answer that grpc-js itself stumbles over, has no code and no words.
  return Number.isInteger(error.code)
    ? { code: error.code, details: error.details || error.message }
    : { code: status.INTERNAL, details: noStatus }
}

function pathOf(method: DescMethodUnary | DescMethodServerStreaming): string {
  return `${method.parent.typeName}/${method.name}`
}
