// How a run of tests ends: what was skipped, what failed, how many answers agree, and "N passed, N failed, N skipped" as the last line.
// Each run also leaves this in .cache/summary, and `sum-up.ts` tells that of several.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Summary {
  passed: number
  /** The name of each check or test that failed. */
  failed: string[]
  skipped: number
  /** What was skipped, and why or how much of it. */
  skips: string[]
  /** How many answers of whom are as they should be. */
  agreements: string[]
}

const folder = join(import.meta.dirname, '..', '.cache', 'summary')

/** Prints the summary and sets the exit code of this process. */
export function tell({ passed, failed, skipped, skips, agreements }: Summary): void {
  const list = (title: string, lines: string[]) => (lines.length > 0 ? ['', `${title}:`, ...lines.map(line => `  ${line}`)] : [])
  const lines = [...list('Skipped', skips), ...list('Failed', failed), ...(agreements.length > 0 ? ['', ...agreements] : [])]
  console.log([...lines, '', `${passed} passed, ${failed.length} failed, ${skipped} skipped`].join('\n'))
  process.exitCode = failed.length === 0 ? 0 : 1
}

/** Tells how the run `npm run NAME` ended, and keeps it. */
export function finish(name: string, summary: Summary): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(fileOf(name), JSON.stringify(summary))
  tell(summary)
}

/** How the last run of that name ended. A run that never came to its end counts as one failure. */
export function lastSummary(name: string): Summary {
  try {
    return JSON.parse(readFileSync(fileOf(name), 'utf8')) as Summary
  } catch {
    return { passed: 0, failed: [`npm run ${name} came to no end`], skipped: 0, skips: [], agreements: [] }
  }
}

const fileOf = (name: string): string => join(folder, `${name.replace(':', '-')}.json`)
