// What is generated from the sources and committed: CRDs and reference pages. `--check` changes nothing and fails where a file differs.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { resources } from '../src/app/resources.ts'
import { compatibilityTable } from '../src/core/compatibility/table.ts'
import { kinds } from '../src/kinds/registry.ts'
import { cliPage, type ExitCodes } from './generate/cli-page.ts'
import { compatibilityPage } from './generate/compatibility-page.ts'
import { crdFiles, crdFolder } from './generate/crds.ts'
import { claimsIn, fieldCasesPage, wrongClaims, type FieldCase } from './generate/field-cases-page.ts'
import { differences, settle } from './generate/files.ts'
import { kindFolder, kindPages, stepsByReason } from './generate/kind-pages.ts'
import { reasonsPage } from './generate/reasons-page.ts'
import { resourceFolder, resourcePages } from './generate/resource-pages.ts'

const root = join(import.meta.dirname, '..')

const files = new Map([
  ...crdFiles(resources()),
  ...resourcePages(resources()),
  ...kindPages(kinds),
  ...reasonsPage(stepsByReason(kinds)),
  ...compatibilityPage(compatibilityTable),
  ...(await cli()),
  ...fieldCases(),
])
const found = differences(root, files, [crdFolder, resourceFolder, kindFolder])
if (process.argv.includes('--check')) {
  for (const { path, what } of found) console.error(`${path} ${what}`)
  if (found.length > 0) console.error('Run npm run generate, and commit what it writes.')
  process.exitCode = found.length === 0 ? 0 : 1
} else {
  settle(root, files, found)
  console.log(found.length === 0 ? `${files.size} generated files are fresh` : found.map(({ path }) => path).join('\n'))
}

async function cli() {
  const path = join(root, 'src/app/cli/program.ts')
  if (!existsSync(path)) return new Map<string, string>()
  const { program } = (await import(path)) as { program: (outside: unknown) => Command }
  const { EXIT } = (await import(join(root, 'src/app/cli/exit-codes.ts'))) as { EXIT: ExitCodes }
  return cliPage(program({ calledAs: 'ichor', version: '', kinds, terminal: {} }), EXIT)
}

function fieldCases() {
  const cases = JSON.parse(readFileSync(join(root, 'docs/field-cases.json'), 'utf8')) as FieldCase[]
  const claims = globSync('{src,test}/**/*.{test,conformance}.ts', { cwd: root, exclude: ['test/walls/bad'] })
    .sort()
    .flatMap(path => claimsIn(path, readFileSync(join(root, path), 'utf8')))
  const wrong = wrongClaims(cases, claims)
  if (wrong.length > 0) throw new Error(`tags of field cases:\n${wrong.map(one => `  ${one}`).join('\n')}`)
  return fieldCasesPage(cases, claims)
}
