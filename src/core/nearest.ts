/** The names, those most like `text` first: what was misspelt is usually among the first. */
export const nearestFirst = (names: readonly string[], text: string): readonly string[] => {
  const wanted = text.toLowerCase()
  return names
    .map(name => ({ name, far: distance(name.toLowerCase(), wanted) }))
    .toSorted((a, b) => a.far - b.far)
    .map(({ name }) => name)
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
  // Of what was read of `a` so far, to the first letters of `b`: one, two, …
  let row = Array.from(b, (_, index) => index + 1)
  let last = b.length
  for (const [i, letter] of a.split('').entries()) {
    let corner = i
    last = i + 1
    row = row.map((above, j) => {
      last = Math.min(last + 1, above + 1, corner + (letter === b[j] ? 0 : 1))
      corner = above
      return last
    })
  }
  return last
}
