import { pick } from './normal.ts'
import type { Api, Scenario } from './scenario.ts'

const MERGE = 'application/merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'
const STRATEGIC = 'application/strategic-merge-patch+json'
const APPLY = 'application/apply-patch+yaml'

const configMaps = (api: Api, name = ''): string => `/api/v1/namespaces/${api.namespace}/configmaps${name && `/${name}`}`
const post = (path: string, body: unknown) => ({ method: 'POST', path, body })
const patch = (contentType: string, path: string, body: unknown) => ({ method: 'PATCH', path, body, contentType })

const applied = (name: string, data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data })

export const patchCases: readonly Scenario[] = [
  {
    name: 'merge and json patches',
    run: async api => {
      const path = configMaps(api, 'a')
      const seen = (body: any) => ({ data: body.data, labels: body.metadata.labels, finalizers: body.metadata.finalizers })
      await api.quiet(post(configMaps(api), { metadata: { name: 'a', labels: { x: '1' } }, data: { a: '1', b: '2' } }))
      await api.step('merge', patch(MERGE, path, { data: { a: null, c: '3' }, metadata: { labels: { 'with/slash': 'y' } } }), seen)
      await api.step('merge with an old version', patch(MERGE, path, { metadata: { resourceVersion: '1' }, data: { c: '4' } }))
      await api.step(
        'add, replace, remove',
        patch(JSON_PATCH, path, [
          { op: 'add', path: '/data/d', value: '4' },
          { op: 'replace', path: '/data/c', value: '5' },
          { op: 'remove', path: '/metadata/labels/with~1slash' },
        ]),
        seen,
      )
      await api.step(
        'test that holds',
        patch(JSON_PATCH, path, [
          { op: 'test', path: '/data/c', value: '5' },
          { op: 'move', from: '/data/c', path: '/data/e' },
        ]),
        seen,
      )
      await api.step(
        'test that fails',
        patch(JSON_PATCH, path, [
          { op: 'test', path: '/data/e', value: 'no' },
          { op: 'remove', path: '/data/e' },
        ]),
      )
      await api.step('remove what is not there', patch(JSON_PATCH, path, [{ op: 'remove', path: '/data/none' }]))
      await api.step('replace what is not there', patch(JSON_PATCH, path, [{ op: 'replace', path: '/data/none', value: '1' }]))
      await api.step('add below what is not there', patch(JSON_PATCH, path, [{ op: 'add', path: '/spec/none/x', value: '1' }]))
      await api.step(
        'into a list',
        patch(JSON_PATCH, path, [
          { op: 'add', path: '/metadata/finalizers', value: ['example.com/a'] },
          { op: 'add', path: '/metadata/finalizers/-', value: 'example.com/b' },
          { op: 'add', path: '/metadata/finalizers/0', value: 'example.com/c' },
          { op: 'remove', path: '/metadata/finalizers/1' },
        ]),
        seen,
      )
      await api.step('finalizers by strategic merge', patch(STRATEGIC, path, { metadata: { finalizers: ['example.com/d'] } }), seen)
      await api.step(
        'finalizers taken',
        patch(STRATEGIC, path, { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/c', 'example.com/b'] } }),
        seen,
      )
      await api.step('rename', patch(MERGE, path, { metadata: { name: 'b' } }))
      await api.step('not there', patch(MERGE, configMaps(api, 'none'), {}))
      await api.step('unknown sort', patch('application/json', path, {}))
      await api.step('no effect', patch(MERGE, path, {}), seen)
    },
  },
  {
    name: 'strategic patches of nodes',
    run: async api => {
      const path = `/api/v1/nodes/${api.namespace}`
      const seen = (body: any) => pick(body, 'spec', 'metadata.labels', 'metadata.annotations', 'status.conditions', 'status.addresses')
      await api.quiet(post('/api/v1/nodes', { metadata: { name: api.namespace, labels: { a: '1' } } }))
      // A node of a server without controllers carries this taint from its creation.
      await api.quiet(patch(MERGE, path, { spec: { taints: null } }))
      await api.step('cordon', patch(STRATEGIC, path, { spec: { unschedulable: true }, metadata: { annotations: { who: 'me' } } }), seen)
      await api.step(
        'taints',
        patch(STRATEGIC, path, {
          spec: {
            taints: [
              { key: 'k1', effect: 'NoSchedule' },
              { key: 'k2', effect: 'NoExecute', value: 'v' },
            ],
          },
        }),
        seen,
      )
      await api.step('change one', patch(STRATEGIC, path, { spec: { taints: [{ key: 'k1', effect: 'PreferNoSchedule' }] } }), seen)
      await api.step('uncordon', patch(STRATEGIC, path, { spec: { unschedulable: null }, metadata: { annotations: { who: null } } }), seen)
      const condition = (type: string, status: string) => ({
        type,
        status,
        reason: 'R',
        message: 'M',
        lastHeartbeatTime: '2026-01-01T00:00:00Z',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      })
      await api.step(
        'status',
        patch(STRATEGIC, `${path}/status`, { status: { conditions: [condition('Ready', 'False'), condition('Other', 'True')] } }),
        seen,
      )
      await api.step('one condition', patch(STRATEGIC, `${path}/status`, { status: { conditions: [condition('Ready', 'True')] } }), seen)
      await api.step(
        'order',
        patch(STRATEGIC, `${path}/status`, {
          status: {
            '$setElementOrder/conditions': [{ type: 'Other' }, { type: 'Ready' }],
            conditions: [{ type: 'Ready', status: 'Unknown' }],
          },
        }),
        seen,
      )
      await api.step(
        'a condition less',
        patch(STRATEGIC, `${path}/status`, { status: { conditions: [{ type: 'Other', $patch: 'delete' }] } }),
        seen,
      )
      await api.step(
        'all conditions replaced',
        patch(STRATEGIC, `${path}/status`, { status: { conditions: [{ $patch: 'replace' }, condition('New', 'True')] } }),
        seen,
      )
      await api.step(
        'status of the main path has no effect',
        patch(STRATEGIC, path, { status: { conditions: [condition('Ready', 'False')] } }),
        seen,
      )
      await api.step('spec of the status path has no effect', patch(STRATEGIC, `${path}/status`, { spec: { unschedulable: true } }), seen)
    },
  },
  {
    name: 'strategic patches of containers',
    run: async api => {
      const path = `/apis/apps/v1/namespaces/${api.namespace}/deployments`
      const labels = { app: 'a' }
      const container = (name: string, image: string) => ({ name, image, env: [{ name: 'X', value: '1' }] })
      await api.quiet(
        post(path, {
          metadata: { name: 'd' },
          spec: {
            selector: { matchLabels: labels },
            template: { metadata: { labels }, spec: { containers: [container('c1', 'i1'), container('c2', 'i2')] } },
          },
        }),
      )
      const seen = (body: any) => ({
        generation: body.metadata.generation,
        annotations: body.spec.template.metadata.annotations,
        containers: body.spec.template.spec.containers.map((each: any) => ({ name: each.name, image: each.image, env: each.env })),
        strategy: body.spec.strategy,
      })
      const change = (spec: object) => patch(STRATEGIC, `${path}/d`, { spec: { template: { spec } } })
      await api.step('an image', change({ containers: [{ name: 'c2', image: 'i3' }] }), body => seen(body).containers)
      await api.step(
        'a variable',
        change({ containers: [{ name: 'c1', env: [{ name: 'Y', value: '2' }] }] }),
        body => seen(body).containers,
      )
      await api.step('a container less', change({ containers: [{ name: 'c1', $patch: 'delete' }] }), body => seen(body).containers)
      await api.step(
        'kept keys',
        patch(STRATEGIC, `${path}/d`, { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate', rollingUpdate: null } } }),
        body => body.spec.strategy,
      )
      await api.step(
        'restart',
        patch(STRATEGIC, `${path}/d`, {
          spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': 'now' } } } },
        }),
        body => seen(body).annotations,
      )
    },
  },
  {
    name: 'server-side apply',
    run: async api => {
      const path = (manager: string, more = '') => `${configMaps(api, 'a')}?fieldManager=${manager}${more}`
      await api.step('create', patch(APPLY, path('one'), applied('a', { a: '1', b: '2' })))
      await api.step('the same', patch(APPLY, path('one'), applied('a', { a: '1', b: '2' })), body => body.metadata.managedFields.length)
      await api.step('no manager', patch(APPLY, configMaps(api, 'a'), applied('a', {})))
      await api.step('another, agreeing', patch(APPLY, path('two'), applied('a', { a: '1', c: '3' })))
      await api.step('another, in conflict', patch(APPLY, path('two'), applied('a', { a: '9', b: '9' })))
      await api.step('conflict in one', patch(APPLY, path('two'), applied('a', { b: '9' })))
      await api.step('by force', patch(APPLY, path('two', '&force=true'), applied('a', { a: '9', c: '3' })))
      await api.step('fewer fields', patch(APPLY, path('one'), applied('a', {})))
      await api.step('after an update', {
        method: 'PATCH',
        path: `${configMaps(api, 'a')}?fieldManager=editor`,
        contentType: MERGE,
        body: { data: { c: '4' } },
      })
      await api.step('in conflict with the update', patch(APPLY, path('two'), applied('a', { c: '3' })))
    },
  },
  {
    name: 'who wrote what',
    run: async api => {
      const path = `/apis/ichor.maesh.dev/v1alpha1/namespaces/${api.namespace}/talosoperations`
      // The server sorts them by time, which has whole seconds: whether two writes fall into the same one is chance.
      const owner = (entry: any): string => `${entry.manager} ${entry.operation} ${entry.subresource ?? ''}`
      const managed = (body: any) => body.metadata.managedFields.toSorted((a: any, b: any) => (owner(a) < owner(b) ? -1 : 1))
      await api.step(
        'create',
        {
          ...post(`${path}?fieldManager=cli`, {
            apiVersion: 'ichor.maesh.dev/v1alpha1',
            kind: 'TalosOperation',
            metadata: { name: 'a', annotations: { x: '1' } },
            spec: { clusterRef: { name: 'c' }, kind: 'reboot', reboot: {}, acknowledge: ['api-outage'] },
          }),
        },
        managed,
      )
      await api.step(
        'retry',
        patch(MERGE, `${path}/a?fieldManager=a-person`, { metadata: { annotations: { 'ichor.maesh.dev/retry': 'true' } } }),
        managed,
      )
      await api.step('by agent', { ...patch(MERGE, `${path}/a`, { spec: { paused: true } }), userAgent: 'kubectl-ichor/1.2 (x)' }, managed)
      await api.step(
        'status',
        patch(MERGE, `${path}/a/status?fieldManager=controller`, {
          status: {
            phase: 'Running',
            conditions: [{ type: 'Ready', status: 'False', reason: 'R', message: 'M', lastTransitionTime: '2026-01-01T00:00:00Z' }],
          },
        }),
        managed,
      )
      await api.step(
        'retry taken away',
        patch(MERGE, `${path}/a?fieldManager=controller`, {
          metadata: { annotations: { 'ichor.maesh.dev/retry': null }, finalizers: ['ichor.maesh.dev/open-machine'] },
        }),
        managed,
      )
      await api.step(
        'retry again, by another',
        patch(MERGE, `${path}/a?fieldManager=b-person`, { metadata: { annotations: { 'ichor.maesh.dev/retry': 'true', x: '2' } } }),
        managed,
      )
    },
  },
]
