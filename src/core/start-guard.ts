import { startRightOf } from '../api/start-rights.ts'
import type { TalosOperation } from '../api/talos-operation.ts'
import type { Kind, Refusal } from './kind.ts'
import { refuse } from './preflight.ts'
import type { Need, World } from './world.ts'
import { policyGaps } from './world.ts'

/**
 * What can take a cluster down is begun only where the API server itself enforces who may start it (spec 8): whoever wrote the operation was then asked
 * for the right, by whatever way it came.
 */
export const startNeeds = (kind: Kind, { spec }: TalosOperation): readonly Need[] =>
  startRightOf([kind], spec) === undefined ? [] : [{ what: 'policies' }]

export const startRefusals = (kind: Kind, { spec }: TalosOperation, world: World): readonly Refusal[] => {
  const right = startRightOf([kind], spec)
  if (right === undefined) return []
  const gaps = policyGaps(world)
  const what = right.action === undefined ? `Kind ${right.kind}` : `Action ${right.action} of kind ${right.kind}`
  const remedy = 'Install them with ichor install, or with the chart (policies: true), and retry.'
  if (!gaps.ok)
    return [
      refuse('PoliciesMissing', `${what} needs admission policies, and whether they hold cannot be seen: ${gaps.fault.message}. ${remedy}`),
    ]
  return gaps.value.length === 0
    ? []
    : [refuse('PoliciesMissing', `${what} is not carried out where nobody enforces who may start it: ${gaps.value.join('; ')}. ${remedy}`)]
}
