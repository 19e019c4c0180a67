import type { Result } from '../../ports/fault.ts'
import { failed } from '../../ports/fault.ts'
import type { PortCall } from '../calls.ts'
import type { World } from '../cluster.ts'

/** One process that uses the world through ports. When it is killed, its timers, watches and streams end with it and no call of it is answered. */
export type Client = {
  readonly name: string
  readonly isAlive: () => boolean
  /** Runs when the process is killed (at once if it was). The answer takes it back. */
  readonly onKill: (run: () => void) => () => void
  readonly kill: () => void
  readonly call: <T>(
    what: Pick<PortCall, 'port' | 'name' | 'target'> & { readonly changes?: boolean },
    effect: () => Promise<Result<T>> | Result<T>,
  ) => Promise<Result<T>>
}

/** What the API server says of every write while etcd has no space. */
const NO_SPACE = failed('busy', 'kubernetes: 500 Internal Server Error: etcdserver: mvcc: database space exceeded')

export const createClient = (world: World, name: string): Client => {
  let alive = true
  const killed = new Set<() => void>()
  return {
    name,
    isAlive: () => alive,
    onKill: run => {
      if (!alive) run()
      else killed.add(run)
      return () => void killed.delete(run)
    },
    kill: () => {
      if (!alive) return
      alive = false
      for (const run of killed) run()
      killed.clear()
    },
    call: (what, effect) =>
      world.calls.perform(
        { client: name, changes: false, ...what },
        () => alive,
        () => {
          const isStored = what.port === 'kube' || (what.port === 'home' && !world.homeOutside)
          return isStored && what.changes && world.etcd.isFull() ? NO_SPACE : effect()
        },
      ),
  }
}

/** What stands between a client and the Kubernetes API right now; undefined where it answers. */
export const apiObjection = (world: World): ReturnType<typeof failed> | undefined => {
  if (world.api.available()) return undefined
  if (world.schedule.now() < world.faults.apiDownUntil) return failed('busy', 'kubernetes: 503 Service Unavailable')
  return failed('unreachable', 'kubernetes: connect ECONNREFUSED')
}

/** For those who reach the API by its virtual address. */
export const vipObjection = ({ vip }: World): ReturnType<typeof failed> | undefined =>
  vip.address === '' || vip.holder() ? undefined : failed('unreachable', `kubernetes: connect EHOSTUNREACH ${vip.address}:6443`)
