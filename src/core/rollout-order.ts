import { ANNOTATION, LABEL } from '../api/names.ts'
import type { LabelSelector } from '../api/talos-operation.ts'
import type { NodeFacts } from '../ports/kube.ts'
import { displayName } from './world.ts'

type Marks = { readonly labels: Readonly<Record<string, string>>; readonly annotations: Readonly<Record<string, string>> }

/** A machine as far as its place in a rollout goes. */
export type Candidate = {
  /** Of the TalosMachine. */
  readonly name: string
  /** As people know it; sorts before the name where it is known. */
  readonly hostname?: string
  readonly role: 'controlplane' | 'worker'
  /** Labels and annotations of the TalosMachine. */
  readonly machine: Marks
  /** Those of its Node; absent where it has none. */
  readonly node?: Marks
}

export type Ordered = {
  /** Names of the TalosMachines, control planes first. */
  readonly order: readonly string[]
  /** What was found worth telling, for example a label that is no number. */
  readonly notes: readonly string[]
}

/**
 * The order of targets: control planes, then workers; within a tier by `upgrade-order`, those without it last, then by name as people count
 * (wk-2 before wk-10). The etcd leader is the last control plane whatever its label says: it then moves once instead of at every step.
 */
export const rolloutOrder = (candidates: readonly Candidate[], leader?: string): Ordered => {
  const place = (c: Candidate): Place => [
    c.role === 'controlplane' ? 0 : 1,
    c.role === 'controlplane' && c.name === leader ? 1 : 0,
    orderOf(c) ?? Number.MAX_SAFE_INTEGER,
  ]
  const order = candidates
    .toSorted((a, b) => byPlace(place(a), place(b)) || naturally(displayName(a), displayName(b)) || naturally(a.name, b.name))
    .map(c => c.name)
  return { order, notes: candidates.flatMap(orderNote) }
}

type Place = readonly [tier: number, last: number, order: number]
const byPlace = (a: Place, b: Place): number => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]

/** The TalosMachine speaks first; its Node only where the machine has no such mark. */
const orderLabel = (c: Candidate): string | undefined => c.machine.labels[LABEL.upgradeOrder] ?? c.node?.labels[LABEL.upgradeOrder]
const ORDER = /^\d{1,9}$/

const orderOf = (c: Candidate): number | undefined => {
  const label = orderLabel(c)
  return label !== undefined && ORDER.test(label) ? Number(label) : undefined
}

const orderNote = (c: Candidate): readonly string[] => {
  const label = orderLabel(c)
  return label === undefined || ORDER.test(label)
    ? []
    : [
        `${displayName(c)}: the label ${LABEL.upgradeOrder} is ${JSON.stringify(label)}, which is no whole number; it is read as if it were absent.`,
      ]
}

/** The value of `upgrade-hold` where it keeps the machine out of rollouts: any but `false`. Undefined where it does not. */
export const holdOf = (c: Pick<Candidate, 'machine' | 'node'>): string | undefined => {
  const hold = c.machine.annotations[ANNOTATION.upgradeHold] ?? c.node?.annotations[ANNOTATION.upgradeHold]
  return hold === 'false' ? undefined : hold
}

/** Compares names with their numbers as numbers: wk-2 before wk-10. Total: 0 only for equal texts. */
export const naturally = (a: string, b: string): number => {
  const [as, bs] = [chunks(a), chunks(b)]
  for (let i = 0; i < Math.max(as.length, bs.length); i += 1) {
    const [x, y] = [as[i], bs[i]]
    if (x === undefined || y === undefined) return x === undefined ? -1 : 1
    const [isNumber, isOther] = [/^\d/.test(x), /^\d/.test(y)]
    if (isNumber !== isOther) return isNumber ? -1 : 1
    const less = isNumber ? BigInt(x) < BigInt(y) : x < y
    const more = isNumber ? BigInt(x) > BigInt(y) : x > y
    if (less || more) return less ? -1 : 1
  }
  // Equal but for leading zeros.
  return a < b ? -1 : a > b ? 1 : 0
}

const chunks = (text: string): readonly string[] => Array.from(text.matchAll(/\d+|\D+/g), ([chunk]) => chunk)

type Selector = { readonly [Part in keyof LabelSelector]?: LabelSelector[Part] | undefined }

/** A label selector as Kubernetes reads it; an absent or empty one selects everything. */
export const matchesSelector = (selector: Selector | undefined, labels: Readonly<Record<string, string>>): boolean =>
  Object.entries(selector?.matchLabels ?? {}).every(([key, value]) => labels[key] === value) &&
  (selector?.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const value = labels[key]
    switch (operator) {
      case 'In':
        return value !== undefined && values.includes(value)
      case 'NotIn':
        return value === undefined || !values.includes(value)
      case 'Exists':
        return value !== undefined
      case 'DoesNotExist':
        return value === undefined
    }
  })

/** How many of `workers` machines may be away at once: the number itself, or the percentage of them, rounded down and at least one. */
export const allowedUnavailable = (maxUnavailable: number | string, workers: number): number => {
  const percent = typeof maxUnavailable === 'string' ? /^(\d+)%$/.exec(maxUnavailable)?.[1] : undefined
  // A number that came as a string is what a form or an older object sends; anything else was refused by the schema, and one is always safe.
  const count = percent === undefined ? Number(maxUnavailable) : Math.floor((Number(percent) * workers) / 100)
  return Math.max(1, Math.floor(count) || 1)
}

export type WorkerState = {
  readonly name: string
  /** Its Node; absent where Kubernetes registration is off. */
  readonly node?: string
  /** Nobody has seen it yet: it may be a second name for one that is known. */
  readonly unseen?: boolean
  /** Talos answers, in stage running, and is ready. */
  readonly running: boolean
}

/** How many machines these workers surely are: one that was replaced is known twice for a while, by one Node, and takes no more away than one. */
export const countMachines = (workers: readonly Omit<WorkerState, 'running'>[]): number =>
  new Set(workers.filter(w => w.unseen !== true).map(w => w.node?.toLowerCase() ?? w.name)).size

export type WorkerQuota = {
  readonly limit: number
  /** Workers that are away without being open targets: Node not Ready or gone, or the machine not running. */
  readonly unready: readonly string[]
  /** How many more ready workers may be opened now. */
  readonly free: number
  /** Whether this one may be opened now. A worker that is away already takes nothing more away: an upgrade may be its cure. */
  readonly mayOpen: (name: string) => boolean
}

/** What `maxUnavailable` leaves. All workers of the cluster count, also those that the operation does not touch. */
export const workerQuota = (input: {
  readonly workers: readonly WorkerState[]
  readonly nodes: readonly Pick<NodeFacts, 'name' | 'ready'>[]
  /** Targets that are open now. */
  readonly open: readonly string[]
  readonly maxUnavailable: number | string
}): WorkerQuota => {
  const ready = new Map(input.nodes.map(n => [n.name, n.ready]))
  const workers = new Set(input.workers.map(w => w.name))
  const open = new Set(input.open.filter(name => workers.has(name)))
  const unready = input.workers
    .filter(w => !open.has(w.name) && !(w.running && (w.node === undefined || ready.get(w.node) === true)))
    .map(w => w.name)
  const limit = allowedUnavailable(input.maxUnavailable, countMachines(input.workers))
  const free = Math.max(0, limit - open.size - unready.length)
  const away = new Set(unready)
  return { limit, unready, free, mayOpen: name => workers.has(name) && !open.has(name) && (away.has(name) ? open.size < limit : free > 0) }
}
