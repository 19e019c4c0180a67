import { startRightOf } from '../api/start-rights.ts'
import type { KindBlock, TalosOperation } from '../api/talos-operation.ts'
import type { Refusal } from './kind.ts'
import { refuse } from './preflight.ts'
import type { Need, World } from './world.ts'
import { policyGaps } from './world.ts'

/**
 * What can take a cluster down, and what goes past a refusal, is carried out only where the API server itself enforces who may ask for it (spec 8): whoever
 * wrote the operation was then asked for the right, by whatever way it came.
 */
const guarded = (kind: KindBlock, { spec }: TalosOperation): readonly string[] => {
  const right = startRightOf([kind], spec)
  const started = right && (right.action === undefined ? `Kind ${right.kind}` : `Action ${right.action} of kind ${right.kind}`)
  return [...(started ? [started] : []), ...(spec.override ? ['spec.override'] : []), ...(spec.ignoreWindows ? ['spec.ignoreWindows'] : [])]
}

export const startNeeds = (kind: KindBlock, operation: TalosOperation): readonly Need[] =>
  guarded(kind, operation).length === 0 ? [] : [{ what: 'policies' }]

export const startRefusals = (kind: KindBlock, operation: TalosOperation, world: World): readonly Refusal[] => {
  const [what] = guarded(kind, operation)
  if (what === undefined) return []
  const gaps = policyGaps(world)
  const remedy = 'Install them with ichor install, or with the chart (policies: true), and retry.'
  if (!gaps.ok)
    return [
      refuse('PoliciesMissing', `${what} needs admission policies, and whether they hold cannot be seen: ${gaps.fault.message}. ${remedy}`),
    ]
  return gaps.value.length === 0
    ? []
    : [
        refuse(
          'PoliciesMissing',
          `${what} counts for nothing where nobody enforces who may ask for it: ${gaps.value.join('; ')}. ${remedy}`,
        ),
      ]
}
