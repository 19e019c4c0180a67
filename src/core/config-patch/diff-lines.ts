/** A line of both texts (` `), of the first (`-`) or of the second (`+`). */
export type DiffLine = { readonly sign: ' ' | '-' | '+'; readonly text: string }

/** The shortest way from one text to another, as lines (Myers). */
export const diffLines = (before: readonly string[], after: readonly string[]): readonly DiffLine[] => {
  const start = commonStart(before, after)
  const end = commonEnd(before, after, start)
  const [from, to] = [before.slice(start, before.length - end), after.slice(start, after.length - end)]
  const same = (text: string): DiffLine => ({ sign: ' ', text })
  return [...before.slice(0, start).map(same), ...changed(from, to), ...before.slice(before.length - end).map(same)]
}

const commonStart = (a: readonly string[], b: readonly string[]): number => {
  let count = 0
  while (count < a.length && count < b.length && a[count] === b[count]) count++
  return count
}

const commonEnd = (a: readonly string[], b: readonly string[], start: number): number => {
  let count = 0
  while (count < a.length - start && count < b.length - start && a[a.length - 1 - count] === b[b.length - 1 - count]) count++
  return count
}

const changed = (from: readonly string[], to: readonly string[]): readonly DiffLine[] => {
  const steps = furthest(from, to)
  const lines: DiffLine[] = []
  let [x, y] = [from.length, to.length]
  for (let step = steps.length - 1; step > 0; step--) {
    const before = steps[step - 1]!
    const diagonal = x - y
    const isAdded = diagonal === -step || (diagonal !== step && reach(before, diagonal - 1) < reach(before, diagonal + 1))
    const previous = isAdded ? diagonal + 1 : diagonal - 1
    const [fromX, fromY] = [reach(before, previous), reach(before, previous) - previous]
    for (; x > fromX && y > fromY; x--, y--) lines.push({ sign: ' ', text: from[x - 1]! })
    lines.push(isAdded ? { sign: '+', text: to[--y]! } : { sign: '-', text: from[--x]! })
  }
  for (; x > 0; x--) lines.push({ sign: ' ', text: from[x - 1]! })
  return lines.toReversed()
}

/** How far one comes on each diagonal, after each number of changes; a row holds the diagonals from -n to n. */
const furthest = (from: readonly string[], to: readonly string[]): readonly Int32Array[] => {
  const rows: Int32Array[] = []
  for (let step = 0; ; step++) {
    const [row, before] = [new Int32Array(2 * step + 1), rows[step - 1]]
    for (let diagonal = -step; diagonal <= step; diagonal += 2) {
      let x = 0
      if (before) {
        const isAdded = diagonal === -step || (diagonal !== step && reach(before, diagonal - 1) < reach(before, diagonal + 1))
        x = isAdded ? reach(before, diagonal + 1) : reach(before, diagonal - 1) + 1
      }
      while (x < from.length && x - diagonal < to.length && from[x] === to[x - diagonal]) x++
      row[diagonal + step] = x
      if (x >= from.length && x - diagonal >= to.length) return [...rows, row]
    }
    rows.push(row)
  }
}

/** On a diagonal that the row has. */
const reach = (row: Int32Array, diagonal: number): number => row[diagonal + (row.length - 1) / 2]!
