import { afterEach, expect, it } from 'vitest'
import { realClock } from '../../../test/kube/clocks.ts'
import { json, startScripted, status } from '../../../test/kube/scripted-server.ts'
import type { TalosCluster } from '../../api/talos-cluster.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import type { Kube } from '../../ports/kube.ts'
import { kubeConnections } from './connections.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
const clusterWith = (kubeconfigSecretRef: TalosCluster['spec']['kubeconfigSecretRef']): TalosCluster => ({
  metadata: {
    name: 'home',
    namespace: 'ichor',
    uid: 'u',
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: '',
    labels: {},
    annotations: {},
    finalizers: [],
  },
  spec: { talosconfigSecretRef: { name: 't', key: 'talosconfig' }, kubeconfigSecretRef },
  status: {},
})
const cluster = clusterWith({ name: 'remote', key: 'kubeconfig' })
const own = { version: async () => ok('own') } as unknown as Kube

const stage = async () => {
  const server = await startScripted(({ headers }, response) =>
    headers.authorization === 'Bearer bad'
      ? status(response, 401, 'Unauthorized', 'no')
      : json(response, { gitVersion: headers.authorization }),
  )
  let secret: Result<Readonly<Record<string, Uint8Array>>> = ok({})
  let reads = 0
  let now = 0
  const connections = kubeConnections({
    home: {
      secret: async () => {
        reads += 1
        return secret
      },
    },
    own,
    clock: { ...realClock, monotonic: () => now },
    userAgent: 'test',
  })
  closing.push(server.stop, connections.close)
  const kubeconfig = (token: string) =>
    Buffer.from(
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: server.url } }],
        users: [{ name: 'u', user: { token } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    )
  return {
    connections,
    server,
    reads: () => reads,
    holds: (content: Result<Readonly<Record<string, Uint8Array>>>) => (secret = content),
    holdsToken: (token: string) => (secret = ok({ kubeconfig: kubeconfig(token) })),
    later: (ms: number) => (now += ms),
    version: async () => {
      const kube = await connections.kube(cluster)
      const version = kube.ok ? await kube.value.version() : kube
      return version.ok ? version.value : version.fault.kind
    },
    problem: async () => {
      const kube = await connections.kube(cluster)
      return kube.ok ? 'none' : `${kube.fault.kind}: ${kube.fault.message}`
    },
  }
}

it('a cluster without a kubeconfig is the one that Ichor runs in', async () => {
  const { connections, reads } = await stage()
  expect(await connections.kube(clusterWith(undefined))).toEqual({ ok: true, value: own })
  expect(reads()).toBe(0)
})

it('keeps one connection, and looks at the Secret only now and then', async () => {
  const s = await stage()
  s.holdsToken('one')
  expect(await Promise.all([s.version(), s.version(), s.version()])).toEqual(['Bearer one', 'Bearer one', 'Bearer one'])
  const [first, second] = [await s.connections.kube(cluster), await s.connections.kube(cluster)]
  expect(first.ok && second.ok && first.value === second.value).toBe(true)
  expect(s.reads()).toBe(1)
  s.later(16_000)
  expect(await s.connections.kube(cluster)).toEqual(first)
  expect(s.reads()).toBe(2)
})

it('opens another when the content of the Secret is another', async () => {
  const s = await stage()
  s.holdsToken('one')
  const old = await s.connections.kube(cluster)
  s.holdsToken('two')
  expect(await s.version()).toBe('Bearer one')
  s.later(16_000)
  expect(await s.version()).toBe('Bearer two')
  expect(old.ok && (await old.value.version())).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
})

it('looks at once when the server refuses what was in it', async () => {
  const s = await stage()
  s.holdsToken('bad')
  expect(await s.version()).toBe('unauthenticated')
  s.holdsToken('good')
  expect(await s.version()).toBe('Bearer good')
})

it('goes on with what it has while our own API is away, and not when the Secret is gone', async () => {
  const s = await stage()
  s.holdsToken('one')
  await s.version()
  s.later(16_000)
  s.holds(failed('unreachable', 'no answer'))
  expect(await s.version()).toBe('Bearer one')
  s.holds(failed('notFound', 'secrets "remote" not found'))
  expect(await s.problem()).toBe(
    'notFound: Secret ichor/remote does not exist; spec.kubeconfigSecretRef of TalosCluster home must name a Secret of its namespace with a kubeconfig under kubeconfig',
  )
})

it('says what is wrong with the Secret, and nothing of what is in it', async () => {
  const s = await stage()
  s.holds(ok({ value: Buffer.from('x'), other: Buffer.from('y') }))
  expect(await s.problem()).toContain('invalid: Secret ichor/remote has no key kubeconfig (it has value, other)')
  s.holds(ok({}))
  expect(await s.problem()).toContain('(it is empty)')
  s.holds(ok({ kubeconfig: Buffer.from('token: verysecret\n}') }))
  expect(await s.problem()).toMatch(/^invalid: Secret ichor\/remote, key kubeconfig is not YAML/)
  expect(await s.problem()).not.toContain('verysecret')
  s.holds(failed('forbidden', 'secrets "remote" is forbidden'))
  expect(await s.problem()).toBe('forbidden: secrets "remote" is forbidden')
})

it('of a cluster that is gone, or has another kubeconfig by now, is let go, but not while another cluster has the same', async () => {
  const { connections, holdsToken, reads } = await stage()
  holdsToken('good')
  const named = (name: string, secret = 'remote') => {
    const { metadata, ...rest } = clusterWith({ name: secret, key: 'kubeconfig' })
    return { ...rest, metadata: { ...metadata, name } }
  }
  const first = await connections.kube(named('a'))
  const readsAnew = async (cluster: TalosCluster): Promise<boolean> => {
    const before = reads()
    await connections.kube(cluster)
    return reads() > before
  }
  expect(await connections.kube(named('b'))).toEqual(first)
  connections.forget({ namespace: 'ichor', name: 'a' })
  expect(await readsAnew(named('b'))).toBe(false)
  // Under another name by now: the one from before is nobody's.
  expect(await readsAnew(named('b', 'other'))).toBe(true)
  expect(await readsAnew(named('c'))).toBe(true)
  connections.forget({ namespace: 'ichor', name: 'c' })
  expect(await readsAnew(named('c'))).toBe(true)
})
