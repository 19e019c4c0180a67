// A controller as a process of its own beside a thousand operations that are stored, and as many more that come and go one after the other. They find nothing to do, so that what is
// measured is the controller and not the machines.
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { RESOURCE } from '../src/adapters/kube/resource.ts'
import { API_VERSION, LABEL } from '../src/api/names.ts'
import type { OperationStatus } from '../src/api/talos-operation.ts'
import { ICHOR } from '../src/world/ports/home.ts'
import { CLUSTER, NAMESPACE, startCluster, type ClusterOnTheWire, type Process } from '../test/cluster-on-the-wire.ts'
import { retainedKbOf } from './counted-process.ts'
import { memoryOf } from './process-facts.ts'
import type { Shipped } from './shipped.ts'

export type ThousandOperations = {
  readonly stored: number
  readonly run: number
  /** From the creation of an operation until its first status is written, 99th percentile and median. */
  readonly reactionMs: { readonly p99: number; readonly p50: number }
  /** Without watches and the heartbeat of the election. */
  readonly requestsPerPass: number
  readonly passesPerOperation: number
  /** What the controller holds after a collection, when a tenth of them and when all have come and gone. */
  readonly retainedKb: { readonly early: number; readonly late: number }
  /** Of those, how many lie between the two. */
  readonly between: number
  /** What it occupied in the end, before that collection. */
  readonly rssKb: number
}

const VERSION = 'v1.13.9'
const SPEED = 100
const WITHIN_MS = 60_000

export const thousandOperations = async ({ controller: module }: Shipped, stored: number, run: number): Promise<ThousandOperations> => {
  const cluster = await startCluster({ controlPlanes: 1, workers: 1, from: VERSION, speed: SPEED })
  const countsPath = join(cluster.folder, 'counts.json')
  Object.assign(process.env, { BENCH_COUNTS: countsPath, BENCH_CONTROLLER: module })
  try {
    await cluster.register()
    for (let i = 0; i < stored; i++) store(cluster, `stored-${i}`)
    const controller = await cluster.startController({
      identity: 'bench',
      program: join(import.meta.dirname, 'counted-controller.mjs'),
      options: ['--listen', '127.0.0.1:0'],
    })
    await until('the cluster is healthy', () => isReady(cluster))
    await until('the queue is empty', async () => (await metrics(controller)).sum('ichor_queue_depth') === 0)

    const before = await metrics(controller)
    const reactions: number[] = []
    const warmUp = Math.ceil(run / 10)
    let early = 0
    for (let i = 0; i < run; i++) {
      reactions.push(await runOne(cluster, `run-${i}`))
      if (i === warmUp - 1) early = await retainedKbOf(controller, countsPath)
    }
    const rssKb = memoryOf(controller.pid, 'VmRSS')
    const late = await retainedKbOf(controller, countsPath)
    const after = await metrics(controller)
    const passes = difference(before, after, 'ichor_pass_duration_seconds_count', label => label.includes('of="operation"'))
    const requests = difference(
      before,
      after,
      'ichor_kubernetes_requests_total',
      label => !label.includes('verb="watch"') && !label.includes('resource="leases"'),
    )
    const sorted = reactions.toSorted((a, b) => a - b)
    return {
      stored,
      run,
      reactionMs: { p99: sorted[Math.ceil(run * 0.99) - 1]!, p50: sorted[Math.floor(run / 2)]! },
      requestsPerPass: requests / passes,
      passesPerOperation: passes / run,
      retainedKb: { early, late },
      between: run - warmUp,
      rssKb,
    }
  } finally {
    await cluster.close()
  }
}

const spec = { clusterRef: { name: CLUSTER }, kind: 'talos', talos: { version: VERSION }, acknowledge: ['api-outage'], again: true }
const labels = { [LABEL.cluster]: CLUSTER }

/** One that was completed long ago. */
const store = ({ world }: ClusterOnTheWire, name: string): void => {
  const status: OperationStatus = { phase: 'Completed', observedGeneration: 1, completedAt: new Date(world.schedule.now()).toISOString() }
  const metadata = { name, namespace: NAMESPACE, labels }
  const created = world.store.create(ICHOR.operations, { apiVersion: API_VERSION, kind: 'TalosOperation', metadata, spec, status })
  if (!created.ok) throw new Error(created.fault.message)
}

/** From its creation to its end, and away with it. Answers after how long somebody had looked at it, in milliseconds. */
const runOne = async (cluster: ClusterOnTheWire, name: string): Promise<number> => {
  const statusOf = (): OperationStatus | undefined =>
    cluster.world.store.get(ICHOR.operations, NAMESPACE, name)?.['status'] as OperationStatus | undefined
  let lookedAt: number | undefined
  const watch = cluster.world.store.watch(ICHOR.operations, NAMESPACE, ({ object, type }) => {
    if (type === 'ADDED' && object.metadata.name === name) lookedAt = -performance.now()
    if (type === 'MODIFIED' && object.metadata.name === name && lookedAt !== undefined && lookedAt < 0) lookedAt += performance.now()
  })
  await cluster.upgrade(name, VERSION, { acknowledge: spec.acknowledge, again: true })
  await until(`${name} is completed`, () => {
    const { phase, failureReason, message } = statusOf() ?? {}
    if (failureReason !== undefined && failureReason !== 'ClusterLockHeld') throw new Error(`${name} stopped: ${failureReason}: ${message}`)
    return phase === 'Completed'
  })
  if (watch.ok) watch.stop()
  await cluster.client.delete(RESOURCE.talosOperation, { namespace: NAMESPACE, name })
  await until(`${name} is gone`, () => cluster.world.store.get(ICHOR.operations, NAMESPACE, name) === undefined)
  if (lookedAt === undefined) throw new Error(`nobody looked at ${name}`)
  return lookedAt
}

const isReady = ({ world }: ClusterOnTheWire): boolean => {
  const status = world.store.get(ICHOR.clusters, NAMESPACE, CLUSTER)?.['status'] as
    | { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
    | undefined
  return status?.conditions?.some(({ type, status: holds }) => type === 'Ready' && holds === 'True') ?? false
}

type Sample = { readonly name: string; readonly labels: string; readonly value: number }
type Scrape = { readonly samples: readonly Sample[]; readonly sum: (name: string, where?: (labels: string) => boolean) => number }

const metrics = async (controller: Process): Promise<Scrape> => {
  const address = controller.log().find(({ msg }) => msg === 'listening')?.['address']
  if (typeof address !== 'string') throw new Error('the controller does not listen')
  const text = await (await fetch(`${address}/metrics`)).text()
  const samples = [...text.matchAll(/^(\w+)(\{.*\})? (\S+)$/gm)].map(([, name = '', of = '', value]) => ({
    ...{ name, labels: of, value: Number(value) },
  }))
  return {
    samples,
    sum: (name, where = () => true) =>
      samples.filter(sample => sample.name === name && where(sample.labels)).reduce((all, { value }) => all + value, 0),
  }
}

const difference = (before: Scrape, after: Scrape, name: string, where: (labels: string) => boolean): number =>
  after.sum(name, where) - before.sum(name, where)

const until = async (what: string, holds: () => boolean | Promise<boolean>): Promise<void> => {
  const end = performance.now() + WITHIN_MS
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`it did not come to this: ${what}`)
    await pause(2)
  }
}
