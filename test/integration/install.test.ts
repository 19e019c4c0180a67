// Into a real API server and out again: by `ichor install` and by Helm, which write the same; and what is refused before anything is written. Nothing
// runs there: there are no nodes, so whether the pods start is seen in a cluster only.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { API_VERSION } from '../../src/api/names.ts'
import { installed, type Wanted } from '../../src/app/cli/install-objects.ts'
import { typeOf } from '../../src/install/installation.ts'
import { type KubeAnswer, type KubeRequest, type RealKubeApiserver, startKubeApiserver } from '../real/kube-apiserver.ts'
import { realParts } from '../real/parts.ts'
import { typesGone } from '../real/types-gone.ts'

const parts = await realParts('etcd', 'kube-apiserver', 'helm', 'kubectl')
const root = join(import.meta.dirname, '..', '..')
const chart = join(root, 'charts', 'ichor')
const IMAGE = 'registry.example.org/ichor:0.1.0'
const NAMESPACE = 'ichor-system'

type Ended = { readonly code: number; readonly out: string; readonly err: string }
type Written = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: object }
}

type Choice = Partial<Omit<Wanted, 'controller'>> & { readonly controller?: { readonly image?: string; readonly replicas?: number } }

/** Chart values, and what `ichor install` is asked for the same; undefined where it has no flag for it. */
const SETS: readonly (readonly [string, object, Choice | undefined])[] = [
  ['as it comes', {}, {}],
  ['one replica', { replicas: 1 }, { controller: { replicas: 1 } }],
  ['none', { replicas: 0 }, { controller: { replicas: 0 } }],
  ['all namespaces', { allNamespaces: true }, { allNamespaces: true }],
  ['without policies', { policies: false }, { policies: false }],
  ['with a TalosCluster', { talosCluster: 'home' }, { talosCluster: 'home' }],
  [
    'all of these',
    { replicas: 3, allNamespaces: true, policies: false, talosCluster: 'home' },
    { controller: { replicas: 3 }, allNamespaces: true, policies: false, talosCluster: 'home' },
  ],
  ['a digest', { image: { digest: `sha256:${'a'.repeat(64)}` } }, { controller: { image: `${IMAGE}@sha256:${'a'.repeat(64)}` } }],
  [
    'a proxy and a secret for the registry',
    {
      env: [
        { name: 'HTTPS_PROXY', value: 'http://proxy:3128' },
        { name: 'NO_PROXY', value: '10.0.0.0/8' },
      ],
      imagePullSecrets: [{ name: 'registry' }],
    },
    undefined,
  ],
  [
    'a place of its own',
    {
      nodeSelector: { pool: 'infra' },
      tolerations: [],
      priorityClassName: '',
      resources: { requests: { memory: '64Mi' } },
      logLevel: 'debug',
      imagePullPolicy: 'Always',
    },
    undefined,
  ],
]

describe.skipIf('missing' in parts)(`installing${'missing' in parts ? ` (${parts.missing})` : ''}`, () => {
  let server: RealKubeApiserver
  let folder: string
  const { helm, kubectl } = 'missing' in parts ? { helm: '', kubectl: '' } : parts.paths

  beforeAll(async () => {
    server = await startKubeApiserver({ users: { weak: [] } })
    folder = await mkdtemp(join(tmpdir(), 'ichor-install-'))
    // As Talos has it where its API access is allowed; the real one says more of the fields.
    await must({
      path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      method: 'POST',
      body: {
        ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: 'serviceaccounts.talos.dev' } },
        spec: {
          ...{ group: 'talos.dev', scope: 'Namespaced' },
          names: { kind: 'ServiceAccount', plural: 'serviceaccounts', shortNames: ['tsa'] },
          versions: [
            {
              ...{ name: 'v1alpha1', served: true, storage: true },
              schema: {
                openAPIV3Schema: {
                  type: 'object',
                  properties: { spec: { type: 'object', properties: { roles: { type: 'array', items: { type: 'string' } } } } },
                },
              },
            },
          ],
        },
      },
    })
  }, 120_000)
  afterAll(async () => {
    await server?.stop()
    if (folder) await rm(folder, { recursive: true })
  })

  const must = async (request: KubeRequest): Promise<KubeAnswer['body']> => {
    const answer = await server.request(request)
    expect(answer.status, `${request.method ?? 'GET'} ${request.path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
    return answer.body
  }
  const run = async (program: string, args: readonly string[]): Promise<Ended> => {
    const env = {
      ...process.env,
      KUBECONFIG: server.kubeconfigPath('admin'),
      HELM_CACHE_HOME: folder,
      HELM_CONFIG_HOME: folder,
      HELM_DATA_HOME: folder,
      NO_COLOR: '1',
    }
    try {
      const { stdout, stderr } = await promisify(execFile)(program, args, { env, maxBuffer: 2 ** 26 })
      return { code: 0, out: stdout, err: stderr }
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
      return { code, out: stdout, err: stderr }
    }
  }
  const ichor = (...args: readonly string[]): Promise<Ended> => run(join(root, 'bin', 'ichor'), args)
  const values = async (set: object): Promise<string> => {
    const path = join(folder, `values-${Math.random()}.yaml`)
    await writeFile(
      path,
      stringify({
        image: { repository: 'registry.example.org/ichor' },
        ...set,
        ...('image' in set ? { image: { repository: 'registry.example.org/ichor', ...(set.image as object) } } : {}),
      }),
    )
    return path
  }
  const templated = async (set: object): Promise<readonly Written[]> => {
    const { code, out, err } = await run(helm, ['template', 'ichor', chart, '-n', NAMESPACE, '-f', await values(set)])
    expect(err).toBe('')
    expect(code).toBe(0)
    return parseAllDocuments(out).flatMap(document => (document.contents ? [document.toJS() as Written] : []))
  }
  /** Without the marks of who wrote it. */
  const plain = (objects: readonly Written[]) =>
    objects
      .map(({ metadata, ...rest }) => ({
        ...rest,
        metadata: {
          ...metadata,
          labels: Object.fromEntries(Object.entries(metadata.labels ?? {}).filter(([name]) => !/managed-by|instance/.test(name))),
        },
      }))
      .toSorted((a, b) => (`${a.kind}/${a.metadata.name}` < `${b.kind}/${b.metadata.name}` ? -1 : 1))

  /** All objects of all types, without what changes by itself. */
  const everything = async (): Promise<ReadonlyMap<string, string>> => {
    const types = (await run(kubectl, ['api-resources', '--verbs=list', '-o', 'name'])).out
      .trim()
      .split('\n')
      .filter(
        type => !/^(endpoints$|events|leases|componentstatuses|apiservices|flowschemas|prioritylevel|servicecidrs|ipaddresses)/.test(type),
      )
    const { out, err } = await run(kubectl, ['get', types.join(','), '-A', '-o', 'json'])
    expect(err.replaceAll(/^Warning: .*\n/gm, '')).toBe('')
    const { items } = JSON.parse(out) as {
      items: readonly (Written & { metadata: { namespace?: string; resourceVersion: string; managedFields?: unknown } })[]
    }
    return new Map(
      items.map(({ metadata, ...rest }) => [
        `${rest.kind} ${metadata.namespace ?? ''}/${metadata.name}`,
        JSON.stringify({ ...rest, labels: metadata.labels }),
      ]),
    )
  }
  /** The same when types were removed: the API server still names one for a moment that is gone. */
  const settled = () => vi.waitFor(everything, { timeout: 30_000, interval: 500 })
  const changes = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly string[] =>
    [...new Set([...before.keys(), ...after.keys()])].filter(key => before.get(key) !== after.get(key)).toSorted()

  describe('the chart', () => {
    it('is well-formed', async () => {
      const { code, out } = await run(helm, ['lint', '--strict', chart, '-f', await values({})])
      expect(out).toContain('0 chart(s) failed')
      expect(code).toBe(0)
    })

    it.each(SETS)('%s: the API server takes every object, and ichor install writes the same', async (_, set, wanted) => {
      const objects = await templated(set)
      if (wanted)
        expect(plain(objects)).toEqual(
          plain(
            installed({
              namespace: NAMESPACE,
              policies: true,
              allNamespaces: false,
              ...wanted,
              controller: { image: IMAGE, ...wanted.controller },
            }) as readonly Written[],
          ),
        )
      for (const object of objects) {
        if (object.apiVersion === API_VERSION) continue
        const { group, version, plural } = typeOf(object as never)
        const place = (object.metadata as { namespace?: string }).namespace
        const path = `/${group ? `apis/${group}` : 'api'}/${version}/${place ? 'namespaces/default/' : ''}${plural}/${object.metadata.name}`
        const body = place ? { ...object, metadata: { ...object.metadata, namespace: 'default' } } : object
        // Strict: a field that the API server does not know is an error and not dropped.
        await must({
          path: `${path}?dryRun=All&fieldManager=test&force=true&fieldValidation=Strict`,
          method: 'PATCH',
          contentType: 'application/apply-patch+yaml',
          body,
        })
      }
    })

    it.each([
      ['no image', { image: { repository: '' } }, 'image.repository is empty: name where the image of Ichor was pushed to'],
      ['a value that there is not', { replica: 3 }, "additional properties 'replica' not allowed"],
      ['a value of the wrong type', { replicas: 'two' }, 'got string, want integer'],
      ['a name that is none', { talosCluster: 'My Cluster' }, 'does not match pattern'],
    ])('refuses %s', async (_, set, said) => {
      const { code, err } = await run(helm, ['template', 'ichor', chart, '-f', await values(set)])
      expect(err).toContain(said)
      expect(code).not.toBe(0)
    })

    it('installs, upgrades, and leaves nothing but the resource types', async () => {
      await must({ path: '/api/v1/namespaces', method: 'POST', body: { metadata: { name: 'by-helm' } } })
      const removed = await rolesOutOfTheWay()
      const before = await everything()
      for (const [verb, set] of [
        ['install', {}],
        ['upgrade', { replicas: 3, allNamespaces: true }],
        ['upgrade', { policies: false }],
      ] as const) {
        const { code, err } = await run(helm, [verb, 'ichor', chart, '-n', 'by-helm', '-f', await values(set)])
        expect(err).toBe('')
        expect(code).toBe(0)
      }
      const over = await ichor('install', '-n', 'by-helm', '--image', IMAGE, '--no-wait')
      expect(over).toMatchObject({
        code: 3,
        err: expect.stringContaining('Ichor was installed by Helm here, as release ichor in namespace by-helm') as string,
      })
      expect((await run(helm, ['uninstall', 'ichor', '-n', 'by-helm'])).code).toBe(0)
      expect(changes(before, await everything()).filter(key => !key.startsWith('CustomResourceDefinition'))).toEqual([])
      await putBack(removed)
    }, 120_000)
  })

  /** The test's own server comes with the roles of people, which belong to nobody's installation. */
  const rolesOutOfTheWay = async (): Promise<readonly KubeAnswer['body'][]> => {
    const roles: KubeAnswer['body'][] = []
    for (const name of ['ichor-viewer', 'ichor-operator', 'ichor-admin']) {
      const path = `/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`
      const answer = await server.request({ path })
      if (answer.status !== 200) continue
      roles.push(answer.body)
      await must({ path, method: 'DELETE' })
    }
    return roles
  }
  const putBack = async (roles: readonly KubeAnswer['body'][]): Promise<void> => {
    for (const { apiVersion, kind, metadata, rules } of roles)
      await must({
        path: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
        method: 'POST',
        body: { apiVersion, kind, metadata: { name: metadata.name, labels: metadata.labels }, rules },
      })
  }

  describe('ichor install', () => {
    it('installs, changes nothing the second time, and is removed without a trace', async () => {
      await rolesOutOfTheWay()
      // Helm leaves the resource types.
      expect((await ichor('uninstall', '-n', NAMESPACE, '--crds', '--confirm', NAMESPACE)).code).toBe(0)
      await typesGone(server)
      const before = await settled()
      const dry = await ichor('install', '-n', NAMESPACE, '--image', IMAGE, '--dry-run')
      expect(dry).toMatchObject({ code: 0, out: expect.stringContaining('Nothing was written.') as string })
      expect(changes(before, await everything())).toEqual([])

      const first = await ichor('install', '-n', NAMESPACE, '--image', IMAGE, '--no-wait', '--talos-cluster', 'home')
      expect(first).toMatchObject({ code: 0, err: '' })
      const whole = await everything()
      expect(changes(before, whole)).toContain(`Deployment ${NAMESPACE}/ichor-controller`)
      const second = await ichor('install', '-n', NAMESPACE, '--image', IMAGE, '--no-wait', '--talos-cluster', 'home')
      expect(second.code).toBe(0)
      expect(
        second.out
          .trim()
          .split('\n')
          .filter(line => !line.endsWith('unchanged')),
      ).toEqual([])

      const other = await ichor('install', '-n', 'other', '--image', IMAGE, '--no-wait')
      expect(other).toMatchObject({
        code: 3,
        err: expect.stringContaining('Ichor is installed in namespace ichor-system of this cluster') as string,
      })
      expect(changes(whole, await everything())).toEqual([])

      const removed = await ichor('uninstall', '-n', NAMESPACE, '--yes')
      expect(removed.code, removed.err).toBe(0)
      const left = changes(before, await everything())
      expect(left.filter(key => !key.startsWith('CustomResourceDefinition '))).toEqual([`Namespace /${NAMESPACE}`])
      const crds = await ichor('uninstall', '-n', NAMESPACE, '--crds', '--confirm', NAMESPACE)
      expect(crds.code, crds.err).toBe(0)
      await typesGone(server)
      // The API server still names a type for a moment that is gone.
      await vi.waitFor(async () => expect(changes(before, await everything())).toEqual([`Namespace /${NAMESPACE}`]), {
        timeout: 30_000,
        interval: 500,
      })
    }, 300_000)

    it('waits until a controller is available, and says what keeps it', async () => {
      const late = await ichor('install', '-n', NAMESPACE, '--image', IMAGE, '--timeout', '3s')
      expect(late).toMatchObject({ code: 1, err: expect.stringContaining('no controller became available') as string })
      const waiting = ichor('install', '-n', NAMESPACE, '--image', IMAGE, '--timeout', '60s')
      const path = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/ichor-controller`
      const { metadata } = await must({ path })
      await must({
        path: `${path}/status`,
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { status: { observedGeneration: metadata.generation, conditions: [{ type: 'Available', status: 'True' }] } },
      })
      expect(await waiting).toMatchObject({ code: 0 })
      expect((await ichor('uninstall', '-n', NAMESPACE, '--yes')).code).toBe(0)
    }, 120_000)

    it('writes over nobody', async () => {
      const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
      const [role] = ['ichor-viewer']
      await must({ path, method: 'POST', body: { metadata: { name: role }, rules: [] } })
      const before = await everything()
      const { code, err } = await ichor('install', '-n', NAMESPACE, '--image', IMAGE, '--no-wait')
      expect(err).toContain('clusterrole.rbac.authorization.k8s.io/ichor-viewer')
      expect(code).toBe(3)
      expect(changes(before, await everything())).toEqual([])
      await must({ path: `${path}/${role}`, method: 'DELETE' })
    }, 60_000)

    it('says each right that is missing, and writes nothing', async () => {
      const before = await everything()
      const { code, err } = await run(join(root, 'bin', 'ichor'), [
        'install',
        '-n',
        NAMESPACE,
        '--image',
        IMAGE,
        '--no-wait',
        '--kubeconfig',
        server.kubeconfigPath('weak'),
      ])
      expect(code).not.toBe(0)
      expect(err).toMatch(/forbidden|may not/)
      expect(changes(before, await everything())).toEqual([])
    }, 60_000)

    it('does not go while an operation is at work', async () => {
      expect((await ichor('install', '-n', NAMESPACE, '--image', IMAGE, '--no-wait', '--without-policies')).code).toBe(0)
      const path = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/talosoperations`
      await must({
        path,
        method: 'POST',
        body: {
          apiVersion: API_VERSION,
          kind: 'TalosOperation',
          metadata: { name: 'up' },
          spec: { clusterRef: { name: 'home' }, kind: 'talos', talos: { version: 'v1.13.9' } },
        },
      })
      await must({
        path: `${path}/up/status`,
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { status: { phase: 'Running' } },
      })
      const { code, err } = await ichor('uninstall', '-n', NAMESPACE, '--yes')
      expect(err).toContain('operations are at work: ichor-system/up; nothing was removed')
      expect(code).toBe(3)
      await must({ path: `${path}/up`, method: 'DELETE' })
      expect((await ichor('uninstall', '-n', NAMESPACE, '--crds', '--confirm', NAMESPACE)).code).toBe(0)
    }, 60_000)
  })

  describe('the pages', () => {
    const pages = ['install', 'gitops', 'security'].map(name => [name, readFileSync(join(root, 'docs', `${name}.md`), 'utf8')] as const)

    it.each(pages)('%s: what is shown for a Kubernetes API is taken by one', async (_, text) => {
      await ichor('install', '-n', NAMESPACE, '--image', IMAGE, '--no-wait')
      const shown = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block]) => parse(block!) as Written)
      expect(shown.length).toBeGreaterThan(0)
      for (const object of shown) {
        // Of Flux and Argo CD there is nothing here, and a machine configuration is for Talos.
        if (object.apiVersion === undefined || /fluxcd|argoproj/.test(object.apiVersion)) continue
        const { group, version, plural } = typeOf(object)
        const path = `/apis/${group}/${version}/namespaces/${NAMESPACE}/${plural}?dryRun=All&fieldValidation=Strict`
        await must({ path, method: 'POST', body: object })
      }
      expect((await ichor('uninstall', '-n', NAMESPACE, '--crds', '--confirm', NAMESPACE)).code).toBe(0)
    })
  })
})
