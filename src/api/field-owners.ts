/** An entry of `metadata.managedFields`: which places of an object somebody wrote last, and how. */
type Entry = { readonly manager?: string; readonly operation?: string; readonly fieldsV1?: Readonly<Record<string, unknown>> }

const owns = ({ fieldsV1 }: Entry, path: readonly string[]): boolean => {
  let fields: Readonly<Record<string, unknown>> | undefined = fieldsV1
  for (const field of path) fields = fields?.[`f:${field}`] as Readonly<Record<string, unknown>> | undefined
  return fields !== undefined
}

/**
 * Those who wrote a value last, by an object's `metadata.managedFields`: one, or several where they applied the same. Nobody where the value is gone, and
 * where no record is kept.
 */
export const ownersOf = (managedFields: unknown, ...path: readonly string[]): readonly Entry[] =>
  (Array.isArray(managedFields) ? (managedFields as readonly Entry[]) : []).filter(entry => owns(entry, path))
