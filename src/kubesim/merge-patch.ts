import { isFields } from './fields.ts'

/** RFC 7386: null removes, objects are merged, all else replaces. */
export const mergePatch = (document: unknown, patch: unknown): unknown => {
  if (!isFields(patch)) return patch
  const result: Record<string, unknown> = isFields(document) ? { ...document } : {}
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete result[field]
    else result[field] = mergePatch(result[field], value)
  }
  return result
}
