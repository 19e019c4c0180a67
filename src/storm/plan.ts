import type { Workload } from '../world/population.ts'
import type { Setting } from './setting.ts'
import type { Random } from '../world/random.ts'

/** The sorts of trouble that a storm is made of. */
export const FAMILIES = [
  'crash',
  'lost-reply',
  'slow',
  'dead',
  'locked',
  'installer',
  'reboot',
  'address',
  'etcd',
  'api-errors',
  'watch',
  'stale',
  'api-away',
  'clock',
  'leaders',
  'people',
  'gitops',
  'access',
  'configuration',
  'programs',
  'gates',
  'status',
  'etcd-says',
  'machine-says',
  'objects',
  'answers',
  'ailing',
] as const
export type Family = (typeof FAMILIES)[number]

/** The cluster of a run, before anything happens to it. */
export type Shape = {
  readonly controlPlanes: number
  readonly workers: number
  readonly talos: string
  readonly kubernetes: string
  /** What takes a minute on a real machine takes a minute divided by this. */
  readonly haste: number
  /** Ichor's own resources live in another cluster. */
  readonly homeOutside: boolean
  readonly replicas: number
  readonly workloads: readonly Workload[]
  readonly setting?: Setting
}

/** When a strike falls: so many milliseconds after the first operation was created, or at the n-th call of Ichor that changes something. */
export type Moment = { readonly at: number } | { readonly call: number }

/** One trouble. What its fields mean is told by its family. */
export type Strike = {
  readonly family: Family
  readonly what: string
  readonly when: Moment
  /** Index of the machine, control planes first. */
  readonly machine?: number
  /** How long it lasts. */
  readonly forMs?: number
  readonly times?: number
  readonly word?: string
}

export type Draft = { readonly name: string; readonly spec: { readonly kind: string } & Readonly<Record<string, unknown>> }

/** What somebody asks a plan for and never creates: before the operation is, or so many milliseconds after. */
export type Considered = { readonly spec: Draft['spec']; readonly at?: number }

/** A whole run as a value: everything that is drawn is in here, the rest follows from the seed. */
export type Plan = {
  readonly seed: number
  readonly kind: string
  readonly shape: Shape
  readonly operations: readonly Draft[]
  readonly strikes: readonly Strike[]
  /** Until when strikes fall; afterwards everything is mended. */
  readonly horizonMs: number
  /** Whether somebody asks for a plan first. */
  readonly isPlanned?: boolean
  readonly considered?: readonly Considered[]
  /** Whether a person resumes what has failed, once everything is mended. */
  readonly resumes: boolean
}

/** What drawing a strike may look at. */
export type Prospect = {
  readonly random: Random
  readonly shape: Shape
  readonly kind: string
  readonly horizonMs: number
  readonly calls: number
}

/** One family: what it may do, and how it is done. */
export type Trouble<Stage> = {
  readonly family: Family
  /** Nothing but time may be lost by it: whatever it does, an operation ends as in fair weather. */
  readonly harmless: boolean
  readonly draw: (prospect: Prospect) => Strike
  /** Begins; the answer ends it, if it has not ended by itself. */
  readonly strike: (stage: Stage, strike: Strike) => (() => void) | void
}

export const machinesOf = ({ controlPlanes, workers }: Shape): number => controlPlanes + workers
