import type { Kind } from '../core/kind.ts'
import { timing } from '../core/timing.ts'
import type { World } from '../core/world.ts'
import type { Clock } from '../ports/clock.ts'
import type { Connections } from '../ports/connections.ts'
import type { Home, Key, Watched } from '../ports/home.ts'
import { isOlder, waitsForLock } from '../core/lock-claim.ts'
import { discover } from './discover.ts'
import { fenced } from './fence.ts'
import { createLeader } from './leader.ts'
import type { Log } from './log.ts'
import { createLongActs } from './long-acts.ts'
import { createMachineWatches } from './machine-watches.ts'
import type { Next, Queue } from './queue.ts'
import { createQueue } from './queue.ts'
import { rememberWrites } from './own-writes.ts'
import { reconcile } from './reconcile.ts'
import { createSight } from './sight.ts'
import { asError, traceOf } from './thrown.ts'

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
  /** Hears of each pass when it has ended. */
  readonly passed?: (pass: Pass) => void
}

/** A look at one thing: `failed` where it could not do what it wanted and backs off. */
export type Pass = { readonly of: Sort; readonly ms: number; readonly failed: boolean }
type Sort = 'operation' | 'cluster' | 'waiters'

export type Controller = {
  readonly isLeading: () => boolean
  /** What is due or worked on, and for how long already (milliseconds); nothing while another leads. */
  readonly queue: () => { readonly depth: number; readonly oldestMs: number }
  /** Takes nothing new, lets the passes that run end (one that hangs is not waited for: it acts no more), and gives leadership up. */
  readonly stop: () => Promise<void>
}

const DISCOVER_MS = 30_000

/** A machine on its way tells many things in a row: what it says is looked at so long after the first, and what the cluster looks like later. */
const SETTLE_MS = 200
const DISCOVER_SOON_MS = 5_000

/** What a long act says of itself is written at most so often. */
const PROGRESS_MS = 5_000

/** So long a stop waits for the passes that run, so that another leads within two seconds. */
const LAST_PASS_MS = 1_000

/** Several changes in a row wake a waiter once. */
const WAKE_MS = 1_000

/** The controller: leads, watches, and puts names into a queue whose worker makes one pass at a time per name. */
export const startController = (options: ControllerOptions): Controller => {
  const { connections, clock, random, kinds, log, identity, leaderLease, self, pace = 1, passed = () => {} } = options
  let term: Term | undefined
  let isStopped = false

  const start = (): void => {
    if (isStopped) return
    log.info('leading', { identity })
    term = lead()
  }

  /** Leadership is gone: what is under way must not act any more. The fence before each act refuses as well. */
  const end = (): void => {
    if (!term) return
    log.info('no longer leading', { identity })
    term.end()
    term = undefined
  }

  const withinMs = (ending: Promise<void>, ms: number): Promise<void> =>
    new Promise(resolve => {
      const cancel = clock.after(ms, resolve)
      void ending.then(() => {
        cancel()
        resolve()
      })
    })

  const leader = createLeader({ home: options.home, clock, random, key: leaderLease, identity, started: start, ended: end })

  /** One term of leadership. What was begun in it never acts in a later one: by then another may have led in between. */
  const lead = (): Term => {
    const longActs = createLongActs({ clock, everyMs: PROGRESS_MS / pace })
    // Of this term alone: at its start everything is looked at, whoever wrote it. A pass that outlives its leadership writes nothing more.
    const own = rememberWrites(fenced(options.home, leader.isLeading))
    const { home } = own
    const waits = timing(pace)
    const honoured = new Set<string>()
    const sight = createSight({ clock, longestGapMs: 2 * waits.idleMs })
    let isOver = false
    const isLeading = (): boolean => !isOver && leader.isLeading()

    const work = (key: string): Promise<Next> => {
      const [what, namespace = '', ...rest] = key.split('/')
      const object: Key = { namespace, name: rest.join('/') }
      switch (what) {
        case 'cluster':
          return discover({ home, connections, clock, log, discoverMs: DISCOVER_MS / pace }, object)
        case 'waiters':
          return wakeWaiters(object)
        default:
          return sight.look(key, watchedMs =>
            reconcile(
              { home, connections, clock, timing: waits, self, watchedMs, kinds, longActs, watches, log, isLeading, honoured, wake },
              object,
            ),
          )
      }
    }

    const timed = (key: string): Promise<Next> => {
      const began = clock.monotonic()
      const told = (failed: boolean): void => passed({ of: key.slice(0, key.indexOf('/')) as Sort, ms: clock.monotonic() - began, failed })
      const pass = work(key)
      pass.then(
        next => told(next.failed === true),
        () => told(true),
      )
      return pass
    }

    const queue: Queue = createQueue({
      clock,
      random,
      concurrency: 8,
      work: timed,
      crashed: (key, error) => log.error('a pass crashed', { key, error: traceOf(asError(error)) }),
    })

    const wake = (key: Key): void => queue.add(name('operation', key))

    const watches = createMachineWatches({
      connections,
      changed: (operation, cluster) => {
        queue.addAfter(name('operation', operation), SETTLE_MS / pace)
        queue.addAfter(name('cluster', cluster), DISCOVER_SOON_MS / pace)
      },
    })

    const changed = (what: Watched, key: Key, version?: string): void => {
      // What we wrote ourselves is known, and the pass that wrote it has said when to look again.
      if (what === 'TalosOperation' && !own.isOwn(key, version)) wake(key)
      if (what === 'TalosCluster') queue.add(name('cluster', key))
      const isHeartbeat = what === 'Lease' && key.namespace === leaderLease.namespace && key.name === leaderLease.name
      if ((what === 'TalosOperation' || what === 'Lease') && !isHeartbeat)
        queue.addAfter(name('waiters', { ...key, name: what === 'Lease' ? key.name : '' }), WAKE_MS / pace)
    }

    /**
     * Whoever waits for a cluster lock looks again when an operation or a Lease has changed; the oldest of each cluster is enough. Whoever is paused and
     * says that the lock is kept looks again when that Lease has changed (`lease`; empty where it was an operation): somebody may have released it.
     */
    const wakeWaiters = async ({ namespace, name: lease }: Key): Promise<Next> => {
      const all = await home.operations(namespace)
      if (!all.ok) return { failed: true }
      for (const { metadata, spec, status } of all.value) if (spec.paused && status.lock?.lease === lease) wake(metadata)
      const seen = new Set<string>()
      for (const { metadata, spec } of all.value.filter(waitsForLock).toSorted((a, b) => (isOlder(a, b) ? -1 : 1))) {
        if (seen.has(spec.clusterRef.name)) continue
        seen.add(spec.clusterRef.name)
        wake(metadata)
      }
      return {}
    }

    const unwatch = home.watch(['TalosOperation', 'TalosCluster', 'Lease'], changed)
    const finish = (): Promise<void> => {
      unwatch()
      watches.stop()
      return queue.stop()
    }
    return {
      queue,
      finish,
      end: () => {
        isOver = true
        longActs.cancelAll()
        void finish()
      },
    }
  }

  return {
    isLeading: leader.isLeading,
    queue: () => ({ depth: term?.queue.depth() ?? 0, oldestMs: term?.queue.oldestMs() ?? 0 }),
    stop: async () => {
      isStopped = true
      // The passes that run may act to their end, as long as that is short: an intention without its act would keep the next leader waiting for its effect.
      if (term) await withinMs(term.finish(), LAST_PASS_MS)
      end()
      await leader.stop()
    },
  }
}

/** One term of leadership. */
type Term = {
  readonly queue: Queue
  /** Begins no pass any more; resolves when those that run have ended. */
  readonly finish: () => Promise<void>
  /** Whatever still runs may not act from now on. */
  readonly end: () => void
}

const name = (what: Sort, key: Key): string => `${what}/${key.namespace}/${key.name}`
