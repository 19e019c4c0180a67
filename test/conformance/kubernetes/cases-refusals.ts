import type { Api, Scenario } from './scenario.ts'

const post = (path: string, body: unknown) => ({ method: 'POST', path, body })
const put = (path: string, body: unknown) => ({ method: 'PUT', path, body })
const remove = (path: string, body?: unknown) => ({ method: 'DELETE', path, body })
const patch = (path: string, body: unknown, kind = 'merge') => ({
  method: 'PATCH',
  path,
  body,
  contentType: kind === 'apply' ? 'application/apply-patch+yaml' : `application/${kind}-patch+json`,
})
const core = (api: Api, plural: string, name = ''): string => `/api/v1/namespaces/${api.namespace}/${plural}${name && `/${name}`}`
const lease = (api: Api, name = ''): string => `/apis/coordination.k8s.io/v1/namespaces/${api.namespace}/leases${name && `/${name}`}`

export const refusalCases: readonly Scenario[] = [
  {
    name: 'trials',
    run: async api => {
      const configMaps = core(api, 'configmaps')
      const [a, dryRun] = [core(api, 'configmaps', 'a'), { apiVersion: 'v1', kind: 'DeleteOptions', dryRun: ['All'] }]
      const first = (await api.quiet(post(configMaps, { metadata: { name: 'a', labels: { x: 'y' }, annotations: { x: 'y' } } }))).body
      await api.step('deletion, by its body', remove(a, dryRun))
      await api.step('of all, by its body', remove(configMaps, dryRun), body => body.kind)
      await api.step('deletion, of nothing that is known', remove(a, { ...dryRun, dryRun: ['Some'] }))
      await api.step('it is there', { path: a })
      await api.step('update that takes all away', put(`${a}?dryRun=All`, { metadata: { name: 'a' } }))
      await api.step('update of what has changed', patch(a, { data: { a: '1' } }))
      await api.step('update of an old version', put(`${a}?dryRun=All`, first))
      await api.step('update of what is not there', put(`${core(api, 'configmaps', 'b')}?dryRun=All`, { metadata: { name: 'b' } }))
    },
  },
  {
    name: 'eviction of another pod',
    run: async api => {
      await api.quiet(
        post(core(api, 'pods'), { metadata: { name: 'p' }, spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] } }),
      )
      const evict = (preconditions: object) =>
        post(`${core(api, 'pods', 'p')}/eviction`, {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          metadata: { name: 'p', namespace: api.namespace },
          deleteOptions: { preconditions },
        })
      await api.step('of another uid', evict({ uid: '11111111-2222-4333-8444-555555555555' }))
      await api.step('of an old version', evict({ resourceVersion: '1' }))
      await api.step('it stays', { path: core(api, 'pods', 'p') }, body => [body.metadata.deletionTimestamp !== undefined])
    },
  },
  {
    name: 'what no type takes',
    run: async api => {
      const configMaps = core(api, 'configmaps')
      const labelled = (labels: object) => post(configMaps, { metadata: { name: 'a', labels } })
      await api.step('a long label', labelled({ a: 'x'.repeat(64) }))
      await api.step('a long label that is bad', labelled({ a: `${'x'.repeat(64)}-` }))
      await api.step('apply without kind', patch(`${configMaps}/a?fieldManager=me`, { apiVersion: 'v1', metadata: { name: 'a' } }, 'apply'))
      await api.step(
        'apply without version',
        patch(`${configMaps}/a?fieldManager=me`, { kind: 'ConfigMap', metadata: { name: 'a' } }, 'apply'),
      )
      await api.step(
        'apply of another version',
        patch(`${configMaps}/a?fieldManager=me`, { apiVersion: 'v2', kind: 'ConfigMap', metadata: { name: 'a' } }, 'apply'),
      )
      const made = (await api.quiet(post(configMaps, { metadata: { name: 'a' } }))).body
      await api.step('force without apply', patch(`${configMaps}/a?force=true`, { data: { a: '1' } }))
      await api.step('an old version', patch(`${configMaps}/a`, { metadata: { resourceVersion: '1' }, data: { a: '1' } }))
      await api.quiet(remove(`${configMaps}/a`))
      await api.step('one that has gone', put(`${configMaps}/a`, made))
      await api.step('a patch of one that has gone', patch(`${configMaps}/a`, { metadata: { uid: made.metadata.uid } }))
      for (const name of ['a', 'b']) await api.quiet(post(configMaps, { metadata: { name } }))
      const page = (await api.quiet({ path: `${configMaps}?limit=1` })).body.metadata
      await api.step('the rest as of a version', {
        path: `${configMaps}?limit=1&continue=${page.continue}&resourceVersion=${page.resourceVersion}`,
      })
      await api.step('a watch from nowhere', { path: `${configMaps}?watch=true&resourceVersion=abc` })
    },
  },
  {
    name: 'leases and events that are wrong',
    run: async api => {
      const time = '2026-01-01T00:00:00.000000Z'
      const one = (spec: object) => post(lease(api), { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'l' }, spec })
      await api.step('no parts of a second', one({ holderIdentity: 'a', renewTime: '2026-01-01T00:00:00Z' }))
      await api.step('milliseconds', one({ holderIdentity: 'a', acquireTime: '2026-01-01T00:00:00.000Z' }))
      await api.step('no duration', one({ holderIdentity: 'a', leaseDurationSeconds: 0, renewTime: time }))
      await api.step('fewer than none', one({ holderIdentity: 'a', leaseTransitions: -1, leaseDurationSeconds: 1 }))
      await api.step('nobody', one({ holderIdentity: '', leaseDurationSeconds: 1 }))
      await api.quiet(
        post(lease(api), { metadata: { name: 'm' }, spec: { holderIdentity: 'a', leaseDurationSeconds: 1, renewTime: time } }),
      )
      // The whole object is in its words.
      const garbled = await api.until(patch(lease(api, 'm'), { spec: { renewTime: '2026-01-01T00:00:00.000Z' } }), () => true)
      api.record('a patch with milliseconds', { status: garbled.status, reason: garbled.body.reason, kind: garbled.body.details?.kind })
      await api.step('a patch to no duration', patch(lease(api, 'm'), { spec: { leaseDurationSeconds: 0 } }))
      const event = (more: object) =>
        post(core(api, 'events'), {
          metadata: { name: 'e' },
          involvedObject: { kind: 'Pod', name: 'p', namespace: api.namespace },
          reason: 'R',
          ...more,
        })
      await api.step('about another namespace', event({ involvedObject: { kind: 'Pod', name: 'p', namespace: 'default' } }))
      await api.step('about the cluster', event({ involvedObject: { kind: 'Node', name: 'n' } }))
      await api.step('at a time without parts', event({ eventTime: '2026-01-01T00:00:00Z' }))
    },
  },
]
