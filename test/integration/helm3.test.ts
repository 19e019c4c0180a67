// The chart with Helm 3, which is still the one that most people have: the same objects as with Helm 4, and into a real API server and out again.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { crds } from '../../src/app/cli/install-objects.ts'
import { type RealKubeApiserver, startKubeApiserver } from '../real/kube-apiserver.ts'
import { realParts } from '../real/parts.ts'

const parts = await realParts('etcd', 'kube-apiserver', 'helm', 'helm3')
const chart = join(import.meta.dirname, '../../charts/ichor')
const NAMESPACE = 'ichor-system'
const IMAGE = ['--set', 'image.repository=registry.example.org/ichor']
const MONITORING = ['serviceMonitor', 'podMonitor', 'prometheusRule', 'dashboard']

describe.skipIf('missing' in parts)(`Helm 3${'missing' in parts ? ` (${parts.missing})` : ''}`, () => {
  let server: RealKubeApiserver
  let folder: string
  beforeAll(async () => {
    server = await startKubeApiserver()
    folder = mkdtempSync(join(tmpdir(), 'ichor-helm3-'))
    for (const name of ['ichor-viewer', 'ichor-operator', 'ichor-admin'])
      await server.request({ path: `/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`, method: 'DELETE' })
  }, 120_000)
  afterAll(async () => {
    await server?.stop()
    if (folder) rmSync(folder, { recursive: true })
  })

  const run = async (program: 'helm' | 'helm3', ...args: readonly string[]): Promise<string> => {
    if ('missing' in parts) throw new Error(parts.missing)
    const own = join(folder, program)
    const env = {
      ...process.env,
      KUBECONFIG: server.kubeconfigPath('admin'),
      HELM_CACHE_HOME: own,
      HELM_CONFIG_HOME: own,
      HELM_DATA_HOME: own,
    }
    return (await promisify(execFile)(parts.paths[program], args, { env, maxBuffer: 2 ** 26 })).stdout
  }

  it('is one', async () => {
    expect(await run('helm3', 'version', '--template', '{{ .Version }}')).toMatch(/^v3\./)
  })

  it('finds the chart well-formed', async () => {
    expect(await run('helm3', 'lint', '--strict', chart, ...IMAGE)).toContain('0 chart(s) failed')
  })

  it.each([
    ['as it comes', []],
    [
      'all that can be turned on',
      ['allNamespaces=true', 'talosCluster=home', 'replicas=3', ...MONITORING.map(name => `monitoring.${name}.enabled=true`)],
    ],
    ['what can be turned off', ['policies=false']],
  ] as const)('renders what Helm 4 renders: %s', async (_, sets) => {
    const [three, four] = await Promise.all(
      (['helm3', 'helm'] as const).map(async program => {
        const text = await run(
          program,
          'template',
          'ichor',
          chart,
          '-n',
          NAMESPACE,
          '--include-crds',
          ...IMAGE,
          ...sets.flatMap(set => ['--set', set]),
        )
        const objects = parseAllDocuments(text).flatMap(one =>
          one.contents ? [one.toJS() as { kind: string; metadata: { name: string } }] : [],
        )
        return new Map(objects.map(object => [`${object.kind}/${object.metadata.name}`, object]))
      }),
    )
    expect(three!.size).toBeGreaterThan(15)
    expect(three).toEqual(four)
  })

  it('refuses a value that there is not', async () => {
    await expect(run('helm3', 'template', 'ichor', chart, ...IMAGE, '--set', 'replica=3')).rejects.toMatchObject({
      stderr: expect.stringMatching(/additional properties 'replica' not allowed|Additional property replica is not allowed/) as string,
    })
  })

  it('installs, upgrades and leaves nothing but the resource types', async () => {
    const policies = async () => {
      const { body } = await server.request({ path: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies' })
      return (body.items as readonly { metadata: { name: string } }[])
        .map(({ metadata }) => metadata.name)
        .filter(name => name.startsWith('ichor-'))
    }
    await run('helm3', 'install', 'ichor', chart, '-n', NAMESPACE, '--create-namespace', ...IMAGE)
    expect(await policies()).toEqual(['ichor-leases', 'ichor-operations', 'ichor-status'])
    const said = await run('helm3', 'upgrade', 'ichor', chart, '-n', NAMESPACE, ...IMAGE, '--set', 'replicas=3')
    expect(said).toContain(`is in namespace ${NAMESPACE}`)
    expect(said).not.toContain('Bring them up to date')
    const { body } = await server.request({ path: `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/ichor-controller` })
    expect(body.spec.replicas).toBe(3)
    await run('helm3', 'uninstall', 'ichor', '-n', NAMESPACE)
    expect(await policies()).toEqual([])
    const left = await server.request({ path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions' })
    const names = (left.body.items as readonly { metadata: { name: string } }[]).map(({ metadata }) => metadata.name)
    expect(names.toSorted()).toEqual(
      crds()
        .map(({ metadata }) => metadata.name)
        .toSorted(),
    )
  }, 120_000)
})
