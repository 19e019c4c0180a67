import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { TalosCluster } from '../../api/talos-cluster.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { newTalosCa, realClock, serve, startPassage, startTalos, talosconfigFor } from '../../../test/scripted-talos.ts'
import { talosConnections } from './connections.ts'

const ca = await newTalosCa()
const admin = await talosconfigFor(ca, { endpoints: ['10.5.0.2', 'https://[fd00::2]:50001'] })

const cluster: TalosCluster = {
  metadata: {
    name: 'prod',
    namespace: 'ichor',
    uid: 'u',
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: {},
    annotations: {},
    finalizers: [],
  },
  spec: { talosconfigSecretRef: { name: 'prod-talos', key: 'talosconfig' } },
  status: {},
}

type Data = Readonly<Record<string, Uint8Array>>
let answer: Result<Data>
let reads: string[]
let laterMs: number

beforeEach(() => {
  reads = []
  laterMs = 0
  answer = holding(admin)
})

const holding = (text: string) => ok({ talosconfig: new TextEncoder().encode(text) })

function connections() {
  const made = talosConnections({
    secret: async ({ namespace, name }) => {
      reads.push(`${namespace}/${name}`)
      return answer
    },
    clock: { ...realClock, now: () => Date.now() + laterMs, monotonic: () => performance.now() + laterMs },
  })
  onTestFinished(made.close)
  return made
}

test('a Secret that is right', async () => {
  const opened = await connections().talos(cluster)
  expect(reads).toEqual(['ichor/prod-talos'])
  expect(opened).toMatchObject({ ok: true, value: { endpoints: ['10.5.0.2', '[fd00::2]:50001'] } })
  const inDays = opened.ok ? (opened.value.credentialExpires - Date.now()) / 86_400_000 : 0
  expect(Math.round(inDays)).toBe(365)
})

test.each<[string, () => Promise<Result<Data>>, string, string]>([
  ['absent', async () => failed('notFound', 'secrets "prod-talos" not found'), 'notFound', 'Secret ichor/prod-talos does not exist'],
  ['forbidden', async () => failed('forbidden', 'no'), 'forbidden', 'Secret ichor/prod-talos cannot be read: no'],
  [
    'without the key',
    async () => ok({ config: new Uint8Array(), b: new Uint8Array() }),
    'invalid',
    'has no key talosconfig; it has b, config',
  ],
  ['empty', async () => ok({}), 'invalid', 'it has no keys at all'],
  ['not a talosconfig', async () => holding('hello: {'), 'invalid', 'Secret ichor/prod-talos, key talosconfig: talosconfig is not YAML'],
  ['expired', async () => holding(await talosconfigFor(ca, { hours: -5 })), 'unauthenticated', 'expired on'],
  [
    'a reader',
    async () => holding(await talosconfigFor(ca, { roles: ['os:reader'] })),
    'forbidden',
    'only the role os:reader; it needs os:admin',
  ],
])('a Secret that is %s', async (_, given, kind, message) => {
  answer = await given()
  const opened = await connections().talos(cluster)
  expect(opened).toMatchObject({ ok: false, fault: { kind, message: expect.stringContaining(message) } })
})

test('is read once in a while, and asked for by many at once', async () => {
  const made = connections()
  const [one, two] = await Promise.all([made.talos(cluster), made.talos(cluster)])
  const three = await made.talos(cluster)
  expect(reads).toHaveLength(1)
  expect(one.ok && two.ok && three.ok && one.value === two.value && two.value === three.value).toBe(true)
  laterMs = 15_001
  const four = await made.talos(cluster)
  expect(reads).toHaveLength(2)
  expect(four.ok && one.ok && four.value === one.value).toBe(true)
})

test('is read at once where it is doubted, so that checks see a Secret that is gone', async () => {
  const { talos, doubt } = connections()
  await talos(cluster)
  answer = failed('notFound', 'secrets "prod-talos" not found')
  expect((await talos(cluster)).ok).toBe(true)
  doubt(cluster)
  expect(await talos(cluster)).toMatchObject({ ok: false, fault: { kind: 'notFound' } })
})

test('works on while the API server is away, but not without its Secret', async () => {
  const made = connections()
  await made.talos(cluster)
  laterMs = 15_001
  answer = failed('unreachable', 'away')
  expect(await made.talos(cluster)).toMatchObject({ ok: true })
  answer = failed('notFound', 'gone')
  expect(await made.talos(cluster)).toMatchObject({ ok: false, fault: { kind: 'notFound' } })
})

test('a kept credential that runs out [B107]', async () => {
  answer = holding(await talosconfigFor(ca, { hours: 3 }))
  const made = connections()
  expect(await made.talos(cluster)).toMatchObject({ ok: true })
  laterMs = 3 * 3_600_000
  expect(await made.talos(cluster)).toMatchObject({ ok: false, fault: { kind: 'unauthenticated' } })
})

test('a new content is used, and the old connections close', async () => {
  const machine = await startTalos({ ca, services: [serve(MachineService, { etcdForfeitLeadership: () => ({ messages: [{}] }) })] })
  onTestFinished(machine.stop)
  const passage = await startPassage(machine.port)
  onTestFinished(passage.stop)
  const made = connections()
  const before = await made.talos(cluster)
  if (!before.ok) throw new Error(before.fault.message)
  expect(await before.value.forfeitLeadership(passage.address)).toMatchObject({ ok: true })
  expect(passage.open()).toBe(1)

  answer = holding(await talosconfigFor(ca))
  laterMs = 15_001
  const after = await made.talos(cluster)
  expect(after.ok && after.value !== before.value).toBe(true)
  await vi.waitFor(() => expect(passage.open()).toBe(0))
  expect(await before.value.forfeitLeadership(passage.address)).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
})

test('a credential that a machine refuses is read again at once [B107 home-operations/tuppr#138]', async () => {
  const otherCa = await newTalosCa()
  const machine = await startTalos({ ca: otherCa, services: [] })
  onTestFinished(machine.stop)
  const made = connections()
  const opened = await made.talos(cluster)
  if (!opened.ok) throw new Error(opened.fault.message)
  expect(await opened.value.forfeitLeadership(machine.address)).toMatchObject({ ok: false, fault: { kind: 'wrongPeer' } })
  await made.talos(cluster)
  expect(reads).toHaveLength(2)
})
