// Where our packages come from, what is known against them, and what is told of them. The bundle itself is built by test/integration/image.test.ts.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { audit, LOCKED, reviewedAdvisories } from '../scripts/audit.ts'
import { bundleSbom, packageSbom } from '../scripts/sbom.ts'

const root = join(import.meta.dirname, '..')
const json = <T>(path: string): T => JSON.parse(readFileSync(join(root, path), 'utf8')) as T

type Locked = {
  readonly version?: string
  readonly integrity?: string
  readonly resolved?: string
  readonly link?: boolean
  readonly inBundle?: boolean
  readonly hasInstallScript?: boolean
  readonly dev?: boolean
  readonly name?: string
}
type Manifest = {
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly allowScripts?: Readonly<Record<string, boolean>>
  readonly private?: boolean
  readonly publishConfig?: object
}
const packagesIn = (folder: string): readonly (readonly [string, Locked])[] =>
  Object.entries(json<{ packages: Record<string, Locked> }>(`${folder}/package-lock.json`).packages).filter(([path]) => path !== '')
const manifest = json<Manifest>('package.json')

describe.each(LOCKED)('the lockfile of %s', folder => {
  const packages = packagesIn(folder)

  it('has the hash of every package', () => {
    expect(packages.filter(([, { integrity }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '')).map(([path]) => path)).toEqual([])
  })

  // Only a package that is not of the registry needs its address there: of git, of a folder, of somebody's server. And a registry's own would be one
  // that others cannot reach.
  it('names no address', () => {
    expect(packages.filter(([, { resolved, link, inBundle }]) => resolved ?? link ?? inBundle).map(([path]) => path)).toEqual([])
    expect(readFileSync(join(root, folder, 'package-lock.json'), 'utf8')).not.toMatch(/git\+|"(https?|file|ssh):[^"]*\.(tgz|git)/)
  })

  it('has each package under its own name', () => {
    expect(packages.filter(([path, { name }]) => name !== undefined && !path.endsWith(`node_modules/${name}`))).toEqual([])
  })

  it('is of dependencies that are one version each', () => {
    const { dependencies, devDependencies } = json<Manifest>(`${folder}/package.json`)
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      expect(version, name).toMatch(/^\d+\.\d+\.\d+$/)
      expect(packages.find(([path]) => path === `node_modules/${name}`)?.[1].version).toBe(version)
    }
  })
})

describe('scripts', () => {
  it('run none of our own when the package is installed', () => {
    const atInstall = ['preinstall', 'install', 'postinstall', 'preprepare', 'prepare', 'postprepare', 'prepublish', 'dependencies']
    expect(Object.keys(manifest.scripts ?? {}).filter(name => atInstall.includes(name))).toEqual([])
  })

  it('run those of others only where somebody decided so, and none of what is installed with the package', () => {
    const scripted = packagesIn('.').filter(([, { hasInstallScript }]) => hasInstallScript)
    const nameOf = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    expect(scripted.map(([path]) => nameOf(path)).toSorted()).toEqual(Object.keys(manifest.allowScripts ?? {}).toSorted())
    const shipped = scripted.filter(([, { dev }]) => !dev).map(([path]) => nameOf(path))
    expect(shipped.filter(name => manifest.allowScripts?.[name])).toEqual([])
  })
})

describe('the package', () => {
  it('is published by nobody without provenance', () => {
    expect(manifest.publishConfig).toMatchObject({ provenance: true })
  })

  it('is the program and its bundle, and no sources', () => {
    const [{ files }] = JSON.parse(
      execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
        cwd: root,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    ) as [{ files: readonly { path: string }[] }]
    const paths = files.map(({ path }) => path)
    expect(paths).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'bin/ichor', 'package.json']))
    expect(paths.filter(path => !/^(LICENSE|README\.md|package\.json|bin\/ichor|dist\/.*)$/.test(path))).toEqual([])
  })
})

describe('the list of what is inside', () => {
  const whole = packageSbom(root)
  const refs = new Set(whole.components.map(component => component['bom-ref']))
  const own = whole.metadata.component['bom-ref']

  it('has all that is installed with the package, and nothing of development', () => {
    const shipped = packagesIn('.').filter(([, { dev }]) => !dev)
    const named = shipped.map(
      ([path, { version }]) => `${path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)}@${version}`,
    )
    expect([...refs].toSorted()).toEqual([...new Set(named)].toSorted())
    // These are needed by packages of development too.
    for (const name of ['zod', 'yaml', 'picocolors']) expect(refs).toContain(`${name}@${manifest.dependencies?.[name]}`)
  })

  it('is whole: each is needed by another, has its hash and a licence', () => {
    const needed = new Set(whole.dependencies.flatMap(({ dependsOn }) => dependsOn))
    expect([...refs].filter(ref => !needed.has(ref))).toEqual([])
    expect([...needed].filter(ref => !refs.has(ref))).toEqual([])
    expect(new Set(whole.dependencies.map(({ ref }) => ref))).toEqual(new Set([own, ...refs]))
    for (const { name, hashes, licenses } of whole.components) {
      expect(hashes?.[0], name).toMatchObject({ alg: 'SHA-512' })
      expect(licenses?.length, name).toBeGreaterThan(0)
    }
  })

  it('is the same whenever and wherever it is made', () => {
    expect(packageSbom(root)).toEqual(whole)
    expect(own).toBe(`ichor@${json<{ version: string }>('package.json').version}`)
    expect(whole.metadata.component.name).toBe('ichor')
    expect(JSON.stringify(whole)).not.toMatch(/"timestamp"|"tools"/)
    expect(whole.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  it('of a bundle has only what is inside it, and refuses what nobody would know of', () => {
    const [zod, yaml] = [`zod@${manifest.dependencies?.['zod']}`, `yaml@${manifest.dependencies?.['yaml']}`]
    const part = bundleSbom(whole, new Set([zod, yaml]))
    expect(part.components.map(component => component['bom-ref'])).toEqual([yaml, zod])
    expect(part.dependencies.find(({ ref }) => ref === own)?.dependsOn).toEqual([yaml, zod])
    expect(part.serialNumber).not.toBe(whole.serialNumber)
    expect(() => bundleSbom(whole, new Set(['esbuild@1.0.0']))).toThrow('bundled, but no dependency of the package: esbuild@1.0.0')
  })
})

// npm itself asks a registry that is here.
describe('npm audit', () => {
  let registry: Server | undefined
  afterEach(() => registry?.close())

  const LONG = {
    url: 'https://github.com/advisories/GHSA-aaaa-bbbb-cccc',
    title: 'Too long',
    severity: 'high',
    vulnerable_versions: '<900',
  }

  const asked = async (advisories: object | undefined, reviewed: Parameters<typeof audit>[1]) => {
    const about: string[] = []
    registry = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const isBulk = request.method === 'POST' && advisories !== undefined
        if (isBulk) about.push(...Object.keys(JSON.parse(gunzipSync(Buffer.concat(chunks)).toString()) as object))
        response.writeHead(isBulk ? 200 : request.method === 'POST' ? 405 : 404, { 'content-type': 'application/json' })
        response.end(JSON.stringify(isBulk ? advisories : {}))
      })
    })
    await new Promise<void>(resolve => registry!.listen(0, '127.0.0.1', resolve))
    const { port } = registry.address() as AddressInfo
    const env = { ...process.env, npm_config_registry: `http://127.0.0.1:${port}/` }
    return { outcome: await audit(root, reviewed, { folders: ['.'], env }), about }
  }
  const long = { id: 1, cwe: [], cvss: { score: 0, vectorString: null }, ...LONG }

  it('asks for every package', async () => {
    const { outcome, about } = await asked({}, [])
    expect(outcome).toEqual({ is: 'answered', wrong: [], explained: [] })
    expect(about).toEqual(expect.arrayContaining(['zod', 'vitest', 'long']))
  }, 60_000)

  it('an advisory has to be explained', async () => {
    const { outcome } = await asked({ long: [long] }, [])
    expect(outcome).toEqual({
      is: 'answered',
      wrong: [`GHSA-aaaa-bbbb-cccc long <900 (high): Too long, ${LONG.url}`],
      explained: [],
    })
  }, 60_000)

  it('what is explained passes, until it is found no longer', async () => {
    const reviewed = [
      { advisory: 'GHSA-aaaa-bbbb-cccc', package: 'long', why: 'numbers here are short' },
      { advisory: 'GHSA-dddd-eeee-ffff', package: 'gone', why: 'was' },
    ]
    const { outcome } = await asked({ long: [long] }, reviewed)
    expect(outcome).toEqual({
      is: 'answered',
      wrong: ['GHSA-dddd-eeee-ffff gone is explained, and found no longer'],
      explained: ['GHSA-aaaa-bbbb-cccc long: numbers here are short'],
    })
  }, 60_000)

  it('a registry that does not answer says nothing for us', async () => {
    expect((await asked(undefined, [])).outcome).toMatchObject({ is: 'unanswered', why: expect.stringContaining('405') as string })
  }, 60_000)

  it('what is explained has a reason', () => {
    for (const entry of reviewedAdvisories()) {
      expect(entry.advisory).toMatch(/^GHSA(-[0-9a-z]{4}){3}$/)
      expect(entry.why.length).toBeGreaterThan(20)
    }
  })
})
