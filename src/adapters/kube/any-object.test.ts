import { afterEach, describe, expect, it } from 'vitest'
import { realClock } from '../../../test/kube/clocks.ts'
import { type Answering, json, startScripted, status } from '../../../test/kube/scripted-server.ts'
import { anyObject } from './any-object.ts'
import { kubeClient } from './client.ts'
import { openTransport } from './transport.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
const stage = async (answer: Answering) => {
  const server = await startScripted(answer)
  const transport = openTransport({ config: server.config(), clock: realClock, userAgent: 'test' })
  closing.push(server.stop, transport.close)
  return { asked: () => server.asked.map(({ url }) => url.pathname), read: anyObject(kubeClient(transport)) }
}

const types = {
  kind: 'APIResourceList',
  resources: [
    { name: 'cephclusters/status', namespaced: true, kind: 'CephCluster' },
    { name: 'cephclusters', namespaced: true, kind: 'CephCluster' },
    { name: 'pools', namespaced: false, kind: 'Pool' },
  ],
}
const ceph = { apiVersion: 'ceph.rook.io/v1', kind: 'CephCluster', namespace: 'rook', name: 'main' }
const GROUP = '/apis/ceph.rook.io/v1'
const OBJECT = `${GROUP}/namespaces/rook/cephclusters/main`

describe('an object whose type is known at run time only', () => {
  it('is found by its kind, and read anew each time', async () => {
    let health = 'OK'
    const { read, asked } = await stage(({ url }, response) =>
      json(response, url.pathname === GROUP ? types : { kind: 'CephCluster', status: { health } }),
    )
    expect(await read(ceph)).toMatchObject({ ok: true, value: { status: { health: 'OK' } } })
    health = 'WARN'
    expect(await read(ceph)).toMatchObject({ ok: true, value: { status: { health: 'WARN' } } })
    expect(asked()).toEqual([GROUP, OBJECT, OBJECT])
  })

  it('is found in the core group', async () => {
    const { read, asked } = await stage(({ url }, response) =>
      json(response, url.pathname === '/api/v1' ? { resources: [{ name: 'nodes', namespaced: false, kind: 'Node' }] } : { kind: 'Node' }),
    )
    expect(await read({ apiVersion: 'v1', kind: 'Node', name: 'wk-1' })).toMatchObject({ ok: true })
    expect(asked()).toEqual(['/api/v1', '/api/v1/nodes/wk-1'])
  })

  it.each([
    [
      'a type that is not served',
      { ...ceph, kind: 'CephFilesystem' },
      'unsupported',
      'the API server knows no CephFilesystem in ceph.rook.io/v1',
    ],
    [
      'a group that is not served',
      { ...ceph, apiVersion: 'gone.io/v1' },
      'unsupported',
      'the API server knows no CephCluster in gone.io/v1',
    ],
    [
      'no namespace where there must be one',
      { ...ceph, namespace: undefined },
      'invalid',
      'a CephCluster is in a namespace, and none is named',
    ],
    ['a namespace where there is none', { ...ceph, kind: 'Pool' }, 'invalid', 'a Pool is in no namespace, and rook is named'],
  ])('%s is said', async (_what, ref, kind, message) => {
    const { read } = await stage(({ url }, response) =>
      url.pathname === GROUP
        ? json(response, types)
        : status(response, 404, 'NotFound', 'the server could not find the requested resource'),
    )
    expect(await read(ref)).toMatchObject({ ok: false, fault: { kind, message } })
  })

  it('is looked for under another plural once it is gone', async () => {
    let plural = 'cephclusters'
    const { read, asked } = await stage(({ url }, response) => {
      if (url.pathname === GROUP) return json(response, { resources: [{ name: plural, namespaced: true, kind: 'CephCluster' }] })
      return url.pathname.includes(`/${plural}/`)
        ? json(response, { kind: 'CephCluster' })
        : status(response, 404, 'NotFound', 'the server could not find the requested resource')
    })
    expect(await read(ceph)).toMatchObject({ ok: true })
    plural = 'clusters'
    expect(await read(ceph)).toMatchObject({ ok: false })
    expect(await read(ceph)).toMatchObject({ ok: true })
    expect(asked().at(-1)).toBe(`${GROUP}/namespaces/rook/clusters/main`)
  })

  it.each([
    [403, 'Forbidden', 'forbidden'],
    [503, 'ServiceUnavailable', 'busy'],
    [404, 'NotFound', 'notFound'],
  ])('an answer %i is no object', async (code, reason, kind) => {
    const { read } = await stage(({ url }, response) =>
      url.pathname === GROUP ? json(response, types) : status(response, code, reason, 'cephclusters.ceph.rook.io "main" no'),
    )
    expect(await read(ceph)).toMatchObject({ ok: false, fault: { kind } })
  })
})
