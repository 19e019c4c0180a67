import type { TalosOperation } from '../../api/talos-operation.ts'
import { withVersion } from '../../core/component-image.ts'
import type { Refusal } from '../../core/kind.ts'
import { heldBecause } from '../../core/machine-steps/order.ts'
import { pendingOn } from '../../core/pending-configuration.ts'
import type { Known } from '../../core/preflight.ts'
import { refuse } from '../../core/preflight.ts'
import type { World } from '../../core/world.ts'
import { componentFacts } from '../../core/world.ts'
import { COMPONENTS, imageIn } from './set-image.ts'
import { specOf } from './view.ts'

/** An image written into what runs drops what is staged and ends a trial, so no machine on which one is, is written to. */
export const pending = (operation: TalosOperation, world: World, known: readonly Known[]): readonly Refusal[] =>
  pendingOn(
    world,
    known.filter(k => isWritten(operation, world, k)),
  ).map(({ name, machine }) =>
    refuse(
      'ConfigPending',
      `${name} has another configuration that is staged or on trial, which a new image would undo. Reboot it first, which takes what is staged (\`ichor node reboot ${name}\`), or wait until the trial has ended. Applying any configuration at once drops what is staged.`,
      machine.metadata.name,
    ),
  )

/** It has an image that becomes another one. A held worker keeps its kubelet. */
const isWritten = (operation: TalosOperation, world: World, { machine }: Known): boolean => {
  const components = componentFacts(world, machine.metadata.name)
  if (!components.ok || (machine.spec.role === 'worker' && heldBecause(world, machine) !== undefined)) return false
  return COMPONENTS.map(component => imageIn(components.value, component)).some(
    image => image !== undefined && image !== withVersion(image, specOf(operation).version),
  )
}
