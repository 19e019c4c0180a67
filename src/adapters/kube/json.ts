// Reading what a server said: nothing is believed to be there, and nothing past this point is `any`.

export type Json = Readonly<Record<string, unknown>>

export const isRecord = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
export const record = (value: unknown): Json => (isRecord(value) ? value : {})
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const text = (value: unknown): string => (typeof value === 'string' ? value : '')
export const number = (value: unknown): number => (typeof value === 'number' ? value : 0)

/** What is found by following the names; undefined where the way ends. */
export const at = (value: unknown, ...way: readonly string[]): unknown => way.reduce<unknown>((here, name) => record(here)[name], value)

/** Labels and the like: only the entries that are text. */
export const texts = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(record(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))

/** Freezes all of it, so that a reader of a cache cannot write to it. */
export const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFreeze(inner)
  }
  return value
}

/** The JSON merge patch that makes `to` of `from`: what is gone becomes null. */
export const mergePatchOf = (from: Json, to: Json): Json => {
  const patch: Record<string, unknown> = {}
  for (const name of Object.keys(from)) if (to[name] === undefined) patch[name] = null
  for (const [name, value] of Object.entries(to)) {
    if (value === undefined) continue
    const before = from[name]
    if (isRecord(before) && isRecord(value)) {
      const inner = mergePatchOf(before, value)
      if (Object.keys(inner).length > 0) patch[name] = inner
    } else if (JSON.stringify(before) !== JSON.stringify(value)) patch[name] = value
  }
  return patch
}
