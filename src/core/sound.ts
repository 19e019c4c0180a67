import { PHASES, TARGET_PHASES } from '../api/phases.ts'
import type { OperationStatus, TalosOperation, Target } from '../api/talos-operation.ts'
import type { Kind, Stage } from './kind.ts'
import { iso, openTargets, targetsOf } from './ledger.ts'
import { nodeNameOf } from './machine-steps/target.ts'
import { stageOf } from './stages.ts'
import type { World } from './world.ts'
import { displayName } from './world.ts'

/**
 * Status is the only memory there is, and whoever may write it may write anything into it; so may another version of Ichor. What can be found out
 * anew is found out anew. What cannot, and what would lead to acts on the wrong machine or to a second act, stops the operation.
 */

/** Why nobody could have come to this status by carrying the operation out; undefined where nothing speaks against it. */
export const unsound = (kind: Kind, operation: TalosOperation, world: World): string | undefined => {
  const { status, spec, metadata } = operation
  const open = openTargets(status)
  // Words of another version.
  if (status.phase !== undefined && !(status.phase in PHASES)) return `there is no phase ${String(status.phase)}`
  const strange = targetsOf(status).find(t => !(t.phase in TARGET_PHASES))
  if (strange) return `status.machines, ${displayName(strange)}: there is no phase ${String(strange.phase)}`
  if (status.phase === 'Completed' && open.length > 0 && !spec.cancelled && metadata.deletionTimestamp === undefined)
    return `status says Completed, and that ${open.map(displayName).join(', ')} is in the middle of its steps`
  const stage = open.length > 0 ? stageOf(kind, operation) : undefined
  for (const target of targetsOf(status)) {
    if (target.phase !== 'Running' && target.phase !== 'Pending') continue
    const why = mistaken(target, world) ?? (stage && target.phase === 'Running' ? forgotten(stage, target) : undefined)
    if (why !== undefined) return `status.machines, ${displayName(target)}: ${why}`
  }
  return undefined
}

/** It is not the machine that it says: other guards would be asked than those that protect it, or another Node be drained. */
const mistaken = (target: Target, { machines }: World): string | undefined => {
  const own = machines.find(m => m.metadata.name === target.name)
  if (!own) return undefined
  if (own.spec.role !== target.role) return `role ${target.role}, but TalosMachine ${target.name} says ${own.spec.role}`
  const node = target.goal?.['node'] ?? target.node
  const isIts = node === undefined || !own.status.nodeName || own.status.nodeName.toLowerCase() === node.toLowerCase()
  const other = isIts ? undefined : machines.find(m => m.status.nodeName?.toLowerCase() === node.toLowerCase())
  return other ? `node ${node}, which is that of TalosMachine ${other.metadata.name}` : undefined
}

/** What was noted when the machine was opened is gone, or its place in the steps is none that this version knows. */
const forgotten = (stage: Stage, target: Target): string | undefined => {
  const { step, committed, before, goal } = target
  for (const [field, name] of [
    ['step', step],
    ['committed', committed],
  ] as const)
    if (name !== undefined && !stage.steps.some(s => s.name === name)) return `there is no ${field} ${name} in the stage ${stage.name}`
  if (!before?.bootID) return 'it is open, but its boot id before is not recorded'
  if (goal === undefined) return 'it is open, but what was chosen for it is not recorded'
  // Without a name nothing would be drained, and it would go away all the same.
  const { drain = 'none' } = goal
  if (drain !== 'none' && nodeNameOf({ target }) === undefined) return 'it is to be drained, but its node is not recorded'
  return committed !== undefined && step === undefined ? `it is committed by ${committed}, but in no step` : undefined
}

/** Clocks of two controllers may differ by so much. */
const SKEW_MS = 5 * 60_000
/** The longest that a bad answer puts off the next try. */
const LONGEST_RETRY_MS = 3_600_000

/**
 * Times that have not come yet were written by a hand, or by a clock that was wrong: nothing that runs from them would ever end. They are taken for now;
 * and those after which something has to have happened, as the start of a static pod, for the time at which the operation was made: since then it may
 * have. The very same status where there are none.
 */
export const withoutFuture = ({ status, metadata }: Pick<TalosOperation, 'status' | 'metadata'>, now: number): OperationStatus => {
  // A status never changes, and what is past stays past.
  if (now >= (past.get(status) ?? Infinity)) return status
  const mended = mendedTimes(status, now, metadata.creationTimestamp)
  if (mended === status) past.set(status, now)
  return mended
}

/** Since when all times of a status are past. */
const past = new WeakMap<OperationStatus, number>()

const mendedTimes = (status: OperationStatus, now: number, created: string): OperationStatus => {
  const latest = now + SKEW_MS
  const isPast = (time: string | undefined, limit = latest): boolean => time === undefined || Date.parse(time) <= limit
  const future = <K extends string>(
    value: Readonly<Partial<Record<K, unknown>>>,
    keys: readonly K[],
    instead = iso(now),
  ): Partial<Record<K, string>> =>
    Object.fromEntries(keys.filter(key => !isPast(value[key] as string | undefined)).map(key => [key, instead])) as Partial<
      Record<K, string>
    >
  const changes = future(status, ['startedAt', 'completedAt', 'lastRetry'])
  const wait = status.waiting && future(status.waiting, ['since'])
  const failure = status.lastFailure && future(status.lastFailure, ['at'])
  const machines = status.machines?.map((target): Target => {
    const times = {
      ...future(target, ['stepStartedAt', 'actedAt', 'firstActedAt', 'stableSince']),
      ...future(target, ['startedAt'], created),
    }
    const retry = isPast(target.retryAt, now + LONGEST_RETRY_MS) ? {} : { retryAt: iso(now) }
    const { receipts: given = [] } = target
    const receipts = given.every(({ at }) => isPast(at))
      ? {}
      : { receipts: given.map(one => ({ ...one, ...future(one, ['at'], created) })) }
    const failed = target.failure && !isPast(target.failure.at) ? { failure: { ...target.failure, at: created } } : {}
    const mended = [times, retry, receipts, failed]
    return mended.every(isEmpty) ? target : Object.assign({}, target, ...mended)
  })
  const isSame = isEmpty(changes) && isEmpty(wait) && isEmpty(failure) && (machines ?? []).every((t, i) => t === status.machines?.[i])
  if (isSame) return status
  return {
    ...status,
    ...changes,
    ...(status.waiting ? { waiting: { ...status.waiting, ...wait } } : {}),
    ...(status.lastFailure ? { lastFailure: { ...status.lastFailure, ...failure } } : {}),
    ...(machines ? { machines } : {}),
  }
}

const isEmpty = (value: object | undefined): boolean => Object.keys(value ?? {}).length === 0
