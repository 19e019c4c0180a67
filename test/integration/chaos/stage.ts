// One cluster of three control planes and three workers, simulated on the wire, with a real API server and a real etcd: what the tests in this folder have in common.
// `ICHOR_LONG=1` makes each of them longer and harder, `ICHOR_SEED=n` draws the same moments again.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, vi } from 'vitest'
import { at, text } from '../../../src/adapters/kube/json.ts'
import { startReflector } from '../../../src/adapters/kube/reflector.ts'
import { RESOURCE } from '../../../src/adapters/kube/resource.ts'
import { systemClock } from '../../../src/app/system-clock.ts'
import { createRandom, type Random } from '../../../src/world/random.ts'
import { CLUSTER, NAMESPACE, startCluster, type ClusterOnTheWire, type Process } from '../../cluster-on-the-wire.ts'

export const isLong = process.env['ICHOR_LONG'] === '1'
/** `short` in `npm test`, `long` where somebody asks for it. */
export const either = <T>(short: T, long: T): T => (isLong ? long : short)

export const seed = Number(process.env['ICHOR_SEED'] ?? Date.now() % 1_000_000)
/** Each test draws from a generator of its own, so that one of them alone draws the same. */
export const randomOf = (test: number): Random => createRandom(seed * 16 + test)
export const again = `the same moments again: ICHOR_SEED=${seed}`

/** Bounds what hangs, not what is slow. */
export const LIMIT_MS = either(480_000, 1_800_000)

/** Fewer words than a machine has to say of an upgrade that nobody disturbs, so that moments drawn by them all come before its end. */
export const SEEN_PER_MACHINE = 17
/** Added to a moment at which a machine saw something, so that those at which no machine sees anything have their turn, too. */
export const LATER_MS = 400

export const eventually = <T>(check: () => T | Promise<T>, timeout = LIMIT_MS - 10_000) => vi.waitFor(check, { timeout, interval: 20 })

const ichor = join(import.meta.dirname, '..', '..', '..', 'bin', 'ichor')

/** With everything that an upgrade needs. `speed`: so many times as fast as real machines. */
export const startStage = async (options: { readonly from: string; readonly speed: number }): Promise<ClusterOnTheWire> => {
  const cluster = await startCluster({ controlPlanes: 3, workers: 3, realApiServer: true, ...options })
  try {
    await promisify(execFile)(ichor, ['install', '--crds-only', '--kubeconfig', cluster.kubernetes.kubeconfigPath], {
      env: { ...process.env, ICHOR_SOURCE: '1' },
    })
    await cluster.register()
    return cluster
  } catch (error) {
    await cluster.close()
    throw error
  }
}

/** Before that there is nothing known to upgrade. */
export const untilDiscovered = ({ client, world }: ClusterOnTheWire) =>
  eventually(async () => {
    const found = await client.get(RESOURCE.talosCluster, { namespace: NAMESPACE, name: CLUSTER })
    const all = world.machines.length
    expect(found.ok && at(found.value, 'status', 'machines', 'summary')).toBe(`${all}/${all}`)
  })

/** Waits until `check` throws no more. One whose operation has stopped waits in vain: that is told at once. */
export const duringOperation = async (cluster: ClusterOnTheWire, name: string, check: () => unknown): Promise<void> => {
  let stopped: string | undefined
  await eventually(async () => {
    const status = await cluster.status(name)
    stopped = status?.phase === 'Paused' ? `${status.failureReason}: ${status.message}` : undefined
    if (stopped === undefined) await check()
  })
  if (stopped !== undefined) throw new Error(`${name} has stopped, ${stopped} (${again})`)
}

export const expectCompleted = (cluster: ClusterOnTheWire, name: string): Promise<void> =>
  duringOperation(cluster, name, async () => expect((await cluster.status(name))?.phase, again).toBe('Completed'))

/** When this process began to lead, milliseconds since 1970; all its lives. */
export const termsOf = ({ log }: Process): readonly number[] =>
  log()
    .filter(({ msg }) => msg === 'leading')
    .map(({ time }) => time)

export type Reign = {
  readonly holder: string
  /** Of the Lease, milliseconds since 1970. */
  readonly acquiredAt: number
  /** When the Lease was seen to have changed hands. */
  readonly seenAt: number
}

/** Who led, one after the other, as the Lease had it; a holder of nothing is the empty string. */
export const watchLeaders = (cluster: ClusterOnTheWire) => {
  const reigns: Reign[] = []
  const place = { namespace: NAMESPACE, fieldSelector: 'metadata.name=ichor-controller' }
  const reflector = startReflector({
    source: {
      list: signal => cluster.client.list(RESOURCE.lease, { ...place, signal }),
      watch: (options, on) => cluster.client.watch(RESOURCE.lease, { ...place, ...options }, on),
    },
    parse: object => object,
    clock: systemClock,
    random: Math.random,
    changed: ({ object }) => {
      const holder = text(at(object, 'spec', 'holderIdentity'))
      if (holder !== reigns.at(-1)?.holder)
        reigns.push({ holder, acquiredAt: Date.parse(text(at(object, 'spec', 'acquireTime'))), seenAt: Date.now() })
    },
  })
  return { reigns: (): readonly Reign[] => reigns, leader: () => reigns.at(-1)?.holder ?? '', stop: reflector.stop }
}

/** Settles as soon as the server has one more intention of an operation than now: its act is then about to be given. */
export const nextIntention = async (cluster: ClusterOnTheWire, name: string): Promise<void> => {
  const place = { namespace: NAMESPACE, fieldSelector: `metadata.name=${name}` }
  const { promise, resolve } = Promise.withResolvers<void>()
  let known: string | undefined
  const reflector = startReflector({
    source: {
      list: signal => cluster.client.list(RESOURCE.talosOperation, { ...place, signal }),
      watch: (options, on) => cluster.client.watch(RESOURCE.talosOperation, { ...place, ...options }, on),
    },
    parse: object => (at(object, 'status', 'machines') ?? []) as readonly { actedAt?: string; attempts?: number }[],
    clock: systemClock,
    random: Math.random,
    changed: ({ object }) => {
      const intentions = object.map(({ actedAt, attempts }) => `${actedAt} ${attempts}`).join()
      const isNew = known !== undefined && known !== intentions && object.some(({ actedAt }) => actedAt && !known?.includes(actedAt))
      known = intentions
      if (isNew) resolve()
    },
  })
  await promise
  reflector.stop()
}
