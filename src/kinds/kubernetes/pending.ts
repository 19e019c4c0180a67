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
  ).map(({ name, machine, pending: why }) => refuse('ConfigPending', `${name} ${TOLD[why].replace('NAME', name)}`, machine.metadata.name))

const TOLD = {
  staged:
    'has another configuration that is staged for its next boot, which a new image would undo. Reboot it first (`ichor node reboot NAME`), which takes it into effect. To drop it instead, apply the one that runs once more with `talosctl apply-config --mode no-reboot`.',
  trial:
    'has a configuration on trial, which would stay with a new image although nobody has kept it. Wait until Talos has put the one from before back, which takes minutes; or reboot the machine (`ichor node reboot NAME`), which boots that one.',
} as const

/** It has an image that becomes another one. A held worker keeps its kubelet. */
const isWritten = (operation: TalosOperation, world: World, { machine }: Known): boolean => {
  const components = componentFacts(world, machine.metadata.name)
  if (!components.ok || (machine.spec.role === 'worker' && heldBecause(world, machine) !== undefined)) return false
  return COMPONENTS.map(component => imageIn(components.value, component)).some(
    image => image !== undefined && image !== withVersion(image, specOf(operation).version),
  )
}
