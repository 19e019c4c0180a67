import type { TalosOperation } from '../../api/talos-operation.ts'
import { kind } from '../../core/kind.ts'
import { isSelected } from '../../core/machine-steps/target.ts'
import { sha256 } from '../../core/sha256.ts'
import type { World } from '../../core/world.ts'
import { checkNeeds, checks } from './checks.ts'
import { stages } from './rollout.ts'
import { configSpec, specOf } from './spec.ts'
import { isNothing, short, wishFor } from './view.ts'

/** Patches may add to lists, so that the same again is not the same. Where they leave nothing to do there is nothing to repeat. */
const deed = (operation: TalosOperation, world?: World): string | undefined => {
  const isDone = world?.machines
    .filter(m => isSelected(operation, m))
    .every(m => {
      const wish = wishFor(operation, world, m.metadata.name)
      return wish.is === 'made' && isNothing(operation, wish)
    })
  return isDone ? undefined : `patched the machine configurations, ${short(sha256(JSON.stringify(specOf(operation))))}`
}

/** Rolls patches of the machine configuration out. */
export const config = kind({
  name: 'config',
  block: 'config',
  summary: 'Patches the machine configuration, one machine at a time: a canary, control planes, workers.',
  spec: configSpec,
  verb: 'rollout',
  files: {
    field: 'patches',
    as: 'inline',
    called: 'patch',
    description: 'a patch of the machine configuration: strategic merge or JSON patch, also of several documents',
  },
  checkNeeds,
  checks,
  deed,
  stages,
})
