// `npm test`: types, lint, generated files, the real programs, then all tests. The last line is "N passed, N failed, N skipped".
// With arguments (`npm test -- src/core`) only the tests that vitest picks by them.
// ICHOR_REQUIRE_REAL_PARTS=1, as CI sets it, makes a failure of a real program that cannot be had.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { audit, reviewedAdvisories } from './audit.ts'
import { realPart, realPartNames } from '../test/real/parts.ts'
import { finish, type Summary } from './summary.ts'
import { agreement, readVitestReport } from './vitest-report.ts'

interface Check {
  name: string
  command: string[]
}

const root = join(import.meta.dirname, '..')
const reportPath = join(root, '.cache', 'vitest.json')
const env = { ...process.env, PATH: [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter) }
const filters = process.argv.slice(2)

const summary: Summary = { passed: 0, failed: [], skipped: 0, skips: [], agreements: [] }

if (filters.length === 0) {
  for (const check of checks()) {
    const begin = Date.now()
    const code = await run(check.command)
    console.log(
      `${code === 0 ? 'ok' : 'FAILED'}  ${check.name} (${check.command.join(' ')}), ${((Date.now() - begin) / 1000).toFixed(1)} s`,
    )
    if (code === 0) summary.passed++
    else summary.failed.push(`${check.name}: ${check.command.join(' ')}`)
  }
}

if (filters.length === 0 && process.env.CI) {
  const outcome = await audit(root, reviewedAdvisories())
  if (outcome.is === 'unanswered') {
    summary.skipped++
    summary.skips.push(`npm audit: the registry does not answer (${outcome.why})`)
  } else if (outcome.wrong.length === 0) summary.passed++
  else summary.failed.push(...outcome.wrong.map(line => `npm audit: ${line}`))
}

for (const name of realPartNames) {
  const part = await realPart(name)
  if (!('missing' in part)) continue
  summary.skips.push(`all that needs the real ${part.missing}`)
  if (process.env.ICHOR_REQUIRE_REAL_PARTS === '1') summary.failed.push(`the real ${part.missing}`)
}

await runTests()

finish('test', summary)

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
  if (!existsSync(reportPath)) {
    summary.failed.push('vitest ended without a report')
    return
  }
  const report = readVitestReport(reportPath, root)
  summary.passed += report.passed
  summary.failed.push(...report.failed)
  summary.skipped += report.skipped
  summary.skips.push(...report.skips)
  summary.agreements.push(...agreement(report.metas))
  // Such as an unhandled rejection between two tests.
  if (code !== 0 && report.failed.length === 0) summary.failed.push(`vitest ended with ${code}`)
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
