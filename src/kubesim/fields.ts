/** Reading JSON of unknown shape: an absent field is an absent answer, never an exception. */
export type Fields = Readonly<Record<string, unknown>>

export const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

export const valueAt = (value: unknown, ...path: readonly string[]): unknown => {
  let at = value
  for (const field of path) at = isFields(at) && Object.hasOwn(at, field) ? at[field] : undefined
  return at
}

export const fieldsAt = (value: unknown, ...path: readonly string[]): Fields => {
  const at = valueAt(value, ...path)
  return isFields(at) ? at : {}
}

export const listAt = (value: unknown, ...path: readonly string[]): readonly unknown[] => {
  const at = valueAt(value, ...path)
  return Array.isArray(at) ? at : []
}

/** '' where there is no text. */
export const textAt = (value: unknown, ...path: readonly string[]): string => {
  const at = valueAt(value, ...path)
  return typeof at === 'string' ? at : ''
}

/** 0 where there is no number. */
export const numberAt = (value: unknown, ...path: readonly string[]): number => {
  const at = valueAt(value, ...path)
  return typeof at === 'number' ? at : 0
}

/** The object without one of its fields. */
export const without = (object: Fields, field: string): Record<string, unknown> => {
  const { [field]: _gone, ...rest } = object
  return rest
}
