import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import { stateOf } from '../../core/operation-state.ts'
import { hostOf, ownMessage, summarize } from '../../core/summary.ts'

/** What was said of the work under way, and when it held last (milliseconds since 1970). */
export type Said = Map<string, number>

/** Several machines take turns in what is told of the operation: what holds again within this time is no news. */
const freshMs = 30_000

/** What is worth a line of a log between two sights of an operation; `before` is absent at the first. `said` is kept from sight to sight. */
export const changeLines = (before: TalosOperation | undefined, after: TalosOperation, now: number, said: Said = new Map()): string[] => {
  const lines: string[] = []
  const { stage, progress } = summarize(after, now)
  const isNewStage = stage !== undefined && before?.status.stage !== after.status.stage
  if (isNewStage) lines.push(`${stage}: ${progress.done} of ${progress.total} done`)
  const known = new Map((isNewStage ? [] : (before?.status.machines ?? [])).map(machine => [machine.name, machine]))
  for (const machine of after.status.machines ?? []) {
    const earlier = known.get(machine.name)
    // At the first sight only what is open: the rest is in the headline's count.
    if (before ? hasMoved(earlier, machine) : machine.phase === 'Running' || machine.phase === 'Failed') lines.push(machineLine(machine))
  }
  const [was, is] = [before && stateOf(before), stateOf(after)]
  if (was !== is || (is === 'waiting' && shapeOf(before?.status.waiting?.for) !== shapeOf(after.status.waiting?.for)))
    if (isNews(after, now, said)) lines.push(summarize(after, now).headline)
  return lines
}

const isNews = (operation: TalosOperation, now: number, said: Said): boolean => {
  const state = stateOf(operation)
  if (state !== 'waiting' && state !== 'running') {
    said.clear()
    return true
  }
  const open = (operation.status.machines ?? []).filter(machine => machine.phase === 'Running')
  const key = [state, shapeOf(operation.status.waiting?.for), ...open.map(({ name, step }) => `${name}/${step}`)].join(' ')
  const last = said.get(key)
  said.set(key, now)
  return last === undefined || now - last >= freshMs
}

/** Without its numbers: a count or a percentage that moves is no news for a log. The number in a machine's name stays. */
const shapeOf = (text = ''): string => text.replaceAll(/(?<![\w-])\d+(\.\d+)?/g, '0')

const hasMoved = (earlier: Target | undefined, machine: Target): boolean =>
  earlier ? earlier.phase !== machine.phase || (machine.phase === 'Running' && earlier.step !== machine.step) : machine.phase !== 'Pending'

const machineLine = (machine: Target): string => {
  const { phase, step } = machine
  const isOpen = phase === 'Running' || phase === 'Failed'
  // What an open machine does now is the headline's to say.
  const message = phase === 'Running' ? '' : ownMessage(machine)
  return `${hostOf(machine)}: ${phase}${isOpen && step ? `, step ${step}` : ''}${message ? `: ${message}` : ''}`
}
