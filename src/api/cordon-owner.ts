import { ownersOf } from './field-owners.ts'
import { ANNOTATION, CONTROLLER } from './names.ts'

/** What a Node says of itself, as far as a cordon shows in it. */
type Cordonable = {
  readonly unschedulable: boolean
  readonly annotations: Readonly<Record<string, string>>
  readonly managedFields: unknown
}

/**
 * The UID of the operation whose cordon a Node has; undefined where it has none, or somebody else's. The mark alone proves nothing: `kubectl uncordon`
 * leaves it, and whoever cordons the Node afterwards finds it there. But the server keeps who wrote `spec.unschedulable` last, and anybody but us among
 * them wants the cordon for reasons of his own.
 */
export const cordonedByOperation = ({ unschedulable, annotations, managedFields }: Cordonable): string | undefined => {
  const isOnlyOurs = ownersOf(managedFields, 'spec', 'unschedulable').every(({ manager }) => manager === CONTROLLER)
  return unschedulable && isOnlyOurs ? annotations[ANNOTATION.cordonedBy] : undefined
}
