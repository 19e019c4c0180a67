// A whole rollout with the controller as a process of its own and simulated machines on loopback addresses: time passes as on the wall, divided by `speed`.
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { OperationStatus } from '../src/api/talos-operation.ts'
import { ICHOR } from '../src/world/ports/home.ts'
import { CLUSTER, NAMESPACE, startCluster, type ClusterOnTheWire } from '../test/cluster-on-the-wire.ts'
import { countsOf, type Counts } from './counted-process.ts'
import { memoryOf } from './process-facts.ts'
import type { Shipped } from './shipped.ts'
import { openAccount, type Account } from './time-account.ts'

export type WireRollout = {
  readonly controlPlanes: number
  readonly workers: number
  readonly speed: number
  /** On the wall. */
  readonly wallMs: number
  readonly account: Account
  readonly counts: Counts
  /** Kilobytes, before the operation and at the most during it. */
  readonly idleRssKb: number
  readonly peakRssKb: number
}

const NAME = 'up'
const LOOK_MS = 4
/** So that what a start leaves behind is gone before the memory is read. */
const IDLE_MS = 10_000

export const rolloutOnTheWire = async (
  { controller: module }: Shipped,
  controlPlanes: number,
  workers: number,
  speed: number,
): Promise<WireRollout> => {
  const cluster = await startCluster({ controlPlanes, workers, from: 'v1.13.5', speed })
  const countsPath = join(cluster.folder, 'counts.json')
  Object.assign(process.env, { BENCH_COUNTS: countsPath, BENCH_CONTROLLER: module })
  try {
    await cluster.register()
    const controller = await cluster.startController({ identity: 'bench', program: join(import.meta.dirname, 'counted-controller.mjs') })
    await until('all machines found', () => ready(cluster))
    await pause(IDLE_MS)
    const idleRssKb = memoryOf(controller.pid, 'VmRSS')
    const before = await countsOf(controller, countsPath)

    const operation = (): OperationStatus | undefined =>
      cluster.world.store.get(ICHOR.operations, NAMESPACE, NAME)?.['status'] as OperationStatus | undefined
    const account = openAccount({ world: cluster.world, status: operation, scale: speed })
    const began = Date.now()
    let peakRssKb = idleRssKb
    await cluster.upgrade(NAME, 'v1.13.9')
    const sampler = setInterval(() => {
      peakRssKb = Math.max(peakRssKb, memoryOf(controller.pid, 'VmRSS'))
    }, 250)
    try {
      for (;;) {
        account.look()
        const { phase, failureReason, message } = operation() ?? {}
        if (phase === 'Completed') break
        if (failureReason) throw new Error(`the rollout stopped: ${failureReason}: ${message}`)
        if (cluster.faults.length > 0) throw cluster.faults[0]
        await pause(LOOK_MS)
      }
    } finally {
      clearInterval(sampler)
    }
    const wallMs = Date.now() - began
    const counts = minus(await countsOf(controller, countsPath), before)
    return { controlPlanes, workers, speed, wallMs, account, counts, idleRssKb, peakRssKb }
  } finally {
    await cluster.close()
  }
}

const ready = ({ world }: ClusterOnTheWire): boolean => {
  const status = world.store.get(ICHOR.clusters, NAMESPACE, CLUSTER)?.['status'] as { machines?: { ready?: number } } | undefined
  return status?.machines?.ready === world.machines.length
}

const until = async (what: string, holds: () => boolean): Promise<void> => {
  const end = Date.now() + 120_000
  while (!holds()) {
    if (Date.now() > end) throw new Error(`it did not come to: ${what}`)
    await pause(20)
  }
}

const minus = (after: Counts, before: Counts): Counts => {
  const each = (all: Readonly<Record<string, number>>, less: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(all).map(([what, count]) => [what, count - (less[what] ?? 0)]))
  return { kubernetes: each(after.kubernetes, before.kubernetes), talos: each(after.talos, before.talos) }
}
