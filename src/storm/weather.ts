import type { Clock } from '../ports/clock.ts'
import type { Connections } from '../ports/connections.ts'
import type { Result } from '../ports/fault.ts'
import { failed, ok } from '../ports/fault.ts'
import type { Home } from '../ports/home.ts'
import type { ClusterMember, EtcdView, MachineFacts, Talos } from '../ports/talos.ts'
import type { Ports } from '../world/ports/open.ts'

/** What stands between all processes and the world, beyond the faults of single calls. */
export type Weather = {
  /** Nothing comes through a watch: cut ones begin anew with everything, stalled ones bring late what they missed. */
  watches: 'fine' | 'cut' | 'stalled'
  /** Lists are as old as the moment when this began. */
  areListsStale: boolean
  /** Milliseconds that the wall clocks of all processes are off, by the name of the process. */
  readonly clockOffset: Map<string, number>
  /** How fast the monotonic clock of a process runs; 1 where absent. */
  readonly clockRate: Map<string, number>
  /** Addresses of machines whose installers say nothing any more, not even that they ended. */
  readonly mute: Set<string>
  /** What the etcd at an address says instead of what is so, since when, and whether nothing may be done to a control plane meanwhile. */
  readonly etcdSays: Map<string, { readonly since: number; readonly isOdd: boolean; readonly edit: (view: EtcdView) => EtcdView }>
  /** What the machine at an address says of itself instead of what is so. */
  readonly machineSays: Map<string, (facts: MachineFacts) => MachineFacts>
  /** What all machines say of each other instead of what is so. */
  membersSay: ((members: readonly ClusterMember[]) => readonly ClusterMember[]) | undefined
  /** Each ends a watch of a machine, as one ends whose credential was replaced. */
  readonly machineWatches: Set<() => void>
  /** Called when something above changed. */
  readonly changed: Set<() => void>
}

export const createWeather = (): Weather => ({
  watches: 'fine',
  areListsStale: false,
  clockOffset: new Map(),
  clockRate: new Map(),
  mute: new Set(),
  etcdSays: new Map(),
  machineSays: new Map(),
  membersSay: undefined,
  machineWatches: new Set(),
  changed: new Set(),
})

/** The same ports, out in the weather. */
export const inWeather = (ports: Ports, weather: Weather): Ports => ({
  ...ports,
  clock: unsteady(ports.clock, ports.client.name, weather),
  home: cached(ports.home, weather, ports.client.isAlive),
  connections: odd(ports.connections, weather),
})

const unsteady = (clock: Clock, name: string, weather: Weather): Clock => {
  const rate = (): number => weather.clockRate.get(name) ?? 1
  let [since, sinceOwn, was] = [clock.monotonic(), clock.monotonic(), rate()]
  /** Of a clock whose rate changes: what it showed when that happened last, and what has passed since. */
  const monotonic = (): number => {
    const now = clock.monotonic()
    const own = sinceOwn + (now - since) * was
    if (was !== rate()) [since, sinceOwn, was] = [now, own, rate()]
    return own
  }
  return {
    now: () => clock.now() + (weather.clockOffset.get(name) ?? 0),
    monotonic,
    after: (ms, run) => clock.after(ms / rate(), run),
  }
}

/** Lists out of a cache, and watches that feed it. */
const cached = (home: Home, weather: Weather, isAlive: () => boolean): Home => {
  const remembered = new Map<string, unknown>()
  const list = async <T>(key: string, ask: () => Promise<Result<T>>): Promise<Result<T>> => {
    const known = remembered.get(key)
    if (weather.areListsStale && known !== undefined) return ok(known as T)
    const found = await ask()
    if (found.ok) remembered.set(key, found.value)
    return found
  }
  return {
    ...home,
    operations: namespace => list(`operations ${namespace}`, () => home.operations(namespace)),
    clusters: namespace => list(`clusters ${namespace}`, () => home.clusters(namespace)),
    machines: cluster => list(`machines ${cluster.namespace}/${cluster.name}`, () => home.machines(cluster)),
    watch: (what, changed) => {
      const late: Parameters<typeof changed>[] = []
      let stop = home.watch(what, (...change) => {
        if (weather.watches === 'fine') changed(...change)
        if (weather.watches === 'stalled') late.push(change)
      })
      let was = weather.watches
      const look = (): void => {
        if (!isAlive()) return void weather.changed.delete(look)
        if (was === 'cut' && weather.watches !== 'cut') {
          stop()
          stop = home.watch(what, (...change) => {
            if (weather.watches === 'fine') changed(...change)
            if (weather.watches === 'stalled') late.push(change)
          })
        }
        was = weather.watches
        if (was === 'fine') for (const change of late.splice(0)) changed(...change)
      }
      weather.changed.add(look)
      return () => {
        weather.changed.delete(look)
        stop()
      }
    },
  }
}

/** A machine whose installer goes silent: the stream stays open until its caller ends it. One that says of itself, of its etcd or of others what is not so. */
const odd = (connections: Connections, weather: Weather): Connections => {
  const wrapped = new WeakMap<Talos, Talos>()
  const wrap = (talos: Talos): Talos => {
    const known = wrapped.get(talos)
    if (known) return known
    const own: Talos = {
      ...talos,
      machine: async address => {
        const facts = await talos.machine(address)
        const said = weather.machineSays.get(address)
        return facts.ok && said ? ok(said(facts.value)) : facts
      },
      members: async address => {
        const members = await talos.members(address)
        return members.ok && weather.membersSay ? ok(weather.membersSay(members.value)) : members
      },
      etcd: async address => {
        const view = await talos.etcd(address)
        const said = weather.etcdSays.get(address)
        return view.ok && said ? ok(said.edit(view.value)) : view
      },
      watch: (address, told) => {
        const stop = talos.watch(address, told)
        const end = (): void => {
          weather.machineWatches.delete(end)
          stop()
          told('ended')
        }
        weather.machineWatches.add(end)
        return () => {
          weather.machineWatches.delete(end)
          stop()
        }
      },
      install: async (address, image, call) => {
        const result = await talos.install(address, image, call)
        if (!weather.mute.has(address) || call.cancellation.cancelled) return result
        return new Promise(resolve => {
          const end = (): void => resolve(failed('cancelled', `${address}: install: cancelled`))
          call.cancellation.onCancel(end)
        })
      },
    }
    wrapped.set(talos, own)
    return own
  }
  return {
    ...connections,
    talos: async cluster => {
      const talos = await connections.talos(cluster)
      return talos.ok ? ok(wrap(talos.value)) : talos
    },
  }
}
