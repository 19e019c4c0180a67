import type { TalosOperation } from '../api/talos-operation.ts'
import type { Kind, Stage } from './kind.ts'

/** The stages that the operation goes through, in their order. */
export const stagesOf = (kind: Pick<Kind, 'stages'>, operation: TalosOperation): readonly Stage[] =>
  kind.stages.filter(stage => stage.applies?.(operation) ?? true)

/** The stage that the operation is in; its first one before it has begun. Throws where `status.stage` names none of the kind's: nobody can tell what its machines are in the middle of. */
export const stageOf = (kind: Pick<Kind, 'name' | 'stages'>, operation: TalosOperation): Stage => {
  const stages = stagesOf(kind, operation)
  const { stage } = operation.status
  const current = stage === undefined ? stages[0] : stages.find(s => s.name === stage)
  if (!current) throw new Error(`kind ${kind.name} has no stage ${stage ?? 'for this operation'}`)
  return current
}

/** The stage after the one that the operation is in. */
export const nextStage = (kind: Pick<Kind, 'name' | 'stages'>, operation: TalosOperation): Stage | undefined => {
  const stages = stagesOf(kind, operation)
  return stages[stages.indexOf(stageOf(kind, operation)) + 1]
}
