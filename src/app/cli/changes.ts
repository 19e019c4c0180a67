import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import { stateOf } from '../../core/operation-state.ts'
import { summarize } from '../../core/summary.ts'

/** What is worth a line of a log between two sights of an operation; `before` is absent at the first. */
export const changeLines = (before: TalosOperation | undefined, after: TalosOperation, now: number): string[] => {
  const lines: string[] = []
  const known = new Map((before?.status.machines ?? []).map(machine => [machine.name, machine]))
  for (const machine of after.status.machines ?? []) {
    const earlier = known.get(machine.name)
    // At the first sight only what is open: the rest is in the headline's count.
    if (before ? hasMoved(earlier, machine) : machine.phase === 'Running' || machine.phase === 'Failed') lines.push(machineLine(machine))
  }
  const [was, is] = [before && stateOf(before), stateOf(after)]
  if (was !== is || (is === 'waiting' && before?.status.waiting?.for !== after.status.waiting?.for))
    lines.push(summarize(after, now).headline)
  return lines
}

const hasMoved = (earlier: Target | undefined, machine: Target): boolean =>
  earlier ? earlier.phase !== machine.phase || (machine.phase === 'Running' && earlier.step !== machine.step) : machine.phase !== 'Pending'

const machineLine = ({ name, phase, step, message }: Target): string => {
  const what = phase === 'Running' || phase === 'Failed' ? `${phase}${step ? `, step ${step}` : ''}` : phase
  return `${name}: ${what}${message ? `: ${message}` : ''}`
}
