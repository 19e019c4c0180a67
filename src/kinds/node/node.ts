import { kind } from '../../core/kind.ts'
import { checkNeeds, checks } from './checks.ts'
import { defragStage, forfeitStage } from './etcd.ts'
import { rebootStage, shutdownStage } from './power.ts'
import { resetStage } from './reset.ts'
import { restartServiceStage } from './service.ts'
import { ACTIONS, nodeSpec } from './spec.ts'
import { specOf } from './view.ts'

/** One action on one machine. Each action is a stage of its own, of which an operation has one. */
export const node = kind({
  name: 'node',
  block: 'node',
  summary: 'Does one thing to one machine: reboot, shutdown, restart-service, etcd-defrag, forfeit-leadership or reset.',
  spec: nodeSpec,
  actions: ACTIONS,
  checkNeeds,
  checks,
  deed: operation => {
    const { action, machine, service } = specOf(operation)
    return [action, service, machine].filter(Boolean).join(' ')
  },
  stages: [rebootStage, shutdownStage, restartServiceStage, defragStage, forfeitStage, resetStage],
})
