import { formatDuration } from '../api/duration.ts'
import { ANNOTATION } from '../api/names.ts'
import type { TalosOperation } from '../api/talos-operation.ts'
import type { Lease } from '../ports/home.ts'
import type { Kind, Refusal } from './kind.ts'
import { iso, ms, targetsOf } from './ledger.ts'
import { stagesOf } from './stages.ts'
import type { World } from './world.ts'

/**
 * What was done under which name within the last hour. It stands on the Lease of the cluster lock, because it has to outlive the operations themselves:
 * whoever deletes a finished one and creates it again (a time to live, and GitOps) must not reboot a machine in a circle.
 */
export type Deed = {
  readonly name: string
  readonly deed: string
  readonly at: string
  /** The UID of the TalosMachine whose machine it took out of the cluster for good; see `left.ts`. */
  readonly left?: string
}

const KEPT_MS = 3_600_000
const MOST = 32

/** The deeds that a Lease tells of. What cannot be read was written by somebody else. */
export const allDeedsOn = (lease: Lease | undefined): readonly Deed[] => {
  try {
    const told: unknown = JSON.parse(lease?.annotations[ANNOTATION.deeds] ?? '[]')
    return Array.isArray(told) ? told.filter(isDeed) : []
  } catch {
    return []
  }
}

/** Those that are not too long ago to be a repetition. */
export const deedsOn = (lease: Lease | undefined, now: number): readonly Deed[] => allDeedsOn(lease).filter(d => now - ms(d.at) < KEPT_MS)

const isDeed = (value: unknown): value is Deed =>
  typeof value === 'object' &&
  value !== null &&
  ['name', 'deed', 'at'].every(key => typeof (value as Record<string, unknown>)[key] === 'string')

/** What it has done that is worth to be remembered, to one machine at least; undefined where that is nothing. */
export const deedOf = (kind: Pick<Kind, 'deed'>, operation: TalosOperation): string | undefined =>
  targetsOf(operation.status).some(t => t.phase === 'Completed' || t.committed !== undefined) ? kind.deed?.(operation) : undefined

type Seen = Pick<World, 'lock' | 'now' | 'machines'>

/** The annotation to leave on the Lease when the operation has ended; undefined where it did nothing that is worth it. */
export const deedsAfter = (
  kind: Pick<Kind, 'deed' | 'stages'>,
  operation: TalosOperation,
  { lock, now, machines }: Seen,
): string | undefined => {
  const { metadata, status } = operation
  const { completedAt = iso(now) } = status
  const deed = deedOf(kind, operation)
  if (deed === undefined) return undefined
  const done = targetsOf(status).filter(t => t.phase === 'Completed')
  const others = allDeedsOn(lock).filter(
    d => (now - ms(d.at) < KEPT_MS || d.left !== undefined) && (d.name !== metadata.name || d.deed !== deed),
  )
  const left = stagesOf(kind, operation).some(stage => stage.removes) && machines.find(m => m.metadata.name === done[0]?.name)
  const own: Deed = { name: metadata.name, deed, at: completedAt, ...(left ? { left: left.metadata.uid } : {}) }
  return JSON.stringify([...others, own].slice(-MOST))
}

/** The same, of one that has ended and has no lock to give back; undefined also where the Lease tells of it already, or it is too long ago. */
export const untoldDeeds = (kind: Pick<Kind, 'deed' | 'stages'>, operation: TalosOperation, seen: Seen): string | undefined => {
  const { metadata, status } = operation
  const deed = deedOf(kind, operation)
  const endedAt = ms(status.completedAt)
  const isTold = allDeedsOn(seen.lock).some(d => d.name === metadata.name && d.deed === deed && ms(d.at) >= endedAt)
  return isTold || seen.now - endedAt >= KEPT_MS ? undefined : deedsAfter(kind, operation, seen)
}

/** The same was done under the same name a moment ago. */
export const repeated = (kind: Pick<Kind, 'deed'>, operation: TalosOperation, world: World): readonly Refusal[] => {
  const deed = kind.deed?.(operation, world)
  if (deed === undefined || operation.spec.again) return []
  const before = deedsOn(world.lock, world.now).findLast(d => d.name === operation.metadata.name && d.deed === deed)
  if (!before) return []
  const ago = formatDuration(Math.max(0, world.now - ms(before.at)))
  return [
    {
      rule: 'DoneAlready',
      message: `An operation named ${before.name} did the same (${deed}) ${ago} ago, at ${before.at}. To do it once more set spec.again to true (--again), choose another name, or wait until an hour has passed.`,
      overridable: false,
    },
  ]
}
