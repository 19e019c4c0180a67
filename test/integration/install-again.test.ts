// Once more into a cluster that has an installation already, which somebody changed or which is of another sort: what becomes of it, and what is said.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { API_VERSION } from '../../src/api/names.ts'
import type { KubeObject } from '../../src/app/cli/api.ts'
import { startCommands } from '../../src/app/cli/commands/upgrade.ts'
import { runCli } from '../../src/app/cli/main.ts'
import { realOutside } from '../../src/app/cli/outside.ts'
import { processTerminal } from '../../src/app/cli/terminal.ts'
import { kinds } from '../../src/kinds/registry.ts'
import { failed } from '../../src/ports/fault.ts'
import { makeTalosCredentials } from '../../src/app/demo/credentials.ts'
import { type KubeRequest, type RealKubeApiserver, startKubeApiserver } from '../real/kube-apiserver.ts'
import { realParts } from '../real/parts.ts'
import { typesGone } from '../real/types-gone.ts'

const parts = await realParts('etcd', 'kube-apiserver')
// One: each listens to standard output.
const screen = processTerminal()
const NAMESPACE = 'ichor-system'
const ADMISSION = '/apis/admissionregistration.k8s.io/v1'
const POLICIES = `${ADMISSION}/validatingadmissionpolicies`
const BINDINGS = `${ADMISSION}/validatingadmissionpolicybindings`

describe.skipIf('missing' in parts)(`installing again${'missing' in parts ? ` (${parts.missing})` : ''}`, () => {
  let server: RealKubeApiserver
  beforeAll(async () => {
    server = await startKubeApiserver({ users: { ada: ['system:masters'] } })
    // The test's own server comes with the roles of people, which belong to nobody's installation.
    for (const name of ['ichor-viewer', 'ichor-operator', 'ichor-admin'])
      await must({ path: `/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`, method: 'DELETE' })
  }, 240_000)
  afterAll(() => server?.stop())

  const must = async (request: KubeRequest): Promise<any> => {
    const answer = await server.request(request)
    expect(answer.status, `${request.method ?? 'GET'} ${request.path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
    return answer.body
  }
  const patch = (path: string, body: object) => must({ path, method: 'PATCH', contentType: 'application/merge-patch+json', body })
  const ichor = (...argv: readonly string[]) => as('admin', ...argv)
  const as = async (user: string, ...argv: readonly string[]) => {
    const said = { out: [] as string[], err: [] as string[] }
    const terminal = {
      ...screen,
      out: (line: string) => void said.out.push(line),
      err: (line: string) => void said.err.push(line),
    }
    const outside = realOutside(kinds, () => Promise.resolve(failed('unsupported', 'nothing is planned here')), terminal)
    const code = await runCli([...argv, '-n', NAMESPACE, '--kubeconfig', server.kubeconfigPath(user)], outside, startCommands)
    return { code, out: said.out, err: said.err.join('\n') }
  }
  const BY_HAND = ['install', '--no-controller']
  const INSIDE = ['install', '--image', 'registry.example.org/ichor:0.1.0', '--no-wait']
  const uninstalled = async () => expect(await ichor('uninstall', '--yes')).toMatchObject({ code: 0 })

  /** The same objects in dry run as in earnest: what is written is what was foretold. */
  const changed = (lines: readonly string[]): readonly string[] =>
    lines.filter(line => !/ unchanged$|^Nothing was/.test(line)).map(line => line.replace('would be ', ''))

  describe('a policy that somebody changed', () => {
    const exception = { name: 'not-ada', expression: "request.userInfo.username != 'ada'" }
    const rule = { apiGroups: ['coordination.k8s.io'], apiVersions: ['*'], operations: ['*'], resources: ['leases'] }
    it.each<readonly [string, string, (spec: any) => object]>([
      [
        'a binding with a selector',
        `${BINDINGS}/ichor-leases`,
        () => ({ matchResources: { namespaceSelector: { matchLabels: { a: 'b' } } } }),
      ],
      ['a binding that warns', `${BINDINGS}/ichor-status`, () => ({ validationActions: ['Warn'] })],
      ['a binding to another policy', `${BINDINGS}/ichor-operations`, () => ({ policyName: 'ichor-leases' })],
      ['one exception more', `${POLICIES}/ichor-operations`, spec => ({ matchConditions: [...spec.matchConditions, exception] })],
      ['a resource that is left out', `${POLICIES}/ichor-leases`, () => ({ matchConstraints: { excludeResourceRules: [rule] } })],
      ['one that lets pass what it cannot judge', `${POLICIES}/ichor-status`, () => ({ failurePolicy: 'Ignore' })],
    ])(
      '%s: becomes ours again, in place, and the dry run tells it',
      async (_, path, spoil) => {
        expect(await ichor(...BY_HAND)).toMatchObject({ code: 0, err: '' })
        const before = (await must({ path })) as KubeObject
        const annotations = { 'example.org/owner': 'ada' }
        await patch(path, { spec: spoil(before.spec), metadata: { annotations } })
        const spoiled = (await must({ path })) as KubeObject
        expect(spoiled.spec).not.toEqual(before.spec)
        const gap = `${before.metadata.name} is not the one of this version`
        const told = await ichor('doctor')
        expect(told.out.join('\n'), told.err).toContain(gap)

        const name = new RegExp(`^validatingadmissionpolicy(binding)?\\.admissionregistration\\.k8s\\.io/${before.metadata.name} updated$`)
        const dry = await ichor(...BY_HAND, '--dry-run')
        expect(dry).toMatchObject({ code: 0, err: '' })
        expect(changed(dry.out)).toEqual([expect.stringMatching(name)])
        expect(await must({ path })).toEqual(spoiled)

        const done = await ichor(...BY_HAND)
        expect(done).toMatchObject({ code: 0, err: '' })
        expect(changed(done.out)).toEqual(changed(dry.out))
        const after = (await must({ path })) as KubeObject
        expect(after.spec).toEqual(before.spec)
        // What others say of it stays, and it was never away.
        expect(after.metadata.annotations).toEqual(annotations)
        expect(after.metadata.uid).toBe(before.metadata.uid)
        expect((await ichor('doctor')).out.join('\n')).not.toContain(gap)
        expect(changed((await ichor(...BY_HAND)).out)).toEqual([])
      },
      240_000,
    )
    afterAll(uninstalled)
  })

  describe('another controller than the one that is here', () => {
    const account = `system:serviceaccount:${NAMESPACE}:ichor-controller`
    const controllers = async (): Promise<readonly string[]> =>
      /username == '([^']+)'/.exec(JSON.stringify((await must({ path: `${POLICIES}/ichor-status` })).spec))!.slice(1)
    const OVER =
      /^error: the controller that is here runs as .* Nothing was installed\n.*: ichor uninstall -n ichor-system --kubeconfig \S+(\n|$)/

    it('one run by hand is not cut off: by a Deployment, or by one that runs as somebody else', async () => {
      expect(await as('ada', ...BY_HAND)).toMatchObject({ code: 0, err: '' })
      const [ada] = await controllers()
      for (const args of [INSIDE, [...INSIDE, '--dry-run'], [...INSIDE, '--without-policies'], BY_HAND]) {
        const { code, out, err } = await ichor(...args)
        expect([code, out]).toEqual([3, []])
        expect(err).toMatch(OVER)
        expect(err).toContain(`runs as ${ada}`)
      }
      expect(await controllers()).toEqual([ada])
      // Who says that it is another one now knows what he does.
      expect(await ichor(...BY_HAND, '--controller-user', 'grace')).toMatchObject({ code: 0, err: '' })
      expect(await controllers()).toEqual(['grace'])
      await uninstalled()
      expect(await ichor(...INSIDE)).toMatchObject({ code: 0, err: '' })
      await uninstalled()
    }, 240_000)

    it('nor is the Deployment; and policies that are not for it are made so', async () => {
      expect(await ichor(...INSIDE)).toMatchObject({ code: 0, err: '' })
      for (const args of [BY_HAND, [...BY_HAND, '--controller-user', 'grace'], [...BY_HAND, '--dry-run']]) {
        const { code, out, err } = await ichor(...args)
        expect([code, out]).toEqual([3, []])
        expect(err).toMatch(OVER)
      }
      expect(await controllers()).toEqual([account])
      const { spec } = await must({ path: `${POLICIES}/ichor-status` })
      await patch(`${POLICIES}/ichor-status`, { spec: JSON.parse(JSON.stringify(spec).replaceAll(account, 'ada')) as object })
      expect(changed((await ichor(...INSIDE)).out)).toEqual(['validatingadmissionpolicy.admissionregistration.k8s.io/ichor-status updated'])
      expect(await controllers()).toEqual([account])
      await uninstalled()
    }, 240_000)

    it('says of policies that are there that they stay, and for whom, where an installation has none', async () => {
      expect(await ichor(...INSIDE)).toMatchObject({ code: 0, err: '' })
      for (const args of [[], ['--dry-run']]) {
        const { code, out, err } = await ichor(...INSIDE, '--without-policies', ...args)
        expect(code).toBe(0)
        expect(changed(out)).toHaveLength(6)
        expect(changed(out)).toContain('validatingadmissionpolicybinding.admissionregistration.k8s.io/ichor-leases stays')
        expect(err).toContain(`they let the controller write that runs as ${account}`)
        expect(err).toMatch(
          /kubectl delete validatingadmissionpolicies\/ichor-operations validatingadmissionpolicybindings\/ichor-operations /,
        )
      }
      await uninstalled()
      expect(await ichor(...INSIDE, '--without-policies')).toMatchObject({ code: 0, err: '' })
      await uninstalled()
    }, 240_000)
  })

  describe('the dry run', () => {
    const TYPES = ['talosoperations', 'talosclusters', 'talosmachines', 'etcdsnapshots'].map(
      plural => `customresourcedefinition.apiextensions.k8s.io/${plural}.ichor.maesh.dev`,
    )

    it('tells of types as of all else, before they are there and after', async () => {
      expect(await ichor('uninstall', '--crds', '--confirm', NAMESPACE)).toMatchObject({ code: 0 })
      await typesGone(server)
      expect((await ichor('install', '--crds-only', '--dry-run')).out).toEqual([
        ...TYPES.map(name => `${name} would be created`),
        'Nothing was written.',
      ])
      for (const args of [['install', '--crds-only'], INSIDE, [...INSIDE, '--replicas', '3', '--all-namespaces'], INSIDE]) {
        const dry = await ichor(...args, '--dry-run')
        expect(dry).toMatchObject({ code: 0, err: '' })
        expect(changed(dry.out).length).toBeGreaterThan(0)
        expect(changed(dry.out)).toEqual(changed((await ichor(...args)).out))
        expect(changed((await ichor(...args, '--dry-run')).out)).toEqual([])
      }
      await uninstalled()
    }, 240_000)

    it('of the removal refuses what the removal refuses', async () => {
      expect(await ichor(...BY_HAND)).toMatchObject({ code: 0 })
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
      // Who installed is the controller here, so that the policies let it write this; the API server knows new ones a moment later.
      const running = {
        path: `${path}/up/status`,
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { status: { phase: 'Running' } },
      } as const
      await expect.poll(async () => (await server.request(running)).status, { timeout: 180_000 }).toBe(200)
      const dry = await ichor('uninstall', '--crds', '--dry-run')
      expect(dry).toMatchObject({ code: 3, out: [] })
      expect(dry).toEqual(await ichor('uninstall', '--crds', '--confirm', NAMESPACE))
      await must({ path: `${path}/up`, method: 'DELETE' })
      expect(await ichor('uninstall', '--dry-run')).toMatchObject({ code: 0, err: '' })
    }, 240_000)
  })

  describe('a cluster that was added', () => {
    let folder: string
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'ichor-again-'))
      expect(await ichor(...BY_HAND)).toMatchObject({ code: 0 })
      const { talosconfigPath } = await makeTalosCredentials({ cluster: 'home', machines: [], endpoints: ['127.77.0.1'], folder })
      expect(await ichor('cluster', 'add', 'home', '--talosconfig', talosconfigPath)).toMatchObject({ code: 0 })
    }, 240_000)
    afterAll(() => rmSync(folder, { recursive: true }))

    it("is not taken for somebody else's, and it is said what to do", async () => {
      const { code, out, err } = await ichor(...BY_HAND, '--talos-cluster', 'home')
      expect([code, out]).toEqual([3, []])
      expect(err).toContain('the cluster of --talos-cluster is there already, and was not added by ichor install; nothing was installed')
      expect(err).toContain('taloscluster.ichor.maesh.dev/home in ichor-system')
      expect(err).toContain('Leave --talos-cluster out; docs/install.md tells how')
      expect(err).not.toContain('not of Ichor')
    })

    it('leaves its Secret when Ichor goes, and that is said with the way to remove it', async () => {
      const other = { metadata: { name: 'of-others' }, data: { talosconfig: '' } }
      await must({ path: `/api/v1/namespaces/${NAMESPACE}/secrets`, method: 'POST', body: other })
      for (const args of [['--dry-run'], ['--crds', '--dry-run'], ['--crds', '--confirm', NAMESPACE]]) {
        const { code, err } = await ichor('uninstall', ...args)
        expect(code).toBe(0)
        expect(err.split('\n')).toEqual([
          'Secrets that ichor cluster add wrote stay, with the keys of their clusters. Where a cluster is not to come back:',
          `  kubectl delete secret home-talosconfig -n ichor-system --kubeconfig ${server.kubeconfigPath('admin')}`,
        ])
      }
    }, 240_000)
  })

  it("says what to do about objects that are really somebody else's", async () => {
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
    await must({ path, method: 'POST', body: { metadata: { name: 'ichor-viewer' }, rules: [] } })
    const { code, err } = await ichor(...BY_HAND)
    expect(code).toBe(3)
    expect(err).toMatch(/clusterrole\.rbac\.authorization\.k8s\.io\/ichor-viewer\n.*delete those that nobody needs/)
    await must({ path: `${path}/ichor-viewer`, method: 'DELETE' })
  })
})
