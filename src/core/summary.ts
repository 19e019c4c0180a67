import { formatDuration } from '../api/duration.ts'
import { ANNOTATION, operationHolder } from '../api/names.ts'
import type { Phase } from '../api/phases.ts'
import { isFinished, PHASES } from '../api/phases.ts'
import type { Reason } from '../api/reasons.ts'
import { REASONS } from '../api/reasons.ts'
import type { OperationStatus, TalosOperation, Target } from '../api/talos-operation.ts'
import type { FollowUp } from './follow-up.ts'
import { followUps } from './follow-up.ts'
import { holderNamed } from './lock-claim.ts'
import type { State } from './operation-state.ts'
import { stateOf } from './operation-state.ts'
import { stageTitle } from './stages.ts'

/** A moment as the status says it, and how far it is from now. */
export type Moment = { readonly at: string; readonly ms: number }

/** `name` is the host name where it is known: what people call the machine. */
export type OpenMachine = { readonly name: string; readonly step: string; readonly since: Moment | undefined; readonly message: string }

export type Failure = {
  readonly reason: Reason
  /** What the reason means. */
  readonly explained: string
  /** What was expected and what was seen. */
  readonly message: string
  readonly machine: string | undefined
  readonly step: string | undefined
  readonly when: Moment | undefined
  /** It is what holds the operation up now; otherwise it was retried since. */
  readonly isCurrent: boolean
}

export type Refusal = {
  readonly rule: string
  readonly message: string
  readonly machine: string | undefined
  readonly overridable: boolean
  readonly overridden: boolean
}

export type Summary = {
  readonly name: string
  readonly namespace: string
  readonly cluster: string
  readonly kind: string
  readonly phase: Phase
  readonly state: State
  /** One sentence: what it does now, where, since when; or what it waits for; or why it stands still. */
  readonly headline: string
  /** Where more is worth saying than fits the headline; else empty. */
  readonly detail: string
  readonly open: readonly OpenMachine[]
  readonly waiting: { readonly for: string; readonly since: Moment; readonly until: Moment | undefined } | undefined
  readonly lock: { readonly holder: string; readonly isOurs: boolean; readonly since: Moment | undefined } | undefined
  /** `total` are the machines to work on: those that were skipped are not among them. */
  readonly progress: { readonly done: number; readonly skipped: number; readonly total: number }
  /** `stage 6 of 7, kubelet`: what the progress is of, where there are several stages; undefined once it is over. */
  readonly stage: string | undefined
  readonly done: readonly string[]
  /** In the order in which they will be touched. */
  readonly next: readonly string[]
  readonly refusals: readonly Refusal[]
  readonly notes: readonly string[]
  readonly failure: Failure | undefined
  readonly requestedBy: string | undefined
  readonly started: Moment | undefined
  readonly finished: Moment | undefined
  /** What a person can do now, most useful first. */
  readonly commands: readonly FollowUp[]
}

/** How long a new operation may lie untouched before the controller's absence is the likely cause. */
const untouchedMs = 20_000

/** What there is to know of an operation at `now` (milliseconds since 1970), from its own words alone. */
export const summarize = (operation: TalosOperation, now: number): Summary => {
  const { metadata, spec, status } = operation
  const state = stateOf(operation)
  const machines = status.machines ?? []
  const facts = {
    open: machines.filter(m => m.phase === 'Running').map(m => openMachine(m, now)),
    waiting: waitingOf(operation, now),
    lock: lockOf(operation, now),
    refusals: (status.preflight?.refusals ?? []).map(({ rule, message, machine, overridable, overridden }) => ({
      rule,
      message,
      machine,
      overridable,
      overridden,
    })),
    progress: progressOf(operation),
    stage: stageTitle(status),
    failure: failureOf(operation, state, now),
    started: moment(status.startedAt, now),
    finished: moment(status.completedAt, now),
  }
  return {
    name: metadata.name,
    namespace: metadata.namespace,
    cluster: spec.clusterRef.name,
    kind: spec.kind,
    phase: status.phase ?? 'Pending',
    state,
    headline: headlineOf(operation, state, facts, now),
    detail: detailOf(operation, state, facts),
    ...facts,
    done: machines.filter(m => m.phase === 'Completed').map(hostOf),
    next: machines.filter(m => m.phase === 'Pending').map(hostOf),
    notes: [...(status.preflight?.notes ?? []), ...retryNotes(operation, state)],
    requestedBy: metadata.annotations[ANNOTATION.requestedBy],
    commands: followUps(operation, state),
  }
}

/** It stands in the annotation, and counts once nobody holds the operation back. */
const retryNotes = ({ metadata, spec }: TalosOperation, state: State): readonly string[] =>
  spec.paused && metadata.annotations[ANNOTATION.retry] === 'true' && state !== 'completed' && state !== 'cancelled'
    ? ['A retry is asked for. It is paused by its operator as well, so that is made when it is resumed.']
    : []

/** `14:33:11 UTC`, with the date where it is another day than `now`'s. */
export const clockTime = (at: string, now: number): string => {
  const ms = Date.parse(at)
  if (Number.isNaN(ms)) return at
  const [day, time] = new Date(ms).toISOString().slice(0, 19).split('T') as [string, string]
  return day === new Date(now).toISOString().slice(0, 10) ? `${time} UTC` : `${day} ${time} UTC`
}

const HOLDERS = { op: 'operation', machine: 'control plane', cni: 'the CNI Job of cluster' } as const

/** `operation home/talos-1-13-9` for a holder that is an operation, else the holder as it is. */
export const holderText = (holder: string): string => {
  const named = holderNamed(holder)
  return named ? `${HOLDERS[named.sort]} ${named.namespace}/${named.name}` : holder
}

type Facts = Pick<Summary, 'open' | 'waiting' | 'lock' | 'refusals' | 'progress' | 'stage' | 'failure' | 'started' | 'finished'>

/** A newer Ichor may have other words. */
const wordOf = ({ phase = 'Running' }: OperationStatus): string => (phase in PHASES ? 'Running' : phase)

const headlineOf = (operation: TalosOperation, state: State, facts: Facts, now: number): string => {
  const { metadata, status } = operation
  const { progress, open, failure } = facts
  switch (state) {
    case 'pending': {
      const age = now - Date.parse(metadata.creationTimestamp)
      if (status.phase === undefined && age > untouchedMs)
        return `Pending: no controller has looked at it for ${formatDuration(age)}. Is the Ichor controller running?`
      return status.message ? `Pending: ${status.message}` : 'Pending: its checks are running.'
    }
    case 'running':
      return open.length > 0
        ? `${wordOf(status)}: ${open.map(m => openText(m, now)).join('; ')}`
        : `${wordOf(status)}: ${status.message ?? 'between two machines'}`
    case 'waiting':
      return waitingText(facts, now)
    case 'queued':
      return queuedText(operation.spec.clusterRef.name, facts)
    case 'pausing':
      return `Pausing, once this is finished: ${open.map(m => openText(m, now)).join('; ')}`
    case 'paused':
      return status.failureReason !== undefined && status.failureReason !== 'ClusterLockHeld'
        ? `PAUSED by its operator, after ${status.failureReason}. Nothing advances until it is resumed.`
        : 'PAUSED by its operator. Nothing advances until it is resumed.'
    case 'failing':
      return `FAILED${failure?.machine ? ` on ${failure.machine}` : ''}: ${status.failureReason}${failure?.step ? ` in step ${failure.step}` : ''}${failure?.when ? `, ${ago(failure.when)}` : ''}. Still finishing ${open.map(m => openText(m, now)).join('; ')}`
    case 'failed':
      return `FAILED: ${status.failureReason}${failure?.machine ? ` on ${failure.machine}` : ''}${failure?.step ? ` in step ${failure.step}` : ''}${failure?.when ? `, ${ago(failure.when)}` : ''}. Nothing advances until it is resumed.`
    case 'refused': {
      const count = facts.refusals.filter(r => !r.overridden).length
      return `REFUSED: ${count === 1 ? 'one check' : count === 0 ? 'the checks' : `${count} checks`} refused it. No machine was touched and no lock is held.`
    }
    case 'resuming':
      if (status.failureReason === undefined) return 'Resuming: the controller has not taken it up yet.'
      return status.failureReason === 'PreflightRefused'
        ? 'Resuming: its checks were asked for again.'
        : `Resuming: ${failure?.step ? `step ${failure.step}` : 'the failed step'} was asked for again.`
    case 'cancelling':
      return `Cancelling: it stops at the next safe point${open.length > 0 ? ` (open: ${open.map(m => m.name).join(', ')})` : ''}.`
    case 'deleting':
      return `Deleting: it stops at the next safe point and is gone then${open.length > 0 ? ` (open: ${open.map(m => m.name).join(', ')})` : ''}.`
    case 'completed':
      if (hasStages(status)) return `Completed: ${(status.message ?? '').replace(/\.$/, '')}${tookText(status)}.`
      return progress.total > 0
        ? `Completed: ${countText(progress)}${tookText(status)}.`
        : `Completed: ${status.message ?? 'nothing was to be done'}`
    case 'ended':
      return `${status.phase}: ${status.message ?? 'a phase that this version of Ichor does not know'}`
    case 'cancelled':
      // The numbers are those of one stage; its message tells of which, and what was not begun.
      if (hasStages(status)) return `Cancelled${tookText(status)}.`
      return `Cancelled: ${progress.total > 0 ? `${countText(progress)}${tookText(status)}` : 'before anything was done'}.`
  }
}

const hasStages = ({ progress }: OperationStatus): boolean => progress?.stages !== undefined

const queuedText = (cluster: string, facts: Facts): string => {
  const { open, lock } = facts
  const holder = holderText(lock?.holder || 'another operation')
  if (open.length > 0)
    return `Queued: ${open.map(m => m.name).join(', ')} ${open.length === 1 ? 'is' : 'are'} open; it waits for its lock of cluster ${cluster} back, held by ${holder}.`
  if (mayWaitInVain(facts)) return `Queued: the lock of cluster ${cluster} is held by ${holder}, which is nothing of Ichor’s.`
  return `Queued: the lock of cluster ${cluster} is held by ${holder}. It starts by itself when that one finishes.`
}

/** It lost its lock to somebody, or somebody holds it who is no operation: that lock is not given back as a matter of course. */
const mayWaitInVain = ({ open, lock }: Facts): boolean =>
  open.length > 0 || (lock !== undefined && lock.holder !== '' && holderText(lock.holder) === lock.holder)

// The operation's own sentence, unless the headline has said it.
const detailOf = ({ metadata, spec, status }: TalosOperation, state: State, facts: Facts): string => {
  const message = status.message ?? ''
  if (state === 'completed' && hasStages(status)) return ''
  if (state === 'pending' || state === 'completed') return facts.progress.total > 0 ? message : ''
  const told = [facts.failure?.message, ...facts.open.map(m => m.message)]
  if (state === 'waiting' || told.some(text => text && (message.includes(text) || text.includes(message)))) return ''
  if (state === 'running' && facts.open.length === 0) return ''
  if (state === 'queued' && mayWaitInVain(facts))
    return `If nothing holds that lock any more, free it with: ichor lock release ${spec.clusterRef.name} --force -n ${metadata.namespace}`
  return message
}

/** What people call the machine. */
export const hostOf = (target: Target): string => target.hostname ?? target.name

/** A machine's message without its own name and step before it, for where both are said already. */
export const ownMessage = (target: Target): string =>
  [`${hostOf(target)}: `, `${target.step ?? ''}: `].reduce(
    (text, prefix) => (text.startsWith(prefix) ? text.slice(prefix.length) : text),
    target.message ?? '',
  )

const openMachine = (target: Target, now: number): OpenMachine => ({
  name: hostOf(target),
  step: target.step ?? '',
  since: moment(target.stepStartedAt ?? target.startedAt, now),
  message: ownMessage(target),
})

const openText = ({ name, step, since, message }: OpenMachine, now: number): string =>
  [
    `${name}${step ? ` in step ${step}` : ''}`,
    since ? ` since ${clockTime(since.at, now)} (${formatDuration(since.ms)})` : '',
    message ? `: ${message}` : '',
  ].join('')

// The wait often names its machine already.
const waitingText = ({ waiting, open }: Facts, now: number): string => {
  if (!waiting) return 'Waiting for the world'
  const { since, until } = waiting
  const isNamed = open.some(machine => waiting.for.includes(machine.name))
  const limit = until ? `, until ${clockTime(until.at, now)} (${until.ms < 0 ? `${formatDuration(-until.ms)} left` : 'passed'})` : ''
  const where = isNamed || open.length === 0 ? '' : `, on ${open.map(m => (m.step ? `${m.name} (step ${m.step})` : m.name)).join(', ')}`
  return `Waiting${isNamed ? ':' : ' for'} ${waiting.for}, since ${clockTime(since.at, now)} (${formatDuration(since.ms)})${limit}${where}`
}

const waitingOf = ({ status }: TalosOperation, now: number): Summary['waiting'] => {
  if (!status.waiting || isFinished(status.phase)) return undefined
  const { since, until } = status.waiting
  return { for: status.waiting.for, since: { at: since, ms: now - Date.parse(since) }, until: moment(until, now) }
}

const lockOf = ({ metadata, status }: TalosOperation, now: number): Summary['lock'] => {
  if (!status.lock || isFinished(status.phase)) return undefined
  const { holder, since } = status.lock
  return { holder, isOurs: holder === operationHolder(metadata.namespace, metadata.name), since: moment(since, now) }
}

const progressOf = ({ status }: TalosOperation): Summary['progress'] => {
  if (status.progress) return { done: status.progress.done, skipped: status.progress.skipped, total: status.progress.total }
  const machines = status.machines ?? []
  return {
    done: machines.filter(m => m.phase === 'Completed').length,
    skipped: machines.filter(m => m.phase === 'Skipped').length,
    total: machines.filter(m => m.phase !== 'Skipped').length,
  }
}

const failureOf = ({ status }: TalosOperation, state: State, now: number): Failure | undefined => {
  const last = status.lastFailure
  const current = status.phase === 'Paused' && status.failureReason !== 'ClusterLockHeld' ? status.failureReason : undefined
  // The list of refusals says more than a failure could.
  if (current === 'PreflightRefused' || state === 'completed') return undefined
  if (!last) {
    if (!current) return undefined
    return {
      reason: current,
      explained: REASONS[current],
      message: status.message ?? '',
      machine: undefined,
      step: undefined,
      when: undefined,
      isCurrent: true,
    }
  }
  const { reason, message, step, at } = last
  const target = status.machines?.find(one => one.name === last.machine)
  const machine = target ? hostOf(target) : last.machine
  return { reason, explained: REASONS[reason], message, machine, step, when: moment(at, now), isCurrent: current === reason }
}

const countText = ({ done, skipped, total }: Summary['progress']): string => {
  const parts = [`${done} of ${total} machine${total === 1 ? '' : 's'} done`]
  if (skipped > 0) parts.push(`${skipped} skipped`)
  return parts.join(', ')
}

const tookText = ({ startedAt, completedAt }: TalosOperation['status']): string =>
  startedAt && completedAt ? ` in ${formatDuration(Date.parse(completedAt) - Date.parse(startedAt))}` : ''

const moment = (at: string | undefined, now: number): Moment | undefined =>
  at === undefined ? undefined : { at, ms: now - Date.parse(at) }

const ago = ({ ms }: Moment): string => `${formatDuration(ms)} ago`
