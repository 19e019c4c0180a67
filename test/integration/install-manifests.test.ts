// The plain manifests for Git: printed without an API server, applied by kubectl, and then there is what ichor install writes.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { crds, installed } from '../../src/app/cli/install-objects.ts'
import { typeOf } from '../../src/install/installation.ts'
import { type RealKubeApiserver, startKubeApiserver } from '../real/kube-apiserver.ts'
import { realParts } from '../real/parts.ts'
import { typesGone } from '../real/types-gone.ts'

const parts = await realParts('etcd', 'kube-apiserver', 'kubectl')
const bin = join(import.meta.dirname, '../../bin/ichor')
const IMAGE = 'registry.example.org/ichor:0.1.0'
const NAMESPACE = 'ichor-system'
const run = promisify(execFile)
type Shown = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: object; readonly annotations?: object }
}

/** No server is asked, so none may be needed. */
const printed = async (...args: readonly string[]): Promise<string> => {
  const env = { ...process.env, KUBECONFIG: '/nonexistent', ICHOR_SOURCE: '1' }
  return (await run(bin, ['install', '-o', 'yaml', ...args], { env, maxBuffer: 2 ** 26 })).stdout
}
const documents = (text: string, version: '1.1' | '1.2'): readonly unknown[] =>
  parseAllDocuments(text, { version }).map(one => one.toJS() as unknown)
const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

describe('what is printed', () => {
  it.each([
    ['as it comes', ['--image', IMAGE], { controller: { image: IMAGE } }],
    [
      'all that can be chosen',
      ['--image', IMAGE, '--replicas', '3', '--all-namespaces', '--without-policies', '--talos-cluster', 'home'],
      { controller: { image: IMAGE, replicas: 3 }, allNamespaces: true, policies: false, talosCluster: 'home' },
    ],
    ['for a controller elsewhere', ['--no-controller', '--controller-user', 'ada'], { controller: { user: 'ada' } }],
  ] as const)('%s: is what is installed, for readers of both YAMLs', async (_, args, wanted) => {
    const text = await printed(...args)
    const objects = installed({ namespace: NAMESPACE, policies: true, allNamespaces: false, ...wanted })
    for (const version of ['1.1', '1.2'] as const) expect(documents(text, version)).toEqual(plain([...crds(), namespace, ...objects]))
  })

  it('is only the types where only they are asked for', async () => {
    expect(documents(await printed('--crds-only'), '1.1')).toEqual(plain(crds()))
  })

  it.each([
    [['--no-controller'], 'add --controller-user'],
    [[], '--image is missing'],
  ] as const)('says what is missing: %j', async (args, said) => {
    await expect(printed(...args)).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining(said) as string })
  })
})

describe.skipIf('missing' in parts)(`what is applied${'missing' in parts ? ` (${parts.missing})` : ''}`, () => {
  let server: RealKubeApiserver
  let folder: string
  beforeAll(async () => {
    server = await startKubeApiserver()
    folder = mkdtempSync(join(tmpdir(), 'ichor-manifests-'))
    for (const name of ['ichor-viewer', 'ichor-operator', 'ichor-admin'])
      await server.request({ path: `/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`, method: 'DELETE' })
  }, 120_000)
  afterAll(async () => {
    await server?.stop()
    if (folder) rmSync(folder, { recursive: true })
  })

  const kubectl = (...args: readonly string[]) => {
    if ('missing' in parts) throw new Error(parts.missing)
    return run(parts.paths.kubectl, ['--kubeconfig', server.kubeconfigPath('admin'), ...args], { maxBuffer: 2 ** 26 })
  }
  const ichor = (...args: readonly string[]) => run(bin, [...args, '--kubeconfig', server.kubeconfigPath('admin'), '-n', NAMESPACE])
  const pathOf = ({ apiVersion, kind, metadata }: Shown): string => {
    const { group, version, plural } = typeOf({ apiVersion, kind })
    return [
      group ? `/apis/${group}/${version}` : `/api/${version}`,
      ...(metadata.namespace ? ['namespaces', metadata.namespace] : []),
      plural,
      metadata.name,
    ].join('/')
  }
  /** What the API server has of each, but for what it says of itself. */
  const there = async (objects: readonly Shown[]): Promise<readonly unknown[]> =>
    Promise.all(
      objects.map(async object => {
        const { status, body } = await server.request({ path: pathOf(object) })
        expect(status, pathOf(object)).toBe(200)
        const { metadata, status: _, ...rest } = body as Shown & { status?: unknown }
        const { name, namespace: place, labels, annotations } = metadata
        const drawn = JSON.stringify({ ...rest, metadata: { name, place, labels, annotations } })
        // The address of a Service is drawn by lot.
        return JSON.parse(drawn, (key, value: unknown) => (key.startsWith('clusterIP') ? undefined : value)) as unknown
      }),
    )

  it('is the same that ichor install writes, and ichor install has nothing to add to it', async () => {
    const file = join(folder, 'ichor.yaml')
    writeFileSync(file, await printed('--image', IMAGE))
    const objects = documents(await printed('--image', IMAGE), '1.1') as readonly Shown[]
    await ichor('install', '--image', IMAGE, '--no-wait')
    const byInstall = await there(objects)
    await ichor('uninstall', '--crds', '--confirm', NAMESPACE)
    await typesGone(server)

    const { stdout } = await kubectl('apply', '--server-side', '-f', file)
    expect(stdout.trim().split('\n')).toHaveLength(objects.length)
    expect(await there(objects)).toEqual(byInstall)
    await ichor('install', '--image', IMAGE, '--no-wait')
    expect(await there(objects)).toEqual(byInstall)
    // And Git takes it over again.
    await kubectl('apply', '--server-side', '--force-conflicts', '-f', file)
    expect(await there(objects)).toEqual(byInstall)
  }, 300_000)
})
