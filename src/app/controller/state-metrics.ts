import { Gauge, type Registry } from 'prom-client'
import { isFinished } from '../../api/phases.ts'
import type { TalosCluster } from '../../api/talos-cluster.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import type { Controller } from '../../engine/controller.ts'
import { CREDENTIAL_EXPIRING } from '../../engine/credential-warning.ts'
import type { Home } from '../../ports/home.ts'

/** Where the present is read: the caches of the leader. */
export type StateSource = {
  readonly controller: Pick<Controller, 'isLeading' | 'queue'>
  readonly home: Pick<Home, 'operations' | 'clusters' | 'machines'> & { readonly stalenessMs: () => number }
  /** Only this namespace; all where undefined. */
  readonly namespace: string | undefined
}

type Labels = Readonly<Record<string, string>>
type Sample = { readonly labels: Labels; readonly value: number }

/**
 * Gauges of what is there now, read when somebody asks. Only the leader tells of operations and clusters: what two replicas told would be counted twice. Their series go
 * with what they are of.
 */
export const stateMetrics = (registry: Registry, { controller, home, namespace }: StateSource): void => {
  const gauge = (name: string, help: string, labelNames: readonly string[], read: () => Promise<readonly Sample[]>): void => {
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      async collect() {
        const samples = await read()
        // Nothing waits from here on, so that two who ask at once do not mix.
        this.reset()
        for (const { labels, value } of samples) this.inc(labels, value)
      },
    })
  }
  const plain = (name: string, help: string, read: () => number): void => gauge(name, help, [], async () => [{ labels: {}, value: read() }])
  // A standby has no caches, and asking would fill them.
  const operations = async (): Promise<readonly TalosOperation[]> => {
    const listed = controller.isLeading() ? await home.operations(namespace) : undefined
    return listed?.ok ? listed.value : []
  }
  const clusters = async (): Promise<readonly TalosCluster[]> => {
    const listed = controller.isLeading() ? await home.clusters(namespace) : undefined
    return listed?.ok ? listed.value : []
  }

  plain('ichor_leader', 'Whether this replica leads.', () => (controller.isLeading() ? 1 : 0))
  plain('ichor_queue_depth', 'What is due or being looked at.', () => controller.queue().depth)
  plain(
    'ichor_queue_oldest_seconds',
    'How long the oldest of it has been so. In a queue that is stuck it only grows.',
    () => controller.queue().oldestMs / 1000,
  )
  plain(
    'ichor_watch_staleness_seconds',
    'For how long the oldest watch has not been known to be current; about a minute is usual, +Inf before the first lists.',
    () => home.stalenessMs() / 1000,
  )
  gauge('ichor_operations', 'Operations that exist, by where they stand.', ['kind', 'phase', 'reason'], async () =>
    (await operations()).map(({ spec, status }) => ({
      labels: { kind: spec.kind, phase: status.phase ?? 'Pending', reason: status.failureReason ?? '' },
      value: 1,
    })),
  )
  gauge(
    'ichor_operation_stopped_timestamp_seconds',
    'Since when an operation stands still: failed, refused, or paused by its operator (PausedByOperator).',
    ['namespace', 'operation', 'cluster', 'kind', 'reason'],
    async () => (await operations()).flatMap(stopped),
  )
  gauge(
    'ichor_cluster_lock_acquired_timestamp_seconds',
    'Since when the cluster lock is held, and by whom.',
    ['namespace', 'cluster', 'holder'],
    async () =>
      (await clusters()).flatMap(({ metadata, status }) =>
        status.lock?.since
          ? {
              labels: { namespace: metadata.namespace, cluster: metadata.name, holder: status.lock.holder },
              value: seconds(status.lock.since),
            }
          : [],
      ),
  )
  gauge(
    'ichor_cluster_credential_expiring_timestamp_seconds',
    'When the client certificate of the talosconfig expires; told only while that is near, by what it lives.',
    ['namespace', 'cluster'],
    async () =>
      (await clusters()).flatMap(({ metadata, status }) =>
        status.credentialExpires && status.conditions?.some(({ type }) => type === CREDENTIAL_EXPIRING)
          ? { labels: { namespace: metadata.namespace, cluster: metadata.name }, value: seconds(status.credentialExpires) }
          : [],
      ),
  )
  gauge(
    'ichor_cluster_last_seen_timestamp_seconds',
    'When a machine of the cluster was observed with success last.',
    ['namespace', 'cluster'],
    async () => {
      const samples = await Promise.all(
        (await clusters()).map(async ({ metadata }): Promise<readonly Sample[]> => {
          const machines = await home.machines(metadata)
          const seen = (machines.ok ? machines.value : []).flatMap(({ status }) => (status.lastSeen ? seconds(status.lastSeen) : []))
          return seen.length === 0 ? [] : [{ labels: { namespace: metadata.namespace, cluster: metadata.name }, value: Math.max(...seen) }]
        }),
      )
      return samples.flat()
    },
  )
}

const stopped = ({ metadata, spec, status }: TalosOperation): readonly Sample[] => {
  const going = status.conditions?.find(({ type }) => type === 'Reconciling')
  if (isFinished(status.phase) || going?.status !== 'False') return []
  const { namespace, name: operation } = metadata
  return [
    {
      labels: { namespace, operation, cluster: spec.clusterRef.name, kind: spec.kind, reason: going.reason },
      value: seconds(going.lastTransitionTime),
    },
  ]
}

const seconds = (time: string): number => Date.parse(time) / 1000
