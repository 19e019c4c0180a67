/** Lines around a change that are shown with it. */
const CONTEXT = 3

type Edit = { readonly sign: ' ' | '-' | '+'; readonly line: string; readonly a: number; readonly b: number }

/** The shortest way from one list of lines to the other, over the table of longest common ends. */
const editsOf = (before: readonly string[], after: readonly string[]): readonly Edit[] => {
  const common: number[][] = Array.from({ length: before.length + 1 }, () => Array.from({ length: after.length + 1 }, () => 0))
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      common[i]![j] = before[i] === after[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!)
  const edits: Edit[] = []
  let [a, b] = [0, 0]
  while (a < before.length || b < after.length) {
    if (a < before.length && b < after.length && before[a] === after[b]) edits.push({ sign: ' ', line: before[a]!, a: a++, b: b++ })
    else if (a < before.length && (b === after.length || common[a + 1]![b]! >= common[a]![b + 1]!))
      edits.push({ sign: '-', line: before[a]!, a: a++, b })
    else edits.push({ sign: '+', line: after[b]!, a, b: b++ })
  }
  return edits
}

/** Where a hunk begins, and how long it is: without the length where that is one. */
const range = (start: number, length: number): string => {
  if (length === 1) return `${start + 1}`
  return `${length === 0 ? start : start + 1},${length}`
}

/** A unified diff with three lines of context, as `diff -u` makes it between files called a and b; empty where nothing differs. */
export const unifiedDiff = (before: string, after: string): string => {
  const lines = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))
  const edits = editsOf(lines(before), lines(after))
  const changes = edits.flatMap(({ sign }, at) => (sign === ' ' ? [] : [at]))
  const hunks: [from: number, to: number][] = []
  for (const at of changes) {
    const last = hunks.at(-1)
    const [from, to] = [Math.max(0, at - CONTEXT), Math.min(edits.length, at + CONTEXT + 1)]
    if (last && from <= last[1]) last[1] = to
    else hunks.push([from, to])
  }
  if (hunks.length === 0) return ''
  const out = ['--- a', '+++ b']
  for (const [from, to] of hunks) {
    const part = edits.slice(from, to)
    const old = part.filter(({ sign }) => sign !== '+').length
    const now = part.filter(({ sign }) => sign !== '-').length
    out.push(`@@ -${range(part[0]!.a, old)} +${range(part[0]!.b, now)} @@`, ...part.map(({ sign, line }) => `${sign}${line}`))
  }
  return `${out.join('\n')}\n`
}
