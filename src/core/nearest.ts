/** The names, those most like `text` first: what was misspelt is usually among the first. */
export const nearestFirst = (names: readonly string[], text: string): readonly string[] => {
  const wanted = text.toLowerCase()
  const far = new Map(names.map(name => [name, distance(name.toLowerCase(), wanted)]))
  return names.toSorted((a, b) => (far.get(a) ?? 0) - (far.get(b) ?? 0))
}

/** A remedy for whoever wrote `text`, which is none of `names`: the one that was probably meant, or all that there are. */
export const nearestAdvice = (names: readonly string[], text: string): string => {
  const [nearest] = nearestFirst(names, text)
  if (nearest === undefined) return 'there is nothing that can be given here'
  const isNear = distance(nearest.toLowerCase(), text.toLowerCase()) <= Math.max(1, Math.floor(text.length / 2))
  return isNear ? `the nearest is ${nearest}` : `there are ${names.toSorted().join(', ')}`
}

/** How many letters have to be put in, taken out or replaced to make one of the other (Levenshtein). */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min((next[j - 1] ?? 0) + 1, (row[j] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)))
    row = next
  }
  return row[b.length] ?? 0
}
