import type { Workload } from '../world/population.ts'
import type { Random } from '../world/random.ts'
import { createRandom } from '../world/random.ts'
import { drawSetting } from './setting.ts'
import { troubles } from './faults/all.ts'
import { drawOperation, stormKinds } from './operations.ts'
import type { Considered, Family, Plan, Prospect, Shape, Strike } from './plan.ts'
import { FAMILIES, machinesOf } from './plan.ts'

export type Wish = {
  readonly seed: number
  readonly kind: string
  /** Of which troubles; all where absent. */
  readonly families?: readonly Family[]
  readonly controlPlanes?: number
  readonly workers?: number
}

/** From which version to which, and on which Kubernetes, so that the compatibility table agrees. */
export const JOURNEYS = [
  { talos: 'v1.13.5', to: 'v1.13.9', kubernetes: 'v1.36.2' },
  { talos: 'v1.13.5', to: 'v1.13.9', kubernetes: 'v1.36.2' },
  { talos: 'v1.13.5', to: 'v1.13.9', kubernetes: 'v1.36.2' },
  { talos: 'v1.12.5', to: 'v1.12.9', kubernetes: 'v1.35.1' },
  { talos: 'v1.12.11', to: 'v1.13.9', kubernetes: 'v1.35.1' },
  { talos: 'v1.10.9', to: 'v1.11.6', kubernetes: 'v1.33.1' },
  // The oldest Kubernetes that it takes, or nearly.
  { talos: 'v1.12.5', to: 'v1.12.9', kubernetes: 'v1.30.4' },
  { talos: 'v1.13.5', to: 'v1.13.9', kubernetes: 'v1.32.4' },
] as const

/** A Talos of which no release is there yet, and whose configuration is known in part only. */
const TOMORROW = { talos: 'v1.14.0-beta.1', to: 'v1.14.0-rc.1', kubernetes: 'v1.36.2' } as const
/** One that does not tell what is on its disk. */
const YESTERDAY = { talos: 'v1.9.4', to: 'v1.9.6', kubernetes: 'v1.32.4' } as const
type Journey = Readonly<Record<'talos' | 'to' | 'kubernetes', string>>

/** What may run on a cordoned Node, as many operators may: whoever evicts one of its pods may find the next one there. */
const putBack = (random: Random, workers: number): Workload => ({
  name: 'operator',
  namespace: 'kube-system',
  replicas: Math.max(1, workers),
  graceSeconds: random.between(1, 5),
  tolerations: [random.chance(0.7) ? { key: 'node.kubernetes.io/unschedulable', operator: 'Exists' } : { operator: 'Exists' }],
})

/** With budgets only where there is room for the pods of those workers that may be away together. */
const drawWorkloads = (random: Random, workers: number): readonly Workload[] => {
  const all: readonly Workload[] = [
    {
      name: 'web',
      replicas: random.between(1, 3),
      graceSeconds: random.between(1, 10),
      ...(workers > 2 ? { budget: { maxUnavailable: 1 } } : {}),
    },
    { name: 'db', replicas: 1, volume: true, graceSeconds: random.between(1, 30) },
    { name: 'cache', replicas: random.between(1, 2), graceSeconds: 1 },
  ]
  return all.filter(() => random.chance(0.6))
}

/** What does not leave a Node that is drained, or not for long. Of a generator of its own: what a seed drew before this was thought of stays as it was. */
const drawLasting = (random: Random, workers: number): readonly Workload[] => [
  ...(random.chance(0.15) ? [putBack(random, workers)] : []),
  ...(random.chance(0.1) ? [{ name: 'logs', namespace: 'kube-system', daemon: true, volume: true }] : []),
]

/** More than are pulled to at once only where no machine is taken away, which takes long. */
const drawWorkers = (random: Random, kind: string, controlPlanes: number): number =>
  kind === 'kubernetes' && random.chance(0.02) ? random.between(6, 8) : random.between(controlPlanes === 1 ? 0 : 1, 3)

const drawShape = (random: Random, wish: Wish, journey: Journey): Shape => {
  // Below 1.13 Talos itself refuses an upgrade of one of two, and so there are few that try.
  const sizes = journey.talos < 'v1.13' ? [1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 4, 5] : [1, 2, 3, 3, 3, 3, 4, 5]
  const controlPlanes = wish.controlPlanes ?? random.pick(sizes)
  const workers = wish.workers ?? drawWorkers(random, wish.kind, controlPlanes)
  const bare = {
    controlPlanes,
    workers,
    talos: journey.talos,
    kubernetes: journey.kubernetes,
    haste: random.pick([2, 4, 8, 12]),
    homeOutside: random.chance(0.3),
    replicas: random.pick([1, 1, 2, 3]),
    workloads: [...drawWorkloads(random, workers), ...drawLasting(createRandom(wish.seed + 11 * 2 ** 32), workers)],
  }
  return random.chance(0.5) ? { ...bare, setting: drawSetting(random, bare, journey.to) } : bare
}

/** They come in so many sorts that few of each do not show much. */
const MANY: readonly Family[] = ['people', 'answers']

/** What matters to one kind more than to others. */
const OWN: Readonly<Record<string, Family>> = { talos: 'installer', kubernetes: 'programs', node: 'etcd', config: 'configuration' }

/** What matters to one kind alone. */
const ONLY: Partial<Record<Family, string>> = { configuration: 'config', programs: 'kubernetes' }

/** Some trouble is there before anybody has looked. */
const early = (random: Random, strike: Strike): Strike =>
  'at' in strike.when && random.chance(0.1) ? { ...strike, when: { at: 0 } } : strike

/** Half of all people look at several ways before they take one, or while it is taken. */
const drawConsidered = ({ random, shape, kind, horizonMs }: Prospect, to: string): readonly Considered[] =>
  Array.from({ length: random.chance(0.5) ? random.between(1, 5) : 0 }, () => ({
    spec: drawOperation(random, random.chance(0.8) ? kind : random.pick(stormKinds), shape, to),
    ...(random.chance(0.5) ? { at: random.between(0, horizonMs) } : {}),
  }))

/** A run, drawn wholly from its seed. The numbers come from a generator apart from the world's. */
export const drawPlan = (wish: Wish): Plan => {
  const random = createRandom(wish.seed + 7 * 2 ** 32)
  const families = wish.families ?? FAMILIES.filter(family => (ONLY[family] ?? wish.kind) === wish.kind)
  const journey: Journey =
    wish.kind === 'config' && random.chance(0.1) ? random.pick([TOMORROW, TOMORROW, YESTERDAY]) : random.pick(JOURNEYS)
  const shape = drawShape(random, wish, journey)
  const spec = drawOperation(random, wish.kind, shape, journey.to)
  const machines = machinesOf(shape)
  const isWhole = wish.kind !== 'node'
  const horizonMs = Math.ceil((isWhole ? machines : 2) * (180_000 / shape.haste + 40_000))
  const prospect: Prospect = { random, shape, kind: wish.kind, horizonMs, calls: 20 + 25 * (isWhole ? machines : 2) }
  // A few families in each run, so that one trouble does not hide what another would show.
  const some = families.length <= 3 ? families : Array.from({ length: random.between(1, 4) }, () => random.pick(families))
  const own = OWN[wish.kind]
  const besides = [...(random.chance(0.25) ? ['answers' as const] : []), ...(own && random.chance(0.25) ? [own] : [])]
  const chosen = families.length > 3 ? [...some, ...besides.filter(family => families.includes(family))] : some
  const strikes = chosen.flatMap(family =>
    family === 'gitops'
      ? [troubles[family].draw(prospect)]
      : Array.from({ length: random.between(1, MANY.includes(family) ? 8 : 4) }, () => early(random, troubles[family].draw(prospect))),
  )
  return {
    seed: wish.seed,
    kind: wish.kind,
    shape,
    operations: [{ name: 'op', spec }],
    strikes,
    horizonMs,
    resumes: random.chance(0.8),
    isPlanned: random.chance(0.5),
    considered: drawConsidered(prospect, journey.to),
  }
}
