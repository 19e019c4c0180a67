import { diffLines, type DiffLine } from './diff-lines.ts'
import { documentsOf } from './documents.ts'
import { withoutSecrets, type Shown } from './secrets.ts'
import { written } from './write.ts'

const CONTEXT = 3

/**
 * What two configurations of a machine say differently, document by document, in the form of `diff -u`; behind each `@@` stands what the
 * lines belong to. Secrets and remarks are not shown (`withoutSecrets`). Empty where both say the same.
 */
export const diffConfigs = (before: string, after: string): string => {
  const [shownBefore = [], shownAfter = []] = withoutSecrets(documentsOf(before), documentsOf(after))
  const titles = new Set([...shownBefore, ...shownAfter].map(({ title }) => title))
  return [...titles].map(title => diffDocument(title, linesOf(shownBefore, title), linesOf(shownAfter, title))).join('')
}

/** None where there is no such document. */
const linesOf = (documents: readonly Shown[], title: string): readonly string[] =>
  documents
    .filter(document => document.title === title)
    .slice(0, 1)
    .flatMap(({ root }) => written(root).trimEnd().split('\n'))

const diffDocument = (title: string, before: readonly string[], after: readonly string[]): string => {
  const lines = diffLines(before, after)
  const hunks = hunksOf(lines)
  if (hunks.length === 0) return ''
  const name = (side: readonly string[]): string => (side.length > 0 ? title : '/dev/null')
  return [`--- ${name(before)}`, `+++ ${name(after)}`, ...hunks.flatMap(hunk => hunkText(lines, hunk)), ''].join('\n')
}

/** `first` is what changes first in it. */
type Hunk = { readonly from: number; readonly to: number; readonly first: { readonly index: number; readonly depth: number } }

/** Where something changes, with what is around it. */
const hunksOf = (lines: readonly DiffLine[]): readonly Hunk[] => {
  const hunks: Hunk[] = []
  for (const [index, { sign, text }] of lines.entries()) {
    if (sign === ' ') continue
    const last = hunks.at(-1)
    const to = Math.min(lines.length, index + 1 + CONTEXT)
    if (last && index - CONTEXT <= last.to) hunks[hunks.length - 1] = { ...last, to }
    else hunks.push({ from: Math.max(0, index - CONTEXT), to, first: { index, depth: depthOf(text) } })
  }
  return hunks
}

const hunkText = (lines: readonly DiffLine[], { from, to, first }: Hunk): readonly string[] => {
  const range = (other: DiffLine['sign']): string => {
    const count = (part: readonly DiffLine[]): number => part.filter(({ sign }) => sign !== other).length
    const length = count(lines.slice(from, to))
    return `${count(lines.slice(0, from)) + (length > 0 ? 1 : 0)},${length}`
  }
  const path = pathTo(lines.slice(0, first.index), first.depth)
  return [`@@ -${range('+')} +${range('-')} @@ ${path}`.trimEnd(), ...lines.slice(from, to).map(({ sign, text }) => sign + text)]
}

/** The keys around a line that stands so deep, from the lines before it. */
const pathTo = (before: readonly DiffLine[], depth: number): string => {
  const keys: string[] = []
  let least = depth
  for (const { text } of before.toReversed()) {
    const key = /^[\s-]*([^\s#:][^:]*):(?:\s|$)/.exec(text)?.[1]
    if (key === undefined || depthOf(text) >= least) continue
    least = depthOf(text)
    keys.unshift(key)
  }
  return keys.join('.')
}

const depthOf = (text: string): number => text.length - text.trimStart().length
