/** The names, those most like `text` first: what was misspelt is usually among the first. */
export const nearestFirst = (names: readonly string[], text: string): readonly string[] => {
  const wanted = text.toLowerCase()
  const far = new Map(names.map(name => [name, distance(name.toLowerCase(), wanted)]))
  return names.toSorted((a, b) => (far.get(a) ?? 0) - (far.get(b) ?? 0))
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
