// What is generated from the sources and committed: CRDs and reference pages. `--check` changes nothing and fails where a file differs.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startRights } from '../src/api/start-rights.ts'
import { startCommands } from '../src/app/cli/commands/upgrade.ts'
import { EXIT } from '../src/app/cli/exit-codes.ts'
import { realOutside } from '../src/app/cli/outside.ts'
import { program } from '../src/app/cli/program.ts'
import { resources } from '../src/app/resources.ts'
import { compatibilityTable } from '../src/core/compatibility/table.ts'
import { kinds } from '../src/kinds/registry.ts'
import { failed } from '../src/ports/fault.ts'
import { SERVICES } from '../src/talossim/services.ts'
import { chartFiles } from './generate/chart.ts'
import { cliPage } from './generate/cli-page.ts'
import { compatibilityPage } from './generate/compatibility-page.ts'
import { crdFiles, crdFolder } from './generate/crds.ts'
import { claimsIn, fieldCasesPage, wrongClaims, type FieldCase } from './generate/field-cases-page.ts'
import { differences, settle } from './generate/files.ts'
import { kindFolder, kindPages, stepsByReason } from './generate/kind-pages.ts'
import { reasonsPage } from './generate/reasons-page.ts'
import { resourceFolder, resourcePages } from './generate/resource-pages.ts'
import { securityPage } from './generate/security-page.ts'
import { talosMethodsPage } from './generate/talos-methods-page.ts'

/** Pages are made from what the commands say of themselves; none is run. */
const noPlan = () => Promise.resolve(failed('unsupported', 'nothing is planned here'))

const root = join(import.meta.dirname, '..')

const files = new Map([
  ...crdFiles(resources()),
  ...chartFiles(startRights(kinds)),
  ...resourcePages(resources()),
  ...kindPages(kinds),
  ...reasonsPage(stepsByReason(kinds)),
  ...compatibilityPage(compatibilityTable),
  ...securityPage(startRights(kinds)),
  ...talosMethodsPage(SERVICES),
  ...cli(),
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

function cli() {
  return cliPage(program({ ...realOutside(kinds, noPlan), calledAs: 'ichor' }, startCommands), EXIT)
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
