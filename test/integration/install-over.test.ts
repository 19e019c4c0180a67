// Into a cluster where something is already: an older version, another installation, half of the rights, an old API server. Real API server, real helm.
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { API_VERSION, GROUP, VERSION } from '../../src/api/names.ts'
import type { Api, KubeObject } from '../../src/app/cli/api.ts'
import { startCommands } from '../../src/app/cli/commands/upgrade.ts'
import { crds as ownCrds, installed } from '../../src/app/cli/install-objects.ts'
import { runCli } from '../../src/app/cli/main.ts'
import { realOutside } from '../../src/app/cli/outside.ts'
import type { Outside } from '../../src/app/cli/session.ts'
import { processTerminal } from '../../src/app/cli/terminal.ts'
import { typeOf } from '../../src/install/installation.ts'
import { kinds } from '../../src/kinds/registry.ts'
import { failed } from '../../src/ports/fault.ts'
import { type KubeRequest, type RealKubeApiserver, startKubeApiserver } from '../real/kube-apiserver.ts'
import { realParts } from '../real/parts.ts'
import { typesGone } from '../real/types-gone.ts'

const parts = await realParts('etcd', 'kube-apiserver', 'helm')
// One: each listens to standard output.
const screen = processTerminal()
const chart = join(import.meta.dirname, '../../charts/ichor')
const IMAGE = 'registry.example.org/ichor:0.1.0'
const NAMESPACE = 'ichor-system'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const ADMISSION = '/apis/admissionregistration.k8s.io/v1'
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const OPERATIONS = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/talosoperations`
const POLICIES = ['ichor-operations', 'ichor-status', 'ichor-leases']

/** What an older version wrote: policies with other words, one less, and types that lack a field. */
const OLD_WORDS = 'nobody but the controller writes status'
const older = (text: string): string => text.replace('nobody else writes it', OLD_WORDS)
const olderTypes = (): readonly KubeObject[] =>
  JSON.parse(JSON.stringify(ownCrds()), (key, value: unknown) => {
    if (key !== 'properties' || typeof value !== 'object' || value === null || !('lastRetry' in value)) return value
    const { lastRetry: _, ...rest } = value
    return rest
  }) as readonly KubeObject[]

describe.skipIf('missing' in parts)(`installing over${'missing' in parts ? ` (${parts.missing})` : ''}`, () => {
  let server: RealKubeApiserver
  let folder: string
  beforeAll(async () => {
    server = await startKubeApiserver({ users: { weak: [] } })
    folder = mkdtempSync(join(tmpdir(), 'ichor-install-'))
    // The test's own server comes with the roles of people, which belong to nobody's installation.
    for (const name of ['ichor-viewer', 'ichor-operator', 'ichor-admin'])
      await must({ path: `${RBAC}/clusterroles/${name}`, method: 'DELETE' })
  }, 240_000)
  afterAll(async () => {
    await server?.stop()
    if (folder) rmSync(folder, { recursive: true })
  })
  afterEach(async () => {
    await helm('uninstall', 'ichor', '-n', NAMESPACE)
    await helm('uninstall', 'second', '-n', 'other')
    await ichor(['uninstall', '-n', NAMESPACE, '--yes'])
    expect(await ichor(['uninstall', '-n', NAMESPACE, '--crds', '--confirm', NAMESPACE])).toMatchObject({ code: 0, err: '' })
    await typesGone(server)
  }, 240_000)

  const must = async (request: KubeRequest): Promise<any> => {
    const answer = await server.request(request)
    expect(answer.status, `${request.method ?? 'GET'} ${request.path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
    return answer.body
  }
  const ichor = async (argv: readonly string[], { as = 'admin', ...other }: Partial<Outside> & { readonly as?: string } = {}) => {
    const said = { out: [] as string[], err: [] as string[] }
    const terminal = {
      ...screen,
      out: (line: string) => void said.out.push(line),
      err: (line: string) => void said.err.push(line),
    }
    const outside = realOutside(kinds, () => Promise.resolve(failed('unsupported', 'nothing is planned here')), terminal)
    const code = await runCli([...argv, '--kubeconfig', server.kubeconfigPath(as)], { ...outside, ...other }, startCommands)
    return { code, out: said.out.join('\n'), err: said.err.join('\n') }
  }
  const INSTALL = ['install', '-n', NAMESPACE, '--image', IMAGE, '--no-wait']
  const helm = async (...args: readonly string[]) => {
    if ('missing' in parts) throw new Error(parts.missing)
    const env = {
      ...process.env,
      KUBECONFIG: server.kubeconfigPath('admin'),
      HELM_CACHE_HOME: folder,
      HELM_CONFIG_HOME: folder,
      HELM_DATA_HOME: folder,
    }
    return promisify(execFile)(parts.paths.helm, args, { env }).then(
      ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
      (error: { code: number; stdout: string; stderr: string }) => ({ code: error.code, out: error.stdout, err: error.stderr }),
    )
  }
  const VALUES = ['--set', 'image.repository=registry.example.org/ichor']
  /** The chart as an older version had it. */
  const olderChart = (): string => {
    const copy = join(folder, 'older')
    cpSync(chart, copy, { recursive: true })
    const path = join(copy, 'templates/policies.yaml')
    writeFileSync(
      path,
      older(readFileSync(path, 'utf8')).replace(/(---\n(?:(?!---\n)[^])*?name: ichor-leases\n(?:(?!---\n)[^])*)+(?=\{\{- end \}\}\n$)/, ''),
    )
    for (const crd of olderTypes()) {
      const [plural] = crd.metadata.name.split('.')
      writeFileSync(join(copy, `crds/${GROUP}_${plural}.yaml`), stringify(crd, { aliasDuplicateObjects: false }))
    }
    return copy
  }
  const policies = async () =>
    Object.fromEntries(
      await Promise.all(
        POLICIES.flatMap(name => [`validatingadmissionpolicies/${name}`, `validatingadmissionpolicybindings/${name}`]).map(async path => {
          const { status, body } = await server.request({ path: `${ADMISSION}/${path}` })
          return [path, status === 200 ? (body.metadata.uid as string) : undefined]
        }),
      ),
    ) as Record<string, string | undefined>

  const operation = () =>
    must({
      path: OPERATIONS,
      method: 'POST',
      body: {
        apiVersion: API_VERSION,
        kind: 'TalosOperation',
        metadata: { name: 'up', annotations: { who: 'ada' } },
        spec: { clusterRef: { name: 'home' }, kind: 'talos', talos: { version: 'v1.13.9' } },
      },
    })
  const forbidden = () =>
    server.request({
      path: `${OPERATIONS}/up/status`,
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body: { status: { phase: 'Completed' } },
    })
  /** Asks for what the policies refuse, again and again while `work` is done: how often, and what was ever answered. */
  const watched = async (work: () => Promise<void>): Promise<{ readonly asked: number; readonly answered: readonly number[] }> => {
    const answered: number[] = []
    let isOver = false
    const asking = (async () => {
      while (!isOver) answered.push((await forbidden()).status)
    })()
    await work()
    isOver = true
    await asking
    return { asked: answered.length, answered: [...new Set(answered)] }
  }

  it.each(['helm', 'ichor'])(
    'an older version by %s: the policies hold at every moment, and what is stored stays',
    async by => {
      if (by === 'helm') {
        expect(await helm('install', 'ichor', olderChart(), '-n', NAMESPACE, '--create-namespace', ...VALUES)).toMatchObject({ code: 0 })
      } else {
        const before = {
          crds: () => Promise.resolve(olderTypes()),
          installed: async (wanted: Parameters<Outside['installed']>[0]) =>
            (JSON.parse(older(JSON.stringify(installed(wanted)))) as readonly KubeObject[]).filter(
              ({ metadata }) => metadata.name !== 'ichor-leases',
            ),
        }
        expect(await ichor(INSTALL, before)).toMatchObject({ code: 0, err: '' })
      }
      await operation()
      await expect.poll(async () => (await forbidden()).body.message as string, { timeout: 180_000 }).toContain(OLD_WORDS)
      // A moment ago the policies did not hold yet.
      const stored = await must({ path: `${OPERATIONS}/up` })
      const before = await policies()
      expect(
        Object.entries(before)
          .filter(([, uid]) => uid === undefined)
          .map(([path]) => path),
      ).toEqual(['validatingadmissionpolicies/ichor-leases', 'validatingadmissionpolicybindings/ichor-leases'])

      const { asked, answered } = await watched(async () => {
        const done = by === 'helm' ? await helm('upgrade', 'ichor', chart, '-n', NAMESPACE, ...VALUES) : await ichor(INSTALL)
        expect(done).toMatchObject({ code: 0, err: '' })
        if (by === 'helm') {
          expect(done.out).toContain('Bring them up to date: ichor install --crds-only')
          expect(done.out).toMatch(/^ {2}talosoperations\.ichor\.maesh\.dev$/m)
          expect(done.out).not.toContain('talosmachines.ichor')
        }
        await expect.poll(async () => (await forbidden()).body.message as string, { timeout: 180_000 }).toContain('nobody else writes it')
      })
      expect(answered).toEqual([403])
      expect(asked).toBeGreaterThan(10)
      const after = await policies()
      expect(Object.values(after)).not.toContain(undefined)
      // The same objects, changed in place.
      for (const [path, uid] of Object.entries(before)) if (uid !== undefined) expect(after[path], path).toBe(uid)
      const now = await must({ path: `${OPERATIONS}/up` })
      expect({ ...now, metadata: { ...now.metadata, managedFields: [] } }).toEqual({
        ...stored,
        metadata: { ...stored.metadata, managedFields: [] },
      })

      if (by === 'helm') {
        expect(await ichor(['install', '--crds-only'])).toMatchObject({ code: 0 })
        const again = await helm('upgrade', 'ichor', chart, '-n', NAMESPACE, ...VALUES)
        expect(again).toMatchObject({ code: 0, out: expect.not.stringContaining('Bring them up to date') as string })
      }
    },
    240_000,
  )

  it('a chart that cannot read what is stored is refused, and so is one whose version the cluster does not serve', async () => {
    const [first] = ownCrds()
    const { versions } = first!.spec as { versions: readonly { name: string }[] }
    const others = (names: readonly string[]): readonly KubeObject[] =>
      ownCrds().map(crd => {
        const [own] = (crd.spec as { versions: readonly object[] }).versions
        return {
          ...crd,
          spec: { ...(crd.spec as object), versions: names.map(name => ({ ...own, name, storage: name === names.at(-1) })) },
        }
      })
    expect(versions.map(({ name }) => name)).toEqual([VERSION])
    expect(await ichor(['install', '--crds-only'], { crds: () => Promise.resolve(others([VERSION, 'v1beta1'])) })).toMatchObject({
      code: 0,
    })
    // Helm 4 itself refuses to change what others wrote; as in an upgrade, it is not to look at the types here.
    const install = () => helm('install', 'ichor', chart, '-n', NAMESPACE, '--create-namespace', '--skip-crds', ...VALUES)
    expect((await install()).err).toContain('objects are stored as v1beta1, which Ichor 0.1.0 does not know')
    for (const { metadata } of ownCrds()) {
      await must({
        path: `${CRDS}/${metadata.name}/status`,
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { status: { storedVersions: [VERSION, 'v1beta1'] } },
      })
      const kept = others(['v1beta1', VERSION]).find(crd => crd.metadata.name === metadata.name)!
      const hidden = (kept.spec as { versions: readonly { name: string }[] }).versions.map(version => ({
        ...version,
        served: version.name !== VERSION,
      }))
      await must({
        path: `${CRDS}/${metadata.name}`,
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { spec: { versions: hidden } },
      })
      await must({
        path: `${CRDS}/${metadata.name}/status`,
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { status: { storedVersions: [VERSION] } },
      })
    }
    expect((await install()).err).toContain('this cluster does not serve v1alpha1, which Ichor 0.1.0 needs')
    expect(await policies()).toEqual(Object.fromEntries(Object.keys(await policies()).map(path => [path, undefined])))
  }, 240_000)

  it('helm writes over nobody: not over ichor install, not over a release in another namespace', async () => {
    expect(await ichor(INSTALL)).toMatchObject({ code: 0 })
    const before = await policies()
    const over = await helm('install', 'ichor', chart, '-n', NAMESPACE, ...VALUES)
    expect(over.code).not.toBe(0)
    expect(over.err).toMatch(/cannot be imported into the current release: invalid ownership metadata/)
    expect(await policies()).toEqual(before)
    expect((await ichor(['uninstall', '-n', NAMESPACE, '--yes'])).code).toBe(0)

    expect(await helm('install', 'ichor', chart, '-n', NAMESPACE, ...VALUES)).toMatchObject({ code: 0 })
    const release = await policies()
    const second = await helm('install', 'second', chart, '-n', 'other', '--create-namespace', ...VALUES)
    expect(second.code).not.toBe(0)
    expect(second.err).toMatch(/invalid ownership metadata.*"meta.helm.sh\/release-name" must equal "second"/)
    expect(await policies()).toEqual(release)
    const other = await ichor(['install', '-n', 'other', '--image', IMAGE, '--no-wait'])
    expect(other).toMatchObject({
      code: 3,
      err: expect.stringContaining('Ichor was installed by Helm here, as release ichor in namespace ichor-system') as string,
    })
  }, 240_000)

  describe('without the right for', () => {
    const nowhere = 'nowhere-yet'
    const WANTED = [
      ...ownCrds(),
      ...installed({ namespace: nowhere, controller: { image: IMAGE }, policies: true, allNamespaces: false }),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: nowhere } },
    ]
    const types = [...new Map(WANTED.map(object => [`${object.apiVersion} ${object.kind}`, typeOf(object as never)])).values()]
    const grant = (rules: readonly object[]) =>
      must({
        path: `${RBAC}/clusterroles/nearly?fieldManager=test&force=true`,
        method: 'PATCH',
        contentType: 'application/apply-patch+yaml',
        body: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'nearly' }, rules },
      })
    const all = (verbs: readonly string[], but?: { readonly group: string; readonly plural: string }) => [
      ...types.filter(type => type.plural !== but?.plural).map(({ group, plural }) => ({ apiGroups: [group], resources: [plural], verbs })),
    ]
    /** The API server sees a change of roles a moment later. */
    const sees = (verb: string, { group, plural }: { readonly group: string; readonly plural: string }, is: boolean) =>
      expect
        .poll(
          async () =>
            (
              await must({
                path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
                method: 'POST',
                user: 'weak',
                body: { spec: { resourceAttributes: { group, resource: plural, verb } } },
              })
            ).status.allowed as boolean,
          { timeout: 180_000 },
        )
        .toBe(is)

    beforeAll(async () => {
      await grant([])
      await must({
        path: `${RBAC}/clusterrolebindings`,
        method: 'POST',
        body: {
          metadata: { name: 'nearly' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'nearly' },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'weak' }],
        },
      })
    })

    it.each(types.map(type => [type.plural, type] as const))(
      '%s: says which objects, and writes nothing',
      async (_, type) => {
        const mine = WANTED.filter(object => typeOf(object as never).plural === type.plural).map(object => object.metadata.name)
        for (const [rules, verb] of [
          [all(['*'], type), 'get'],
          [[...all(['*'], type), { apiGroups: [type.group], resources: [type.plural], verbs: ['get', 'list'] }], 'patch'],
        ] as const) {
          await grant(rules)
          await sees(verb, type, false)
          for (const other of types) if (other.plural !== type.plural) await sees('patch', other, true)
          const { code, err } = await ichor(['install', '-n', nowhere, '--image', IMAGE, '--no-wait'], { as: 'weak' })
          expect(code).toBe(3)
          const named = err
            .split('\n')
            .slice(1)
            .map(line => /^\S+?\/([\w.-]+)/.exec(line.trim())?.[1])
          expect(named).toHaveLength(mine.length)
          expect(new Set(named)).toEqual(new Set(mine))
          expect(err).toMatch(/nothing was installed/)
        }
        expect(Object.values(await policies()).every(uid => uid === undefined)).toBe(true)
        expect((await must({ path: CRDS })).items).toEqual([])
      },
      240_000,
    )
  })

  it('a cluster that is too old for the policies: says so, and installs without them only when that is typed', async () => {
    const outside = realOutside(kinds, () => Promise.resolve(failed('unsupported', 'nothing is planned here')), screen)
    const old = {
      connect: async (choice: Parameters<Outside['connect']>[0]) => {
        const connection = await outside.connect(choice)
        const api: Api = { ...connection.api, serverVersion: () => Promise.resolve({ ok: true, value: 'v1.29.14' }) }
        return { ...connection, api }
      },
    }
    const refused = await ichor(INSTALL, old)
    expect(refused).toMatchObject({
      code: 3,
      err: expect.stringContaining('runs Kubernetes v1.29.14; admission policies need 1.30') as string,
    })
    expect((await must({ path: CRDS })).items).toEqual([])
    expect(await ichor([...INSTALL, '--without-policies'], old)).toMatchObject({ code: 0 })
    expect(Object.values(await policies()).every(uid => uid === undefined)).toBe(true)
    expect(parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8'))).toMatchObject({ kubeVersion: '>=1.30.0-0' })
  }, 240_000)
})
