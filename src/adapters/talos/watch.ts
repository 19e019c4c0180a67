import type { DescMessage } from '@bufbuild/protobuf'
import { type Event, EventType, State } from '../../../proto/gen/cosi/resource/state_pb.ts'
import type { Cancellation, Clock } from '../../ports/clock.ts'
import { failed, type Fault, type Result } from '../../ports/fault.ts'
import type { Calls } from './calls.ts'
import { type CosiResource, decoded, mostBytes, mostResources, type ResourceType } from './cosi.ts'
import { redacted } from './redact.ts'

/** By id. */
export type Contents<S extends DescMessage> = ReadonlyMap<string, CosiResource<S>>

export type WatchOptions<S extends DescMessage> = {
  readonly calls: Calls
  readonly clock: Clock
  /** 0 <= x < 1, for jitter. */
  readonly random: () => number
  readonly address: string
  readonly of: ResourceType<S>
  readonly signal: AbortSignal
  /**
   * Hears what there is, whole: at the start, after each change, and after what may have been one (a machine that forgot where we were). While it
   * takes its time with a promise nothing more is told, and what came meanwhile comes as one.
   */
  readonly told: (contents: Contents<S>) => void | Promise<void>
  /** Why the watch had to be begun anew; it goes on by itself. */
  readonly onFault?: (fault: Fault) => void
}

/** Then it is begun anew from where it was, so that it has a deadline as every call has. */
const longestMs = 3_600_000
/** In which a machine says that it watches, or has sent all that there is. */
const openedMs = 30_000
const shortestBackoffMs = 500
const longestBackoffMs = 30_000

/**
 * Watches all resources of one type on one machine, through cuts and reboots: from the last bookmark where the machine still knows it, else from a
 * new list. Machines that give no bookmarks (Talos before 1.9) are always listed anew. Nothing is told twice for being resumed. Settles when the
 * signal aborts, or the calls were closed for good. Never throws.
 */
export async function watchResources<S extends DescMessage>(options: WatchOptions<S>): Promise<void> {
  const { calls, clock, random, address, of, signal, onFault } = options
  const { namespace, type } = of
  const call = `State.Watch ${type}`
  let held = holding<S>()
  let bookmark: Uint8Array | undefined
  const tell = teller(signal, () => options.told(held.contents()), onFault)

  /** One stream from its opening to its end. */
  const attempt = async (): Promise<Attempt> => {
    const resumed = bookmark
    // What there is comes one by one: it counts only when all of it is there.
    let coming = resumed ? undefined : holding<S>()
    let isOpened = false
    let spoiled: Fault | undefined
    const mute = stoppable(signal)
    const cancelMute = clock.after(openedMs, mute.stop)
    const opened = (): void => {
      isOpened = true
      cancelMute()
    }

    const take = (event: Event): Result<'news' | 'nothing'> => {
      switch (event.eventType) {
        case EventType.ERRORED:
          return failed('busy', `${address}: ${call}: the machine ended it: ${redacted(event.error ?? '') || 'no reason given'}`)
        case EventType.BOOTSTRAPPED:
          if (coming) held = coming
          coming = undefined
          opened()
          return news
        case EventType.CREATED:
        case EventType.UPDATED: {
          const resource = decoded(address, call, of, event.resource)
          if (!resource.ok) return resource
          const into = coming ?? held
          into.put(resource.value, event.resource?.spec?.protoSpec.length ?? 0)
          if (into.isTooMuch())
            return failed(
              'unknown',
              `${address}: ${call}: more than ${mostResources} resources or ${mostBytes / 1024 ** 2} MiB cannot be what there is`,
            )
          return coming ? nothing : news
        }
        case EventType.DESTROYED: {
          const into = coming ?? held
          into.remove(event.resource?.metadata?.id ?? '')
          return coming ? nothing : news
        }
        default:
          return nothing
      }
    }

    const answer = await calls.stream(
      address,
      State.method.watch,
      { namespace, type, apiVersion: 1, options: resumed ? { startFromBookmark: resumed } : { bootstrapContents: true } },
      ({ event: events }) => {
        // The first message is empty and says: from now on nothing is missed.
        if (resumed) opened()
        let isNews = false
        for (const event of events) {
          const taken = take(event)
          const isForgotten = resumed !== undefined && event.bookmark === undefined && taken.ok
          if (!taken.ok) spoiled = taken.fault
          if (isForgotten) spoiled = failed('busy', `${address}: ${call}: the machine does not know bookmarks any more`).fault
          if (spoiled) return 'stop'
          if (!coming && event.bookmark) bookmark = event.bookmark
          isNews ||= taken.ok && taken.value === 'news'
        }
        if (isNews) tell()
        return undefined
      },
      { subject: type, deadlineMs: longestMs, isRenewable: true, cancellation: mute.cancellation },
    )
    cancelMute()
    if (spoiled) return { fault: spoiled, isOpened, from: 'list' }
    if (mute.isStopped() && !signal.aborted) {
      const silent = failed('unreachable', `${address}: ${call}: the machine did not begin it within ${openedMs / 1000} s`).fault
      return { fault: silent, isOpened, from: 'bookmark' }
    }
    if (answer.ok) return { fault: failed('unreachable', `${address}: ${call}: the machine ended it`).fault, isOpened, from: 'bookmark' }
    if (answer.fault.kind === 'cancelled') return 'closed'
    const isRefused = resumed !== undefined && !isOpened && answer.fault.kind !== 'unreachable' && answer.fault.kind !== 'busy'
    return { fault: answer.fault, isOpened, from: isRefused ? 'list at once' : 'bookmark' }
  }

  let failures = 0
  while (!signal.aborted) {
    const startedAt = clock.monotonic()
    const ended = await attempt()
    if (ended === 'closed' || signal.aborted) return
    onFault?.(ended.fault)
    if (ended.from !== 'bookmark') bookmark = undefined
    if (ended.from === 'list at once') continue
    if (ended.isOpened && clock.monotonic() - startedAt >= longestBackoffMs) failures = 0
    const longest = Math.min(longestBackoffMs, 2 * shortestBackoffMs * 2 ** failures)
    failures += 1
    await pause(clock, (longest / 2) * (1 + random()), signal)
  }
}

type Attempt =
  | 'closed'
  | {
      readonly fault: Fault
      readonly isOpened: boolean
      /** What the next one begins with. */
      readonly from: 'bookmark' | 'list' | 'list at once'
    }

const news = { ok: true, value: 'news' } as const
const nothing = { ok: true, value: 'nothing' } as const

/** The copy of what the machine has, and how large it is. */
function holding<S extends DescMessage>() {
  const resources = new Map<string, { readonly resource: CosiResource<S>; readonly bytes: number }>()
  let total = 0
  const bytesOf = (id: string): number => resources.get(id)?.bytes ?? 0
  return {
    remove: (id: string): void => {
      total -= bytesOf(id)
      resources.delete(id)
    },
    put: (resource: CosiResource<S>, bytes: number): void => {
      total += bytes - bytesOf(resource.id)
      resources.set(resource.id, { resource, bytes })
    },
    isTooMuch: (): boolean => resources.size > mostResources || total > mostBytes,
    contents: (): Contents<S> => new Map([...resources].map(([id, { resource }]) => [id, resource])),
  }
}

/** Runs the reader once at a time; however often it is called meanwhile, once more afterwards. */
function teller(signal: AbortSignal, read: () => void | Promise<void>, onFault: ((fault: Fault) => void) | undefined): () => void {
  let isNews = false
  let isReading = false
  const readAll = async (): Promise<void> => {
    isReading = true
    while (isNews && !signal.aborted) {
      isNews = false
      try {
        await read()
      } catch (error) {
        onFault?.(failed('unknown', `what was told by a watch could not be used: ${String(error)}`).fault)
      }
    }
    isReading = false
  }
  return () => {
    isNews = true
    if (!isReading) void readAll()
  }
}

/** Cancelled by the signal or by hand. */
function stoppable(signal: AbortSignal): {
  readonly cancellation: Cancellation
  readonly stop: () => void
  readonly isStopped: () => boolean
} {
  const own = new AbortController()
  const either = AbortSignal.any([signal, own.signal])
  return {
    stop: () => own.abort(),
    isStopped: () => own.signal.aborted,
    cancellation: {
      get cancelled() {
        return either.aborted
      },
      onCancel: run => {
        if (either.aborted) run()
        either.addEventListener('abort', run, { once: true })
        return () => either.removeEventListener('abort', run)
      },
    },
  }
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) return resolve()
    const end = (): void => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    signal.addEventListener('abort', end, { once: true })
  })
}
