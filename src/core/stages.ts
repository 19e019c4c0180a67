import type { OperationStatus, TalosOperation } from '../api/talos-operation.ts'
import type { Kind, Stage } from './kind.ts'

/** The stages that the operation goes through, in their order. */
export const stagesOf = (kind: Pick<Kind, 'stages'>, operation: TalosOperation): readonly Stage[] =>
  kind.stages.filter(stage => stage.applies?.(operation) ?? true)

/** The stage that the operation is in; its first one before it has begun. Throws where `status.stage` names none of the kind's: nobody can tell what its machines are in the middle of. */
export const stageOf = (kind: Pick<Kind, 'name' | 'stages'>, operation: TalosOperation): Stage => {
  const stages = stagesOf(kind, operation)
  const { stage } = operation.status
  const current = stage === undefined ? stages[0] : stages.find(s => s.name === stage)
  if (!current) throw new Error(`kind ${kind.name} has no stage ${String(stage)}`)
  return current
}

/** Which of how many stages it is; nothing where there is but one. */
export const numberOf = (
  kind: Pick<Kind, 'stages'>,
  operation: TalosOperation,
  stage: Stage,
): { readonly stage?: number; readonly stages?: number } => {
  const stages = stagesOf(kind, operation)
  return stages.length > 1 ? { stage: stages.indexOf(stage) + 1, stages: stages.length } : {}
}

/** `stage 6 of 7, kubelet`; undefined where there is but one, and once it is over. */
export const stageTitle = ({ stage, progress }: OperationStatus): string | undefined =>
  stage === undefined || progress?.stage === undefined ? undefined : `stage ${progress.stage} of ${progress.stages}, ${stage}`

/** The stages after the one that the operation is in. */
export const stagesAfter = (kind: Pick<Kind, 'name' | 'stages'>, operation: TalosOperation): readonly Stage[] => {
  const stages = stagesOf(kind, operation)
  return stages.slice(stages.indexOf(stageOf(kind, operation)) + 1)
}
