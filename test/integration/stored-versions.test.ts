// A version of Ichor with another version of its resource types, installed over objects that are stored as the old one: on a real API server, with a look
// into its etcd at what is stored. There is one version today; the next is made up here, with the same fields.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { API_VERSION, GROUP, VERSION } from '../../src/api/names.ts'
import type { KubeObject } from '../../src/app/cli/api.ts'
import { startCommands } from '../../src/app/cli/commands/upgrade.ts'
import { crds as ownCrds } from '../../src/app/cli/install-objects.ts'
import { runCli } from '../../src/app/cli/main.ts'
import { realOutside } from '../../src/app/cli/outside.ts'
import { processTerminal } from '../../src/app/cli/terminal.ts'
import { kinds } from '../../src/kinds/registry.ts'
import { failed } from '../../src/ports/fault.ts'
import { type KubeRequest, type RealKubeApiserver, startKubeApiserver } from '../real/kube-apiserver.ts'
import { realPart, realParts } from '../real/parts.ts'
import { typesGone } from '../real/types-gone.ts'

const parts = await realParts('etcd', 'kube-apiserver')
// One: each listens to standard output.
const screen = processTerminal()
const kubectl = await realPart('kubectl')
const NEXT = 'v1beta1'
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const OPERATIONS = `talosoperations.${GROUP}`

type Crd = KubeObject & {
  readonly spec: { readonly versions: readonly { readonly name: string; readonly served: boolean; readonly storage: boolean }[] }
  readonly status?: { readonly storedVersions: readonly string[] }
}
/** The resource types with these versions, the last of them the one that is stored. */
const crdsOf = (...names: readonly string[]): readonly Crd[] =>
  (ownCrds() as readonly Crd[]).map(crd => ({
    ...crd,
    spec: { ...crd.spec, versions: names.map(name => ({ ...crd.spec.versions[0]!, name, storage: name === names.at(-1) })) },
  }))

describe.skipIf('missing' in parts)(`another version of the types${'missing' in parts ? ` (${parts.missing})` : ''}`, () => {
  let server: RealKubeApiserver
  beforeAll(async () => {
    server = await startKubeApiserver()
  }, 240_000)
  afterAll(() => server?.stop())

  const must = async (request: KubeRequest): Promise<any> => {
    const answer = await server.request(request)
    expect(answer.status, `${request.method ?? 'GET'} ${request.path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
    return answer.body
  }
  /** `ichor install` of a version of Ichor that has these types. */
  const install = async (crds: readonly Crd[], ...args: readonly string[]) => {
    const said = { out: [] as string[], err: [] as string[] }
    const terminal = {
      ...screen,
      out: (line: string) => void said.out.push(line),
      err: (line: string) => void said.err.push(line),
    }
    const outside = realOutside(kinds, () => Promise.resolve(failed('unsupported', 'nothing is planned here')), terminal)
    const argv = ['install', '--crds-only', '--kubeconfig', server.kubeconfigPath('admin'), ...args]
    const code = await runCli(argv, { ...outside, crds: () => Promise.resolve(crds) }, startCommands)
    return { code, out: said.out.join('\n'), err: said.err.join('\n') }
  }
  const operations = (version: string, ...rest: readonly string[]): string =>
    ['/apis', GROUP, version, 'namespaces/default/talosoperations', ...rest].join('/')
  const storedVersions = async (name = OPERATIONS): Promise<readonly string[]> =>
    ((await must({ path: `${CRDS}/${name}` })) as Crd).status?.storedVersions ?? []
  /** As which version each operation lies in etcd. */
  const inEtcd = async (): Promise<Readonly<Record<string, string>>> => {
    const key = `/registry/${GROUP}/talosoperations/`
    const encoded = (text: string) => Buffer.from(text).toString('base64')
    const answer = await fetch(`${server.etcdUrl}/v3/kv/range`, {
      method: 'POST',
      body: JSON.stringify({ key: encoded(key), range_end: encoded(`${key.slice(0, -1)}0`) }),
    })
    const { kvs = [] } = (await answer.json()) as { kvs?: readonly { value: string }[] }
    const objects = kvs.map(({ value }) => JSON.parse(Buffer.from(value, 'base64').toString()) as KubeObject)
    return Object.fromEntries(objects.map(({ metadata, apiVersion }) => [metadata.name, apiVersion ?? '']))
  }
  const applied = async (crds: readonly Crd[]): Promise<void> => {
    for (const body of crds)
      await must({
        path: `${CRDS}/${body.metadata.name}?fieldManager=kubectl&force=true`,
        method: 'PATCH',
        contentType: 'application/apply-patch+yaml',
        body,
      })
  }

  beforeEach(async () => {
    expect(await install(crdsOf(VERSION))).toMatchObject({ code: 0, err: '' })
    for (const name of ['one', 'two'])
      await must({
        path: operations(VERSION),
        method: 'POST',
        body: {
          apiVersion: API_VERSION,
          kind: 'TalosOperation',
          metadata: { name, annotations: { who: 'ada' } },
          spec: { clusterRef: { name: 'home' }, kind: 'talos', talos: { version: 'v1.13.9' } },
        },
      })
    await must({
      path: operations(VERSION, 'one', 'status'),
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body: { status: { phase: 'Completed' } },
    })
  }, 240_000)
  afterEach(async () => {
    for (const crd of ownCrds()) await must({ path: `${CRDS}/${crd.metadata.name}`, method: 'DELETE' })
    await typesGone(server)
  }, 240_000)

  it('keeps every object as it was, rewrites it, and lists the old version no longer', async () => {
    const before = await must({ path: operations(VERSION, 'one') })
    expect(await inEtcd()).toEqual({ one: API_VERSION, two: API_VERSION })
    const dry = await install(crdsOf(VERSION, NEXT), '--dry-run')
    expect(dry).toMatchObject({
      code: 0,
      out: expect.stringContaining(`${OPERATIONS}: objects stored as ${VERSION} would be rewritten as ${NEXT}`) as string,
    })
    expect(await storedVersions()).toEqual([VERSION])

    const { code, out } = await install(crdsOf(VERSION, NEXT))
    expect(code).toBe(0)
    expect(out).toContain(`${OPERATIONS} stored as ${NEXT}: 2 objects rewritten, ${VERSION} no longer listed`)
    expect(await inEtcd()).toEqual({ one: `${GROUP}/${NEXT}`, two: `${GROUP}/${NEXT}` })
    for (const { metadata } of ownCrds()) expect(await storedVersions(metadata.name)).toEqual([NEXT])
    for (const version of [VERSION, NEXT]) {
      const now = await must({ path: operations(version, 'one') })
      expect(now).toMatchObject({ apiVersion: `${GROUP}/${version}`, spec: before.spec, status: before.status })
      expect(now.metadata).toMatchObject({ uid: before.metadata.uid, generation: before.metadata.generation, annotations: { who: 'ada' } })
    }
    // Nothing is left to do, and the version after it may leave the first out.
    expect((await install(crdsOf(VERSION, NEXT))).out).not.toContain('rewritten')
    expect(await install(crdsOf(NEXT))).toMatchObject({ code: 0 })
    expect((await must({ path: operations(NEXT, 'one') })).status).toEqual(before.status)
  }, 240_000)

  it('goes back to a version that knows both', async () => {
    await install(crdsOf(VERSION, NEXT))
    expect((await install(crdsOf(NEXT, VERSION))).code).toBe(0)
    expect(await inEtcd()).toEqual({ one: API_VERSION, two: API_VERSION })
    expect(await storedVersions()).toEqual([VERSION])
  }, 240_000)

  it('does what was left undone when others applied the types between', async () => {
    await applied(crdsOf(VERSION, NEXT))
    expect(await storedVersions()).toEqual([VERSION, NEXT])
    expect(await inEtcd()).toEqual({ one: API_VERSION, two: API_VERSION })
    expect((await install(crdsOf(NEXT), '--dry-run')).code).toBe(0)
    expect(await install(crdsOf(NEXT))).toMatchObject({ code: 0, err: '' })
    expect(await storedVersions()).toEqual([NEXT])
    expect(await inEtcd()).toEqual({ one: `${GROUP}/${NEXT}`, two: `${GROUP}/${NEXT}` })
  }, 240_000)

  it.skipIf('missing' in kubectl)(
    'goes by hand as well, as the page says',
    async () => {
      const page = readFileSync(join(import.meta.dirname, '../../docs/upgrading.md'), 'utf8')
      const commands = [...page.matchAll(/^ {4}(kubectl (?:get|patch) .*)$/gm)].map(([, command]) => command!)
      expect(commands).toHaveLength(2)
      await applied(crdsOf(VERSION, NEXT))
      const before = await must({ path: operations(VERSION, 'one') })
      const path = [dirname((kubectl as { path: string }).path), process.env['PATH']].join(delimiter)
      const env = { ...process.env, PATH: path, KUBECONFIG: server.kubeconfigPath('admin') }
      // A moment after its CRD was changed a server writes as before.
      await expect
        .poll(
          async () => {
            await promisify(execFile)('sh', ['-ec', commands[0]!], { env })
            return inEtcd()
          },
          { timeout: 180_000 },
        )
        .toEqual({ one: `${GROUP}/${NEXT}`, two: `${GROUP}/${NEXT}` })
      await promisify(execFile)('sh', ['-ec', commands[1]!], { env })
      expect(await storedVersions()).toEqual([NEXT])
      const now = await must({ path: operations(VERSION, 'one') })
      expect([now.spec, now.status, now.metadata.uid]).toEqual([before.spec, before.status, before.metadata.uid])
    },
    240_000,
  )

  it.each([
    ['an older Ichor over a newer one', [VERSION, NEXT], [VERSION], NEXT],
    ['a newer one that left out the version between', [VERSION], [NEXT], VERSION],
  ] as const)(
    'refuses %s, and writes nothing',
    async (_, there, wanted, stored) => {
      await install(crdsOf(...there))
      const before = await must({ path: `${CRDS}/${OPERATIONS}` })
      for (const flag of [[], ['--dry-run']]) {
        const { code, err } = await install(crdsOf(...wanted), ...flag)
        expect(code).toBe(3)
        expect(err).toContain('objects are stored as a version that this Ichor does not know')
        expect(err).toContain(`${OPERATIONS}: stored as ${stored}; this Ichor knows ${wanted.join(', ')}`)
      }
      expect(await must({ path: `${CRDS}/${OPERATIONS}` })).toEqual(before)
    },
    240_000,
  )

  it('says which object cannot be rewritten, and goes on listing its version', async () => {
    const api = '/apis/admissionregistration.k8s.io/v1'
    const policy = `${api}/validatingadmissionpolicies`
    const rules = [{ apiGroups: [GROUP], apiVersions: ['*'], operations: ['UPDATE'], resources: ['talosoperations'] }]
    await must({
      path: policy,
      method: 'POST',
      body: {
        metadata: { name: 'keeps-two' },
        spec: {
          matchConstraints: { resourceRules: rules },
          validations: [{ expression: "object.metadata.name != 'two'", message: 'two stays' }],
        },
      },
    })
    await must({
      path: `${policy.replace('policies', 'policybindings')}`,
      method: 'POST',
      body: { metadata: { name: 'keeps-two' }, spec: { policyName: 'keeps-two', validationActions: ['Deny'] } },
    })
    const denied = () =>
      server.request({
        path: `${operations(VERSION, 'two')}?dryRun=All`,
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { metadata: { labels: { a: 'b' } } },
      })
    await expect.poll(async () => (await denied()).status, { timeout: 180_000 }).toBe(422)
    const { code, err } = await install(crdsOf(VERSION, NEXT))
    expect(code).toBe(1)
    expect(err).toContain(`${OPERATIONS}: 1 of 2 objects could not be rewritten and are stored as ${VERSION}`)
    expect(err).toContain('default/two: ')
    expect(await storedVersions()).toEqual([VERSION, NEXT])
    await must({ path: `${policy.replace('policies', 'policybindings')}/keeps-two`, method: 'DELETE' })
    await must({ path: `${policy}/keeps-two`, method: 'DELETE' })
    await expect.poll(async () => (await denied()).status, { timeout: 180_000 }).toBe(200)
    expect((await install(crdsOf(VERSION, NEXT))).code).toBe(0)
    expect(await storedVersions()).toEqual([NEXT])
  }, 240_000)
})
