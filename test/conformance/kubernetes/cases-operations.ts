import type { Api, Scenario } from './scenario.ts'

const operations = (api: Api, name = ''): string =>
  `/apis/ichor.maesh.dev/v1alpha1/namespaces/${api.namespace}/talosoperations${name && `/${name}`}`
const operation = (name: string, spec: object = {}, more: object = {}) => ({
  apiVersion: 'ichor.maesh.dev/v1alpha1',
  kind: 'TalosOperation',
  metadata: { name },
  spec: { clusterRef: { name: 'c' }, kind: 'talos', talos: { version: 'v1.13.9' }, ...spec },
  ...more,
})
const post = (path: string, body: unknown) => ({ method: 'POST', path, body })
const put = (path: string, body: unknown) => ({ method: 'PUT', path, body })
const merge = (path: string, body: unknown) => ({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' })

const BAD: readonly [string, object][] = [
  ['unknown kind', { kind: 'nonsense' }],
  ['no block', { talos: undefined }],
  ['block of another kind', { talos: undefined, reboot: {} }],
  ['two blocks', { reboot: {} }],
  ['no cluster', { clusterRef: undefined }],
  ['empty cluster name', { clusterRef: { name: '' } }],
  ['bad cluster name', { clusterRef: { name: 'A B' } }],
  ['maxUnavailable 0', { maxUnavailable: 0 }],
  ['maxUnavailable 0%', { maxUnavailable: '0%' }],
  ['maxUnavailable 150%', { maxUnavailable: '150%' }],
  ['maxUnavailable -1', { maxUnavailable: -1 }],
  ['maxUnavailable abc', { maxUnavailable: 'abc' }],
  ['maxUnavailable true', { maxUnavailable: true }],
  ['maxUnavailable 1.5', { maxUnavailable: 1.5 }],
  ['paused is text', { paused: 'yes' }],
  ['duration without unit', { drain: { timeout: '10' } }],
  ['unknown drain policy', { drain: { policy: 'maybe' } }],
  ['too many seconds', { minReadySeconds: 100_000 }],
  ['same word twice', { acknowledge: ['api-outage', 'api-outage'] }],
  ['too long a version', { talos: { version: 'v'.repeat(70) } }],
  ['empty version', { talos: { version: '' } }],
  ['block is text', { talos: 'v1.13.9' }],
  ['block is null', { talos: null }],
  ['bad time', { startAfter: 'tomorrow' }],
  ['many faults', { maxUnavailable: 0, drain: { policy: 'maybe', timeout: 'x' }, paused: 3 }],
]

const CHANGES: readonly [string, object][] = [
  ['pause', { paused: true }],
  ['go on', { paused: false }],
  ['override', { override: true }],
  ['override off', { override: false }],
  ['cancel', { cancelled: true }],
  ['cancel taken back', { cancelled: false }],
  ['another version', { talos: { version: 'v1.13.10' } }],
  ['another cluster', { clusterRef: { name: 'd' } }],
  ['a new field', { ttlAfterFinished: '1h' }],
  ['another kind', { kind: 'reboot', talos: null, reboot: {} }],
  ['two frozen fields', { minReadySeconds: 5, drain: { policy: 'skip' } }],
]

export const operationCases: readonly Scenario[] = [
  {
    name: 'operations are created',
    run: async api => {
      await api.step('with defaults', post(operations(api), operation('a')))
      await api.step('status is not taken', post(operations(api), operation('b', {}, { status: { phase: 'Running' } })), body => ({
        status: body.status,
      }))
      await api.step('with a percentage', post(operations(api), operation('c', { maxUnavailable: '25%', reboot: null })), body => body.spec)
      await api.step(
        'unknown fields are dropped',
        post(operations(api), operation('d', { nonsense: 1, drain: { policy: 'skip', odd: true } })),
        body => body.spec,
      )
      await api.step(
        'unknown fields, strictly',
        post(`${operations(api)}?fieldValidation=Strict`, operation('e', { nonsense: 1, drain: { odd: true } })),
      )
      await api.step('unknown fields, silently', post(`${operations(api)}?fieldValidation=Ignore`, operation('e', { nonsense: 1 })), body =>
        Object.keys(body.spec).toSorted(),
      )
      await api.step('no spec', post(operations(api), { ...operation('f'), spec: undefined }))
      await api.step('of another kind', post(operations(api), { ...operation('f'), kind: 'TalosCluster' }))
      await api.step('without kind', post(operations(api), { metadata: { name: 'f' } }))
      await api.step(
        'cluster',
        post(`/apis/ichor.maesh.dev/v1alpha1/namespaces/${api.namespace}/talosclusters`, {
          apiVersion: 'ichor.maesh.dev/v1alpha1',
          kind: 'TalosCluster',
          metadata: { name: 'c' },
          spec: { talosconfigSecretRef: { name: 's' }, maintenanceWindows: [{ schedule: '0 3 * * *', duration: '2h' }] },
        }),
      )
    },
  },
  {
    name: 'operations that are wrong',
    run: async api => {
      for (const [name, spec] of BAD) await api.step(name, post(operations(api), operation('x', spec)))
    },
  },
  {
    name: 'operations are changed',
    run: async api => {
      await api.quiet(post(operations(api), operation('a')))
      for (const [name, spec] of CHANGES)
        await api.step(name, merge(operations(api, 'a'), { spec }), body => ({ generation: body.metadata.generation }))
      await api.step(
        'annotate',
        merge(operations(api, 'a'), { metadata: { annotations: { 'ichor.maesh.dev/retry': 'true' } } }),
        body => body.metadata,
      )
      await api.step(
        'drop a field that has a default',
        merge(operations(api, 'a'), { spec: { minReadySeconds: null } }),
        body => body.spec.minReadySeconds,
      )
      const now = (await api.quiet({ path: operations(api, 'a') })).body
      await api.step('replace without version', put(operations(api, 'a'), { ...now, metadata: { name: 'a' } }))
      await api.step('replace', put(operations(api, 'a'), { ...now, spec: { ...now.spec, paused: true } }), body => body.spec.paused)
      await api.step('replace again', put(operations(api, 'a'), { ...now, spec: { ...now.spec, paused: false } }))
      await api.step('strategic patch', {
        method: 'PATCH',
        path: operations(api, 'a'),
        body: { spec: { paused: false } },
        contentType: 'application/strategic-merge-patch+json',
      })
      await api.step('patch of no known sort', { method: 'PATCH', path: operations(api, 'a'), body: {}, contentType: 'application/json' })
    },
  },
  {
    name: 'operations have a status',
    apart: [{ field: 'f:metadata', why: 'The real server notes the writer of a status as owner of labels that it then does not store.' }],
    run: async api => {
      const made = (await api.quiet(post(operations(api), operation('a')))).body
      const status = {
        phase: 'Running',
        message: 'It runs.',
        observedGeneration: 1,
        conditions: [
          { type: 'Ready', status: 'False', reason: 'Running', message: 'It runs.', lastTransitionTime: '2026-01-01T00:00:00Z' },
        ],
      }
      const written = (
        await api.step(
          'write',
          put(`${operations(api, 'a')}/status`, {
            ...made,
            spec: { ...made.spec, paused: true },
            status,
            metadata: { ...made.metadata, labels: { no: 'effect' } },
          }),
        )
      ).body
      await api.step('with an old version', put(`${operations(api, 'a')}/status`, { ...made, status }))
      await api.step('bad phase', put(`${operations(api, 'a')}/status`, { ...written, status: { phase: 'Flying' } }))
      await api.step(
        'condition twice',
        merge(`${operations(api, 'a')}/status`, { status: { conditions: [status.conditions[0], status.conditions[0]] } }),
      )
      await api.step('patch', merge(`${operations(api, 'a')}/status`, { spec: { paused: true }, status: { phase: 'Paused' } }))
      await api.step(
        'main write leaves it',
        merge(operations(api, 'a'), { spec: { paused: true }, status: { phase: 'Completed' } }),
        body => [body.spec.paused, body.status.phase, body.metadata.generation],
      )
      const before = (await api.quiet({ path: operations(api, 'a') })).body
      const again = (await api.quiet(put(`${operations(api, 'a')}/status`, before))).body
      api.record('without effect', { sameVersion: again.metadata.resourceVersion === before.metadata.resourceVersion })
      await api.step('read', { path: `${operations(api, 'a')}/status` }, body => body.status)
      await api.step('create there', post(`${operations(api, 'a')}/status`, made))
      await api.step('no such subresource', { path: `${operations(api, 'a')}/scale` })
    },
  },
  {
    name: 'snapshots cannot be changed',
    run: async api => {
      const path = `/apis/ichor.maesh.dev/v1alpha1/namespaces/${api.namespace}/etcdsnapshots`
      await api.step(
        'create',
        post(path, {
          apiVersion: 'ichor.maesh.dev/v1alpha1',
          kind: 'EtcdSnapshot',
          metadata: { name: 's' },
          spec: { clusterRef: { name: 'c' }, location: 's3://b/k' },
        }),
      )
      await api.step('change', merge(`${path}/s`, { spec: { location: 's3://b/l' } }))
      await api.step('label', merge(`${path}/s`, { metadata: { labels: { a: 'b' } } }), body => body.metadata)
      await api.step('delete', { method: 'DELETE', path: `${path}/s` })
    },
  },
]
