import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import { hostOf } from '../../core/summary.ts'
import type { KubeObject } from './api.ts'

/** `at` in milliseconds since 1970. */
export type LogLine = { readonly at: number; readonly text: string; readonly isWarning: boolean }

/** The same thing is told by the status and by an Event, whose times are of whole seconds. */
const SAME_MS = 2_000

/**
 * What happened to an operation, oldest first: the decisions that its status remembers, when its machines were opened, came into their step and were closed, and the Events
 * about it. What two of them tell is told once, in the words of the one that says more.
 */
export const operationLog = (operation: TalosOperation, events: readonly KubeObject[]): readonly LogLine[] => {
  const { status } = operation
  const own = [
    ...(status.history ?? []).map(({ at, message }) => line(at, message)),
    ...(status.machines ?? []).flatMap(machineLines),
  ].filter(({ at }) => !Number.isNaN(at))
  const all = [...events.flatMap(event => eventLines(operation, event)), ...own].map(one => ({ ...one, plain: plain(one.text) }))
  const isTold = (one: (typeof all)[number], index: number): boolean =>
    all.some((other, at) => {
      if (at === index || Math.abs(other.at - one.at) > SAME_MS || !other.plain.includes(one.plain)) return false
      return other.plain.length > one.plain.length || at < index
    })
  return all
    .filter((one, index) => !isTold(one, index))
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, text, isWarning }) => ({ at, text, isWarning }))
}

const line = (at: string, text: string, isWarning = false): LogLine => ({ at: Date.parse(at), text, isWarning })

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

/** History says `failed (REASON): …` where the Event says `REASON: …`. */
const plain = (text: string): string =>
  text
    .toLowerCase()
    .replace(/^failed /, '')
    .replaceAll(/[.:()]/g, '')
