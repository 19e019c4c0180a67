type Fields = { readonly [name: string]: Fields }
type Entry = { readonly manager?: string; readonly fieldsV1?: Fields }

const without = (fields: Fields, [name = '', ...deeper]: readonly string[]): Fields => {
  const { [name]: found, ...others } = fields
  if (found === undefined) return fields
  const rest = deeper.length === 0 ? {} : without(found, deeper)
  return Object.keys(rest).length === 0 ? others : { ...others, [name]: rest }
}

/** `managedFields` when a field was removed or written by another: nobody owns it, and who owned nothing else is gone. `path` as the server spells it: `['f:spec', 'f:unschedulable']`. */
export const disowned = (managedFields: readonly unknown[] = [], path: readonly string[]): readonly unknown[] =>
  (managedFields as readonly Entry[]).flatMap(entry => {
    if (entry.fieldsV1 === undefined) return [entry]
    const fieldsV1 = without(entry.fieldsV1, path)
    return Object.keys(fieldsV1).length > 0 ? [{ ...entry, fieldsV1 }] : []
  })
