import type { HealthGate } from '../api/talos-cluster.ts'
import type { World } from '../world/cluster.ts'
import { RESOURCE, conditionOf } from '../world/objects.ts'
import { readObject } from '../world/ports/any-object.ts'
import type { Random } from '../world/random.ts'
import type { KubeObject } from '../world/store.ts'

/** Health gates that people write, and the storage system that most of them are about. */

/** A gate without its name, and what it means, told apart from the language in which it is written. Without a meaning it never holds. */
type Known = Pick<HealthGate, 'expr' | 'objectRef'> & { readonly means?: (object: KubeObject) => boolean }

type Storage = {
  readonly ceph?: { readonly health: string }
  readonly osds?: readonly { readonly up: boolean; readonly weight: number; readonly pools: readonly string[] }[]
  readonly used?: number
  readonly ratio?: number
  /** In words; none where there is nothing to say. */
  readonly story?: string | null
}

const STORAGE = { apiVersion: 'ceph.rook.io/v1', kind: 'CephCluster', namespace: 'rook-ceph', name: 'main' } as const
export const STORAGE_SHELF = 'cephclusters.ceph.rook.io'
/** Talos writes it, and it has no status. */
const INVENTORY = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'talos-bootstrap-manifests-inventory' }
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'cp-1' }
const statusOf = (object: KubeObject): Storage => (object['status'] ?? {}) as Storage

/** They hold in fair weather. */
const SOUND: Readonly<Record<string, Known>> = {
  ceph: { expr: 'status.ceph.health == "HEALTH_OK"', objectRef: STORAGE, means: o => statusOf(o).ceph?.health === 'HEALTH_OK' },
  'ceph-no-error': {
    expr: "object.status.ceph.health in ['HEALTH_OK', 'HEALTH_WARN'] && self.metadata.name.startsWith('ma')",
    objectRef: STORAGE,
    means: o => ['HEALTH_OK', 'HEALTH_WARN'].includes(statusOf(o).ceph?.health ?? ''),
  },
  osds: {
    expr: 'has(object.status.osds) && object.status.osds.all(o, o.up && o.weight >= 1 && o.pools.exists(p, p == "main"))',
    objectRef: STORAGE,
    means: o => statusOf(o).osds?.every(osd => osd.up && osd.pools.includes('main')) === true,
  },
  room: {
    expr: 'status.used < 90 && status.ratio < 0.9 && {"main": true}[object.metadata.name]',
    objectRef: STORAGE,
    means: o => (statusOf(o).used ?? 100) < 90,
  },
  node: {
    expr: "object.status.conditions.filter(c, c.type == 'Ready')[0].status == 'True'",
    objectRef: NODE,
    means: o => conditionOf(o, 'Ready')?.status === 'True',
  },
  kept: { expr: 'true', objectRef: STORAGE, means: () => true },
}

/** There is no such object, or no such field: they are given up after a while. */
const HOPELESS: Readonly<Record<string, Known>> = {
  'no-object': { expr: 'status.health == "OK"', objectRef: { ...STORAGE, name: 'another' } },
  'no-field': { expr: 'object.status.nothing == 1', objectRef: STORAGE },
  'never-so': {
    expr: 'object.metadata.name == "a very long name, much longer than anybody would give to anything that is there"',
    objectRef: STORAGE,
  },
  'no-status': { expr: 'status.phase == "Ready"', objectRef: { apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' } },
  'no-status-at-all': { expr: 'has(object.status) && status.phase == "Ready"', objectRef: INVENTORY },
  'long-story': { expr: 'status.story == "short"', objectRef: STORAGE },
  never: { expr: 'false', objectRef: STORAGE },
}

/** Nobody can answer yes or no: refused before the start, or given up where it is only a field that is missing, which may come. */
const MISTAKEN: readonly Known[] = [
  ...[
    'status.ceph.health = "HEALTH_OK"',
    'health == "HEALTH_OK"',
    'object.status.isWell()',
    '["HEALTH_OK"]',
    '{"health": "HEALTH_OK"}',
    'status.used + 1',
    '"HEALTH_OK"',
    'Health{ok: true}',
    'object.metadata.name',
    'status.used',
    'status.ratio',
    'status.ceph',
    'object.nothing == null ? null : null',
    'status.osds.all(o, o.pools.all(p, p.parts.all(q, q)))',
    'status.osds.all(o, status.osds.all(p, p == o))',
    '{1: true}[1] && {"a": 2}["b"] == 2',
    'size(status.osds)',
    'object.status.ceph.health.matches("[")',
    'status.osds.map(o, o.weight)[0]',
    'has(status.nothing) ? 1 : "two"',
    'nothing.at.all == 1',
    'some.Type{}',
    'timestamp("never") == timestamp("never")',
    'true\n  && status.ceph.health ==\n',
    'object.metadata.nothing',
    '" "',
    'status.osds.all(o, o.pools[7] == "x")',
    'status.osds.all(o, "ab".all(p, p == o))',
    'status.osds.all(o, object.status.nothing.filter(p, p.up)[0].pools.all(q, q == o))',
  ].map(expr => ({ expr, objectRef: STORAGE })),
  { expr: 'true', objectRef: { ...STORAGE, kind: 'Nothing' } },
  { expr: 'true', objectRef: { apiVersion: 'v1', kind: 'ConfigMap', name: 'cilium-config' } },
  { expr: 'true', objectRef: { ...NODE, namespace: 'kube-system' } },
]

const drawSound = (random: Random): HealthGate => {
  const [name, { expr, objectRef }] = random.pick(Object.entries(SOUND))
  return { name, expr, objectRef, stableFor: random.pick(['0s', '5s', '20s', '1m']), ...(random.chance(0.3) ? { timeout: '2h' } : {}) }
}

/** One or two that hold in fair weather; seldom one that never will. */
export const drawGates = (random: Random): readonly HealthGate[] => {
  const sound = [drawSound(random), ...(random.chance(0.4) ? [drawSound(random)] : [])]
  const own = sound.filter((gate, i) => sound.findIndex(other => other.name === gate.name) === i)
  if (random.chance(0.65)) return own
  if (random.chance(0.4)) {
    const [name, { expr, objectRef }] = random.pick(Object.entries(HOPELESS))
    return [...own, { name, expr, objectRef, stableFor: '5s', timeout: '3m' }]
  }
  const wrong = Array.from({ length: random.between(1, 3) }, (_, at): HealthGate => {
    const { expr, objectRef } = random.pick(MISTAKEN)
    return { name: `mistaken-${at}`, expr, objectRef, stableFor: '5s', timeout: '3m' }
  })
  return [...own, ...wrong]
}

export const isMistaken = ({ name }: HealthGate): boolean => name.startsWith('mistaken')
export const isHopeless = (gate: HealthGate): boolean => gate.name in HOPELESS || isMistaken(gate)

/** Whether a gate holds at this moment, by the world itself. */
export const holdsNow = ({ store }: World, { name, objectRef }: HealthGate): boolean => {
  const object = readObject(store, objectRef)
  return object.ok && SOUND[name]?.means?.(object.value) === true
}

const WELL: Storage = {
  ceph: { health: 'HEALTH_OK' },
  osds: [0, 1].map(() => ({ up: true, weight: 1, pools: ['main', 'other'] })),
  used: 40,
  ratio: 0.5,
  story: 'all is as well as it can be, '.repeat(5),
}

/** The storage system is there from now on, and well. */
export const setUpStorage = ({ store }: World): void => {
  const { apiVersion, kind, ...metadata } = STORAGE
  if (!store.list(RESOURCE.definitions).items.some(d => d.metadata.name === STORAGE_SHELF))
    store.create(RESOURCE.definitions, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: STORAGE_SHELF },
      spec: {
        group: 'ceph.rook.io',
        scope: 'Namespaced',
        names: { plural: 'cephclusters', kind },
        versions: [{ name: 'v1', served: true }],
      },
    })
  store.create(STORAGE_SHELF, { apiVersion, kind, metadata, status: WELL })
}

export const TROUBLES = {
  'is degraded': { ...WELL, ceph: { health: 'HEALTH_WARN' }, osds: [{ up: false, weight: 1, pools: ['main'] }] },
  'is in error': { ...WELL, ceph: { health: 'HEALTH_ERR' } },
  'is full': { ...WELL, used: 99, ratio: 0.99 },
  'says nothing': undefined,
  'says empty words': { ...WELL, ceph: { health: '' }, story: null },
} as const

/** What the storage system says of itself from now on; all is well where nothing is told. */
export const tellStorage = ({ store }: World, status: Storage | undefined = WELL): void => {
  const object = store.get(STORAGE_SHELF, STORAGE.namespace, STORAGE.name)
  if (object) store.update(STORAGE_SHELF, { ...object, status })
}

export const deleteStorage = ({ store }: World): void => void store.remove(STORAGE_SHELF, STORAGE.namespace, STORAGE.name)
