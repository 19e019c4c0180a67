import { pick } from './normal.ts'
import type { Api, Scenario } from './scenario.ts'

const configMaps = (api: Api, name = ''): string => `/api/v1/namespaces/${api.namespace}/configmaps${name && `/${name}`}`
const leases = (api: Api, name = ''): string => `/apis/coordination.k8s.io/v1/namespaces/${api.namespace}/leases${name && `/${name}`}`
const configMap = (name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { a: '1' },
  ...more,
})
const post = (path: string, body: unknown) => ({ method: 'POST', path, body })
const put = (path: string, body: unknown) => ({ method: 'PUT', path, body })
const remove = (path: string, body?: unknown) => ({ method: 'DELETE', path, body })

export const objectCases: readonly Scenario[] = [
  {
    name: 'create and read',
    run: async api => {
      await api.step('create', post(configMaps(api), configMap('a')))
      await api.step('read', { path: configMaps(api, 'a') })
      await api.step('again', post(configMaps(api), configMap('a')))
      await api.step('list', { path: configMaps(api) })
      await api.step('not there', { path: configMaps(api, 'b') })
      await api.step('namespace not there', post('/api/v1/namespaces/nowhere/configmaps', configMap('a')))
      await api.step('namespace not there, reading', { path: '/api/v1/namespaces/nowhere/configmaps/a' })
      await api.step('bad name', post(configMaps(api), configMap('A_b')))
      await api.step('no name', post(configMaps(api), { data: {} }))
      await api.step('name drawn', post(configMaps(api), { metadata: { generateName: 'x-' } }), body => [
        body.metadata.generateName,
        /^x-[a-z0-9]{5}$/.test(body.metadata.name),
      ])
      await api.step('other kind', post(configMaps(api), { ...configMap('b', { data: undefined }), kind: 'Secret' }))
      await api.step('other namespace', post(configMaps(api), configMap('b', { metadata: { name: 'b', namespace: 'default' } })))
      await api.step('with a version', post(configMaps(api), configMap('b', { metadata: { name: 'b', resourceVersion: '5' } })))
      await api.step('bad label', post(configMaps(api), configMap('b', { metadata: { name: 'b', labels: { a: 'not ok' } } })))
      await api.step('dry run', post(`${configMaps(api)}?dryRun=All`, configMap('dry')))
      await api.step('dry run leaves nothing', { path: configMaps(api, 'dry') })
      await api.step('to one object', post(configMaps(api, 'a'), configMap('a')))
    },
  },
  {
    name: 'replace',
    run: async api => {
      const first = (await api.quiet(post(configMaps(api), configMap('a')))).body
      await api.step('with its version', put(configMaps(api, 'a'), { ...first, data: { a: '2' } }))
      await api.step('with an old version', put(configMaps(api, 'a'), { ...first, data: { a: '3' } }))
      await api.step('without a version', put(configMaps(api, 'a'), configMap('a', { data: { a: '4' } })))
      const before = (await api.quiet({ path: configMaps(api, 'a') })).body
      const same = (await api.quiet(put(configMaps(api, 'a'), before))).body
      api.record('without effect', { sameVersion: same.metadata.resourceVersion === before.metadata.resourceVersion })
      await api.step('another name', put(configMaps(api, 'a'), configMap('b')))
      await api.step(
        'another uid',
        put(configMaps(api, 'a'), configMap('a', { metadata: { name: 'a', uid: '11111111-2222-4333-8444-555555555555' } })),
      )
      await api.step('not there', put(configMaps(api, 'missing'), configMap('missing')))
    },
  },
  {
    name: 'lease',
    run: async api => {
      const spec = {
        holderIdentity: 'a',
        leaseDurationSeconds: 15,
        acquireTime: '2026-01-01T00:00:00.000000Z',
        renewTime: '2026-01-01T00:00:00.000000Z',
        leaseTransitions: 0,
      }
      const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'l', annotations: { x: 'y' } }, spec }
      const first = (await api.step('create', post(leases(api), lease))).body
      await api.step('take over', put(leases(api, 'l'), { ...first, spec: { ...spec, holderIdentity: 'b' } }))
      await api.step('lost the race', put(leases(api, 'l'), { ...first, spec: { ...spec, holderIdentity: 'c' } }))
      await api.step('no version', put(leases(api, 'l'), lease))
      await api.step('create again', post(leases(api), lease))
    },
  },
  {
    name: 'delete',
    run: async api => {
      const a = (await api.quiet(post(configMaps(api), configMap('a')))).body
      await api.step('wrong uid', remove(configMaps(api, 'a'), { preconditions: { uid: '11111111-2222-4333-8444-555555555555' } }))
      await api.step('wrong version', remove(configMaps(api, 'a'), { preconditions: { resourceVersion: '1' } }))
      await api.step(
        'right',
        remove(configMaps(api, 'a'), { preconditions: { uid: a.metadata.uid, resourceVersion: a.metadata.resourceVersion } }),
      )
      await api.step('gone', remove(configMaps(api, 'a')))
      await api.quiet(
        post(configMaps(api), configMap('f', { metadata: { name: 'f', finalizers: ['example.com/one', 'example.com/two'] } })),
      )
      await api.step('with finalizers', remove(configMaps(api, 'f')))
      await api.step('create while leaving', post(configMaps(api), configMap('f')))
      await api.step('add a finalizer', {
        method: 'PATCH',
        path: configMaps(api, 'f'),
        contentType: 'application/merge-patch+json',
        body: { metadata: { finalizers: ['example.com/one', 'example.com/three'] } },
      })
      const patch = (finalizers: unknown) => ({
        method: 'PATCH',
        path: configMaps(api, 'f'),
        contentType: 'application/merge-patch+json',
        body: { metadata: { finalizers } },
      })
      await api.step('take one', patch(['example.com/two']))
      await api.step('take the last', patch(null))
      await api.step('it is gone', { path: configMaps(api, 'f') })
      for (const name of ['x', 'y', 'z'])
        await api.quiet(post(configMaps(api), configMap(name, { metadata: { name, labels: { set: name === 'z' ? 'no' : 'yes' } } })))
      await api.step('many', remove(`${configMaps(api)}?labelSelector=set%3Dyes`), body => ({
        kind: body.kind,
        names: body.items.map((item: any) => item.metadata.name),
      }))
      await api.step('what is left', { path: configMaps(api) }, body => body.items.map((item: any) => item.metadata.name))
    },
  },
  {
    name: 'pods leave slowly',
    run: async api => {
      const pods = `/api/v1/namespaces/${api.namespace}/pods`
      const pod = (name: string, nodeName?: string) => ({
        metadata: { name },
        spec: { nodeName, containers: [{ name: 'c', image: 'i' }], terminationGracePeriodSeconds: 20 },
      })
      await api.step('create', post(pods, pod('bound', 'some-node')), body =>
        pick(body, 'kind', 'metadata', 'spec.nodeName', 'spec.restartPolicy', 'status.phase'),
      )
      await api.quiet(post(pods, pod('unbound')))
      const see = (body: any) =>
        pick(body, 'kind', 'metadata.name', 'metadata.deletionGracePeriodSeconds', 'metadata.generation', 'status.phase')
      await api.step('bound', remove(`${pods}/bound`), see)
      await api.step('bound, again and shorter', remove(`${pods}/bound`, { gracePeriodSeconds: 5 }), see)
      await api.step('bound, at once', remove(`${pods}/bound?gracePeriodSeconds=0`), see)
      await api.step('unbound', remove(`${pods}/unbound`), see)
      await api.step('all gone', { path: pods }, body => body.items.length)
    },
    apart: [
      {
        field: 'managedFields',
        why: 'The real server records the defaults that it fills into the spec of a pod; kubesim fills in two of them.',
      },
    ],
  },
  {
    name: 'secrets and namespaces',
    run: async api => {
      const secrets = `/api/v1/namespaces/${api.namespace}/secrets`
      await api.step('plain text', post(secrets, { metadata: { name: 's' }, stringData: { k: 'hello' } }))
      await api.step('more plain text', {
        method: 'PATCH',
        path: `${secrets}/s`,
        contentType: 'application/merge-patch+json',
        body: { stringData: { l: 'world' } },
      })
      await api.step('namespace', { path: `/api/v1/namespaces/${api.namespace}` })
      await api.step('all namespaces at once', remove('/api/v1/namespaces'))
    },
  },
  {
    name: 'events',
    run: async api => {
      const core = `/api/v1/namespaces/${api.namespace}/events`
      const other = `/apis/events.k8s.io/v1/namespaces/${api.namespace}/events`
      const regarding = { apiVersion: 'v1', kind: 'Pod', namespace: api.namespace, name: 'p', uid: 'u' }
      await api.step(
        'events.k8s.io',
        post(other, {
          apiVersion: 'events.k8s.io/v1',
          kind: 'Event',
          metadata: { name: 'one' },
          eventTime: '2026-01-01T00:00:00.000000Z',
          reportingController: 'example.com/c',
          reportingInstance: 'c-1',
          action: 'Act',
          reason: 'Because',
          regarding,
          note: 'A note.',
          type: 'Normal',
        }),
      )
      await api.step('the same in v1', { path: `${core}/one` })
      await api.step(
        'v1',
        post(core, {
          metadata: { name: 'two' },
          involvedObject: { ...regarding, name: 'q' },
          reason: 'Why',
          message: 'A message.',
          type: 'Warning',
          count: 3,
          firstTimestamp: '2026-01-01T00:00:00Z',
          lastTimestamp: '2026-01-01T00:00:00Z',
          source: { component: 'test' },
        }),
      )
      await api.step('the same in events.k8s.io', { path: `${other}/two` })
      const names = (body: any) => body.items.map((item: any) => item.metadata.name)
      await api.step('of one object', { path: `${core}?fieldSelector=involvedObject.name%3Dq,involvedObject.kind%3DPod` }, names)
      await api.step('by type', { path: `${core}?fieldSelector=type!%3DWarning` }, names)
    },
  },
]
