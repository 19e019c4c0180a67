// `npm run bench`: measures what users and operators wait for, prints it, and writes docs/benchmarks.md. `--only PART` (more than once) measures a part
// and leaves the rest of the page as it was; `--quick` is a part of everything, and only prints.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parts } from './parts.ts'
import { asMarkdown, asText, type Measured } from './report.ts'
import { buildShipped } from './shipped.ts'

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string', multiple: true, default: Object.keys(parts) } },
})
const unknown = values.only.find(name => !(name in parts))
if (unknown !== undefined) {
  process.stderr.write(`error: there is no part ${unknown}; there are: ${Object.keys(parts).join(', ')}\n`)
  process.exit(2)
}

const resultsPath = join(import.meta.dirname, 'results.json')
const results: Record<string, Measured> = existsSync(resultsPath)
  ? (JSON.parse(readFileSync(resultsPath, 'utf8')) as Record<string, Measured>)
  : {}

const shipped = buildShipped()
process.once('exit', shipped.remove)
const found: Measured[] = []
for (const [name, { about, measure }] of Object.entries(parts)) {
  if (!values.only.includes(name)) continue
  const loadBefore = loadavg()[0] ?? 0
  const measuring = measure(shipped, values.quick)
  if (!measuring) continue
  const began = performance.now()
  process.stderr.write(`${about} … `)
  results[name] = { at: new Date().toISOString().slice(0, 10), loadBefore, ...(await measuring) }
  found.push(results[name])
  process.stderr.write(`${((performance.now() - began) / 1000).toFixed(0)} s\n`)
}

const rows = found.flatMap(one => one.rows)
process.stdout.write(`\n${asText(rows)}\n`)
if (!values.quick) {
  const inOrder = Object.keys(parts).filter(name => name in results)
  writeFileSync(resultsPath, `${JSON.stringify(Object.fromEntries(inOrder.map(name => [name, results[name]])), null, 2)}\n`)
  writeFileSync(join(import.meta.dirname, '..', 'docs', 'benchmarks.md'), asMarkdown(inOrder.map(name => results[name]!)))
}
process.exit(rows.some(({ isMet }) => isMet === false) ? 1 : 0)
