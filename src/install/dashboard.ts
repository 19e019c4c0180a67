/** A dashboard of Grafana: what is at work, what waits for a person, and whether Ichor itself is well. One row of the grid is 24 wide. */

type Panel = {
  readonly title: string
  readonly type: 'timeseries' | 'stat' | 'table'
  readonly at: readonly [x: number, y: number, width: number, height: number]
  readonly unit?: string
  readonly queries: readonly { readonly expr: string; readonly legend?: string }[]
}

const PANELS: readonly Panel[] = [
  { title: 'Leaders (should be 1)', type: 'stat', at: [0, 0, 4, 4], queries: [{ expr: 'sum(ichor_leader)' }] },
  {
    title: 'Waiting for a person',
    type: 'stat',
    at: [4, 0, 4, 4],
    queries: [{ expr: 'count(ichor_operation_stopped_timestamp_seconds) or vector(0)' }],
  },
  {
    title: 'Cluster locks held',
    type: 'table',
    at: [8, 0, 16, 8],
    unit: 's',
    queries: [{ expr: 'time() - ichor_cluster_lock_acquired_timestamp_seconds' }],
  },
  {
    title: 'Oldest in the queue',
    type: 'stat',
    at: [0, 4, 4, 4],
    unit: 's',
    queries: [{ expr: 'max(ichor_queue_oldest_seconds)' }],
  },
  {
    title: 'Oldest watch',
    type: 'stat',
    at: [4, 4, 4, 4],
    unit: 's',
    queries: [{ expr: 'max(ichor_watch_staleness_seconds and ichor_leader == 1)' }],
  },
  {
    title: 'Operations',
    type: 'timeseries',
    at: [0, 8, 12, 8],
    queries: [{ expr: 'sum by (kind, phase) (ichor_operations)', legend: '{{kind}} {{phase}}' }],
  },
  {
    title: 'Stopped, and for how long',
    type: 'table',
    at: [12, 8, 12, 8],
    unit: 's',
    queries: [{ expr: 'time() - ichor_operation_stopped_timestamp_seconds' }],
  },
  {
    title: 'Clusters: last seen ago',
    type: 'timeseries',
    at: [0, 16, 12, 8],
    unit: 's',
    queries: [{ expr: 'time() - ichor_cluster_last_seen_timestamp_seconds', legend: '{{namespace}}/{{cluster}}' }],
  },
  {
    title: 'Steps: nine of ten machines were done within',
    type: 'timeseries',
    at: [12, 16, 12, 8],
    unit: 's',
    queries: [
      {
        expr: 'histogram_quantile(0.9, sum by (le, kind, step) (rate(ichor_step_duration_seconds_bucket{result="done"}[7d])))',
        legend: '{{kind}} {{step}}',
      },
    ],
  },
  {
    title: 'Calls of the Talos API that failed, a second',
    type: 'timeseries',
    at: [0, 24, 12, 8],
    queries: [{ expr: 'sum by (method, code) (rate(ichor_talos_calls_total{code!="OK"}[5m]))', legend: '{{method}} {{code}}' }],
  },
  {
    title: 'Requests to Kubernetes APIs that failed, a second',
    type: 'timeseries',
    at: [12, 24, 12, 8],
    queries: [
      {
        expr: 'sum by (verb, resource, code) (rate(ichor_kubernetes_requests_total{code!~"2..|404|409"}[5m]))',
        legend: '{{verb}} {{resource}} {{code}}',
      },
    ],
  },
]

const SOURCE = { type: 'prometheus', uid: '${datasource}' }

/** As Grafana takes it (dashboard JSON model). */
export const dashboard = () => ({
  title: 'Ichor',
  uid: 'ichor',
  tags: ['ichor', 'talos'],
  timezone: 'browser',
  schemaVersion: 39,
  refresh: '30s',
  time: { from: 'now-6h', to: 'now' },
  templating: { list: [{ name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' }] },
  panels: PANELS.map(({ title, type, at: [x, y, w, h], unit, queries }, index) => ({
    id: index + 1,
    title,
    type,
    datasource: SOURCE,
    gridPos: { x, y, w, h },
    fieldConfig: { defaults: unit === undefined ? {} : { unit }, overrides: [] },
    targets: queries.map(({ expr, legend }, number) => ({
      refId: String.fromCodePoint(65 + number),
      datasource: SOURCE,
      expr,
      ...(legend === undefined ? {} : { legendFormat: legend }),
      // A table shows what is now.
      ...(type === 'table' ? { instant: true, format: 'table' } : {}),
    })),
  })),
})
