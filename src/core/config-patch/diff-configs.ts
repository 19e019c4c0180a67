import { diffLines, type DiffLine } from './diff-lines.ts'
import { documentsOf } from './documents.ts'
import { withoutSecrets, type Shown } from './secrets.ts'
import { written } from './write.ts'

const CONTEXT = 3

/**
 * What two configurations of a machine say differently, document by document, in the form of `diff -u`; behind each `@@` stands what the
 * lines belong to. Secrets and remarks are not shown (`withoutSecrets`). Empty where both say the same; undefined where one is no YAML.
 */
export const diffConfigs = (before: string, after: string): string | undefined => {
  const [was, is] = [documentsOf(before), documentsOf(after)]
  if (!was || !is) return undefined
  const [shownBefore = [], shownAfter = []] = withoutSecrets(was, is)
  const titles = new Set([...shownBefore, ...shownAfter].map(({ title }) => title))
  return [...titles].map(title => diffDocument(title, linesOf(shownBefore, title), linesOf(shownAfter, title))).join('')
}

/** Undefined where there is no such document. */
const linesOf = (documents: readonly Shown[], title: string): readonly string[] | undefined => {
  const found = documents.find(document => document.title === title)
  return found && written(found.root).trimEnd().split('\n')
}

const diffDocument = (title: string, before: readonly string[] | undefined, after: readonly string[] | undefined): string => {
  const lines = diffLines(before ?? [], after ?? [])
  const hunks = hunksOf(lines)
  if (hunks.length === 0) return ''
  const name = (side: readonly string[] | undefined): string => (side ? title : '/dev/null')
  return [`--- ${name(before)}`, `+++ ${name(after)}`, ...hunks.flatMap(hunk => hunkText(lines, hunk)), ''].join('\n')
}

type Hunk = { readonly from: number; readonly to: number }

/** Where something changes, with what is around it. */
const hunksOf = (lines: readonly DiffLine[]): readonly Hunk[] => {
  const hunks: Hunk[] = []
  for (const [index, { sign }] of lines.entries()) {
    if (sign === ' ') continue
    const last = hunks.at(-1)
    const to = Math.min(lines.length, index + 1 + CONTEXT)
    if (last && index - CONTEXT <= last.to) hunks[hunks.length - 1] = { from: last.from, to }
    else hunks.push({ from: Math.max(0, index - CONTEXT), to })
  }
  return hunks
}

const hunkText = (lines: readonly DiffLine[], { from, to }: Hunk): readonly string[] => {
  const range = (other: DiffLine['sign']): string => {
    const count = (part: readonly DiffLine[]): number => part.filter(({ sign }) => sign !== other).length
    const length = count(lines.slice(from, to))
    return `${count(lines.slice(0, from)) + (length > 0 ? 1 : 0)},${length}`
  }
  const shown = lines.slice(from, to)
  const path = pathTo(lines, from + shown.findIndex(({ sign }) => sign !== ' '))
  return [`@@ -${range('+')} +${range('-')} @@ ${path}`.trimEnd(), ...shown.map(({ sign, text }) => sign + text)]
}

/** The keys around a line. */
const pathTo = (lines: readonly DiffLine[], index: number): string => {
  const keys: string[] = []
  let depth = depthOf(lines[index]?.text ?? '')
  for (const { text } of lines.slice(0, index).toReversed()) {
    const key = /^[\s-]*([^\s#:][^:]*):(?:\s|$)/.exec(text)?.[1]
    if (key === undefined || depthOf(text) >= depth) continue
    depth = depthOf(text)
    keys.unshift(key)
  }
  return keys.join('.')
}

const depthOf = (text: string): number => /^\s*/.exec(text)?.[0].length ?? 0
