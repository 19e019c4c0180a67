import { API_VERSION, CONTROLLER } from '../../api/names.ts'
import type { Clock } from '../../ports/clock.ts'
import type { HomeEvent } from '../../ports/home.ts'
import type { KubeClient } from './client.ts'
import { redact } from './classify.ts'
import { RESOURCE } from './resource.ts'

export type EventRecorder = (event: HomeEvent) => Promise<void>

/** The same event within this time raises the count of the first. */
const SAME_MS = 10 * 60_000
const REMEMBERED = 512
/** One object may say so much at once, and one more each `REFILL_MS`; what is above is lost. */
const BURST = 50
const REFILL_MS = 20_000
const DEADLINE_MS = 5000
/** The server refuses longer ones. */
const MAX_MESSAGE = 1024

type Seen = { readonly name: string; readonly firstAt: number; count: number }
type Bucket = { tokens: number; at: number }

/** Writes core/v1 Events, which `kubectl describe` and `kubectl get events` show. Best effort and bounded: never throws, never waits long. */
export const eventRecorder = (client: KubeClient, clock: Clock, instance: string): EventRecorder => {
  const seen = new Map<string, Seen>()
  const buckets = new Map<string, Bucket>()
  let written = 0

  const isAllowed = (uid: string): boolean => {
    const now = clock.monotonic()
    const bucket = buckets.get(uid) ?? { tokens: BURST, at: now }
    const tokens = Math.min(BURST, bucket.tokens + (now - bucket.at) / REFILL_MS)
    remember(buckets, uid, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now })
    return tokens >= 1
  }

  return async event => {
    const { regarding } = event
    if (!isAllowed(regarding.uid)) return
    const message = redact(event.message).slice(0, MAX_MESSAGE)
    const key = JSON.stringify([regarding.uid, event.type, event.reason, message])
    const now = clock.now()
    const time = `${new Date(now).toISOString().slice(0, 19)}Z`
    const namespace = regarding.namespace || 'default'
    const before = seen.get(key)
    if (before && clock.monotonic() - before.firstAt < SAME_MS) {
      const count = before.count + 1
      before.count = count
      const bumped = await client.patch(
        RESOURCE.event,
        { namespace, name: before.name },
        { count, lastTimestamp: time },
        { deadlineMs: DEADLINE_MS },
      )
      // Events live for an hour or less; one that is gone is written anew.
      if (bumped.ok || bumped.fault.kind !== 'notFound') return
    }
    written += 1
    const name = `${regarding.name.slice(0, 200)}.${now.toString(16)}${written.toString(16).padStart(4, '0')}`
    remember(seen, key, { name, firstAt: clock.monotonic(), count: 1 })
    await client.create(
      RESOURCE.event,
      { namespace },
      {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name, namespace },
        involvedObject: { apiVersion: API_VERSION, ...regarding },
        type: event.type,
        reason: event.reason,
        message,
        count: 1,
        firstTimestamp: time,
        lastTimestamp: time,
        source: { component: CONTROLLER },
        reportingComponent: CONTROLLER,
        reportingInstance: instance.slice(0, 128),
      },
      { deadlineMs: DEADLINE_MS },
    )
  }
}

/** Maps keep their order: what was touched longest ago goes first. */
const remember = <T>(map: Map<string, T>, key: string, value: T): void => {
  map.delete(key)
  map.set(key, value)
  if (map.size > REMEMBERED) for (const oldest of map.keys()) return void map.delete(oldest)
}
