import { afterEach, describe, expect, it } from 'vitest'
import { realClock } from '../../../test/kube/clocks.ts'
import { type Answering, json, startScripted, status } from '../../../test/kube/scripted-server.ts'
import { kubeClient } from './client.ts'
import { openKube } from './kube.ts'
import { RESOURCE } from './resource.ts'
import { openTransport } from './transport.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
const stage = async (answer: Answering) => {
  const server = await startScripted(answer)
  const transport = openTransport({ config: server.config(), clock: realClock, userAgent: 'test' })
  closing.push(server.stop, transport.close)
  return { server, client: kubeClient(transport, { fieldManager: 'me' }) }
}
const items = (...names: string[]) => names.map(name => ({ metadata: { name } }))

describe('a list', () => {
  it('goes on page by page', async () => {
    const { server, client } = await stage(({ url }, response) =>
      url.searchParams.get('continue') === 'more'
        ? json(response, { metadata: { resourceVersion: '7' }, items: items('b') })
        : json(response, { metadata: { resourceVersion: '7', continue: 'more' }, items: items('a') }),
    )
    expect(await client.list(RESOURCE.pod, { fieldSelector: 'spec.nodeName=n' })).toEqual({
      ok: true,
      value: { resourceVersion: '7', items: items('a', 'b') },
    })
    expect(server.asked.map(({ url }) => url.pathname + url.search)).toEqual([
      '/api/v1/pods?fieldSelector=spec.nodeName%3Dn&limit=500',
      '/api/v1/pods?fieldSelector=spec.nodeName%3Dn&limit=500&continue=more',
    ])
  })

  it('that expires on its way is taken in one piece', async () => {
    const { server, client } = await stage(({ url }, response) => {
      if (url.searchParams.get('continue')) return status(response, 410, 'Expired', 'the continue token is too old')
      json(
        response,
        url.searchParams.get('limit')
          ? { metadata: { resourceVersion: '7', continue: 'more' }, items: items('old') }
          : { metadata: { resourceVersion: '9' }, items: items('a', 'b') },
      )
    })
    expect(await client.list(RESOURCE.pod)).toEqual({ ok: true, value: { resourceVersion: '9', items: items('a', 'b') } })
    expect(server.asked).toHaveLength(3)
  })

  it('that is none is a fault', async () => {
    const { client } = await stage((_, response) => json(response, { hello: 'world' }))
    expect(await client.list(RESOURCE.pod)).toMatchObject({ ok: false, fault: { kind: 'unknown' } })
  })
})

it('a write names its author, its patch type, and its preconditions', async () => {
  const { server, client } = await stage((_, response) => json(response, {}))
  const place = { namespace: 'a b', name: 'c' }
  await client.patch(RESOURCE.pod, place, [{ op: 'add' }], { type: 'json', dryRun: true })
  await client.patch(RESOURCE.crd, { name: 'x' }, {}, { type: 'apply', force: true, fieldManager: 'installer' })
  await client.delete(RESOURCE.pod, place, { preconditions: { uid: 'u' }, gracePeriodSeconds: 0 })
  expect(server.asked.map(({ method, url, headers }) => `${method} ${url.pathname}${url.search} ${headers['content-type']}`)).toEqual([
    'PATCH /api/v1/namespaces/a%20b/pods/c?fieldManager=me&dryRun=All application/json-patch+json',
    'PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/x?fieldManager=installer&force=true application/apply-patch+yaml',
    'DELETE /api/v1/namespaces/a%20b/pods/c application/json',
  ])
  expect(server.asked[2]?.body).toMatchObject({ preconditions: { uid: 'u' }, gracePeriodSeconds: 0 })
})

describe('the pods of a node', () => {
  const DATE = 'Tue, 01 Sep 2026 08:02:00 GMT'
  const pod = (name: string, key: string, kind?: string) => ({
    metadata: {
      name,
      creationTimestamp: '2026-09-01T08:00:30Z',
      ...(kind ? { ownerReferences: [{ kind, controller: true }] } : {}),
    },
    spec: { nodeName: 'n', tolerations: [{ key, operator: 'Exists' }] },
  })
  const CORDON = 'node.kubernetes.io/unschedulable'
  const ask = async (date: string, ...found: readonly object[]) => {
    const { server, client } = await stage(({ url }, response) =>
      json(response.setHeader('date', date), url.pathname === '/version' ? {} : { metadata: {}, items: found }),
    )
    const pods = await openKube(client).podsOn('n')
    if (!pods.ok) throw new Error(pods.fault.message)
    return { pods: pods.value.map(({ name, toleratesCordon, ageMs }) => ({ name, toleratesCordon, ageMs })), asked: server.asked.length }
  }

  it('are as old as the server says, where they may be put on one that is cordoned', async () =>
    expect(await ask(DATE, pod('a', CORDON, 'ReplicaSet'), pod('b', 'other', 'ReplicaSet'))).toEqual({
      pods: [
        { name: 'a', toleratesCordon: true, ageMs: 90_000 },
        { name: 'b', toleratesCordon: undefined, ageMs: undefined },
      ],
      asked: 2,
    }))
  it('are not asked for their age where it matters to nobody', async () =>
    expect(await ask(DATE, pod('a', 'other', 'ReplicaSet'), pod('b', CORDON, 'DaemonSet'), pod('c', CORDON))).toMatchObject({
      pods: [{}, { toleratesCordon: true, ageMs: undefined }, { toleratesCordon: true, ageMs: undefined }],
      asked: 1,
    }))
  it('are there without one, where the server does not say what time it is', async () =>
    expect(await ask('yesterday', pod('a', CORDON, 'StatefulSet'))).toMatchObject({ pods: [{ toleratesCordon: true, ageMs: undefined }] }))
})

describe('the volumes of a node', () => {
  const attachments = ['a', 'b', 'c', ''].map((volume, at) => ({
    metadata: { name: `csi-${at}` },
    spec: { nodeName: at === 1 ? 'other' : 'n', source: { persistentVolumeName: volume } },
  }))
  const ask = async (answer: Answering) => {
    const { client } = await stage((asked, response) =>
      asked.url.pathname.endsWith('volumeattachments') ? json(response, { metadata: {}, items: attachments }) : answer(asked, response),
    )
    return openKube(client).volumeAttachments('n')
  }

  it('have the claims of their PersistentVolumes, where they have one', async () =>
    expect(
      await ask(({ url }, response) =>
        json(response, { spec: url.pathname === '/api/v1/persistentvolumes/a' ? { claimRef: { namespace: 'd', name: 'db' } } : {} }),
      ),
    ).toEqual({ ok: true, value: [{ name: 'csi-0', claim: 'd/db' }, { name: 'csi-2' }, { name: 'csi-3' }] }))
  it.each([
    [403, 'who may not read these'],
    [404, 'whose PersistentVolume is gone'],
  ])('%s: are known by name alone to one %s', async code =>
    expect(await ask((_, response) => status(response, code, '', 'no'))).toEqual({
      ok: true,
      value: [{ name: 'csi-0' }, { name: 'csi-2' }, { name: 'csi-3' }],
    }),
  )
  it('cannot be told while the API does not answer', async () =>
    expect(await ask((_, response) => status(response, 503, '', 'later'))).toMatchObject({ ok: false, fault: { kind: 'busy' } }))
})

describe('an eviction', () => {
  const pod = {
    namespace: 'd',
    name: 'p',
    uid: 'mine',
    node: 'n',
    phase: 'Running',
    labels: {},
    mirror: false,
    ownerKind: '',
    terminating: false,
  } as const
  const evict = async (code: number, message: string, now?: (response: Parameters<Answering>[1]) => void) => {
    const { client } = await stage(({ method }, response) => (method === 'POST' ? status(response, code, '', message) : now?.(response)))
    const answer = await openKube(client).evict(pod)
    return answer.ok ? 'ok' : `${answer.fault.kind}: ${answer.fault.message}`
  }
  it('that conflicts because another pod has the name is done', async () =>
    expect(await evict(409, 'Precondition failed', response => json(response, { metadata: { uid: 'other' } }))).toBe('ok'))
  it('that conflicts because the pod is gone is done', async () =>
    expect(await evict(409, 'Conflict', response => status(response, 404, 'NotFound', 'pods "p" not found'))).toBe('ok'))
  it('that conflicts over the very pod is not', async () =>
    expect(await evict(409, 'the object has been modified', response => json(response, { metadata: { uid: 'mine' } }))).toMatch(
      /^conflict: /,
    ))
  it('of a pod that nobody knows the fate of is not', async () =>
    expect(await evict(409, 'Conflict', response => status(response, 503, '', 'later'))).toMatch(/^conflict: /))
  it('that the server cannot do now is busy', async () =>
    expect(await evict(500, 'etcdserver: request timed out')).toMatch(/^busy: .*timed out/))
  it('that is forbidden is forbidden', async () => expect(await evict(403, 'pods "p" is forbidden')).toMatch(/^forbidden: /))
})
