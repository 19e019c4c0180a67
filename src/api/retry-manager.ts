import { ownersOf } from './field-owners.ts'
import { ANNOTATION } from './names.ts'

/** kubectl applied by a plain update before the server could, and says so by this name. */
const CLIENT_SIDE_APPLY = 'kubectl-client-side-apply'

/**
 * The manager that wrote the annotation `retry` by an apply, from an object's `metadata.managedFields`. Undefined where anybody wrote it imperatively,
 * and where nobody is on record.
 */
export const retryAppliedBy = (managedFields: unknown): string | undefined => {
  const owners = ownersOf(managedFields, 'metadata', 'annotations', ANNOTATION.retry)
  const applied = owners.filter(entry => entry.operation === 'Apply' || entry.manager === CLIENT_SIDE_APPLY)
  return owners.length > 0 && applied.length === owners.length ? (applied[0]?.manager ?? 'somebody') : undefined
}
