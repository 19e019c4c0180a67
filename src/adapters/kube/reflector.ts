import type { Clock } from '../../ports/clock.ts'
import type { ApiFault, ApiResult } from './classify.ts'
import { apiFault, isExpired } from './classify.ts'
import type { KubeObject, Listed, WatchEventType } from './client.ts'
import { at, deepFreeze, text } from './json.ts'

/** What a reflector reads from: the client with one type and one selection filled in. */
export type ReflectorSource = {
  readonly list: (signal: AbortSignal) => Promise<ApiResult<Listed>>
  readonly watch: (
    options: { readonly resourceVersion: string; readonly timeoutSeconds: number; readonly signal: AbortSignal },
    on: { readonly opened: () => void; readonly event: (type: WatchEventType, object: KubeObject) => void },
  ) => Promise<ApiResult<void>>
}

export type Change<T> =
  | { readonly type: 'added'; readonly key: string; readonly object: T }
  | { readonly type: 'changed'; readonly key: string; readonly object: T; readonly before: T }
  | { readonly type: 'deleted'; readonly key: string; readonly object: T }

export type ReflectorOptions<T> = {
  readonly source: ReflectorSource
  /** Makes of what the server said what readers get. What it throws at is left out of the cache and told to `problem`. */
  readonly parse: (object: KubeObject) => T
  readonly clock: Clock
  /** Between 0 and 1, for jitter. */
  readonly random: () => number
  readonly changed?: (change: Change<T>) => void
  /** A list was taken in: all that exists is known, and what happened before may have been missed. */
  readonly listed?: () => void
  /** For the log. The reflector goes on by itself. */
  readonly problem?: (problem: { readonly doing: 'list' | 'watch' | 'handler' | 'parse'; readonly message: string }) => void
}

export type Reflector<T> = {
  /** As of the last event. Frozen. */
  readonly get: (key: string) => T | undefined
  readonly all: () => readonly T[]
  readonly keys: () => readonly string[]
  /** Ok when the first list is in; the fault when the first attempt failed (it goes on trying) or it was stopped. */
  readonly ready: () => Promise<ApiResult<void>>
  /** A list is in and the watch is open. */
  readonly isHealthy: () => boolean
  /** Milliseconds since the cache was known to be current; Infinity before the first list. About a minute is usual on a quiet type. */
  readonly lastSyncAgeMs: () => number
  readonly stop: () => void
}

const BACKOFF_MIN_MS = 800
const BACKOFF_MAX_MS = 30_000
const HEALTHY_AFTER_MS = 120_000
/** Servers send a bookmark about every minute; without any word for so long the connection is taken for dead. */
export const STALL_MS = 150_000
const WATCH_MIN_SECONDS = 300
/** Beyond `timeoutSeconds` the server had its chance to end the watch. */
const WATCH_GRACE_MS = 30_000
/** A watch that ends sooner, without a word, is no regular end. */
const SHORT_WATCH_MS = 1000
/** However healthy it looks, the truth is read again: a server that was set back to a snapshot may keep quiet about it. */
export const RELIST_MS = 30 * 60_000

type Entry<T> = { readonly uid: string; readonly version: string; readonly object: T }

/** `namespace/name`, or the name alone. */
export const keyOf = (object: KubeObject): string => {
  const namespace = text(at(object, 'metadata', 'namespace'))
  const name = text(at(object, 'metadata', 'name'))
  return namespace === '' ? name : `${namespace}/${name}`
}

/** Keeps a copy of all objects of one type current until stopped: list, watch, and again, whatever happens in between. */
export const startReflector = <T>(options: ReflectorOptions<T>): Reflector<T> => {
  const { source, clock, random } = options
  const stopped = new AbortController()
  const cache = new Map<string, Entry<T>>()
  let lastHeard: number | undefined
  let isWatching = false
  let failures = 0
  let healthySince: number | undefined
  let hasListed = false
  const waiting: ((result: ApiResult<void>) => void)[] = []

  const problem = (doing: 'list' | 'watch' | 'handler' | 'parse', message: string): void => {
    try {
      options.problem?.({ doing, message })
    } catch {
      // Who cannot take a complaint gets none.
    }
  }
  const guarded = (run: (() => void) | undefined): void => {
    try {
      run?.()
    } catch (error) {
      problem('handler', error instanceof Error ? error.message : String(error))
    }
  }
  const tell = (change: Change<T>): void => guarded(() => options.changed?.(change))
  const answerReady = (result: ApiResult<void>): void => {
    for (const resolve of waiting.splice(0)) resolve(result)
  }

  const remove = (key: string): void => {
    const entry = cache.get(key)
    if (!entry) return
    cache.delete(key)
    tell({ type: 'deleted', key, object: entry.object })
  }

  const put = (raw: KubeObject): void => {
    const key = keyOf(raw)
    const uid = text(at(raw, 'metadata', 'uid'))
    const version = text(at(raw, 'metadata', 'resourceVersion'))
    const before = cache.get(key)
    if (before && before.uid === uid && before.version === version) return
    let object: T
    try {
      object = deepFreeze(options.parse(raw))
    } catch (error) {
      problem('parse', `${key}: ${error instanceof Error ? error.message : String(error)}`)
      return
    }
    // The same name with another UID: one went, another came, and nobody saw it.
    if (before && before.uid !== uid) remove(key)
    const stays = before !== undefined && before.uid === uid
    cache.set(key, { uid, version, object })
    tell(stays ? { type: 'changed', key, object, before: before.object } : { type: 'added', key, object })
  }

  const list = async (): Promise<ApiResult<string>> => {
    const listed = await source.list(stopped.signal)
    if (!listed.ok) return listed
    if (stopped.signal.aborted) return STOPPED
    const keys = new Set(listed.value.items.map(keyOf))
    for (const key of [...cache.keys()]) if (!keys.has(key)) remove(key)
    for (const item of listed.value.items) put(item)
    lastHeard = clock.monotonic()
    hasListed = true
    answerReady({ ok: true, value: undefined })
    guarded(options.listed)
    return { ok: true, value: listed.value.resourceVersion }
  }

  /** One watch from its opening to its end. Answers the version to go on from; empty where a new list is needed. */
  const watch = async (from: string, relistAt: number): Promise<{ readonly version: string; readonly end: ApiResult<void> }> => {
    const timeoutSeconds = Math.round(WATCH_MIN_SECONDS * (1 + random()))
    const over = new AbortController()
    const signal = AbortSignal.any([stopped.signal, over.signal])
    const startedAt = clock.monotonic()
    let version = from
    let ownEnd: 'stalled' | 'overdue' | 'relist' | 'backwards' | undefined
    let heard = 0
    const endAs = (why: typeof ownEnd) => () => {
      ownEnd ??= why
      over.abort()
    }
    const cancelOverdue = clock.after(timeoutSeconds * 1000 + WATCH_GRACE_MS, endAs('overdue'))
    const cancelRelist = clock.after(Math.max(0, relistAt - startedAt), endAs('relist'))
    let cancelStall = clock.after(STALL_MS, endAs('stalled'))
    const hear = (): void => {
      lastHeard = clock.monotonic()
      cancelStall()
      cancelStall = clock.after(STALL_MS, endAs('stalled'))
    }

    const end = await source.watch(
      { resourceVersion: from, timeoutSeconds, signal },
      {
        opened: () => {
          isWatching = true
          healthySince ??= clock.monotonic()
          hear()
        },
        event: (type, object) => {
          if (ownEnd !== undefined || stopped.signal.aborted) return
          heard += 1
          hear()
          const next = text(at(object, 'metadata', 'resourceVersion'))
          // The history runs backwards: etcd was restored from a snapshot. What we hold may never have been.
          if (isOlder(next, version)) return endAs('backwards')()
          if (next !== '') version = next
          if (type === 'DELETED') remove(keyOf(object))
          else if (type !== 'BOOKMARK') put(object)
        },
      },
    )
    isWatching = false
    cancelOverdue()
    cancelRelist()
    cancelStall()
    const clean = { ok: true, value: undefined } as const
    switch (ownEnd) {
      case 'relist':
        return { version: '', end: clean }
      case 'stalled':
        // A server whose history was set back can keep a watch open and silent: only a list tells.
        problem('watch', `no word for ${STALL_MS / 1000} s, not even a bookmark: reading everything anew`)
        return { version: '', end: clean }
      case 'overdue':
        problem('watch', 'the server did not end the watch in time: opening it again')
        return { version, end: clean }
      case 'backwards':
        return { version: '', end: broken('resource versions run backwards: the server was set back to an earlier state', 410) }
      case undefined:
    }
    if (end.ok && heard === 0 && clock.monotonic() - startedAt < SHORT_WATCH_MS) {
      return { version, end: broken('the server ends the watch as soon as it is open', 0) }
    }
    return { version, end }
  }

  const pause = (ms: number): Promise<void> =>
    new Promise(resolve => {
      if (stopped.signal.aborted) return resolve()
      const cancel = clock.after(ms, () => {
        stopped.signal.removeEventListener('abort', stop)
        resolve()
      })
      const stop = () => {
        cancel()
        resolve()
      }
      stopped.signal.addEventListener('abort', stop, { once: true })
    })

  const backOff = async (doing: 'list' | 'watch', fault: ApiFault): Promise<void> => {
    if (stopped.signal.aborted) return
    if (healthySince !== undefined && clock.monotonic() - healthySince >= HEALTHY_AFTER_MS) failures = 0
    healthySince = undefined
    const full = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** failures)
    failures += 1
    const wait = Math.max(BACKOFF_MIN_MS, (full / 2) * (1 + random()), fault.retryAfterMs ?? 0)
    problem(doing, `${fault.message}; again in ${Math.round(wait / 100) / 10} s`)
    if (!hasListed) answerReady({ ok: false, fault })
    await pause(wait)
  }

  const loop = async (): Promise<void> => {
    let version = ''
    let relistAt = 0
    while (!stopped.signal.aborted) {
      if (version === '') {
        const listed = await list()
        if (!listed.ok) {
          await backOff('list', listed.fault)
          continue
        }
        version = listed.value
        relistAt = clock.monotonic() + RELIST_MS * (1 + random() * 0.1)
      }
      const watched = await watch(version, relistAt)
      version = watched.version
      if (watched.end.ok) continue
      if (needsList(watched.end.fault)) {
        version = ''
        // At once after a time of health; a server that does so again and again is left alone in between.
        if (healthySince !== undefined && clock.monotonic() - healthySince >= HEALTHY_AFTER_MS) {
          healthySince = undefined
          failures = 0
          continue
        }
        if (failures === 0) {
          failures = 1
          continue
        }
      }
      await backOff('watch', watched.end.fault)
    }
  }

  loop().catch((error: unknown) => problem('watch', `the reflector broke: ${error instanceof Error ? error.message : String(error)}`))

  return {
    get: key => cache.get(key)?.object,
    all: () => [...cache.values()].map(({ object }) => object),
    keys: () => [...cache.keys()],
    ready: () => {
      if (hasListed) return Promise.resolve({ ok: true, value: undefined })
      if (stopped.signal.aborted) return Promise.resolve(STOPPED)
      return new Promise(resolve => waiting.push(resolve))
    },
    isHealthy: () => hasListed && isWatching,
    lastSyncAgeMs: () => (lastHeard === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - lastHeard),
    stop: () => {
      stopped.abort()
      answerReady(STOPPED)
    },
  }
}

const STOPPED = apiFault('cancelled', 'stopped by us')
const broken = (message: string, code: number) => apiFault('busy', message, { code })

/** The server cannot go on from the version that we have. */
const needsList = (fault: ApiFault): boolean =>
  isExpired(fault) ||
  fault.causes.some(({ reason }) => reason === 'ResourceVersionTooLarge') ||
  fault.kind === 'unsupported' ||
  fault.kind === 'notFound'

// Versions are numbers of etcd's history; where they are not, nothing is known of their order.
const isOlder = (version: string, than: string): boolean => /^\d+$/.test(version) && /^\d+$/.test(than) && BigInt(version) < BigInt(than)
