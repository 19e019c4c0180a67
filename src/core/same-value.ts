/** Whether two plain values say the same. The order of keys says nothing: an API server sorts them; and an absent field is one that is undefined. */
export const sameValue = (a: unknown, b: unknown): boolean => {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((value, i) => sameValue(value, b[i]))
  const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>]
  for (const key of Object.keys(x)) if (!sameValue(x[key], y[key])) return false
  for (const key of Object.keys(y)) if (x[key] === undefined && y[key] !== undefined) return false
  return true
}
