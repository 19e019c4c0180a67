// `npm test`: types, lint, generated files, the real programs, then all tests. The last line is "N passed, N failed, N skipped".
// With arguments (`npm test -- src/core`) only the tests that vitest picks by them.
// ICHOR_REQUIRE_REAL_PARTS=1, as CI sets it, makes a failure of a real program that cannot be had.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { realPart, realPartNames } from '../test/real/parts.ts'
import { agreement, readVitestReport } from './vitest-report.ts'

interface Check {
  name: string
  command: string[]
}

const root = join(import.meta.dirname, '..')
const reportPath = join(root, '.cache', 'vitest.json')
const env = { ...process.env, PATH: [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter) }
const filters = process.argv.slice(2)

const counts = { passed: 0, failed: 0, skipped: 0 }
const failures: string[] = []
const skips: string[] = []
const agreements: string[] = []

if (filters.length === 0) {
  for (const check of checks()) {
    const begin = Date.now()
    const code = await run(check.command)
    console.log(
      `${code === 0 ? 'ok' : 'FAILED'}  ${check.name} (${check.command.join(' ')}), ${((Date.now() - begin) / 1000).toFixed(1)} s`,
    )
    if (code === 0) counts.passed++
    else fail(`${check.name}: ${check.command.join(' ')}`)
  }
}

for (const name of realPartNames) {
  const part = await realPart(name)
  if (!('missing' in part)) continue
  skips.push(`all that needs the real ${part.missing}`)
  if (process.env.ICHOR_REQUIRE_REAL_PARTS === '1') fail(`the real ${part.missing}`)
}

await runTests()

if (skips.length > 0) console.log(['', 'Skipped:', ...skips.map(skip => `  ${skip}`)].join('\n'))
if (failures.length > 0) console.log(['', 'Failed:', ...failures.map(failure => `  ${failure}`)].join('\n'))
if (agreements.length > 0) console.log(['', ...agreements].join('\n'))
console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
process.exitCode = counts.failed === 0 ? 0 : 1

function checks(): Check[] {
  const always: Check[] = [
    { name: 'types of the pure rooms', command: ['tsc', '--project', 'tsconfig.pure.json'] },
    { name: 'types', command: ['tsc', '--project', 'tsconfig.json'] },
    { name: 'lint', command: ['oxlint', '--type-aware', '--deny-warnings'] },
  ]
  const format: Check = { name: 'format', command: ['oxfmt', '--check'] }
  const generated: Check = { name: 'generated files', command: ['node', 'scripts/generate.ts', '--check'] }
  return [
    ...always,
    // Nobody is to format half-written files only to see their tests: that is asked where the work is handed in.
    ...(process.env.CI ? [format] : []),
    ...(existsSync(join(root, 'scripts', 'generate.ts')) ? [generated] : []),
  ]
}

async function runTests(): Promise<void> {
  mkdirSync(join(root, '.cache'), { recursive: true })
  rmSync(reportPath, { force: true })
  const code = await run(['vitest', 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${reportPath}`, ...filters])
  if (!existsSync(reportPath)) return fail('vitest ended without a report')

  const report = readVitestReport(reportPath, root)
  const failedBefore = counts.failed
  counts.passed += report.passed
  counts.skipped += report.skipped
  for (const failure of report.failed) fail(failure)
  skips.push(...report.skips)
  agreements.push(...agreement(report.metas))
  // Such as an unhandled rejection between two tests.
  if (code !== 0 && counts.failed === failedBefore) fail(`vitest ended with ${code}`)
}

function fail(what: string): void {
  counts.failed++
  failures.push(what)
}

function run(command: string[]): Promise<number> {
  return new Promise(resolve => {
    const child = spawn(command[0]!, command.slice(1), { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] })
    child.once('error', error => {
      console.error(String(error))
      resolve(1)
    })
    child.once('close', (code, signal) => resolve(signal ? 1 : (code ?? 1)))
  })
}
