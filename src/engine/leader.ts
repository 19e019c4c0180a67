import type { Clock } from '../ports/clock.ts'
import type { Home, Key, Lease, LeaseWrite } from '../ports/home.ts'
import { microTime } from './micro-time.ts'

/** Who leads, as client-go times it: a leader renews well before others may think it dead. */
export const LEADER_LEASE_MS = 15_000
const RENEW_DEADLINE_MS = 10_000
const RETRY_MS = 2_000

export type Leader = {
  /** Still the leader by the monotonic clock: the last renewal is younger than the renew deadline. Asked right before each disruptive call. */
  readonly isLeading: () => boolean
  /** Gives leadership up, so that another replica need not wait for the lease to pass. */
  readonly stop: () => Promise<void>
}

type Options = {
  readonly home: Home
  readonly clock: Clock
  readonly random: () => number
  readonly key: Key
  /** Of this process; unique. */
  readonly identity: string
  readonly started: () => void
  /** Leadership was lost or given up: everything that is under way has to stop. */
  readonly ended: () => void
}

/**
 * Leader election by one Lease. How old another's lease is, is measured by our own monotonic clock from the moment when we saw it change last: the
 * times in it are another machine's and may be wrong.
 */
export const createLeader = ({ home, clock, random, key, identity, started, ended }: Options): Leader => {
  let leading = false
  let renewedAt = 0
  /** The Lease as our own last write left it: a renewal needs no look before, because anybody else's write makes it fail. */
  let written: Lease | undefined
  let seen: { readonly version: string; readonly at: number } | undefined
  let stopped = false
  let cancel: () => void = () => {}
  let unwatch: () => void = () => {}
  let unattend: (() => void) | undefined
  /** A round is under way, and whether the Lease changed meanwhile. */
  let isBusy = false
  let isMissed = false
  let round: Promise<void> = Promise.resolve()

  const isLeading = (): boolean => leading && clock.monotonic() - renewedAt < RENEW_DEADLINE_MS

  const write = (lease: Lease | undefined): LeaseWrite => {
    const time = microTime(clock.now())
    const mine = lease?.holder === identity
    return {
      holder: identity,
      durationSeconds: LEADER_LEASE_MS / 1000,
      acquireTime: mine && lease ? lease.acquireTime : time,
      renewTime: time,
      transitions: mine || !lease ? (lease?.transitions ?? 0) : lease.transitions + 1,
      annotations: lease?.annotations ?? {},
    }
  }

  /** One try to take or renew it. */
  const attempt = async (): Promise<void> => {
    if (leading && written && (await renewed(written))) return
    const asked = clock.monotonic()
    const found = await home.lease(key)
    const lease = found.ok ? found.value : undefined
    if (!found.ok && found.fault.kind !== 'notFound') return
    // Deleted by hand: whom we saw lead does not know of it yet.
    if (!lease && seen && asked - seen.at < LEADER_LEASE_MS) return lost()
    if (lease && lease.holder !== '' && lease.holder !== identity) {
      // It was like this at some moment until now, so it counts from now on: from when it was asked for, it would pass before its leader has to stop.
      if (seen?.version !== lease.resourceVersion) seen = { version: lease.resourceVersion, at: clock.monotonic() }
      if (asked - seen.at < lease.durationSeconds * 1000) {
        attend()
        return lost()
      }
    }
    const taken = lease ? await home.replaceLease(lease, write(lease)) : await home.createLease(key, write(undefined))
    if (!taken.ok) return
    keep(taken.value, asked)
    // An answer so late is no answer: by now another may lead.
    if (leading || clock.monotonic() - asked >= RENEW_DEADLINE_MS) return
    leading = true
    started()
  }

  const renewed = async (lease: Lease): Promise<boolean> => {
    const asked = clock.monotonic()
    const taken = await home.replaceLease(lease, write(lease))
    if (taken.ok) keep(taken.value, asked)
    else written = undefined
    return taken.ok
  }

  /** Counted from before the write was sent. An answer that never comes must not keep us in the belief that we lead. */
  const keep = (lease: Lease, asked: number): void => {
    written = lease
    renewedAt = asked
    unwatch()
    unwatch = clock.after(Math.max(0, asked + RENEW_DEADLINE_MS - clock.monotonic()), () => {
      if (!isLeading()) lost()
    })
  }

  const lost = (): void => {
    written = undefined
    unwatch()
    if (!leading) return
    leading = false
    ended()
  }

  /** Another leads. Its Lease is watched, so that one that is given back is taken at once and not at the next look. */
  const attend = (): void => {
    unattend ??= home.watch(['Lease'], (_, changed) => {
      if (leading || stopped || changed.namespace !== key.namespace || changed.name !== key.name) return
      if (isBusy) isMissed = true
      else again()
    })
  }

  const tick = async (): Promise<void> => {
    isBusy = true
    isMissed = false
    await attempt()
    isBusy = false
    if (leading && !isLeading()) lost()
    if (!stopped) cancel = clock.after(isMissed && !leading ? 0 : RETRY_MS * (1 + random() * 0.2), again)
  }
  const again = (): void => {
    cancel()
    round = tick()
  }
  again()

  return {
    isLeading,
    stop: async () => {
      stopped = true
      unattend?.()
      cancel()
      await round
      cancel()
      const wasLeading = leading
      lost()
      if (!wasLeading) return
      const found = await home.lease(key)
      if (found.ok && found.value.holder === identity)
        await home.replaceLease(found.value, { ...write(found.value), holder: '', durationSeconds: 1 })
    },
  }
}
