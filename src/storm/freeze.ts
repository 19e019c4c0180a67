import type { Clock } from '../ports/clock.ts'
import type { Connections } from '../ports/connections.ts'
import type { Home } from '../ports/home.ts'
import type { Ports } from '../world/ports/open.ts'

/**
 * A process that the machine under it may stop for a while (a hypervisor, SIGSTOP, a long collection of garbage). The world goes on meanwhile; answers
 * and timers that came due reach the process when it runs again, all at once and in their order.
 */
export const freezable = (ports: Ports): { readonly ports: Ports; readonly freeze: () => void; readonly thaw: () => void } => {
  let missed: (() => void)[] | undefined
  const whenAwake = (run: () => void): void => {
    if (missed) missed.push(run)
    else run()
  }
  const awake = (): Promise<void> => new Promise(resolve => whenAwake(resolve))
  const known = new WeakMap<object, object>()

  /** What a watch is given to tell, which waits too. */
  const heard = (given: unknown): unknown =>
    typeof given === 'function' ? (...told: readonly unknown[]) => whenAwake(() => void (given as Watch)(...told)) : given

  /** The same port, whose answers wait; and so do those of the ports that it `opens`. */
  const wrapped = <T extends object>(port: T, opens: boolean): T => {
    const before = known.get(port)
    if (before) return before as T
    const own = Object.fromEntries(
      Object.entries(port).map(([name, member]) => {
        if (typeof member !== 'function') return [name, member]
        if (name === 'watch') return [name, (...args: readonly unknown[]): unknown => (member as Watch)(...args.map(heard))]
        return [
          name,
          async (...args: readonly unknown[]) => {
            const answer: unknown = await (member as (...args: readonly unknown[]) => unknown)(...args)
            if (missed) await awake()
            return opens && isOpened(answer) ? { ...answer, value: wrapped(answer.value, false) } : answer
          },
        ]
      }),
    ) as T
    known.set(port, own)
    return own
  }

  const clock: Clock = { ...ports.clock, after: (ms, run) => ports.clock.after(ms, () => whenAwake(run)) }
  const home: Home = wrapped(ports.home, false)
  const connections: Connections = wrapped(ports.connections, true)
  return {
    ports: { ...ports, clock, home, connections },
    freeze: () => {
      missed ??= []
    },
    thaw: () => {
      const all = missed ?? []
      missed = undefined
      for (const run of all) run()
    },
  }
}

type Watch = (...args: readonly unknown[]) => unknown

const isOpened = (answer: unknown): answer is { readonly ok: true; readonly value: object } => {
  const value = (answer as { readonly value?: unknown } | undefined)?.value
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).some(member => typeof member === 'function')
  )
}
