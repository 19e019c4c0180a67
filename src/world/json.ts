/**
 * Plain JSON-like values in the simulated world. What is read from the store is frozen to the bottom, so that nobody can change the world
 * without a write; values that are already frozen are shared, not copied.
 */
/** What is made of it is the very object that it is given. */
class Same {
  constructor(value: object) {
    return value
  }
}

/** Marks an object itself, by a private field: it is looked for at each part of each write, which a set of all objects makes slow. */
class FrozenToTheBottom extends Same {
  readonly #isMarked = true
  static is(value: object): boolean {
    return #isMarked in value && value.#isMarked
  }
}

/** A deeply frozen copy without keys whose value is undefined. Parts that came from an earlier call are shared. */
export const frozen = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null || FrozenToTheBottom.is(value)) return value
  const copy: object = Array.isArray(value) ? value.map((item: unknown) => frozen(item === undefined ? null : item)) : frozenFields(value)
  return Object.freeze(new FrozenToTheBottom(copy)) as T
}

// A plain loop: this is where the simulated API server spends most of its time.
const frozenFields = (value: object): object => {
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key]
    if (item !== undefined) copy[key] = frozen(item)
  }
  return copy
}

/** Whether two JSON-like values say the same; the order of keys does not matter, absent and undefined are one. */
export const same = (a: unknown, b: unknown): boolean => {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, at) => same(item, b[at]))
  }
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  for (const key of Object.keys(left)) if (!same(left[key], right[key])) return false
  for (const key of Object.keys(right)) if (left[key] === undefined && right[key] !== undefined) return false
  return true
}
