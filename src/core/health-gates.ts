import type { HealthGate, ObjectRef } from '../api/talos-cluster.ts'
import type { GateState, OperationStatus } from '../api/talos-operation.ts'
import { durationMs, formatDuration } from '../api/duration.ts'
import type { Fault } from '../ports/fault.ts'
import { askExpression, expressionProblem } from './gate-expression.ts'
import type { Refusal } from './kind.ts'
import { iso, ms, openTargets } from './ledger.ts'
import { refuse } from './preflight.ts'
import type { Need, World } from './world.ts'
import { objectFacts } from './world.ts'

/**
 * What the users of a cluster know to be well, and must be, before the next machine is begun. Only what was seen to be true holds: whatever cannot be
 * read or evaluated does not.
 */

const gatesOf = ({ cluster }: World): readonly HealthGate[] => cluster.spec.healthGates ?? []

export const gateNeeds = (world: World): readonly Need[] => gatesOf(world).map(({ objectRef }) => ({ what: 'object', ref: objectRef }))

type Look = { readonly holds: boolean; readonly seen: string }

const lookAt = ({ expr, objectRef }: HealthGate, world: World): Look => {
  const object = objectFacts(world, objectRef)
  if (!object.ok) return { holds: false, seen: unread(objectRef, object.fault) }
  const answer = askExpression(expr, object.value)
  switch (answer.is) {
    case 'yes':
      return { holds: true, seen: answer.seen }
    case 'no':
      return { holds: false, seen: answer.seen || 'false' }
    case 'error':
      return { holds: false, seen: answer.why }
    case 'other':
      return { holds: false, seen: `it gives ${answer.type}, which is neither true nor false` }
  }
}

/** `CephCluster rook/main`. */
const called = ({ kind, namespace, name }: ObjectRef): string => `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`

const unread = (ref: ObjectRef, { kind, message }: Fault): string =>
  kind === 'notFound' ? `${called(ref)} does not exist` : `${called(ref)} cannot be read: ${message}`

/** Gates that can never hold, whatever becomes of the cluster: found before the start, not when a machine waits. */
export const gateRefusals = (world: World): readonly Refusal[] => gatesOf(world).flatMap(gate => refusalOf(gate, world) ?? [])

const refusalOf = (gate: HealthGate, world: World): Refusal | undefined => {
  const { name, expr, objectRef } = gate
  const where = `Health gate ${name} of TalosCluster ${world.cluster.metadata.name}`
  const problem = expressionProblem(expr)
  if (problem !== undefined) return refuse('HealthGateInvalid', `${where}: its expression cannot be read: ${problem}.`)
  const object = objectFacts(world, objectRef)
  if (!object.ok) {
    const { kind, message } = object.fault
    if (kind === 'unsupported' || kind === 'invalid') return refuse('HealthGateInvalid', `${where}: ${message}.`)
    if (kind !== 'forbidden') return undefined
    return refuse('HealthGateUnreadable', `${where}: ${message}. Allow Ichor to get objects of this type (docs/health-gates.md).`)
  }
  const answer = askExpression(expr, object.value)
  return answer.is === 'other'
    ? refuse('HealthGateInvalid', `${where}: its expression gives ${answer.type}, which is neither true nor false.`)
    : undefined
}

/** Gates that do not hold at the time of the checks: the operation will wait for them. */
export const gateNotes = (world: World): readonly string[] =>
  gatesOf(world).flatMap(gate => {
    const { holds, seen } = lookAt(gate, world)
    return holds || refusalOf(gate, world)
      ? []
      : [`Health gate ${gate.name} does not hold now (${seen}); the next machine waits until it does.`]
  })

export type Gates =
  | { readonly are: 'open' }
  /** `what` is waited for: `gate storage (WARN)`. `since`, `until` in milliseconds since 1970. */
  | {
      readonly are: 'closed'
      readonly states: readonly GateState[]
      readonly what: string
      readonly since: number
      readonly until: number | undefined
      readonly forMs: number
    }
  | { readonly are: 'late'; readonly message: string }

/** A gate that has not been looked at for so many polls has not been seen to hold. */
const LONGEST_GAP_POLLS = 15
/** While a gate holds, the time of the last look is written as often as that: every look would be a write. */
const NOTED_POLLS = 5

/** Whether the next machine may begin, as far as the gates go. Their timeouts run while no other machine is open: what they see may be of its doing. */
export const gatesNow = (status: OperationStatus, world: World): Gates => {
  const seen = gatesOf(world).map(gate => seenNow(gate, status, world))
  const unmet = seen.filter(one => !one.look.holds)
  const late = unmet.find(one => one.until !== undefined && world.now >= one.until)
  if (late) {
    const { gate, look, state } = late
    const waited = formatDuration(world.now - ms(state.waitingSince))
    return { are: 'late', message: `gate ${gate.name} does not hold (${look.seen}) after ${waited}` }
  }
  const pending = unmet.length > 0 ? unmet : seen.filter(one => one.leftMs > 0)
  if (pending.length === 0) return { are: 'open' }
  const names = pending.map(({ gate }) => gate.name).join(', ')
  return {
    are: 'closed',
    states: seen.map(one => one.state),
    what:
      unmet.length > 0
        ? `gate ${unmet.map(({ gate, look }) => `${gate.name} (${look.seen})`).join(', ')}`
        : `gate ${names} to hold for ${pending.map(({ gate }) => gate.stableFor).join(', ')}`,
    since: Math.min(...pending.map(one => (one.state.waitingSince === undefined ? world.now : ms(one.state.waitingSince)))),
    until: soonest(unmet.map(one => one.until)),
    forMs: unmet.length > 0 ? world.timing.idleMs : Math.max(1, Math.min(world.timing.pollMs, ...pending.map(one => one.leftMs))),
  }
}

type Seen = {
  readonly gate: HealthGate
  readonly look: Look
  readonly state: GateState
  readonly until: number | undefined
  /** How long it has to hold on. */
  readonly leftMs: number
}

const seenNow = (gate: HealthGate, status: OperationStatus, world: World): Seen => {
  const { now, watchedMs, timing, cluster } = world
  const { generation } = cluster.metadata
  const look = lookAt(gate, world)
  const old = status.gates?.find(one => one.name === gate.name && one.generation === generation)
  // A time that has not come yet, or is none, was not written by us.
  const past = (time: string | undefined): number | undefined => (ms(time) > 0 && ms(time) <= now ? ms(time) : undefined)
  const seenAt = past(old?.seenAt)
  const isUnbroken = seenAt !== undefined && now - seenAt <= LONGEST_GAP_POLLS * timing.pollMs
  const held = isUnbroken ? past(old?.holdsSince) : undefined
  const holdsSince = look.holds ? Math.max(held ?? now, now - watchedMs) : undefined
  const waitingSince = openTargets(status).length > 0 ? undefined : (past(old?.waitingSince) ?? now)
  const isNoted = isUnbroken && (held !== undefined) === look.holds && now - seenAt < NOTED_POLLS * timing.pollMs
  const stableMs = durationMs(gate.stableFor)
  return {
    gate,
    look,
    state: {
      name: gate.name,
      generation,
      ...(waitingSince === undefined ? {} : { waitingSince: iso(waitingSince) }),
      ...(holdsSince === undefined ? {} : { holdsSince: iso(holdsSince) }),
      seenAt: isNoted ? iso(seenAt) : iso(now),
      seen: look.seen.slice(0, 512),
    },
    until: gate.timeout === undefined || waitingSince === undefined ? undefined : waitingSince + durationMs(gate.timeout),
    leftMs: holdsSince === undefined ? stableMs : holdsSince + stableMs - now,
  }
}

const soonest = (times: readonly (number | undefined)[]): number | undefined => {
  const known = times.filter(time => time !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}
