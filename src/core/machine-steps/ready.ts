import type { MachineFacts } from '../../ports/talos.ts'
import type { Answer, Step } from '../kind.ts'
import { YES, no } from '../kind.ts'
import { machineOf } from './target.ts'

/** Talos reports the machine running and ready; Talos names the conditions that are not met. */
export const reportsReady = ({ stage, ready, unmet }: MachineFacts): Answer => {
  if (stage !== 'running') return no(`it is ${stage}`)
  return ready ? YES : no(`Talos does not report it ready${unmet.length > 0 ? `: ${unmet.join('; ')}` : ''}`)
}

export const whyNotReady: Step['failure'] = view => (machineOf(view).ok ? 'MachineNotReady' : 'MachineUnreachable')
