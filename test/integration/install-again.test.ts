// Once more into a cluster that has an installation already, which somebody changed or which is of another sort: what becomes of it, and what is said.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { KubeObject } from '../../src/app/cli/api.ts'
import { startCommands } from '../../src/app/cli/commands/upgrade.ts'
import { runCli } from '../../src/app/cli/main.ts'
import { realOutside } from '../../src/app/cli/outside.ts'
import { processTerminal } from '../../src/app/cli/terminal.ts'
import { kinds } from '../../src/kinds/registry.ts'
import { failed } from '../../src/ports/fault.ts'
import { type KubeRequest, type RealKubeApiserver, startKubeApiserver } from '../real/kube-apiserver.ts'
import { realParts } from '../real/parts.ts'

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
    server = await startKubeApiserver()
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
  const ichor = async (...argv: readonly string[]) => {
    const said = { out: [] as string[], err: [] as string[] }
    const terminal = {
      ...screen,
      out: (line: string) => void said.out.push(line),
      err: (line: string) => void said.err.push(line),
    }
    const outside = realOutside(kinds, () => Promise.resolve(failed('unsupported', 'nothing is planned here')), terminal)
    const code = await runCli([...argv, '-n', NAMESPACE, '--kubeconfig', server.kubeconfigPath('admin')], outside, startCommands)
    return { code, out: said.out, err: said.err.join('\n') }
  }
  const BY_HAND = ['install', '--no-controller']

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
        expect((await ichor('doctor')).out.join('\n')).toContain(gap)

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
      60_000,
    )
  })
})
