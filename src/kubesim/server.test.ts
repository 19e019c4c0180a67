// What the conformance suite cannot ask of both servers: credentials, hooks, forgotten history, the end.
import { once } from 'node:events'
import { request } from 'node:https'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { ask, watch } from '../../test/conformance/kubernetes/client.ts'
import { resources } from '../../test/conformance/kubernetes/resources.ts'
import type { Simulated } from '../../test/conformance/kubernetes/simulated.ts'
import { startSimulated } from '../../test/conformance/kubernetes/simulated.ts'
import { createStore } from '../world/store.ts'
import type { ServeOptions } from './server.ts'

const running: Simulated[] = []
const start = async (more: Partial<ServeOptions> = {}): Promise<Simulated> => {
  const server = await startSimulated(resources, more)
  running.push(server)
  return server
}
afterEach(async () => {
  for (const server of running.splice(0)) await server.stop()
})

const configMaps = '/api/v1/namespaces/default/configmaps'
const pods = '/api/v1/namespaces/default/pods'
const operations = '/apis/ichor.maesh.dev/v1alpha1/namespaces/default/talosoperations'
const make = (server: Simulated, name: string) => ask(server, { method: 'POST', path: configMaps, body: { metadata: { name } } })
const operation = (name: string) => ({
  apiVersion: 'ichor.maesh.dev/v1alpha1',
  kind: 'TalosOperation',
  metadata: { name },
  spec: { clusterRef: { name: 'c' }, kind: 'talos', talos: { version: 'v1.13.9' } },
})

const askWithCertificate = (server: Simulated, path: string, credential: object): Promise<{ code: number; text: string }> =>
  new Promise((resolve, reject) => {
    const outgoing = request(server.url + path, { ca: server.caPem, agent: false, ...credential }, incoming => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      incoming.on('end', () => resolve({ code: incoming.statusCode ?? 0, text }))
    })
    outgoing.on('error', reject)
    outgoing.end()
  })

describe('a storage without space', () => {
  test('takes nothing new, gives and removes what it has, and does as told without storing it', async () => {
    let fault: string | undefined
    const server = await start({ storageFault: () => fault })
    expect((await make(server, 'first')).status).toBe(201)
    fault = 'etcdserver: mvcc: database space exceeded'
    const refused = await make(server, 'second')
    expect(refused).toMatchObject({ status: 500, body: { status: 'Failure', message: fault } })
    const path = `${configMaps}/first`
    const patched = await ask(server, { method: 'PATCH', path, contentType: 'application/merge-patch+json', body: { data: { a: 'b' } } })
    expect(patched.status).toBe(500)
    expect((await ask(server, { method: 'POST', path: `${configMaps}?dryRun=All`, body: { metadata: { name: 'third' } } })).status).toBe(
      201,
    )
    expect((await ask(server, { path })).status).toBe(200)
    expect((await ask(server, { method: 'DELETE', path })).status).toBe(200)
    fault = undefined
    expect((await make(server, 'second')).status).toBe(201)
  })
})

test('a storage without space marks nothing for deletion', async () => {
  let fault: string | undefined
  const server = await start({ storageFault: () => fault, evict: () => ({ evicted: true }) })
  const pod = (name: string, nodeName?: string) => ({ metadata: { name }, spec: { nodeName, containers: [{ name: 'c', image: 'i' }] } })
  for (const body of [pod('bound', 'n'), pod('unbound')]) expect((await ask(server, { method: 'POST', path: pods, body })).status).toBe(201)
  const held = { metadata: { name: 'held', finalizers: ['example.com/a'] } }
  expect((await ask(server, { method: 'POST', path: configMaps, body: held })).status).toBe(201)
  fault = 'etcdserver: mvcc: database space exceeded'
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'bound' } }
  const evicted = await ask(server, { method: 'POST', path: `${pods}/bound/eviction`, body: eviction })
  expect([evicted.status, evicted.body.message]).toEqual([500, fault])
  expect((await ask(server, { method: 'DELETE', path: `${pods}/bound` })).status).toBe(500)
  expect((await ask(server, { method: 'DELETE', path: `${configMaps}/held` })).status).toBe(500)
  expect((await ask(server, { path: `${configMaps}/held` })).body.metadata.deletionTimestamp).toBeUndefined()
  // What goes at once is taken out, which needs no space.
  expect((await ask(server, { method: 'DELETE', path: `${pods}/unbound` })).status).toBe(200)
  expect((await ask(server, { method: 'DELETE', path: `${pods}/bound?gracePeriodSeconds=0` })).status).toBe(200)
})

describe('trials', () => {
  const dryRun = ['All']
  test('of a deletion and an eviction are asked for in the body', async () => {
    const server = await start()
    await make(server, 'a')
    for (const path of [`${configMaps}/a`, configMaps])
      expect((await ask(server, { method: 'DELETE', path, body: { apiVersion: 'v1', kind: 'DeleteOptions', dryRun } })).status).toBe(200)
    expect((await ask(server, { path: `${configMaps}/a` })).status).toBe(200)
    const body = { metadata: { name: 'p' }, spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] } }
    await ask(server, { method: 'POST', path: pods, body })
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' }, deleteOptions: { dryRun } }
    expect((await ask(server, { method: 'POST', path: `${pods}/p/eviction`, body: eviction })).status).toBe(201)
    expect((await ask(server, { path: `${pods}/p` })).body.metadata.deletionTimestamp).toBeUndefined()
  })
  test('of an update show what would be gone, and are refused for what it would be refused for', async () => {
    const server = await start()
    const path = `${configMaps}/a`
    const labelled = { metadata: { name: 'a', labels: { only: 'one' } } }
    const old = (await ask(server, { method: 'POST', path: configMaps, body: labelled })).body
    const bare = await ask(server, { method: 'PUT', path: `${path}?dryRun=All`, body: { metadata: { name: 'a' } } })
    expect([bare.status, bare.body.metadata.labels, bare.body.metadata.uid]).toEqual([200, undefined, old.metadata.uid])
    await ask(server, { method: 'PATCH', path, contentType: 'application/merge-patch+json', body: { data: { a: 'b' } } })
    const late = await ask(server, { method: 'PUT', path: `${path}?dryRun=All`, body: old })
    expect([late.status, late.body.reason]).toEqual([409, 'Conflict'])
  })
})

test('an apply says what it applies', async () => {
  const server = await start()
  const apply = (body: object) =>
    ask(server, {
      method: 'PATCH',
      path: `${configMaps}/a?fieldManager=me`,
      contentType: 'application/apply-patch+yaml',
      body: { metadata: { name: 'a' }, ...body },
    })
  expect((await apply({ apiVersion: 'v1' })).status).toBe(400)
  expect((await apply({ kind: 'ConfigMap' })).body.message).toBe('invalid object type: /, Kind=ConfigMap')
  expect((await apply({ apiVersion: 'v1', kind: 'ConfigMap' })).status).toBe(201)
})

test('labels are short', async () => {
  const server = await start()
  const labelled = (label: string) => ({ method: 'POST', path: configMaps, body: { metadata: { name: 'a', labels: { label } } } })
  const refused = await ask(server, labelled('x'.repeat(64)))
  expect([refused.status, refused.body.message]).toEqual([422, expect.stringContaining('must be no more than 63 bytes')])
  expect((await ask(server, labelled('x'.repeat(63)))).status).toBe(201)
})

describe('who asks', () => {
  test('a client certificate names user and groups', async () => {
    const seen: string[] = []
    const server = await start({ observe: ({ user }) => seen.push(user) })
    const answer = await askWithCertificate(server, configMaps, { cert: server.client.crt, key: server.client.key })
    expect(answer.code).toBe(200)
    expect(seen).toEqual(['masha'])
  })
  test('a certificate of another authority names nobody', async () => {
    const [server, other] = [await start(), await start()]
    const answer = await askWithCertificate(server, configMaps, { cert: other.client.crt, key: other.client.key })
    expect([answer.code, JSON.parse(answer.text).reason]).toEqual([401, 'Unauthorized'])
  })
  test('what is allowed can be said from outside', async () => {
    const server = await start({
      allow: (user, verb, { resource }) => user.name === 'viewer' && verb === 'list' && resource === 'configmaps',
    })
    const token = server.tokens.viewer
    expect((await ask(server, { path: configMaps, token })).status).toBe(200)
    expect((await ask(server, { path: `${configMaps}/a`, token })).body.message).toBe(
      'configmaps "a" is forbidden: User "viewer" cannot get resource "configmaps" in API group "" in the namespace "default"',
    )
  })
})

describe('policies', () => {
  test('a denial is answered as a ValidatingAdmissionPolicy denies', async () => {
    const server = await start({
      validate: ({ operation: what, user, object }) =>
        what === 'CREATE' && object?.['kind'] === 'TalosOperation' && user.name === 'admin'
          ? { policy: 'ichor-test', message: 'not today' }
          : undefined,
    })
    const reply = await ask(server, { method: 'POST', path: operations, body: operation('a') })
    expect([reply.status, reply.body.reason, reply.body.message]).toEqual([
      422,
      'Invalid',
      `talosoperations.ichor.maesh.dev "a" is forbidden: ValidatingAdmissionPolicy 'ichor-test' with binding 'ichor-test' denied request: not today`,
    ])
    expect((await make(server, 'a')).status).toBe(201)
  })
  test('rules of a resource can be added', async () => {
    const server = await start({ rules: { 'talosoperations.ichor.maesh.dev': (_object, old) => (old ? ['no changes on Sundays'] : []) } })
    expect((await ask(server, { method: 'POST', path: operations, body: operation('a') })).status).toBe(201)
    const patch = {
      method: 'PATCH',
      path: `${operations}/a`,
      body: { spec: { paused: true } },
      contentType: 'application/merge-patch+json',
    }
    expect((await ask(server, patch)).body.message).toBe(
      'TalosOperation.ichor.maesh.dev "a" is invalid: spec: Invalid value: no changes on Sundays',
    )
  })
})

describe('evictions', () => {
  test('are decided by the world where it says so', async () => {
    const server = await start({
      evict: (_namespace, name) => (name === 'held' ? { evicted: false, code: 429, message: 'The world holds it.' } : { evicted: true }),
    })
    for (const name of ['held', 'free']) {
      await ask(server, {
        method: 'POST',
        path: pods,
        body: { metadata: { name }, spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] } },
      })
    }
    const evict = (name: string) =>
      ask(server, {
        method: 'POST',
        path: `${pods}/${name}/eviction`,
        body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } },
      })
    expect((await evict('free')).status).toBe(201)
    // Which pod it is, is nothing that the world has to be asked.
    const preconditions = { uid: '11111111-2222-4333-8444-555555555555' }
    const other = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'free' }, deleteOptions: { preconditions } }
    expect((await ask(server, { method: 'POST', path: `${pods}/free/eviction`, body: other })).body.reason).toBe('Conflict')
    const held = await evict('held')
    expect([held.status, held.body.details.causes]).toEqual([429, [{ reason: 'DisruptionBudget', message: 'The world holds it.' }]])
  })
})

describe('watches', () => {
  test('of a version that is forgotten end with an error that says so', async () => {
    const server = await start({ store: createStore({ now: Date.now, random: Math.random, history: 3 }) })
    for (const name of ['a', 'b', 'c', 'd', 'e']) await make(server, name)
    const open = await watch(server, { path: `${configMaps}?watch=true&resourceVersion=1` })
    const [event] = await open.ended()
    expect([event?.type, event?.object.code, event?.object.reason]).toEqual(['ERROR', 410, 'Expired'])
    expect(event?.object.message).toMatch(/^too old resource version: 1 \(\d+\)$/)
  })
  test('hear of the versions in between', async () => {
    const server = await start({ bookmarkEveryMs: 20 })
    const open = await watch(server, { path: `${configMaps}?watch=true&resourceVersion=1&allowWatchBookmarks=true` })
    await ask(server, { method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: 'elsewhere' } } })
    const version = Number((await ask(server, { path: configMaps })).body.metadata.resourceVersion)
    for (let count = 1; ; count++) {
      const last = (await open.events(count)).at(-1)
      expect(last?.type).toBe('BOOKMARK')
      if (Number(last?.object.metadata.resourceVersion) >= version) break
    }
    open.stop()
  })
  test('see what is written past the API', async () => {
    const server = await start()
    const open = await watch(server, { path: '/api/v1/nodes?watch=true' })
    server.store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } })
    expect((await open.events(1))[0]?.object.metadata.name).toBe('n')
    open.stop()
  })
  test('end when the server closes, and nobody is let in after', async () => {
    const server = await start()
    const open = await watch(server, { path: `${configMaps}?watch=true` })
    await server.close()
    await open.ended()
    await expect(ask(server, { path: configMaps })).rejects.toThrow('ECONNREFUSED')
  })
  test('does not wait for one that has connected and said nothing yet', async () => {
    const server = await start()
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(server.url).port) })
    await once(socket, 'connect')
    const closed = once(socket, 'close')
    await server.stop()
    await closed
  })
})

describe('pages', () => {
  test('that are forgotten are expired', async () => {
    const server = await start()
    for (const name of ['a', 'b']) await make(server, name)
    const first = await ask(server, { path: `${configMaps}?limit=1` })
    for (let each = 0; each < 70; each++) await ask(server, { path: `${configMaps}?limit=1` })
    const second = await ask(server, { path: `${configMaps}?limit=1&continue=${first.body.metadata.continue}` })
    expect([second.status, second.body.reason]).toEqual([410, 'Expired'])
  })
})

describe('namespaces', () => {
  test('take what is in them along', async () => {
    const server = await start()
    await ask(server, { method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: 'x' } } })
    await ask(server, { method: 'POST', path: '/api/v1/namespaces/x/configmaps', body: { metadata: { name: 'a' } } })
    expect((await ask(server, { method: 'DELETE', path: '/api/v1/namespaces/x' })).status).toBe(200)
    expect((await ask(server, { path: '/api/v1/namespaces/x/configmaps' })).body.items).toEqual([])
    expect((await ask(server, { path: '/api/v1/namespaces/x' })).status).toBe(404)
  })
})

test('a broken body is the fault of who sent it', async () => {
  const server = await start()
  const code = await new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${server.tokens.admin}`, 'content-type': 'application/json' }
    const outgoing = request(server.url + configMaps, { method: 'POST', ca: server.caPem, agent: false, headers }, incoming => {
      incoming.resume()
      resolve(incoming.statusCode)
    })
    outgoing.on('error', reject)
    outgoing.end('{"metadata":')
  })
  expect(code).toBe(400)
})
