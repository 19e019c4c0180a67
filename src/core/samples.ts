import type { Metadata } from '../api/schema.ts'
import type { TalosCluster } from '../api/talos-cluster.ts'
import type { OperationSpec, OperationStatus, TalosOperation } from '../api/talos-operation.ts'
import { timing } from './timing.ts'
import type { World } from './world.ts'
import { NO_FACTS } from './world.ts'

/** Plain values for tests of pure functions: each names only what it is about. */

export const metadata = (change: Partial<Metadata> = {}): Metadata => ({
  name: 'up',
  namespace: 'ichor-system',
  uid: `uid-${change.name ?? 'up'}`,
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: '2026-09-01T07:00:00Z',
  labels: {},
  annotations: {},
  finalizers: [],
  ...change,
})

export const spec = (change: Partial<OperationSpec> = {}): OperationSpec => ({
  clusterRef: { name: 'home' },
  kind: 'sample',
  paused: false,
  override: false,
  cancelled: false,
  maxUnavailable: 1,
  drain: { policy: 'wait', timeout: '10m' },
  timeouts: { reboot: '30m' },
  acknowledge: [],
  minReadySeconds: 0,
  again: false,
  ignoreWindows: false,
  sample: {},
  ...change,
})

export const operation = (
  status: OperationStatus = {},
  change: { readonly metadata?: Partial<Metadata>; readonly spec?: Partial<OperationSpec> } = {},
): TalosOperation => ({
  metadata: metadata(change.metadata),
  spec: spec(change.spec),
  status,
})

const cluster: TalosCluster = {
  metadata: metadata({ name: 'home' }),
  spec: { talosconfigSecretRef: { name: 'talosconfig', key: 'talosconfig' } },
  status: { conditions: [] },
}

export const world = (change: Partial<World> = {}): World => ({
  now: Date.UTC(2026, 8, 1, 8),
  watchedMs: Infinity,
  timing: timing(),
  cluster,
  machines: [],
  lock: undefined,
  others: [],
  self: undefined,
  running: [],
  facts: NO_FACTS,
  ...change,
})
