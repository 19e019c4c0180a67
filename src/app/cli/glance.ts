import { formatDuration } from '../../api/duration.ts'
import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import type { State } from '../../core/operation-state.ts'
import { clockTime, holderText, ownMessage, summarize } from '../../core/summary.ts'
import type { Summary } from '../../core/summary.ts'
import { changeColumn } from './change-column.ts'
import { phaseColor } from './output.ts'
import type { Session } from './session.ts'
import { alignedLines, clipped, wrapped } from './table.ts'
import type { Colors } from './terminal.ts'
import { typed } from './typed.ts'

/** An operation at a glance, as lines. `isLive`: it is watched on a terminal, and has to fit there; else its last decisions are listed, too. */
export const glanceLines = (
  session: Pick<Session, 'terminal' | 'outside' | 'choice'>,
  operation: TalosOperation,
  isLive = false,
): string[] => {
  const { terminal } = session
  const { colors } = terminal
  const now = terminal.now()
  const summary = summarize(operation, now)
  const lines = [
    `${colors.bold(summary.name)}  ${colors.dim(aboutText(summary, operation))}`,
    ...wrapped(`${MARKS[summary.state]} ${summary.headline}`, isLive ? terminal.width() : Number.POSITIVE_INFINITY).map(line =>
      stateColor(summary.state, colors)(line),
    ),
  ]
  // A refusal's detail is all the refusals in a row, and they follow one by one.
  if (summary.detail && summary.refusals.every(({ overridden }) => overridden)) lines.push(`  ${summary.detail}`)
  for (const machine of summary.state === 'waiting' ? summary.open : [])
    if (machine.message && !summary.waiting?.for.includes(machine.message)) lines.push(`  ${machine.name}: ${machine.message}`)
  lines.push(...refusalLines(summary, colors), ...failureLines(summary, now, colors))

  lines.push('')
  if (summary.lock) lines.push(`Lock      ${lockText(summary, now)}`)
  const { total, skipped } = summary.progress
  // Once it is over the numbers are those of its last stage, and say nothing of the whole.
  const isOfOneStage = summary.stage === undefined && operation.status.progress?.stages !== undefined
  if (total + skipped > 0 && !isOfOneStage) lines.push(`Progress  ${progressText(summary)}`)
  if (summary.next.length > 0 && summary.state !== 'cancelled') lines.push(`Next      ${nextText(summary.next)}`)
  for (const note of summary.notes) lines.push(`Note      ${note}`)

  const short = (text: string) => withoutFailure(text, summary)
  const machines = operation.status.machines ?? []
  if (machines.length > 0) lines.push('', ...machineLines(operation, now, { colors, short }))
  if (!isLive && (operation.status.history?.length ?? 0) > 0) lines.push('', ...historyLines(operation, now, short))
  const commands = summary.commands.filter(({ purpose }) => !isLive || purpose !== 'watch it')
  if (commands.length > 0) lines.push('', ...commandLines(commands, session))
  return withoutDoubleBlanks(lines)
}

/** Told apart without colour, too. */
const MARKS: Readonly<Record<State, string>> = {
  pending: '…',
  running: '▶',
  waiting: '…',
  queued: '…',
  pausing: '‖',
  paused: '‖',
  failed: '✗',
  failing: '✗',
  refused: '✗',
  resuming: '▶',
  cancelling: '■',
  deleting: '■',
  completed: '✓',
  cancelled: '■',
  ended: '■',
}

export const stateColor = (state: State, colors: Colors): ((text: string) => string) => {
  switch (state) {
    case 'failed':
    case 'failing':
    case 'refused':
      return colors.red
    case 'paused':
    case 'pausing':
    case 'queued':
    case 'cancelling':
    case 'deleting':
      return colors.yellow
    case 'completed':
      return colors.green
    case 'running':
    case 'waiting':
    case 'resuming':
      return colors.cyan
    case 'pending':
    case 'cancelled':
    case 'ended':
      return colors.dim
  }
}

const aboutText = ({ kind, cluster, namespace, requestedBy }: Summary, { spec }: TalosOperation): string => {
  const block = Object.entries(spec).find(([key]) => key === kind.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase()))?.[1]
  // The version that it goes to, or the action that it is.
  const { version, action } = (typeof block === 'object' && block !== null ? block : {}) as { version?: unknown; action?: unknown }
  return `${[kind, version ?? action].filter(Boolean).join(' ')} on cluster ${cluster}, namespace ${namespace}${requestedBy ? `, asked for by ${requestedBy}` : ''}`
}

const refusalLines = ({ refusals }: Summary, { red, yellow }: Colors): string[] =>
  refusals.map(({ rule, message, overridable, overridden }) => {
    const text = `  ${rule}: ${message}`
    return overridden ? yellow(`${text} (overridden)`) : red(`${text}${overridable ? ' (can be overridden)' : ''}`)
  })

const failureLines = ({ failure }: Summary, now: number, { red, dim }: Colors): string[] => {
  if (!failure) return []
  if (failure.isCurrent)
    return [...(failure.message ? [red(`  ${failure.message}`)] : []), dim(`  ${failure.reason}: ${failure.explained}`)]
  const where = [
    failure.machine && `on ${failure.machine}`,
    failure.step && `in step ${failure.step}`,
    failure.when && `at ${clockTime(failure.when.at, now)}`,
  ]
  return [dim(`  Earlier failure: ${[failure.reason, ...where.filter(Boolean)].join(' ')}: ${failure.message}`)]
}

const lockText = ({ lock, cluster }: Summary, now: number): string => {
  if (!lock) return ''
  const since = lock.since ? ` since ${clockTime(lock.since.at, now)} (${formatDuration(lock.since.ms)})` : ''
  return `of cluster ${cluster}: held by ${lock.isOurs ? 'this operation' : holderText(lock.holder)}${since}`
}

const progressText = ({ stage, progress: { done, skipped, total } }: Summary): string => {
  const width = 24
  // A status that says more than its total must not break the picture.
  const full = total > 0 ? Math.round(Math.min(1, done / total) * width) : 0
  return `[${'#'.repeat(full)}${'-'.repeat(width - full)}] ${stage === undefined ? '' : `${stage}: `}${done} of ${total} done${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

const nextText = (next: readonly string[]): string =>
  next.length > 4 ? `${next.slice(0, 4).join(', ')} and ${next.length - 4} more` : next.join(', ')

const machineLines = (
  operation: TalosOperation,
  now: number,
  { colors, short }: { colors: Colors; short: (text: string) => string },
): string[] => {
  const machines = operation.status.machines ?? []
  const change = changeColumn(operation)
  const rows = machines.map(m => [
    m.name,
    m.role,
    m.phase,
    m.phase === 'Running' || m.phase === 'Failed' ? (m.step ?? '') : '',
    ...(change ? [change.of(m)] : []),
    timeText(m, now),
    short(ownMessage(m)),
  ])
  const [header = '', ...body] = alignedLines(
    ['MACHINE', 'ROLE', 'PHASE', 'STEP', ...(change ? [change.title.toUpperCase()] : []), 'TIME', 'MESSAGE'],
    rows,
  )
  return [
    header,
    ...body.map((line, index) =>
      line.replace(` ${machines[index]?.phase ?? ''}`, phase => ` ${phaseColor(phase.slice(1), colors)(phase.slice(1))}`),
    ),
  ]
}

/** The failure is told in full further up: where its words come again, their beginning will do. */
const withoutFailure = (text: string, { failure }: Summary): string => {
  const room = 80
  return failure && text.includes(failure.message.slice(0, room / 2)) ? clipped(text, room) : text
}

// In the current step for one that is open, else from its opening to its close.
const timeText = (target: Target, now: number): string => {
  const from = target.phase === 'Running' ? (target.stepStartedAt ?? target.startedAt) : target.startedAt
  if (!from) return ''
  const to = target.finishedAt ? Date.parse(target.finishedAt) : target.phase === 'Running' ? now : Number.NaN
  return Number.isNaN(to) ? '' : formatDuration(to - Date.parse(from))
}

const historyLines = ({ status }: TalosOperation, now: number, short: (text: string) => string): string[] => [
  'History',
  ...(status.history ?? []).map(({ at, message }) => `  ${clockTime(at, now)}  ${short(message)}`),
]

const commandLines = (commands: Summary['commands'], { outside, choice }: Pick<Session, 'outside' | 'choice'>): string[] => {
  const asTyped = (command: string) => typed(command, outside.calledAs, choice)
  const kubectl = 'or, with kubectl'
  const width = Math.max(kubectl.length, ...commands.map(({ purpose }) => purpose.length))
  const lines = commands.map(({ purpose, ichor }) => `  ${`${purpose}:`.padEnd(width + 2)}${asTyped(ichor)}`)
  const [first = '', ...others] = lines
  return ['What you can do', first, `  ${`${kubectl}:`.padEnd(width + 2)}${asTyped(commands[0]?.kubectl ?? '')}`, ...others]
}

const withoutDoubleBlanks = (lines: readonly string[]): string[] => {
  const kept = lines.filter((line, index) => line !== '' || lines[index - 1] !== '')
  return kept.at(-1) === '' ? kept.slice(0, -1) : kept
}
