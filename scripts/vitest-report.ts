// What vitest's JSON reporter wrote, in the words of our last lines.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

export interface VitestReport {
  passed: number
  /** One line per test, or per file that could not be run. */
  failed: string[]
  /** How many, and a line per file that says in which groups. */
  skipped: number
  skips: string[]
  /** What tests left in `task.meta`. */
  metas: Record<string, unknown>[]
}

/** Reads the report; paths in it are told relative to `root`. */
export function readVitestReport(path: string, root: string): VitestReport {
  const report = JSON.parse(readFileSync(path, 'utf8')) as {
    testResults: {
      name: string
      status: string
      message: string
      assertionResults: { status: string; fullName: string; ancestorTitles: string[]; title: string; meta?: Record<string, unknown> }[]
    }[]
  }
  const sum: VitestReport = { passed: 0, failed: [], skipped: 0, skips: [], metas: [] }
  for (const file of report.testResults) {
    const path = relative(root, file.name)
    const withStatus = (status: string) => file.assertionResults.filter(test => test.status === status)
    const failed = withStatus('failed')
    sum.passed += withStatus('passed').length
    for (const test of failed) sum.failed.push(`${path}: ${test.fullName}`)
    if (file.status === 'failed' && failed.length === 0) sum.failed.push(`${path}: ${file.message.split('\n')[0] || 'could not be run'}`)

    const skipped = file.assertionResults.filter(test => test.status !== 'passed' && test.status !== 'failed')
    sum.skipped += skipped.length
    const names = new Set(skipped.map(test => test.ancestorTitles[0] ?? test.title))
    if (skipped.length > 0) sum.skips.push(`${skipped.length} in ${path}: ${[...names].join(', ')}`)
    sum.metas.push(...file.assertionResults.flatMap(({ meta }) => (meta ? [meta] : [])))
  }
  return sum
}

/** How many answers of whom are as they should be, by what the tests say about themselves in `task.meta.answer`. */
export function agreement(metas: readonly Record<string, unknown>[]): string[] {
  const groups = new Map<string, { all: number; agree: number }>()
  for (const { answer } of metas) {
    if (typeof answer !== 'object' || answer === null) continue
    const { of, agrees, count = 1 } = answer as { of: string; agrees: boolean; count?: number }
    const group = groups.get(of) ?? { all: 0, agree: 0 }
    groups.set(of, { all: group.all + count, agree: group.agree + (agrees ? count : 0) })
  }
  return [...groups].map(([of, { all, agree }]) => `${of}: ${agree} of ${all} answers agree`)
}
