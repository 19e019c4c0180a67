import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Bench } from './bench.ts'
import { addHome, CLUSTER, NAMESPACE, RESOURCE, refusalsOf, startBench, startKubernetes, upgradeTo } from './bench.ts'
import { z } from 'zod'
import { kinds } from '../../../src/kinds/registry.ts'
import { talosOperation } from '../../../src/api/talos-operation.ts'
import { createStore } from '../../../src/world/store.ts'

// Processes and real waits, on computers that do other things as well.
vi.setConfig({ testTimeout: 30_000 })

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
  await addHome(bench)
}, 60_000)
afterAll(() => bench?.close())

const upgrade = (...args: string[]) => bench.ichor('upgrade', 'talos', ...args, '--yes')
const created = async () => {
  const listed = await bench.kubernetes.client.list(RESOURCE.talosOperation, { namespace: NAMESPACE })
  return listed.ok ? listed.value.items.length : listed.fault.message
}

const digest = `sha256:${'a'.repeat(64)}`
const unheardOf = 'b'.repeat(64)
const everyMachine = 'cp-1 v1.12.5, cp-2 v1.12.5, cp-3 v1.12.5, wk-1 v1.12.5, wk-2 v1.12.5'
const percent = 'must be a number from 1 to 1000 or a percentage from 1% to 100%'

describe('what the CLI can know by itself', () => {
  const wrong: [what: string, args: string[], sentence: string][] = [
    ['a version without v', ['1.13.9'], 'version "1.13.9" lacks the leading v; did you mean v1.13.9?'],
    [
      'half a version',
      ['v1.13'],
      'version "v1.13" is not a version (the patch number is missing: v1.13.0?); write it with a leading v and three numbers, like v1.13.9',
    ],
    [
      'a version with a typo',
      ['v1,13,9'],
      'version "v1,13,9" is not a version (did you mean v1.13.9?); write it with a leading v and three numbers, like v1.13.9',
    ],
    ['two vs', ['vv1.13.9'], 'version "vv1.13.9" is not written as a version; did you mean v1.13.9?'],
    ['no version at all', [''], 'The target version is empty; write it like v1.13.9'],
    ['a pre-release', ['v1.14.0-rc.1'], 'version "v1.14.0-rc.1" is a pre-release; only final releases can be a target, like v1.14.0'],
    [
      'a schematic id that is none',
      ['v1.13.9', '--schematic', 'abc'],
      '--schematic "abc": must be an Image Factory schematic id: 64 lower-case hexadecimal digits',
    ],
    ['maxUnavailable 0', ['v1.13.9', '--max-unavailable', '0'], `--max-unavailable 0: ${percent}`],
    ['maxUnavailable 0%', ['v1.13.9', '--max-unavailable', '0%'], `--max-unavailable "0%": ${percent}`],
    ['maxUnavailable 150%', ['v1.13.9', '--max-unavailable', '150%'], `--max-unavailable "150%": ${percent}`],
    ['maxUnavailable -1', ['v1.13.9', '--max-unavailable', '-1'], `--max-unavailable -1: ${percent}`],
    ['maxUnavailable abc', ['v1.13.9', '--max-unavailable', 'abc'], `--max-unavailable "abc": ${percent}`],
  ]
  it.each(wrong)('%s', async (_, args, sentence) => {
    const before = bench.kubernetes.requests.length
    expect(await upgrade(...args)).toEqual({ code: 2, out: '', err: `error: ${sentence}\n` })
    // Not even a question is put to the server.
    expect(bench.kubernetes.requests.slice(before).filter(({ user }) => user === 'admin')).toEqual([])
    expect(bench.traces()).toEqual([])
  })
})

/** What is asked of the CLI and, without the CLI, of the controller. */
const refused: [what: string, talos: { version: string; image?: string; schematic?: string }, refusals: string[]][] = [
  [
    'an older version',
    { version: 'v1.12.4' },
    [`DowngradeRefused: v1.12.4 is older than what runs: ${everyMachine}. Choose a version that is not older than any machine's.`],
  ],
  [
    'a version that skips a minor',
    { version: 'v1.14.0' },
    [
      'TalosSkew: From Talos v1.12.5 to v1.14.0 a minor is skipped; only adjacent minors are tested. Go by v1.12.11, then v1.13.9, then v1.14.0. (talos-1.14-hosts: ',
      'EtcdStep: etcd 3.6.8 to 3.7.x: etcd 3.7 needs every member at 3.6.11 or later. Upgrade to Talos v1.12.11 or v1.13.9 first. (etcd-36-37: ',
    ],
  ],
  [
    'a version that is not in the table',
    { version: 'v1.99.0' },
    [
      'TalosUnknown: Talos v1.99.0 is not in the compatibility table, which knows 1.9 to 1.14: whether it goes together with what runs is not known. Choose a release of these, or a newer Ichor.',
    ],
  ],
  [
    'an image with digest and tag',
    { version: 'v1.13.9', image: `ghcr.io/siderolabs/installer:v1.13.9@${digest}` },
    [
      `ImageInvalid: spec.talos.image: "ghcr.io/siderolabs/installer:v1.13.9@${digest}" has both a tag and a digest; name one of them: ghcr.io/siderolabs/installer:v1.13.9 or ghcr.io/siderolabs/installer@${digest}.`,
    ],
  ],
  [
    'an image of another version',
    { version: 'v1.13.9', image: 'ghcr.io/siderolabs/installer:v1.13.8' },
    ['ImageVersionMismatch: spec.talos.image is an installer of v1.13.8, but the target version is v1.13.9; make them the same.'],
  ],
  [
    'a schematic id of nobody knows which factory',
    { version: 'v1.13.9', schematic: unheardOf },
    [
      'SchematicMismatch: cp-1 shall run the schematic bbbbbbbbbbbb… but does not name the Image Factory that makes its images. Set spec.imageFactory of the TalosCluster to its host, for example factory.talos.dev, or spec.talos.image to the whole reference. The same holds for cp-2, cp-3, wk-1, wk-2.',
    ],
  ],
]

describe('what the checks refuse', () => {
  it.each(refused)('%s, asked by the CLI', async (_, { version, image, schematic }, refusals) => {
    const { code, out, err } = await upgrade(
      version,
      ...(image ? ['--image', image] : []),
      ...(schematic ? ['--schematic', schematic] : []),
    )
    const [first, ...rest] = err.trimEnd().split('\n')
    expect([code, out, first]).toEqual([3, '', `error: the checks refuse talos ${version} on cluster home; nothing was started`])
    expect(rest).toEqual([...refusals.map(text => expect.stringContaining(`  ${text}`)), '  --plan shows the whole plan.'])
    expect(await created()).toBe(0)
    expect(bench.traces()).toEqual([])
  })

  it.each(refused)('%s, written as an object', async (what, talos, refusals) => {
    const name = what.replaceAll(/[^a-z]+/g, '-')
    const status = await bench.operate(NAMESPACE, name, upgradeTo(talos))
    expect([status.phase, status.failureReason]).toEqual(['Paused', 'PreflightRefused'])
    expect(refusalsOf(status)).toEqual(refusals.map(text => expect.stringContaining(text)))
    for (const text of refusals) expect(status.message).toContain(text.replace(/^\w+: /, ''))
    expect(status.lock).toBeUndefined()
    expect(bench.traces()).toEqual([])
    await bench.kubernetes.client.delete(RESOURCE.talosOperation, { namespace: NAMESPACE, name })
  })

  it('shows the refusal once in `operation get`', async () => {
    await bench.operate(NAMESPACE, 'older', upgradeTo({ version: 'v1.12.4' }))
    const { code, out } = await bench.ichor('operation', 'get', 'older')
    expect(code).toBe(0)
    expect(out).toContain('REFUSED: one check refused it. No machine was touched and no lock is held.\n')
    expect(out.split('v1.12.4 is older than what runs').length - 1).toBe(1)
    const watched = await bench.ichor('operation', 'watch', 'older')
    expect(watched.code).toBe(3)
    await bench.kubernetes.client.delete(RESOURCE.talosOperation, { namespace: NAMESPACE, name: 'older' })
  })

  it('the version that runs already, with the schematic that runs already', async () => {
    expect(await upgrade('v1.12.5')).toEqual({
      code: 3,
      out: '',
      err: 'error: there is nothing to do on cluster home: already runs v1.12.5\n  Nothing was started.\n',
    })
    expect(await created()).toBe(0)
    const status = await bench.operate(NAMESPACE, 'equal', upgradeTo({ version: 'v1.12.5' }))
    expect(status.phase).toBe('Completed')
    expect(status.preflight?.notes).toContain('All 5 machines already run v1.12.5; there is nothing to do.')
    await bench.untouched()
    await bench.kubernetes.client.delete(RESOURCE.talosOperation, { namespace: NAMESPACE, name: 'equal' })
  })

  it('a cluster that nobody knows', async () => {
    expect(await upgrade('v1.13.9', '--cluster', 'hoem')).toEqual({
      code: 1,
      out: '',
      err: 'error: there is no cluster "hoem" in namespace ichor-system\n  There are: home\n',
    })
    const status = await bench.operate(NAMESPACE, 'unknown', upgradeTo({ version: 'v1.13.9' }, { clusterRef: { name: 'hoem' } }))
    expect([status.phase, status.failureReason, status.message]).toEqual([
      'Paused',
      'PreflightRefused',
      'There is no TalosCluster hoem in namespace ichor-system (there are: home).',
    ])
    expect(bench.traces()).toEqual([])
    await bench.kubernetes.client.delete(RESOURCE.talosOperation, { namespace: NAMESPACE, name: 'unknown' })
  })
})

describe('what the API server refuses', () => {
  const release = 'must be a final release with a leading v and three numbers, like v1.13.9'
  const sets = 'spec.talos must be set exactly when spec.kind is talos; spec.kind is talos'
  const wrong: [what: string, spec: object, sentence: string][] = [
    ['a version without v', upgradeTo({ version: '1.13.9' }), `spec.talos.version: Invalid value: "1.13.9": ${release}`],
    ['a version with a typo', upgradeTo({ version: 'v1.13' }), `spec.talos.version: Invalid value: "v1.13": ${release}`],
    ['a pre-release', upgradeTo({ version: 'v1.14.0-rc.1' }), `spec.talos.version: Invalid value: "v1.14.0-rc.1": ${release}`],
    [
      'a wrong schematic id',
      upgradeTo({ version: 'v1.13.9', schematic: 'abc' }),
      'spec.talos.schematic: Invalid value: "abc": must be an Image Factory schematic id: 64 lower-case hexadecimal digits',
    ],
    [
      'maxUnavailable 0',
      upgradeTo({ version: 'v1.13.9' }, { maxUnavailable: 0 }),
      'spec.maxUnavailable: Invalid value: 0: spec.maxUnavailable in body should be greater than or equal to 1',
    ],
    [
      'maxUnavailable 0%',
      upgradeTo({ version: 'v1.13.9' }, { maxUnavailable: '0%' }),
      `spec.maxUnavailable: Invalid value: "0%": ${percent}`,
    ],
    [
      'maxUnavailable 150%',
      upgradeTo({ version: 'v1.13.9' }, { maxUnavailable: '150%' }),
      `spec.maxUnavailable: Invalid value: "150%": ${percent}`,
    ],
    [
      'maxUnavailable -1',
      upgradeTo({ version: 'v1.13.9' }, { maxUnavailable: -1 }),
      'spec.maxUnavailable: Invalid value: -1: spec.maxUnavailable in body should be greater than or equal to 1',
    ],
    [
      'maxUnavailable abc',
      upgradeTo({ version: 'v1.13.9' }, { maxUnavailable: 'abc' }),
      `spec.maxUnavailable: Invalid value: "abc": ${percent}`,
    ],
    ['no block', { clusterRef: { name: CLUSTER }, kind: 'talos' }, `spec: Invalid value: ${sets}`],
  ]
  it.each(wrong)('%s', async (_, spec, sentence) => {
    expect(await bench.create(RESOURCE.talosOperation, NAMESPACE, 'wrong', { spec })).toBe(
      `TalosOperation.ichor.maesh.dev "wrong" is invalid: ${sentence}`,
    )
    expect(await created()).toBe(0)
    expect(bench.traces()).toEqual([])
  })

  it('an edit of a frozen field', async () => {
    await bench.operate(NAMESPACE, 'frozen', upgradeTo({ version: 'v1.12.4' }))
    const edit = async (spec: object) => {
      const patched = await bench.kubernetes.client.patch(RESOURCE.talosOperation, { namespace: NAMESPACE, name: 'frozen' }, { spec })
      return patched.ok ? 'taken' : patched.fault.sentence
    }
    const frozen = (field: string) =>
      `TalosOperation.ichor.maesh.dev "frozen" is invalid: spec: Invalid value: spec.${field} cannot be changed after creation. Only paused, override, cancelled can; create another operation instead.`
    expect(await edit({ talos: { version: 'v1.12.5' } })).toBe(frozen('talos'))
    expect(await edit({ maxUnavailable: 2 })).toBe(frozen('maxUnavailable'))
    expect(await edit({ clusterRef: { name: 'edge' } })).toBe(frozen('clusterRef'))
    expect(await edit({ cancelled: true })).toBe('taken')
    expect(await edit({ cancelled: false })).toBe(
      'TalosOperation.ichor.maesh.dev "frozen" is invalid: spec: Invalid value: spec.cancelled can only be turned on. Create another operation instead.',
    )
    await bench.kubernetes.client.delete(RESOURCE.talosOperation, { namespace: NAMESPACE, name: 'frozen' })
    await bench.untouched()
  })

  it('two blocks, and the block of another kind, where two kinds are built', async () => {
    const other = {
      name: 'other',
      block: 'other',
      summary: 'Does something else.',
      spec: z.object({ size: z.int().min(0).max(9).meta({ description: 'How much.' }) }),
    }
    const store = createStore({ now: Date.now, random: Math.random })
    const server = await startKubernetes({ store, resources: [talosOperation([...kinds, other])], folder: bench.folder })
    const create = async (spec: object) => {
      const body = {
        apiVersion: 'ichor.maesh.dev/v1alpha1',
        kind: 'TalosOperation',
        metadata: { name: 'wrong', namespace: 'default' },
        spec,
      }
      const result = await server.client.create(RESOURCE.talosOperation, { namespace: 'default' }, body)
      return result.ok ? 'taken' : result.fault.sentence
    }
    const rule = (kind: string, is: string) =>
      `spec: Invalid value: spec.${kind} must be set exactly when spec.kind is ${kind}; spec.kind is ${is}`
    const invalid = 'TalosOperation.ichor.maesh.dev "wrong" is invalid:'
    const [talos, some] = [{ version: 'v1.13.9' }, { size: 1 }]
    expect(await create({ clusterRef: { name: CLUSTER }, kind: 'talos', talos, other: some })).toBe(`${invalid} ${rule('other', 'talos')}`)
    expect(await create({ clusterRef: { name: CLUSTER }, kind: 'talos', other: some })).toBe(
      `${invalid} [${rule('talos', 'talos')}, ${rule('other', 'talos')}]`,
    )
    expect(await create({ clusterRef: { name: CLUSTER }, kind: 'talos', talos })).toBe('taken')
    await server.close()
  })

  it('a block of a kind that this Ichor does not have, as kubectl sends it', async () => {
    const said = await bench.createStrictly(NAMESPACE, 'wrong', upgradeTo({ version: 'v1.13.9' }, { rotation: { of: 'talos' } }))
    expect(said).toBe(
      'TalosOperation in version "v1alpha1" cannot be handled as a TalosOperation: strict decoding error: unknown field "spec.rotation"',
    )
    expect(await created()).toBe(0)
    expect(bench.traces()).toEqual([])
  })
})

describe('what only the registry knows', () => {
  it('stops before anything is written where the schematic or the release does not exist', async () => {
    const image = `factory.talos.dev/metal-installer/${unheardOf}:v1.13.9`
    const status = await bench.operate(NAMESPACE, 'no-image', upgradeTo({ version: 'v1.13.9', schematic: unheardOf, image }))
    expect([status.phase, status.failureReason]).toEqual(['Paused', 'ImageNotFound'])
    expect(status.message).toContain(image)
    // The pull was tried, and nothing else was done; the lock is there for whoever comes next.
    expect(bench.traces().filter(trace => !trace.startsWith('lease'))).toEqual([`cp-1 pull-failed ${image}`])
  })
})
