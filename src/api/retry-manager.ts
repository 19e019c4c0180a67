import { ANNOTATION } from './names.ts'

type Entry = { readonly manager?: string; readonly operation?: string; readonly fieldsV1?: Readonly<Record<string, unknown>> }

/** kubectl applied by a plain update before the server could, and says so by this name. */
const CLIENT_SIDE_APPLY = 'kubectl-client-side-apply'

const owns = ({ fieldsV1 }: Entry): boolean => {
  const metadata = fieldsV1?.['f:metadata'] as Readonly<Record<string, unknown>> | undefined
  const annotations = metadata?.['f:annotations'] as Readonly<Record<string, unknown>> | undefined
  return annotations?.[`f:${ANNOTATION.retry}`] !== undefined
}

/**
 * The manager that wrote the annotation `retry` by an apply, from an object's `metadata.managedFields`. Undefined where anybody wrote it imperatively,
 * and where nobody is on record.
 */
export const retryAppliedBy = (managedFields: unknown): string | undefined => {
  const owners = (Array.isArray(managedFields) ? (managedFields as readonly Entry[]) : []).filter(owns)
  const applied = owners.filter(entry => entry.operation === 'Apply' || entry.manager === CLIENT_SIDE_APPLY)
  return owners.length > 0 && applied.length === owners.length ? (applied[0]?.manager ?? 'somebody') : undefined
}
