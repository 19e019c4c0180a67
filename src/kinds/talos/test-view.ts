// Worlds for the tables of this kind: three control planes and two workers, all well, and one of them open. A table says what differs.
import type { TalosMachine } from '../../api/talos-machine.ts'
import { talosOperation, type OperationSpec, type TalosOperation, type Target } from '../../api/talos-operation.ts'
import type { TalosCluster } from '../../api/talos-cluster.ts'
import { timing } from '../../core/timing.ts'
import { NO_FACTS, type Facts, type View, type World } from '../../core/world.ts'
import type { Result } from '../../ports/fault.ts'
import type { BudgetFacts, NodeFacts, PodFacts, VolumeFacts } from '../../ports/kube.ts'
import type { EtcdView, MachineFacts } from '../../ports/talos.ts'
import { talos } from './talos.ts'

export const NOW = Date.UTC(2026, 8, 1, 12)
export const at = (agoMs: number): string => new Date(NOW - agoMs).toISOString()
export const UID = 'uid-of-the-operation'

const ok = <T>(value: T): Result<T> => ({ ok: true, value })
export const away = (message = 'connection refused'): Result<never> => ({ ok: false, fault: { kind: 'unreachable', message } })

const NAMES = ['cp-1', 'cp-2', 'cp-3', 'wk-1', 'wk-2'] as const
export type Name = (typeof NAMES)[number]
const addressOf = (name: Name): string => `10.5.0.${NAMES.indexOf(name) + 2}`
const isControlPlane = (name: Name): boolean => name.startsWith('cp')

export const facts = (name: Name, over: Partial<MachineFacts> = {}): MachineFacts => ({
  address: addressOf(name),
  hostname: name,
  nodename: name,
  role: isControlPlane(name) ? 'controlplane' : 'worker',
  uuid: `uuid-${name}`,
  nodeID: `id-${name}`,
  clusterID: 'cluster',
  clusterName: 'home',
  version: 'v1.13.5',
  platform: 'metal',
  arch: 'amd64',
  secureBoot: false,
  bootID: `old-${name}`,
  stage: 'running',
  ready: true,
  unmet: [],
  schematic: '',
  factory: '',
  extensions: [],
  installImage: 'ghcr.io/siderolabs/installer:v1.13.5',
  fallbackArmed: false,
  etcdQuotaBytes: 2 * 1024 ** 3,
  ...over,
})

/** After the reboot, with what was installed. */
export const renewed = (name: Name, over: Partial<MachineFacts> = {}): MachineFacts =>
  facts(name, { version: 'v1.13.9', bootID: `new-${name}`, ...over })

export const node = (name: Name, over: Partial<NodeFacts> = {}): NodeFacts => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  controlPlane: isControlPlane(name),
  ready: true,
  readySince: NOW - 86_400_000,
  unschedulable: false,
  tainted: isControlPlane(name),
  bootID: `old-${name}`,
  systemUUID: `uuid-${name}`,
  kubeletVersion: 'v1.36.2',
  kernelVersion: '6.18.36-talos',
  osImage: 'Talos (v1.13.5)',
  addresses: [addressOf(name)],
  labels: {},
  annotations: {},
  ...over,
})

export const pod = (name: string, over: Partial<PodFacts> = {}): PodFacts => ({
  namespace: 'default',
  name,
  uid: `uid-${name}`,
  node: 'wk-1',
  phase: 'Running',
  labels: { app: name },
  mirror: false,
  ownerKind: 'ReplicaSet',
  terminating: false,
  ready: true,
  ...over,
})

const memberOf = (name: Name) => ({
  id: `0${NAMES.indexOf(name)}`.padStart(16, '0'),
  name,
  peerURLs: [`https://${addressOf(name)}:2380`],
  isLearner: false,
})
export const memberID = (name: Name): string => memberOf(name).id

export const etcd = (name: Name, over: { readonly leader?: Name; readonly healthy?: boolean } = {}): EtcdView => ({
  service: { state: 'Running', healthy: over.healthy ?? true },
  members: NAMES.filter(isControlPlane).map(memberOf),
  status: {
    memberID: memberID(name),
    leader: memberID(over.leader ?? 'cp-3'),
    raftTerm: 3n,
    raftIndex: 1000n,
    raftAppliedIndex: 1000n,
    dbSize: 1000,
    dbSizeInUse: 900,
    errors: [],
    isLearner: false,
    protocolVersion: '3.6.12',
    storageVersion: '3.6.0',
  },
  alarms: [],
})

const machine = (name: Name): TalosMachine => ({
  metadata: {
    name: `${name}-aaaaa`,
    namespace: 'ichor-system',
    uid: `m-${name}`,
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: at(1e6),
    labels: {},
    annotations: {},
    finalizers: [],
  },
  spec: { clusterRef: { name: 'home' }, address: addressOf(name), role: isControlPlane(name) ? 'controlplane' : 'worker' },
  status: {
    hostname: name,
    nodeName: name,
    nodeID: `id-${name}`,
    talosVersion: 'v1.13.5',
    conditions: [{ type: 'Ready', status: 'True', reason: 'Running', message: '', lastTransitionTime: at(1e6) }],
  },
})

export type Given = {
  readonly of?: Name
  readonly spec?: Readonly<Record<string, unknown>>
  readonly status?: Partial<TalosOperation['status']>
  readonly target?: Partial<Target>
  readonly machine?: Result<MachineFacts>
  /** Nodes that differ, by name; undefined: there is none. */
  readonly nodes?: Readonly<Partial<Record<Name, NodeFacts | undefined>>> | 'away'
  readonly pods?: readonly PodFacts[] | 'away'
  readonly volumes?: readonly VolumeFacts[]
  readonly budgets?: readonly BudgetFacts[]
  readonly etcd?: Readonly<Partial<Record<Name, Result<EtcdView>>>>
  readonly leader?: Name
  readonly without?: readonly Name[]
  readonly self?: World['self']
  readonly machines?: (machine: TalosMachine) => TalosMachine
}

const definition = talosOperation([talos])

/** wk-1 is open, and nothing was done to it yet, unless the table says otherwise. */
export const given = (over: Given = {}): View => {
  const name = over.of ?? 'wk-1'
  const present = NAMES.filter(n => !over.without?.includes(n))
  const spec = definition.spec.parse({
    clusterRef: { name: 'home' },
    kind: 'talos',
    talos: { version: 'v1.13.9' },
    ...over.spec,
  }) as OperationSpec
  const target: Target = {
    name: `${name}-aaaaa`,
    hostname: name,
    node: name,
    address: addressOf(name),
    role: isControlPlane(name) ? 'controlplane' : 'worker',
    phase: 'Running',
    startedAt: at(600_000),
    stepStartedAt: at(60_000),
    before: { version: 'v1.13.5', schematic: '', bootID: `old-${name}`, cordoned: false },
    goal: { image: 'ghcr.io/siderolabs/installer:v1.13.9', schematic: '', way: 'lifecycle', drain: 'wait', node: name },
    ...over.target,
  }
  const operation: TalosOperation = {
    metadata: {
      name: 'up',
      namespace: 'ichor-system',
      uid: UID,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: at(700_000),
      labels: {},
      annotations: {},
      finalizers: [],
    },
    spec,
    status: { phase: 'Running', machines: [target], ...over.status },
  }
  const nodes =
    over.nodes === 'away'
      ? undefined
      : NAMES.flatMap(n => {
          const own = over.nodes === undefined || over.nodes === 'away' || !(n in over.nodes) ? node(n) : over.nodes[n]
          return own ? [own] : []
        })
  const known: Facts = {
    ...NO_FACTS,
    machines: { [target.name]: over.machine ?? ok(facts(name)) },
    configurations: { [target.name]: ok({ running: 'version: v1alpha1\n', onDisk: 'version: v1alpha1\n' }) },
    nodes: nodes ? ok(nodes) : away('503'),
    etcd: Object.fromEntries(
      present.filter(isControlPlane).map(n => [`${n}-aaaaa`, over.etcd?.[n] ?? ok(etcd(n, over.leader ? { leader: over.leader } : {}))]),
    ),
    pods: { [name]: over.pods === 'away' ? away('503') : ok(over.pods ?? []) },
    volumes: { [name]: ok(over.volumes ?? []) },
    budgets: ok(over.budgets ?? []),
  }
  const cluster: TalosCluster = {
    metadata: {
      name: 'home',
      namespace: 'ichor-system',
      uid: 'c',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: at(1e6),
      labels: {},
      annotations: {},
      finalizers: [],
    },
    spec: { talosconfigSecretRef: { name: 'talosconfig', key: 'talosconfig' } },
    status: {},
  }
  const world: World = {
    now: NOW,
    watchedMs: Infinity,
    timing: timing(),
    cluster,
    machines: present.map(machine).map(over.machines ?? (m => m)),
    lock: undefined,
    others: [],
    self: over.self,
    running: [],
    facts: known,
  }
  return { operation, target, world }
}

export { ok }
