import type { Fault, Result } from '../ports/fault.ts'
import type { Site } from './site.ts'

/** One call through a port, before it has its effect. */
export type PortCall = {
  /** Counts from 1 over all clients. */
  readonly n: number
  /** Which process makes it: the name that its ports were opened with. */
  readonly client: string
  readonly port: 'talos' | 'kube' | 'home' | 'connections'
  /** The function of the port. */
  readonly name: string
  /** An address, a node, a pod or the key of an object. */
  readonly target: string
  /** Whether it may change anything. */
  readonly changes: boolean
  readonly at: number
}

/**
 * What a test makes of a call. `before` and `after` are relative to its effect. A silent call is never answered: so it is for a process that is killed
 * at this point (kill the client as well, so that nothing of it goes on).
 */
export type Verdict =
  | { readonly do: 'fail'; readonly when: 'before' | 'after'; readonly fault: Fault; readonly afterMs?: number }
  | { readonly do: 'silence'; readonly when: 'before' | 'after' }
  | { readonly do: 'delay'; readonly ms: number }

export type Interceptor = (call: PortCall) => Verdict | undefined

export type Calls = {
  readonly count: () => number
  /** How many so far, by `port.name`. */
  readonly counts: () => ReadonlyMap<string, number>
  /** The last 2000. */
  readonly log: () => readonly PortCall[]
  /** The first interceptor with a verdict decides. The answer removes it. */
  readonly intercept: (interceptor: Interceptor) => () => void
  /** The verdict for the next so many calls of that name, on that target if named. */
  readonly next: (what: { readonly name: string; readonly target?: string; readonly times?: number }, verdict: Verdict) => void
  readonly perform: <T>(
    call: Omit<PortCall, 'n' | 'at'>,
    isAlive: () => boolean,
    effect: () => Promise<Result<T>> | Result<T>,
  ) => Promise<Result<T>>
}

const LOG_KEPT = 2000

const never = <T>(): Promise<T> => new Promise<T>(() => {})

export const createCalls = (site: Site): Calls => {
  // Never changed in place: one that comes or goes while a call is looked at does not matter to that call.
  let interceptors: readonly Interceptor[] = []
  const counts = new Map<string, number>()
  const log: PortCall[] = []
  let count = 0
  const pause = (ms: number): Promise<void> => new Promise(resolve => void site.schedule.after(ms, resolve))

  const intercept = (interceptor: Interceptor): (() => void) => {
    interceptors = [...interceptors, interceptor]
    return () => {
      interceptors = interceptors.filter(one => one !== interceptor)
    }
  }
  return {
    count: () => count,
    counts: () => counts,
    log: () => log,
    intercept,
    next: (what, verdict) => {
      let left = what.times ?? 1
      const remove = intercept(call => {
        if (call.name !== what.name || (what.target !== undefined && call.target !== what.target)) return undefined
        if (--left === 0) remove()
        return verdict
      })
    },
    perform: async (asked, isAlive, effect) => {
      if (!isAlive()) return never()
      const call: PortCall = { ...asked, n: ++count, at: site.schedule.now() }
      const key = `${call.port}.${call.name}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
      log.push(call)
      if (log.length > LOG_KEPT) log.shift()
      let verdict: Verdict | undefined
      for (const interceptor of interceptors) {
        verdict = interceptor(call)
        if (verdict) break
      }
      if (verdict?.do === 'delay') await pause(verdict.ms)
      const isBefore = verdict !== undefined && verdict.do !== 'delay' && verdict.when === 'before'
      // A client that a test killed in its interceptor may still have sent the call: then the verdict is `after`.
      if (!isBefore && !isAlive() && verdict?.do !== 'silence') return never()
      const result = isBefore ? undefined : await effect()
      if (verdict?.do === 'silence') return never()
      if (verdict?.do === 'fail') {
        if (verdict.afterMs) await pause(verdict.afterMs)
        return isAlive() ? { ok: false, fault: verdict.fault } : never()
      }
      return isAlive() && result ? result : never()
    },
  }
}
