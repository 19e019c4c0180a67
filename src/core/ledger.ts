import type { Condition, GateState, OperationStatus, Receipt, RecordedRefusal, TalosOperation, Target } from '../api/talos-operation.ts'
import { formatDuration } from '../api/duration.ts'
import type { TargetPhase } from '../api/phases.ts'
import { isFinished, TARGET_PHASES } from '../api/phases.ts'
import type { Reason } from '../api/reasons.ts'
import type { Candidate, Checked, Step } from './kind.ts'
import { displayName } from './world.ts'

/**
 * Reading and writing an operation's status as functions. Status is the only memory there is: what was chosen, what was intended, and what only
 * the answer of a long act said. Every function answers a new status; none changes the one it was given.
 */

export const iso = (ms: number): string => new Date(ms).toISOString()
export const ms = (time: string | undefined): number => (time === undefined ? 0 : Date.parse(time))

/** The lengths that the CRD allows. */
const HISTORY = 20
const STAGES = 16
const RECEIPTS = 8

/** What the CRD allows; a longer text would make the server refuse the whole status. */
const short = (text: string): string => text.slice(0, 1024)
const long = (text: string): string => text.slice(0, 4096)

/** One more, as far as the CRD counts. */
const more = (count = 0): number => Math.min(count + 1, 2_147_483_647)

const told = <S extends OperationStatus>(status: S, now: number, message: string): S => ({
  ...status,
  history: [...(status.history ?? []), { at: iso(now), message: message.slice(0, 512) }].slice(-HISTORY),
})

const without = <T extends object, K extends keyof T>(value: T, ...keys: readonly K[]): Omit<T, K> => {
  // Not by `delete`, which makes an object slow for all who read it later.
  const copy: Partial<Record<keyof T, unknown>> = {}
  for (const key of Object.keys(value) as (keyof T)[]) if (!(keys as readonly (keyof T)[]).includes(key)) copy[key] = value[key]
  return copy as Omit<T, K>
}

export const targetsOf = (status: OperationStatus): readonly Target[] => status.machines ?? []
export const openTargets = (status: OperationStatus): readonly Target[] => targetsOf(status).filter(t => t.phase === 'Running')
export const receiptOf = (target: Target, step: string): Receipt | undefined => target.receipts?.find(r => r.step === step)

const withTarget = (status: OperationStatus, name: string, change: (target: Target) => Target): OperationStatus => ({
  ...status,
  machines: targetsOf(status).map(t => (t.name === name ? change(t) : t)),
})

type StageNumber = { readonly stage?: number; readonly stages?: number }

/** Counts them; the number of the stage stays. */
const progressOf = (targets: readonly Target[], { stage, stages }: StageNumber = {}): OperationStatus['progress'] => {
  const count = (phase: TargetPhase): number => targets.filter(t => t.phase === phase).length
  const [done, skipped] = [count('Completed'), count('Skipped')]
  const total = targets.length - skipped
  const summary = `${done}/${total}`
  return stage === undefined || stages === undefined
    ? { done, skipped, total, summary }
    : { done, skipped, total, stage, stages, summary: `${summary}, stage ${stage}/${stages}` }
}

export const accepted = (status: OperationStatus, now: number): OperationStatus =>
  told({ ...status, phase: 'Pending', message: 'Accepted; the checks are running.' }, now, 'accepted')

export const checked = (
  status: OperationStatus,
  now: number,
  found: Checked,
  how: { readonly override: boolean; readonly underLock: boolean },
): OperationStatus => ({
  ...status,
  preflight: {
    checkedAt: iso(now),
    underLock: how.underLock,
    ...found.found,
    refusals: found.refusals
      .slice(0, 64)
      .map((r): RecordedRefusal => ({ ...r, message: r.message.slice(0, 2048), overridden: how.override && r.overridable })),
    ...(found.notes.length > 0 ? { notes: found.notes.slice(0, 32).map(n => n.slice(0, 1024)) } : {}),
    ...(found.pins && Object.keys(found.pins).length > 0 ? { pins: { ...found.pins } } : {}),
  },
})

/** The refusals that stand. */
export const standingRefusals = ({ preflight: { refusals } = { refusals: [] } }: RefusedStatus): readonly RecordedRefusal[] =>
  refusals.filter(r => !r.overridden)
type RefusedStatus = { readonly preflight?: { readonly refusals: readonly RecordedRefusal[] } }

/** It says why it is as it is. */
type Worded = OperationStatus & { readonly message: string }

const paused = (status: OperationStatus, reason: Reason | undefined, message: string): Worded => ({
  ...without(status, 'failureReason', 'waiting', 'gates'),
  phase: 'Paused',
  ...(reason ? { failureReason: reason } : {}),
  message: long(message),
})

export const refused = (status: OperationStatus, now: number): Worded => {
  const refusals = standingRefusals(status)
  const message = refusals.map(r => (r.message.endsWith('.') ? r.message : `${r.message}.`)).join(' ')
  return told(
    {
      ...paused(without(status, 'lock'), 'PreflightRefused', message),
      lastFailure: { at: iso(now), reason: 'PreflightRefused', message: long(message) },
    },
    now,
    `refused: ${[...new Set(refusals.map(r => r.rule))].join(', ')}`,
  )
}

/** It waits for the lock that somebody else holds. Told to history only when the holder is a new one. */
export const queued = (
  status: OperationStatus,
  now: number,
  lock: { lease: string; holder: string; since?: string },
  message: string,
): OperationStatus => {
  const next: OperationStatus = { ...paused(status, 'ClusterLockHeld', message), lock }
  return status.lock?.holder === lock.holder && status.failureReason === 'ClusterLockHeld'
    ? next
    : told(next, now, `waits for the cluster lock, held by ${lock.holder}`)
}

/** It waits before its start, or between two stages, for something that is none of a machine's. */
export const held = (
  status: OperationStatus,
  since: number,
  message: string,
  until: number | undefined,
  phase: 'Pending' | 'Running' = 'Pending',
): OperationStatus => ({
  ...without(status, 'failureReason'),
  phase,
  message: long(message),
  waiting: {
    for: short(message),
    since: iso(waitingSince(status, since, message)),
    ...(until === undefined ? {} : { until: iso(until) }),
  },
})

/** Since when it has been waiting for this very thing; now, where it has not. */
export const waitingSince = ({ waiting }: OperationStatus, now: number, message: string): number =>
  waiting?.for === short(message) ? ms(waiting.since) : now

export const pausedByOperator = (status: OperationStatus, now: number, message: string, keepsLock: boolean): OperationStatus => {
  const next = keepsLock ? status : without(status, 'lock')
  return status.phase === 'Paused' && !status.failureReason
    ? { ...next, message }
    : told(paused(next, undefined, message), now, 'paused by the operator')
}

export const lockTaken = (status: OperationStatus, now: number, lock: { lease: string; holder: string; since: string }): OperationStatus =>
  told(
    { ...without(status, 'failureReason', 'waiting'), phase: 'Running', lock, message: 'Holds the cluster lock; checking once more.' },
    now,
    'took the cluster lock',
  )

/** The stage that it is in, put beside those that it went through. */
export const withStage = (status: OperationStatus): OperationStatus => {
  const { stage, progress, stages = [] } = status
  if (stage === undefined || !progress) return status
  return { ...status, stages: [...stages, { name: stage, done: progress.done, skipped: progress.skipped }].slice(-STAGES) }
}

const targetFrom = ({ skip, ...candidate }: Candidate, now: number): Target =>
  skip === undefined ? { ...candidate, phase: 'Pending' } : { ...candidate, phase: 'Skipped', finishedAt: iso(now), message: skip }

/** A stage begins: its machines in their order take the place of those of the stage before, of which only the numbers are kept. `number`: where there are several. */
export const planned = (
  before: OperationStatus,
  now: number,
  stage: string,
  candidates: readonly Candidate[],
  number: StageNumber = {},
): OperationStatus => {
  const status = withStage(before)
  const machines = candidates.map(candidate => targetFrom(candidate, now))
  const order = machines.filter(t => t.phase === 'Pending').map(displayName)
  return told(
    { ...status, phase: 'Running', stage, startedAt: status.startedAt ?? iso(now), machines, progress: progressOf(machines, number) },
    now,
    `${status.stages ? `${stage}, ` : ''}order: ${order.join(', ') || 'nothing to do'}`,
  )
}

/** Machines that joined while the operation ran go to the end. */
export const appended = (status: OperationStatus, now: number, candidates: readonly Candidate[]): OperationStatus => {
  const machines = [...targetsOf(status), ...candidates.map(candidate => targetFrom(candidate, now))]
  return told(
    { ...status, machines, progress: progressOf(machines, status.progress) },
    now,
    `appended ${candidates.map(displayName).join(', ')}`,
  )
}

/** How people know the machine. */
const titleIn = (status: OperationStatus, name: string): string =>
  displayName({ name, hostname: targetsOf(status).find(t => t.name === name)?.hostname })

export const opened = (
  status: OperationStatus,
  now: number,
  name: string,
  before: Target['before'],
  goal: Readonly<Record<string, string>>,
): OperationStatus =>
  running(
    withTarget(status, name, t => ({
      ...without(t, 'failure', 'finishedAt'),
      phase: 'Running',
      startedAt: iso(now),
      before,
      goal: { ...goal },
      message: 'opened',
    })),
    now,
    `opened ${titleIn(status, name)}`,
  )

const running = (status: OperationStatus, now: number, history: string): OperationStatus =>
  told({ ...without(status, 'failureReason', 'waiting', 'gates'), phase: 'Running' }, now, history)

/** A step becomes current: its clock starts, acted or not. */
export const entered = (status: OperationStatus, now: number, name: string, step: Step): OperationStatus =>
  withTarget(status, name, t => ({
    ...without(t, 'actedAt', 'firstActedAt', 'actedBefore', 'retryAt', 'fault', 'stableSince', 'attempts', 'message'),
    step: step.name,
    stepStartedAt: iso(now),
    attempts: 0,
  }))

/** It failed or was refused. Machines that are still open are brought to their end, but that does not make it a running one again. */
export const isStopped = (status: OperationStatus): boolean =>
  status.phase === 'Paused' && status.failureReason !== undefined && status.failureReason !== 'ClusterLockHeld'

const going = (status: OperationStatus, message: string, wait: OperationStatus['waiting']): OperationStatus =>
  isStopped(status)
    ? status
    : { ...without(status, 'failureReason', 'waiting'), phase: 'Running', message: long(message), ...(wait ? { waiting: wait } : {}) }

/**
 * The intention, written before the act. An act that is only repeated (one more round of evictions) keeps the words of the wait it stands in, so that
 * its reader does not see the two take turns.
 */
export const intended = (status: OperationStatus, now: number, name: string, message: string, commits = false): OperationStatus => {
  const isRepeated = (targetsOf(status).find(t => t.name === name)?.attempts ?? 0) > 0 && status.waiting !== undefined
  const next = withTarget(status, name, t => ({
    ...without(t, 'retryAt', 'fault', 'stableSince'),
    // What was said to a try before says nothing of this one.
    ...(t.receipts ? { receipts: t.receipts.filter(r => r.step !== t.step) } : {}),
    firstActedAt: t.firstActedAt ?? iso(now),
    actedAt: iso(now),
    ...(commits ? { committed: t.committed ?? t.step } : {}),
    attempts: more(t.attempts),
    ...(isRepeated ? {} : { message: short(message) }),
  }))
  const { message: before = message, waiting: wait } = status
  return isRepeated ? going(next, before, wait) : going(next, message, undefined)
}

/** The act got a bad answer, and is not tried again before `retryAt` (milliseconds since 1970). */
export const unanswered = (status: OperationStatus, name: string, message: string, retryAt: number): OperationStatus =>
  withTarget(status, name, t => ({ ...t, retryAt: iso(retryAt), fault: short(message) }))

/** It is certain that the act did nothing: the last intention came to nothing, so that its effect need not be waited for. One before it may have come to something. */
export const undone = (status: OperationStatus, name: string): OperationStatus =>
  withTarget(status, name, t => ((t.attempts ?? 0) > 1 ? without(t, 'actedAt') : without(uncommitted(t), 'actedAt', 'firstActedAt')))

/** The step that it is in begins anew: what an earlier one committed it to stays. */
const uncommitted = (target: Target): Target => (target.committed === target.step ? without(target, 'committed') : target)

/** What became of a machine, put behind what was said of it. Nothing else changes. */
export const remarked = (status: OperationStatus, name: string, note: string): OperationStatus =>
  withTarget(status, name, ({ message = '', ...t }) => ({ ...t, message: short(`${message} (${note})`.trim()) }))

export const holding = (status: OperationStatus, name: string, since: number | undefined): OperationStatus =>
  withTarget(status, name, t => (since === undefined ? without(t, 'stableSince') : { ...t, stableSince: iso(since) }))

export const received = (status: OperationStatus, now: number, name: string, step: string, value: string): OperationStatus =>
  withTarget(status, name, t => ({
    ...t,
    receipts: [
      ...(t.receipts ?? []).filter(r => r.step !== step),
      { step, bootID: t.before?.bootID ?? '', value: value.slice(0, 1024), at: iso(now) },
    ].slice(-RECEIPTS),
  }))

export const waiting = (
  status: OperationStatus,
  now: number,
  name: string | undefined,
  message: string,
  until: number | undefined,
): OperationStatus => {
  // The wait for one step is one wait, however its words change: it began with the step.
  const target = targetsOf(status).find(t => t.name === name)
  const since = target?.stepStartedAt ?? (status.waiting?.for === short(message) ? status.waiting.since : iso(now))
  const wait = { for: short(message), since, ...(until === undefined ? {} : { until: iso(until) }) }
  const next = going(status, message, wait)
  // The turn of a machine has come although it cannot begin: from here runs the time that it may need.
  return name === undefined
    ? next
    : withTarget(next, name, t => ({
        ...t,
        message: short(message),
        ...(t.phase === 'Pending' ? { stepStartedAt: t.stepStartedAt ?? iso(now) } : {}),
      }))
}

/** A machine whose turn has not come yet: what is waited for is not its own time. */
export const notYet = (status: OperationStatus, now: number, name: string, message: string, until: number | undefined): OperationStatus =>
  waiting(
    withTarget(status, name, t => without(t, 'stepStartedAt')),
    now,
    undefined,
    message,
    until,
  )

/**
 * The next machine waits for gates of the cluster. How long it has been waiting is told to the minute, so that a wait of hours is not a write every few
 * seconds.
 */
export const atGates = (
  status: OperationStatus,
  now: number,
  target: Target,
  gates: { readonly what: string; readonly since: number; readonly until: number | undefined; readonly states: readonly GateState[] },
): OperationStatus => {
  const next = `${displayName(target)} is next`
  const minutes = Math.floor((now - gates.since) / 60_000)
  const message = `waiting for ${gates.what}${minutes > 0 ? ` ${formatDuration(minutes * 60_000)}` : ''}; ${next}`
  const wait = {
    for: short(`${gates.what}; ${next}`),
    since: iso(gates.since),
    ...(gates.until === undefined ? {} : { until: iso(gates.until) }),
  }
  const turned = withTarget(status, target.name, t => without(t, 'stepStartedAt'))
  return { ...going(turned, message, wait), gates: [...gates.states] }
}

/** What matters only until a machine is done. With many machines it would be most of the status. */
const settled = (target: Target): Target => without(target, 'receipts', 'committed', 'goal', 'failure')

export const closed = (
  status: OperationStatus,
  now: number,
  name: string,
  phase: TargetPhase,
  message: string,
  after?: Target['after'],
): OperationStatus => {
  const next = withTarget(status, name, t => ({
    ...without(
      phase === 'Completed' ? settled(t) : t,
      ...(['step', 'stepStartedAt', 'actedAt', 'firstActedAt', 'actedBefore', 'retryAt', 'fault', 'stableSince', 'attempts'] as const),
    ),
    phase,
    finishedAt: iso(now),
    message: short(message),
    ...(after ? { after } : {}),
  }))
  return told({ ...next, progress: progressOf(targetsOf(next), next.progress) }, now, `${titleIn(next, name)}: ${message}`)
}

/** As before it was ever opened. */
const anew = ({ name, hostname, node, address, role }: Target): Target => ({ name, hostname, node, address, role, phase: 'Pending' })

/**
 * Closed before anything irreversible was done; it will be opened again as if for the first time. What was chosen and when it was closed stays: by that
 * a configuration is known that was left on trial.
 */
export const returned = (status: OperationStatus, now: number, name: string, message: string): OperationStatus => {
  const next = withTarget(status, name, t => ({
    ...anew(t),
    ...(t.goal ? { goal: t.goal } : {}),
    finishedAt: iso(now),
    message: short(message),
  }))
  return told(next, now, `${titleIn(next, name)}: ${message}`)
}

/** A fault of ours: no question about an open machine can be asked any more, so all of them stop where they are. */
export const broken = (status: OperationStatus, now: number, message: string): OperationStatus => {
  const open = targetsOf(status).filter(t => t.phase === 'Running' || !(t.phase in TARGET_PHASES))
  const stopped = open.reduce(
    (next, target) => withTarget(next, target.name, t => ({ ...t, phase: 'Failed', message: short(message) })),
    status,
  )
  return failed(stopped, now, undefined, 'InternalError', message)
}

export const failed = (
  status: OperationStatus,
  now: number,
  target: Target | undefined,
  reason: Reason,
  message: string,
): OperationStatus => {
  const failure = {
    at: iso(now),
    reason,
    message: long(message),
    ...(target ? { machine: target.name, ...(target.step ? { step: target.step } : {}) } : {}),
  }
  const next = target
    ? withTarget(status, target.name, t => ({ ...t, phase: 'Failed', message: short(message), failure: { at: iso(now), reason } }))
    : status
  return told({ ...paused(next, reason, message), lastFailure: failure }, now, `failed (${reason}): ${message}`)
}

/** How a machine failed before, where a person has asked for a new try since; undefined else. */
export const failureTriedAnew = ({ lastRetry }: OperationStatus, { failure }: Target): Target['failure'] =>
  failure && ms(lastRetry) >= ms(failure.at) ? failure : undefined

/**
 * A retry: the failed step starts anew, with a new clock. A machine to which nothing was done yet that cannot be undone waits for its turn again: it may be
 * held by now, its window may have closed, or others may be away; unless it is to go on `inPlace`. What was refused is checked anew. `byApply`: a standing
 * wish, which counts once.
 */
export const retried = (
  status: OperationStatus,
  now: number,
  { byApply = false, inPlace = false }: { readonly byApply?: boolean; readonly inPlace?: boolean } = {},
): OperationStatus => {
  // Where a machine has failed nothing is checked again: others may be away just because of that. What was refused is, though it was planned already.
  const hasFailed = status.machines?.some(t => t.phase === 'Failed') ?? false
  const kept = without(status, 'failureReason', 'waiting')
  return told(
    {
      ...(hasFailed || (status.machines && status.failureReason !== 'PreflightRefused') ? kept : without(kept, 'preflight')),
      phase: status.machines === undefined ? 'Pending' : 'Running',
      lastRetry: iso(now),
      ...(byApply ? { appliedRetry: { at: iso(now), ignored: 0 } } : {}),
      message: 'Retrying.',
      machines: status.machines?.map(t =>
        t.phase === 'Failed'
          ? t.before === undefined || (t.committed === undefined && !t.actedBefore && !inPlace)
            ? { ...anew(t), ...(t.failure ? { failure: t.failure } : {}), message: 'retrying' }
            : {
                ...without(uncommitted(t), 'actedAt', 'firstActedAt', 'retryAt', 'fault', 'stableSince', 'finishedAt'),
                ...(t.firstActedAt === undefined ? {} : { actedBefore: true }),
                phase: 'Running',
                attempts: 0,
                stepStartedAt: iso(now),
                message: 'retrying',
              }
          : t,
      ),
    },
    now,
    'retry asked for',
  )
}

/** A retry that was applied once more after it was honoured. */
export const retryIgnored = (status: OperationStatus, honoured: NonNullable<OperationStatus['appliedRetry']>): OperationStatus => ({
  ...status,
  appliedRetry: { ...honoured, ignored: more(honoured.ignored) },
})

/** Override was turned on after a refusal: the checks run anew. */
export const uncheck = (status: OperationStatus, now: number): OperationStatus =>
  told(
    { ...without(status, 'failureReason', 'preflight'), phase: 'Pending', message: 'Override was turned on; the checks are running.' },
    now,
    'override turned on',
  )

export const completed = (status: OperationStatus, now: number, message: string): OperationStatus =>
  told(
    {
      ...without(status, 'failureReason', 'waiting', 'gates', 'lock', 'stage'),
      phase: 'Completed',
      completedAt: iso(now),
      message,
      progress: progressOf(targetsOf(status), status.progress),
    },
    now,
    message,
  )

export const cancelled = (status: OperationStatus, now: number, message: string): OperationStatus =>
  told(
    { ...without(status, 'failureReason', 'waiting', 'gates', 'lock', 'stage'), phase: 'Cancelled', completedAt: iso(now), message },
    now,
    message,
  )

export const lockLost = (status: OperationStatus): OperationStatus => without(status, 'lock')

/** What kstatus, Flux, Argo CD and `kubectl wait` read. Computed here alone, so that phase and conditions cannot disagree. */
export const withConditions = (status: OperationStatus, operation: TalosOperation, now: number): OperationStatus => {
  const { phase = 'Pending', failureReason, message = '' } = status
  const finished = isFinished(phase)
  const waitsForLock = failureReason === 'ClusterLockHeld'
  const stalled = phase === 'Paused' && failureReason !== undefined && !waitsForLock
  const reconciling = !finished && !stalled && (phase !== 'Paused' || waitsForLock)
  const reason = failureReason ?? (phase === 'Paused' ? 'PausedByOperator' : phase)
  const states: readonly (readonly [string, boolean])[] = [
    ['Ready', phase === 'Completed'],
    ['Reconciling', reconciling],
    ['Stalled', stalled],
    ['Finished', finished],
  ]
  const conditions = states.map(([type, holds]): Condition => {
    const value = holds ? 'True' : 'False'
    const old = operation.status.conditions?.find(c => c.type === type)
    return {
      type,
      status: value,
      reason,
      message,
      observedGeneration: operation.metadata.generation,
      lastTransitionTime: old?.status === value ? old.lastTransitionTime : iso(now),
    }
  })
  return { ...status, conditions, observedGeneration: operation.metadata.generation }
}
