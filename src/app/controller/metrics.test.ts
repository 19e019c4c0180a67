import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CLUSTER, createStory, NAMESPACE, type Process } from '../../storm/story.ts'
import { writeTalosconfig } from '../../world/ports/connections.ts'
import { createMetrics, type Metrics } from './metrics.ts'

const page = readFileSync(join(import.meta.dirname, '..', '..', '..', 'docs', 'observability.md'), 'utf8')

/** A controller in the invented cluster whose metrics are read. */
const measured = (options: Parameters<typeof createStory>[0] = {}) => {
  let metrics: Metrics | undefined
  let process: Process | undefined
  const story = createStory({
    controlPlanes: 1,
    workers: 2,
    talos: 'v1.13.5',
    ...options,
    wrap: ports => {
      metrics ??= createMetrics(ports.clock, 'v1')
      return { ...ports, home: metrics.counted(ports.home) }
    },
  })
  const upgrade = (name: string, spec: object = {}) =>
    story.create({ name, spec: { kind: 'talos', talos: { version: 'v1.13.9' }, acknowledge: ['api-outage'], ...spec } })
  const start = async (): Promise<Metrics> => {
    process = story.start()
    const { controller, ports } = process
    metrics!.show({ controller, home: { ...ports.home, stalenessMs: () => 1_000 }, namespace: undefined })
    // The controller knows the machines before anybody upgrades them.
    await story.pass(60_000)
    return metrics!
  }
  return { story, upgrade, start }
}

const samples = async ({ registry }: Metrics, name: string): Promise<Readonly<Record<string, number>>> => {
  const found = await registry.getSingleMetric(name)?.get()
  return Object.fromEntries((found?.values ?? []).map(({ labels, value }) => [JSON.stringify(labels), value]))
}

describe('the metrics', () => {
  it('are those that the page lists, with its types and labels', async () => {
    const { start } = measured()
    const listed = [...page.matchAll(/^\| `(ichor_\w+)` \| (\w+) \| (.*?) \|/gm)].map(([, name, type, labels = '']) => ({
      name,
      type,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    }))
    const { registry } = await start()
    const there = registry
      .getMetricsAsArray()
      .filter(({ name }) => name.startsWith('ichor_'))
      .map(metric => metric as unknown as { readonly name: string; readonly type: string; readonly labelNames: readonly string[] })
      .map(({ name, type, labelNames }) => ({ name, type, labels: [...labelNames] }))
    const byName = (a: { readonly name?: string | undefined }, b: { readonly name?: string | undefined }) => (a.name! < b.name! ? -1 : 1)
    expect(listed.toSorted(byName)).toEqual(there.toSorted(byName))
  })

  it('follow Prometheus: a unit in the name, and the counters end in total', () => {
    const { registry } = createMetrics({ now: () => 0, monotonic: () => 0, after: () => () => {} }, 'v1')
    for (const metric of registry.getMetricsAsArray().filter(({ name }) => name.startsWith('ichor_'))) {
      const { name, type } = metric as unknown as { readonly name: string; readonly type: string }
      expect(name.endsWith('_total'), name).toBe(type === 'counter')
      if (type === 'histogram') expect(name).toMatch(/_seconds$/)
    }
  })

  it('tell of an upgrade: steps and how long they took, the lock, the end; nothing that grows with machines or operations', async () => {
    const { story, upgrade, start } = measured()
    const metrics = await start()
    upgrade('up')
    await story.until('it runs', () => story.operation('up')?.status.phase === 'Running')
    expect(await samples(metrics, 'ichor_operations')).toEqual({
      [JSON.stringify({ kind: 'talos', phase: 'Running', reason: '' })]: 1,
    })
    expect(await samples(metrics, 'ichor_leader')).toEqual({ '{}': 1 })
    await story.until('the cluster shows the lock', () => story.operation('up')?.status.progress?.done === 1)
    const lock = await samples(metrics, 'ichor_cluster_lock_acquired_timestamp_seconds')
    const holder = `ichor-controller/op/${NAMESPACE}/up`
    const since = Date.parse(story.operation('up')!.status.lock!.since!) / 1000
    expect(lock).toEqual({ [JSON.stringify({ namespace: NAMESPACE, cluster: CLUSTER, holder })]: since })
    await story.until('it is done', () => story.operation('up')?.status.phase === 'Completed')
    expect(await samples(metrics, 'ichor_operations_finished_total')).toEqual({
      [JSON.stringify({ kind: 'talos', phase: 'Completed' })]: 1,
    })
    expect(await samples(metrics, 'ichor_operation_failures_total')).toEqual({})
    const found = await metrics.registry.getSingleMetric('ichor_step_duration_seconds')!.get()
    const counts = found.values
      .map(one => one as typeof one & { metricName?: string })
      .filter(({ metricName }) => metricName === 'ichor_step_duration_seconds_count')
    const reboots = counts.filter(({ labels }) => (labels as { step?: string }).step === 'reboot')
    expect(reboots.map(({ labels, value }) => ({ labels, value }))).toEqual([
      { labels: { kind: 'talos', step: 'reboot', result: 'done' }, value: 3 },
    ])
    for (const { labels } of counts) expect(Object.keys(labels).toSorted()).toEqual(['kind', 'result', 'step'])
    const seen = await samples(metrics, 'ichor_cluster_last_seen_timestamp_seconds')
    expect(Object.keys(seen)).toEqual([JSON.stringify({ namespace: NAMESPACE, cluster: CLUSTER })])
    expect(Object.values(seen)[0]).toBeGreaterThan(since)
  })

  it('tell when a certificate expires, once that is near', async () => {
    const { story, start } = measured()
    const expires = story.world.schedule.now() + 300 * 86_400_000
    writeTalosconfig(story.world, { namespace: NAMESPACE }, { expires })
    const metrics = await start()
    expect(await samples(metrics, 'ichor_cluster_credential_expiring_timestamp_seconds')).toEqual({})
    const soon = expires - 290 * 86_400_000
    writeTalosconfig(story.world, { namespace: NAMESPACE }, { expires: soon })
    const told = async () => samples(metrics, 'ichor_cluster_credential_expiring_timestamp_seconds')
    await story.pass(10 * 60_000)
    expect(await told()).toEqual({ [JSON.stringify({ namespace: NAMESPACE, cluster: CLUSTER })]: Math.floor(soon / 1000) })
  })

  it('tell how long one waited for another, and since when one stands still', async () => {
    const { story, upgrade, start } = measured()
    story.world.registry.remove(':v1.13.9')
    const metrics = await start()
    upgrade('first')
    await story.until('it fails', () => story.operation('first')?.status.failureReason === 'ImageNotFound')
    expect(await samples(metrics, 'ichor_operation_failures_total')).toEqual({
      [JSON.stringify({ kind: 'talos', reason: 'ImageNotFound' })]: 1,
    })
    const labels = { namespace: NAMESPACE, operation: 'first', cluster: CLUSTER, kind: 'talos', reason: 'ImageNotFound' }
    expect(await samples(metrics, 'ichor_operation_stopped_timestamp_seconds')).toEqual({
      [JSON.stringify(labels)]: Date.parse(story.operation('first')!.status.lastFailure!.at) / 1000,
    })
    story.remove('first')
    await story.until('it is gone', () => story.operation('first') === undefined)
    expect(await samples(metrics, 'ichor_operation_stopped_timestamp_seconds')).toEqual({})

    story.world.registry.restore(':v1.13.9')
    upgrade('second')
    await story.until('it has the lock', () => story.operation('second')?.status.progress !== undefined)
    const queuedAt = story.world.schedule.now()
    upgrade('third')
    await story.until('it is over', () => story.operation('second')?.status.phase === 'Completed')
    await story.until('the third has had its turn', () => story.operation('third')?.status.phase === 'Completed')
    const waits = await metrics.registry.getSingleMetric('ichor_cluster_lock_wait_seconds')!.get()
    const valueOf = (name: string) =>
      waits.values.find(one => (one as { metricName?: string }).metricName === `ichor_cluster_lock_wait_seconds_${name}`)?.value
    // The first and the second had it at once.
    expect(valueOf('count')).toBe(3)
    const waitedMs = Date.parse(story.operation('second')!.status.completedAt!) - queuedAt
    expect(Math.abs(valueOf('sum')! * 1000 - waitedMs)).toBeLessThan(30_000)
    expect(waitedMs).toBeGreaterThan(60_000)
  })

  it('of two scrapes at once are the same', async () => {
    const { story, upgrade, start } = measured()
    const metrics = await start()
    upgrade('up')
    await story.until('it runs', () => story.operation('up')?.status.phase === 'Running')
    const [one, two] = await Promise.all([samples(metrics, 'ichor_operations'), samples(metrics, 'ichor_operations')])
    expect(one).toEqual(two)
    expect(Object.values(one)).toEqual([1])
  })
})
