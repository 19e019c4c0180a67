// Tells how several runs ended together: `sum-up.ts test test:talos`. The last line is the sum of theirs.
import { lastSummary, tell } from './summary.ts'

const runs = process.argv.slice(2).map(lastSummary)
const sum = (of: 'passed' | 'skipped') => runs.reduce((total, run) => total + run[of], 0)
const all = (of: 'failed' | 'skips' | 'agreements') => runs.flatMap(run => run[of])
tell({ passed: sum('passed'), failed: all('failed'), skipped: sum('skipped'), skips: all('skips'), agreements: all('agreements') })
