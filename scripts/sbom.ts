// What is inside, as CycloneDX 1.5: of the package with all that npm installs beside it (`npm run sbom` prints it), and of the bundle, which holds
// a part of that (scripts/build.ts writes it beside the bundle). Both come from `npm sbom`, which reads package-lock.json; the same sources give the
// same bytes.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A package as CycloneDX writes it; more fields than these are kept as npm wrote them. */
export type Component = {
  readonly 'bom-ref': string
  readonly type: string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly licenses?: readonly { readonly license?: { readonly id?: string }; readonly expression?: string }[]
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  readonly properties: readonly { readonly name: string; readonly value: string }[]
}
export type Sbom = {
  readonly bomFormat: 'CycloneDX'
  readonly specVersion: string
  readonly serialNumber: string
  readonly metadata: {
    readonly lifecycles: readonly { readonly phase: string }[]
    readonly component: Component
  }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

/** Of the package, and of all that npm installs with it. */
export const packageSbom = (root: string): Sbom => {
  const text = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { name } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { name: string }
  const all = JSON.parse(text) as Sbom
  // With --omit=dev npm 11 leaves out what a package of development needs besides, zod and yaml among it; so what is of development alone goes here.
  const components = all.components.filter(
    ({ properties }) => !properties.some(property => property.name === 'cdx:npm:package:development'),
  )
  // npm calls it by the folder that it lies in.
  const metadata = { ...all.metadata, component: { ...all.metadata.component, name } }
  return settled(partOf({ ...all, metadata }, new Set(components.map(component => component['bom-ref']))))
}

/** The packages that files come from, as `name@version`; files that are of no package are our own. */
export const packagesOf = (root: string, files: Iterable<string>): ReadonlySet<string> => {
  const folders = new Set([...files].flatMap(file => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []))
  return new Set(
    [...folders].map(folder => {
      const { name, version } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as { name: string; version: string }
      return `${name}@${version}`
    }),
  )
}

/** The part of it that is inside a bundle. A package in there that the whole does not know is an error: it would be told to nobody. */
export const bundleSbom = (whole: Sbom, bundled: ReadonlySet<string>): Sbom => {
  const unknown = [...bundled].filter(ref => whole.components.every(component => component['bom-ref'] !== ref))
  if (unknown.length > 0) throw new Error(`bundled, but no dependency of the package: ${unknown.join(', ')}`)
  return settled(partOf({ ...whole, metadata: { ...whole.metadata, lifecycles: [{ phase: 'build' }] } }, bundled))
}

const partOf = (sbom: Sbom, refs: ReadonlySet<string>): Sbom => ({
  ...sbom,
  components: sbom.components.filter(component => refs.has(component['bom-ref'])),
  dependencies: sbom.dependencies
    .filter(({ ref }) => ref === sbom.metadata.component['bom-ref'] || refs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(other => refs.has(other)) })),
})

export const sbomText = (sbom: Sbom): string => `${JSON.stringify(sbom, undefined, 2)}\n`

/** Without what would make each one different: the time, the version of npm, and a number drawn by lot, which is made from the content instead. */
const settled = ({ metadata: { lifecycles, component }, ...rest }: Sbom): Sbom => {
  const sbom = { ...rest, serialNumber: '', metadata: { lifecycles, component } }
  const hash = createHash('sha256').update(JSON.stringify(sbom)).digest('hex')
  // A UUID of version 8: of nobody's scheme but its maker's (RFC 9562, 5.8).
  const uuid = [hash.slice(0, 8), hash.slice(8, 12), `8${hash.slice(13, 16)}`, `8${hash.slice(17, 20)}`, hash.slice(20, 32)].join('-')
  return { ...sbom, serialNumber: `urn:uuid:${uuid}` }
}

if (import.meta.main) process.stdout.write(sbomText(packageSbom(join(import.meta.dirname, '..'))))
