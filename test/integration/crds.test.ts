// What only a real API server can say of the CRDs: that they are structural, that their rules are cheap enough, and what a person is told
// who gets a spec wrong. The kinds here are samples, so that rules between two blocks are proved whatever kinds are built.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { crdFiles, crdFolder } from '../../scripts/generate/crds.ts'
import { etcdSnapshot } from '../../src/api/etcd-snapshot.ts'
import { GROUP, VERSION } from '../../src/api/names.ts'
import { toCrd } from '../../src/api/structural.ts'
import { talosCluster } from '../../src/api/talos-cluster.ts'
import { talosMachine } from '../../src/api/talos-machine.ts'
import { talosOperation } from '../../src/api/talos-operation.ts'
import { startKubeApiserver, type KubeAnswer, type RealKubeApiserver } from '../real/kube-apiserver.ts'
import { realPart, realParts } from '../real/parts.ts'

const servers = await realParts('etcd', 'kube-apiserver')
const kubectl = await realPart('kubectl')

const upgrade = {
  name: 'talos',
  block: 'talos',
  summary: 'Upgrades Talos, a machine at a time.',
  spec: z.object({
    version: z.string().max(64).meta({ description: 'The Talos version to install.' }),
    schematic: z.string().max(64).optional().meta({ description: 'The schematic to install.' }),
  }),
}
const rotation = {
  name: 'ca-rotation',
  block: 'caRotation',
  summary: 'Replaces the CAs, in stages.',
  spec: z.object({
    authorities: z
      .array(z.enum(['talos', 'kubernetes']))
      .max(2)
      .meta({ description: 'Whose CAs.' }),
  }),
}
const definitions = [talosOperation([upgrade, rotation]), talosCluster, talosMachine, etcdSnapshot]

const crdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const collection = (plural: string) => `/apis/${GROUP}/${VERSION}/namespaces/default/${plural}`
const operations = collection('talosoperations')

const operation = (name: string, spec: object = {}) => ({
  apiVersion: `${GROUP}/${VERSION}`,
  kind: 'TalosOperation',
  metadata: { name },
  spec: { clusterRef: { name: 'home' }, kind: 'talos', talos: { version: 'v1.13.9' }, ...spec },
})

describe.skipIf('missing' in servers)(`CRDs on a real kube-apiserver${'missing' in servers ? ` (${servers.missing})` : ''}`, () => {
  let server: RealKubeApiserver

  const create = (body: object, path = operations, query = '') => server.request({ path: path + query, method: 'POST', body })
  const merge = (path: string, patch: object) =>
    server.request({ path, method: 'PATCH', body: patch, contentType: 'application/merge-patch+json' })
  const created = async (body: object, path = operations) => {
    const answer = await create(body, path)
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    return answer.body
  }
  const refusal = (answer: KubeAnswer): string => {
    expect(answer.status, JSON.stringify(answer.body)).toBe(422)
    return answer.body.message
  }

  beforeAll(async () => {
    server = await startKubeApiserver()
    for (const definition of definitions) {
      // Strict: a field that the API server does not know is an error and not dropped.
      const answer = await server.request({ path: `${crdPath}?fieldValidation=Strict`, method: 'POST', body: toCrd(definition) })
      expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    }
    for (const { plural } of definitions) await served(server, plural)
  }, 120_000)
  afterAll(() => server?.stop())

  it('are established, structural, and have all their names', async () => {
    for (const { plural, kind, shortNames } of definitions) {
      const { body } = await server.request({ path: `${crdPath}/${plural}.${GROUP}` })
      const conditions = Object.fromEntries(body.status.conditions.map((c: { type: string; status: string }) => [c.type, c.status]))
      expect(conditions).toMatchObject({ Established: 'True', NamesAccepted: 'True' })
      expect(conditions['NonStructuralSchema'] ?? 'False').toBe('False')
      expect(body.status.acceptedNames).toMatchObject({ kind, plural, shortNames, categories: ['ichor'] })
      expect(body.status.storedVersions).toEqual([VERSION])
    }
  })

  it('fill the defaults, nested ones too', async () => {
    const { spec } = await created(operation('defaults'))
    expect(spec).toEqual({
      clusterRef: { name: 'home' },
      kind: 'talos',
      talos: { version: 'v1.13.9' },
      paused: false,
      override: false,
      cancelled: false,
      maxUnavailable: 1,
      drain: { policy: 'wait', timeout: '10m' },
      timeouts: { reboot: '30m' },
      acknowledge: [],
      minReadySeconds: 0,
      again: false,
      ignoreWindows: false,
    })
    const partly = await created(operation('partly', { drain: { policy: 'force' }, maxUnavailable: '25%' }))
    expect(partly.spec.drain).toEqual({ policy: 'force', timeout: '10m' })
    expect(partly.spec.maxUnavailable).toBe('25%')
    const cluster = await created(
      {
        apiVersion: `${GROUP}/${VERSION}`,
        kind: 'TalosCluster',
        metadata: { name: 'home' },
        spec: { talosconfigSecretRef: { name: 'home' } },
      },
      collection('talosclusters'),
    )
    expect(cluster.spec.talosconfigSecretRef).toEqual({ name: 'home', key: 'talosconfig' })
  })

  it('refuses a cluster whose lock would be the Lease of the leader', async () => {
    const cluster = { apiVersion: `${GROUP}/${VERSION}`, kind: 'TalosCluster', metadata: { name: 'controller' }, spec: {} }
    const spec = { talosconfigSecretRef: { name: 'home' } }
    expect(refusal(await create({ ...cluster, spec }, collection('talosclusters')))).toContain('cannot be called controller')
  })

  it('refuses a name that is too long for a label', async () => {
    const spec = { talosconfigSecretRef: { name: 'home' } }
    const called = (name: string) =>
      create({ apiVersion: `${GROUP}/${VERSION}`, kind: 'TalosCluster', metadata: { name }, spec }, collection('talosclusters'))
    expect(refusal(await called('c'.repeat(64)))).toContain('at most 63 characters')
  })

  it.each([
    ['no spec', undefined, 'spec: Required value'],
    ['no block', { talos: undefined }, 'spec.talos must be set exactly when spec.kind is talos; spec.kind is talos'],
    [
      'two blocks',
      { caRotation: { authorities: ['talos'] } },
      'spec.caRotation must be set exactly when spec.kind is ca-rotation; spec.kind is talos',
    ],
    [
      'the block of another kind',
      { kind: 'ca-rotation' },
      'spec.talos must be set exactly when spec.kind is talos; spec.kind is ca-rotation',
    ],
    ['an unknown kind', { kind: 'reinstall' }, 'spec.kind: Unsupported value: "reinstall": supported values: "talos", "ca-rotation"'],
    ['no cluster', { clusterRef: undefined }, 'spec.clusterRef: Required value'],
    [
      'a cluster name in capitals',
      { clusterRef: { name: 'Home' } },
      'spec.clusterRef.name: Invalid value: "Home": must be the name of an object: lower-case letters',
    ],
    [
      'a cluster name that is too long',
      { clusterRef: { name: 'a'.repeat(254) } },
      'spec.clusterRef.name: Too long: may not be more than 253',
    ],
    ['an empty cluster name', { clusterRef: { name: '' } }, 'spec.clusterRef.name: Invalid value: "": must be the name of an object'],
    ['maxUnavailable 0', { maxUnavailable: 0 }, 'spec.maxUnavailable in body should be greater than or equal to 1'],
    ['maxUnavailable -1', { maxUnavailable: -1 }, 'spec.maxUnavailable in body should be greater than or equal to 1'],
    ['maxUnavailable 1001', { maxUnavailable: 1001 }, 'spec.maxUnavailable in body should be less than or equal to 1000'],
    [
      'maxUnavailable 0%',
      { maxUnavailable: '0%' },
      'spec.maxUnavailable: Invalid value: "0%": must be a number from 1 to 1000 or a percentage from 1% to 100%',
    ],
    [
      'maxUnavailable 150%',
      { maxUnavailable: '150%' },
      'spec.maxUnavailable: Invalid value: "150%": must be a number from 1 to 1000 or a percentage from 1% to 100%',
    ],
    [
      'maxUnavailable abc',
      { maxUnavailable: 'abc' },
      'spec.maxUnavailable: Invalid value: "abc": must be a number from 1 to 1000 or a percentage from 1% to 100%',
    ],
    [
      'maxUnavailable "2"',
      { maxUnavailable: '2' },
      'spec.maxUnavailable: Invalid value: "2": must be a number from 1 to 1000 or a percentage from 1% to 100%',
    ],
    ['maxUnavailable 1.5', { maxUnavailable: 1.5 }, 'spec.maxUnavailable'],
    [
      'an unknown drain policy',
      { drain: { policy: 'kill' } },
      'spec.drain.policy: Unsupported value: "kill": supported values: "wait", "force", "skip"',
    ],
    [
      'a duration without unit',
      { drain: { timeout: '10' } },
      'spec.drain.timeout: Invalid value: "10": must be a duration with units, for example 90s, 10m or 1h30m',
    ],
    ['a negative duration', { timeouts: { reboot: '-5m' } }, 'spec.timeouts.reboot: Invalid value: "-5m": must be a duration with units'],
    ['an unknown consequence', { acknowledge: ['fire'] }, 'spec.acknowledge[0]: Unsupported value: "fire"'],
    ['a consequence twice', { acknowledge: ['api-outage', 'api-outage'] }, 'spec.acknowledge[1]: Duplicate value: "api-outage"'],
    [
      'minReadySeconds of more than a day',
      { minReadySeconds: 86_401 },
      'spec.minReadySeconds in body should be less than or equal to 86400',
    ],
    ['a start that is no time', { startAfter: 'tomorrow' }, 'spec.startAfter in body must be of type date-time'],
    ['a version that is a number', { talos: { version: 1.13 } }, 'spec.talos.version in body must be of type string'],
    ['an empty block', { talos: {} }, 'spec.talos.version: Required value'],
  ])('refuse %s', async (_what, spec, message) => {
    const body = spec === undefined ? { ...operation('bad'), spec: undefined } : operation('bad', spec)
    expect(refusal(await create(body))).toContain(message)
    expect((await server.request({ path: `${operations}/bad` })).status).toBe(404)
  })

  it('refuse a field that nobody knows, where the client asks for it as kubectl does', async () => {
    const answer = await create(operation('bad', { maxUnavailible: 2 }), operations, '?fieldValidation=Strict')
    expect(answer.status).toBe(400)
    expect(answer.body.message).toContain('unknown field "spec.maxUnavailible"')
  })

  const frozen: [string, object][] = [
    ['clusterRef', { clusterRef: { name: 'other' } }],
    ['talos', { talos: { version: 'v1.13.8' } }],
    ['talos', { talos: { schematic: 'abc' } }],
    ['maxUnavailable', { maxUnavailable: 2 }],
    ['maxUnavailable', { maxUnavailable: '50%' }],
    ['machineSelector', { machineSelector: { matchLabels: { rack: 'a' } } }],
    ['drain', { drain: { policy: 'skip' } }],
    ['timeouts', { timeouts: { reboot: '1h' } }],
    ['acknowledge', { acknowledge: ['api-outage'] }],
    ['minReadySeconds', { minReadySeconds: 5 }],
    ['startAfter', { startAfter: '2030-01-01T00:00:00Z' }],
    ['again', { again: true }],
    ['ignoreWindows', { ignoreWindows: true }],
    ['ttlAfterFinished', { ttlAfterFinished: '1h' }],
  ]
  it('refuse a change of every frozen field with our sentence', async () => {
    await created(operation('frozen'))
    for (const [field, change] of frozen) {
      const message = refusal(await merge(`${operations}/frozen`, { spec: change }))
      expect(message, JSON.stringify(change)).toContain(
        `spec.${field} cannot be changed after creation. Only paused, override, cancelled can; create another operation instead.`,
      )
    }
    const spec = { kind: 'ca-rotation', talos: null, caRotation: { authorities: ['talos'] } }
    expect(refusal(await merge(`${operations}/frozen`, { spec }))).toContain('spec.kind cannot be changed after creation.')
    const mutable = ['paused', 'override', 'cancelled']
    const covered = new Set([...frozen.map(([field]) => field), 'kind', 'caRotation', ...mutable])
    expect(Object.keys((definitions[0]!.spec as z.ZodObject).shape).filter(field => !covered.has(field))).toEqual([])
  })

  it('refuse to take a frozen field away', async () => {
    await created(operation('taken', { ttlAfterFinished: '1h', machineSelector: { matchLabels: { rack: 'a' } } }))
    expect(refusal(await merge(`${operations}/taken`, { spec: { ttlAfterFinished: null } }))).toContain(
      'spec.ttlAfterFinished cannot be changed',
    )
    expect(refusal(await merge(`${operations}/taken`, { spec: { machineSelector: null } }))).toContain(
      'spec.machineSelector cannot be changed',
    )
    // With a default, taking it away means setting the default: no change here.
    expect((await merge(`${operations}/taken`, { spec: { drain: null } })).status).toBe(200)
  })

  it('let paused, override and cancelled change, the last two in one direction only', async () => {
    await created(operation('steered'))
    const path = `${operations}/steered`
    for (const change of [{ paused: true }, { paused: false }, { override: true }, { cancelled: true }]) {
      const answer = await merge(path, { spec: change })
      expect(answer.status, JSON.stringify(answer.body)).toBe(200)
      expect(answer.body.spec).toMatchObject(change)
    }
    expect(refusal(await merge(path, { spec: { override: false } }))).toContain('spec.override can only be turned on.')
    expect(refusal(await merge(path, { spec: { cancelled: false } }))).toContain('spec.cancelled can only be turned on.')
    // Nor by leaving it to the default.
    expect(refusal(await merge(path, { spec: { override: null } }))).toContain('spec.override can only be turned on.')
  })

  it('accept the same again, as GitOps sends it', async () => {
    await created(
      operation('same', { maxUnavailable: '50%', machineSelector: { matchExpressions: [{ key: 'rack', operator: 'In', values: ['a'] }] } }),
    )
    const { body } = await server.request({ path: `${operations}/same` })
    const answer = await server.request({ path: `${operations}/same`, method: 'PUT', body })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    expect(answer.body.metadata.generation).toBe(body.metadata.generation)
  })

  it('keep spec and status apart', async () => {
    const { metadata } = await created({ ...operation('apart'), status: { phase: 'Completed' } })
    const path = `${operations}/apart`
    // What was sent is not taken; that nobody has looked yet is told.
    expect((await server.request({ path })).body.status).toEqual({ observedGeneration: -1 })

    const withStatus = await merge(`${path}/status`, { spec: { paused: true }, status: { phase: 'Running', message: 'upgrading cp-1' } })
    expect(withStatus.status, JSON.stringify(withStatus.body)).toBe(200)
    expect(withStatus.body.status).toEqual({ observedGeneration: -1, phase: 'Running', message: 'upgrading cp-1' })
    expect(withStatus.body.spec.paused).toBe(false)
    expect(withStatus.body.metadata.generation).toBe(metadata.generation)

    const withSpec = await merge(path, { spec: { paused: true }, status: { phase: 'Completed' } })
    expect(withSpec.body.status.phase).toBe('Running')
    expect(withSpec.body.metadata.generation).toBe(metadata.generation + 1)

    expect(refusal(await merge(`${path}/status`, { status: { phase: 'Broken' } }))).toContain('status.phase: Unsupported value: "Broken"')
    expect(refusal(await merge(`${path}/status`, { status: { failureReason: 'Whatever' } }))).toContain(
      'status.failureReason: Unsupported value',
    )
  })

  it('take a status as large as the bounds of a large cluster', async () => {
    await created(operation('large'))
    const at = '2030-01-01T00:00:00Z'
    const machines = Array.from({ length: 300 }, (_, i) => ({
      name: `wk-${i}-abcdef`,
      role: 'worker',
      phase: 'Completed',
      step: 'uncordon',
      stepStartedAt: at,
      attempts: 1,
      before: { version: 'v1.13.5', schematic: 'a'.repeat(64), bootID: crypto.randomUUID(), cordoned: false },
      after: { version: 'v1.13.9', schematic: 'a'.repeat(64), bootID: crypto.randomUUID() },
      goal: { image: `factory.talos.dev/metal-installer/${'a'.repeat(64)}:v1.13.9` },
      receipts: [{ step: 'install', bootID: crypto.randomUUID(), value: 'installed', at }],
      startedAt: at,
      finishedAt: at,
    }))
    const answer = await merge(`${operations}/large/status`, { status: { phase: 'Running', machines } })
    expect(answer.status, JSON.stringify(answer.body).slice(0, 2000)).toBe(200)
  })

  it('freeze a snapshot whole', async () => {
    const path = collection('etcdsnapshots')
    const body = {
      kind: 'EtcdSnapshot',
      apiVersion: `${GROUP}/${VERSION}`,
      metadata: { name: 's' },
      spec: { clusterRef: { name: 'home' }, location: 's3://b/k' },
    }
    await created(body, path)
    expect(refusal(await merge(`${path}/s`, { spec: { location: 's3://b/other' } }))).toContain(
      'An EtcdSnapshot cannot be changed after creation.',
    )
  })

  const chart = join(import.meta.dirname, '../..', crdFolder)
  it.skipIf(!existsSync(chart))('of the chart are accepted, with the kinds that are built', async () => {
    const files = await readdir(chart)
    expect(files).toHaveLength(definitions.length)
    for (const file of files) {
      const crd = parse(await readFile(join(chart, file), 'utf8'), { version: '1.1' })
      // In another group and dry, because the samples are there under the right one.
      const body = JSON.parse(JSON.stringify(crd).replaceAll(GROUP, `chart.${GROUP}`))
      const answer = await server.request({ path: `${crdPath}?fieldValidation=Strict&dryRun=All`, method: 'POST', body })
      expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    }
  })

  describe.skipIf('missing' in kubectl)(`through kubectl${'missing' in kubectl ? ` (${kubectl.missing})` : ''}`, () => {
    const run = async (...args: string[]) => {
      const { path } = kubectl as { path: string }
      return (await promisify(execFile)(path, ['--kubeconfig', server.kubeconfigPath('admin'), ...args])).stdout
    }

    it('explain every block, with the sentences of its fields', async () => {
      const talos = await run('explain', 'talosoperation.spec.talos')
      expect(talos).toContain('Upgrades Talos, a machine at a time.')
      expect(talos).toMatch(/version\s+<string> -required-\n\s+The Talos version to install\./)
      const spec = await run('explain', 'top.spec')
      expect(spec).toContain('Control planes always go one at a')
      expect(spec).toMatch(/kind\s+<string> -required-\n\s*enum: /)
    })

    it('explain every field of every resource', async () => {
      for (const { plural } of definitions) {
        const text = await run('explain', plural, '--recursive')
        expect(text).toContain(`GROUP:      ${GROUP}`)
        for (const part of ['spec', 'status']) {
          const lines = (await run('explain', `${plural}.${part}`)).split('FIELDS:')[1]!.split('\n')
          expect(lines.filter(line => line.includes('<no description>'))).toEqual([])
        }
      }
    })

    it('arrive whole from their files', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'ichor-crds-'))
      try {
        for (const definition of definitions) {
          const [path, text] = [...crdFiles([definition])][0]!
          const file = join(folder, basename(path))
          await writeFile(file, text)
          const { apiVersion, kind, metadata, spec } = JSON.parse(await run('create', '--dry-run=client', '-o', 'json', '-f', file))
          expect({ apiVersion, kind, metadata: { name: metadata.name }, spec }).toEqual(JSON.parse(JSON.stringify(toCrd(definition))))
        }
        // As `kubectl apply` does, which keeps a copy in an annotation that has a limit.
        expect(await run('apply', '--dry-run=server', '-f', folder)).toContain('talosoperations.ichor.maesh.dev')
      } finally {
        await rm(folder, { recursive: true })
      }
    })

    it('print the columns', async () => {
      await created(operation('printed'))
      await merge(`${operations}/printed/status`, {
        status: {
          phase: 'Paused',
          failureReason: 'DrainBlocked',
          message: 'wk-1 does not drain',
          progress: { done: 3, skipped: 1, total: 6, summary: '4/6' },
          lock: { lease: 'ichor-home', holder: 'ichor-controller/op/default/printed' },
        },
      })
      const columns = (line: string | undefined) => line?.trim().split(/\s{2,}/)
      const [head, row] = (await run('get', 'top', 'printed')).split('\n')
      expect(columns(head)).toEqual(['NAME', 'CLUSTER', 'KIND', 'PHASE', 'REASON', 'DONE', 'AGE'])
      expect(columns(row)?.slice(0, -1)).toEqual(['printed', 'home', 'talos', 'Paused', 'DrainBlocked', '4/6'])
      const [wideHead, wideRow] = (await run('get', 'top', 'printed', '-o', 'wide')).split('\n')
      expect(columns(wideHead)).toEqual(['NAME', 'CLUSTER', 'KIND', 'PHASE', 'REASON', 'DONE', 'AGE', 'MESSAGE', 'LOCK'])
      expect(columns(wideRow)?.slice(-2)).toEqual(['wk-1 does not drain', 'ichor-controller/op/default/printed'])
      expect(await run('get', 'ichor', '-o', 'name')).toContain(`talosoperation.${GROUP}/printed`)
    })

    it('wait for a condition', async () => {
      await created(operation('waited'))
      const condition = {
        type: 'Ready',
        status: 'True',
        reason: 'Completed',
        message: 'Done.',
        lastTransitionTime: '2030-01-01T00:00:00Z',
        observedGeneration: 1,
      }
      await merge(`${operations}/waited/status`, { status: { observedGeneration: 1, conditions: [condition] } })
      expect(await run('wait', '--for=condition=Ready', 'top/waited', '--timeout=10s')).toContain('condition met')
    })
  })
})

/** Established comes a moment before the resource is served. */
const served = (server: RealKubeApiserver, plural: string): Promise<void> =>
  vi.waitFor(
    async () => {
      const { status } = await server.request({ path: collection(plural) })
      expect(status, `${plural} is served`).toBe(200)
    },
    { timeout: 20_000, interval: 100 },
  )
