import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import { hostOf } from '../../core/summary.ts'
import type { KubeObject } from './api.ts'

/** `at` in milliseconds since 1970; `words` are what is compared. */
export type LogLine = { readonly at: number; readonly text: string; readonly words: string; readonly isWarning: boolean }

/** The same thing is told by the status and by an Event, whose times are of whole seconds. */
const SAME_MS = 2_000

/** Whether one line tells what another one tells, in the same words or more. */
const tells = (one: LogLine, other: LogLine): boolean => Math.abs(one.at - other.at) <= SAME_MS && one.words.includes(other.words)
export const tellTheSame = (one: LogLine, other: LogLine): boolean => tells(one, other) || tells(other, one)

/**
 * What happened to an operation, oldest first: the decisions that its status remembers, when its machines were opened, came into the step that they are in
 * and were closed, and the Events about it. What two of them tell is told once, in the words of the one that says more.
 */
export const operationLog = (operation: TalosOperation, events: readonly KubeObject[]): readonly LogLine[] => {
  const { status } = operation
  const own = [
    ...(status.history ?? []).map(({ at, message }) => line(at, message)),
    ...(status.machines ?? []).flatMap(machineLines),
  ].filter(({ at }) => !Number.isNaN(at))
  const all = [...events.flatMap(event => eventLines(operation, event)).map(event => timed(event, own)), ...own]
  const isTold = (one: LogLine, index: number): boolean =>
    all.some((other, at) => at !== index && tells(other, one) && (!tells(one, other) || at < index))
  return all.filter((one, index) => !isTold(one, index)).toSorted((a, b) => a.at - b.at)
}

/** Events know the second; where the status tells the same, it knows the moment. */
const timed = (event: LogLine, own: readonly LogLine[]): LogLine => {
  const same = own.find(one => Math.floor(one.at / 1_000) * 1_000 === event.at && tellTheSame(one, event))
  return same ? { ...event, at: same.at } : event
}

const line = (at: string, text: string, isWarning = false): LogLine => ({ at: Date.parse(at), text, words: wordsOf(text), isWarning })

const machineLines = (target: Target): readonly LogLine[] => {
  const { phase, startedAt, step, stepStartedAt, finishedAt, message } = target
  return [
    ...(startedAt ? [line(startedAt, `opened ${hostOf(target)}`)] : []),
    ...(step && stepStartedAt ? [line(stepStartedAt, `${hostOf(target)}: step ${step}`)] : []),
    ...(finishedAt && message ? [line(finishedAt, `${hostOf(target)}: ${message}`, phase === 'Failed')] : []),
  ]
}

type EventFields = {
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly uid?: string }
  readonly type?: string
  readonly reason?: string
  readonly message?: string
  readonly count?: number
  readonly lastTimestamp?: string
}

const eventLines = ({ metadata }: TalosOperation, object: KubeObject): readonly LogLine[] => {
  const { involvedObject, type, reason = '', message = '', count = 1, lastTimestamp } = object as KubeObject & EventFields
  // A namesake that was there before is another operation.
  if (involvedObject?.uid !== metadata.uid || Number.isNaN(Date.parse(lastTimestamp ?? ''))) return []
  return [line(lastTimestamp ?? '', `${reason}: ${message}${count > 1 ? ` (${count} times)` : ''}`, type === 'Warning')]
}

/**
 * The words of a line between spaces, so that wk-1 is not found in wk-10; without what differs where two tell the same: history says `opened cp-1`,
 * `cp-1: OUTCOME` and `failed (REASON): …` where Events say `cp-1 is being worked on`, `cp-1 is done: OUTCOME` and `REASON: …`.
 */
const wordsOf = (text: string): string => {
  const words = text
    .toLowerCase()
    .replace(/(\S+) is being worked on/, 'opened $1')
    .replace(' is done: ', ' ')
    .replace(/^failed /, '')
    .replace(/ \(\d+ times\)$/, '')
    .replaceAll(/[.:()…]/g, '')
  // One that was cut short may end within a word.
  return ` ${words}${text.endsWith('…') ? '' : ' '}`
}
