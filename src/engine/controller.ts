import type { Kind } from '../core/kind.ts'
import { timing } from '../core/timing.ts'
import type { World } from '../core/world.ts'
import type { Clock } from '../ports/clock.ts'
import type { Connections } from '../ports/connections.ts'
import type { Home, Key, Watched } from '../ports/home.ts'
import { discover } from './discover.ts'
import { createLeader } from './leader.ts'
import type { Log } from './log.ts'
import { createLongActs } from './long-acts.ts'
import type { Next, Queue } from './queue.ts'
import { createQueue } from './queue.ts'
import { reconcile } from './reconcile.ts'

export type ControllerOptions = {
  readonly home: Home
  readonly connections: Connections
  readonly clock: Clock
  /** 0 <= x < 1. */
  readonly random: () => number
  readonly kinds: readonly Kind[]
  readonly log: Log
  /** Of this process; unique. */
  readonly identity: string
  /** The Lease of the leader election. */
  readonly leaderLease: Key
  readonly self: World['self']
  /** Divides the controller's own waits; 1 except in demonstrations. */
  readonly pace?: number
}

export type Controller = {
  readonly isLeading: () => boolean
  /** Takes nothing new, lets the passes that run end, and gives leadership up. */
  readonly stop: () => Promise<void>
}

const DISCOVER_MS = 30_000

/** The controller: leads, watches, and puts names into a queue whose worker makes one pass at a time per name. */
export const startController = (options: ControllerOptions): Controller => {
  const { home, connections, clock, random, kinds, log, identity, leaderLease, self, pace = 1 } = options
  const longActs = createLongActs()
  let running: { readonly queue: Queue; readonly unwatch: () => void } | undefined
  let stopping: Promise<void> = Promise.resolve()

  const start = (): void => {
    log.info('leading', { identity })
    const queue = createQueue({ clock, random, concurrency: 8, work, crashed: (key, error) => log.error('a pass crashed', { key, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }) })
    running = { queue, unwatch: home.watch(['TalosOperation', 'TalosCluster', 'Lease'], changed) }
  }

  /** Leadership is gone: what is under way must not act any more. The fence before each act refuses as well. */
  const end = (): void => {
    if (!running) return
    log.info('no longer leading', { identity })
    const { queue, unwatch } = running
    running = undefined
    unwatch()
    longActs.cancelAll()
    stopping = queue.stop()
  }

  const leader = createLeader({ home, clock, random, key: leaderLease, identity, started: start, ended: end })

  const wake = (key: Key): void => running?.queue.add(name('operation', key))

  const work = (key: string): Promise<Next> => {
    const [what, namespace = '', ...rest] = key.split('/')
    const object: Key = { namespace, name: rest.join('/') }
    return what === 'cluster'
      ? discover({ home, connections, clock, log, discoverMs: DISCOVER_MS / pace }, object)
      : reconcile({ home, connections, clock, timing: timing(pace), self, kinds, longActs, log, isLeading: leader.isLeading, wake }, object)
  }

  const changed = (what: Watched, key: Key): void => {
    if (what === 'TalosOperation') wake(key)
    if (what === 'TalosCluster') running?.queue.add(name('cluster', key))
    if (what === 'TalosOperation' || what === 'Lease') void wakeWaiters(key.namespace)
  }

  /** Whoever waits for a cluster lock looks again when an operation or a Lease has changed; the oldest of each cluster is enough. */
  const wakeWaiters = async (namespace: string): Promise<void> => {
    const all = await home.operations(namespace)
    if (!all.ok) return
    const seen = new Set<string>()
    const waiting = all.value.filter((o) => o.status.failureReason === 'ClusterLockHeld' && !o.spec.paused)
    for (const o of waiting.toSorted((a, b) => (a.metadata.creationTimestamp + a.metadata.uid < b.metadata.creationTimestamp + b.metadata.uid ? -1 : 1))) {
      if (seen.has(o.spec.clusterRef.name)) continue
      seen.add(o.spec.clusterRef.name)
      running?.queue.addAfter(name('operation', o.metadata), WAKE_MS / pace)
    }
  }

  return {
    isLeading: leader.isLeading,
    stop: async () => {
      end()
      await stopping
      await leader.stop()
    },
  }
}

/** Several changes in a row wake a waiter once. */
const WAKE_MS = 1_000

const name = (what: 'operation' | 'cluster', key: Key): string => `${what}/${key.namespace}/${key.name}`
