import { resources } from './resources.ts'
import type { Api, Scenario } from './scenario.ts'

const post = (path: string, body: unknown) => ({ method: 'POST', path, body })
const patch = (path: string, body: unknown) => ({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' })
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
/** Names and cells; the sentences that describe the columns of built-in types are our own. */
const columns = (body: any) => ({
  kind: body.kind,
  columns: body.columnDefinitions.map((column: any) => [column.name, column.type, column.format, column.priority]),
  rows: body.rows.map((row: any) => row.cells),
})
const BUILT_IN = ['nodes', 'pods', 'namespaces', 'events', 'secrets', 'configmaps', 'serviceaccounts', 'services', 'persistentvolumes']
const GROUPS = [
  ['coordination.k8s.io', 'leases'],
  ['apps', 'deployments'],
  ['apps', 'daemonsets'],
  ['apps', 'replicasets'],
  ['policy', 'poddisruptionbudgets'],
  ['storage.k8s.io', 'volumeattachments'],
  ['events.k8s.io', 'events'],
] as const
const SERVED: Record<string, readonly string[]> = {
  v1: [
    ...BUILT_IN.filter(name => name !== 'pods'),
    'pods',
    'pods/eviction',
    'pods/status',
    'nodes/status',
    'namespaces/status',
    'services/status',
    'persistentvolumes/status',
  ],
}

const condition = (type: string, status: string) => ({
  type,
  status,
  reason: 'R',
  message: 'M',
  lastTransitionTime: '2026-01-01T00:00:00Z',
})

const makeNode = async (api: Api, name: string): Promise<void> => {
  await api.quiet(post('/api/v1/nodes', { metadata: { name, labels: { 'node-role.kubernetes.io/control-plane': '' } } }))
  await api.quiet(patch(`/api/v1/nodes/${name}`, { spec: { unschedulable: true } }))
  await api.quiet(
    patch(`/api/v1/nodes/${name}/status`, {
      status: {
        conditions: [condition('Ready', 'True')],
        addresses: [
          { type: 'InternalIP', address: '10.0.0.1' },
          { type: 'Hostname', address: name },
        ],
        nodeInfo: {
          kubeletVersion: 'v1.35.0',
          osImage: 'Talos (v1.13.5)',
          kernelVersion: '6.18.0-talos',
          containerRuntimeVersion: 'containerd://2.1.4',
          machineID: '',
          systemUUID: '',
          bootID: 'b',
          kubeProxyVersion: '',
          operatingSystem: 'linux',
          architecture: 'amd64',
        },
      },
    }),
  )
}

const makePod = async (api: Api, name: string, labels: object, status: object): Promise<void> => {
  const pods = `/api/v1/namespaces/${api.namespace}/pods`
  await api.quiet(
    post(pods, {
      metadata: { name, labels },
      spec: {
        nodeName: 'n',
        containers: [
          { name: 'c', image: 'i' },
          { name: 'd', image: 'i' },
        ],
      },
    }),
  )
  await api.quiet(patch(`${pods}/${name}/status`, { status }))
}

const container = (name: string, ready: boolean, state: object, restartCount = 0) => ({
  name,
  ready,
  state,
  restartCount,
  image: 'i',
  imageID: '',
})
const running = { running: { startedAt: '2026-01-01T00:00:00Z' } }

export const servingCases: readonly Scenario[] = [
  {
    name: 'discovery',
    run: async api => {
      await api.step('version', { path: '/version' }, body => [body.major, body.minor, body.gitVersion])
      await api.step('/api', { path: '/api' }, body => [body.kind, body.versions])
      await api.step('core', { path: '/api/v1' }, body =>
        body.resources
          .filter((each: any) => SERVED['v1']?.includes(each.name))
          .map(({ storageVersionHash: _hash, ...rest }: any) => rest)
          .toSorted((a: any, b: any) => (a.name < b.name ? -1 : 1)),
      )
      for (const [group, name] of GROUPS) {
        await api.step(group, { path: `/apis/${group}` })
        await api.step(`${group} ${name}`, { path: `/apis/${group}/v1` }, body => ({
          ...body,
          resources: body.resources
            .filter((each: any) => each.name.split('/')[0] === name && !each.name.endsWith('/scale'))
            .map(({ storageVersionHash: _hash, ...rest }: any) => rest),
        }))
      }
      await api.step('our group', { path: '/apis/ichor.maesh.dev' })
      await api.step('our resources', { path: '/apis/ichor.maesh.dev/v1alpha1' }, body => ({
        ...body,
        resources: body.resources
          .map(({ storageVersionHash: _hash, ...rest }: any) => rest)
          .toSorted((a: any, b: any) => (a.name < b.name ? -1 : 1)),
      }))
      const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
      await api.step('aggregated', { path: '/apis', accept }, body => ({
        ...body,
        items: body.items
          .filter((each: any) => ['ichor.maesh.dev', 'policy', 'coordination.k8s.io'].includes(each.metadata.name))
          .toSorted((a: any, b: any) => (a.metadata.name < b.metadata.name ? -1 : 1))
          .map((each: any) => ({ ...each, metadata: { name: each.metadata.name } })),
      }))
      for (const path of ['/healthz', '/livez', '/readyz']) await api.step(path, { path })
      for (const path of [
        '/nothing',
        '/apis/nothing',
        '/apis/nothing/v1',
        '/api/v2',
        '/api/v1/nothing',
        '/apis/apps/v1/nothing',
        '/apis/ichor.maesh.dev/v1alpha1/nothing',
        '/apis/ichor.maesh.dev/v1/talosoperations',
        '/apis/ichor.maesh.dev/v1/namespaces/x/talosoperations',
      ]) {
        await api.step(path, { path })
      }
      await api.step('post without namespace', post('/api/v1/configmaps', { metadata: { name: 'a' } }))
      await api.step('namespaced, of a cluster-wide one', { path: `/api/v1/namespaces/${api.namespace}/nodes` })
    },
    apart: [{ field: 'body.paths', why: 'The root lists what a server has; kubesim has less.' }],
  },
  {
    name: 'access',
    run: async api => {
      const configMaps = `/api/v1/namespaces/${api.namespace}/configmaps`
      const operations = `/apis/ichor.maesh.dev/v1alpha1/namespaces/${api.namespace}/talosoperations`
      const token = api.server.tokens.viewer
      await api.step('wrong token', { path: configMaps, token: 'nonsense' })
      await api.step('reads', { path: operations, token }, body => body.kind)
      await api.step('creates', { ...post(operations, { metadata: { name: 'a' } }), token })
      await api.step('changes', { ...patch(`${operations}/a`, {}), token })
      await api.step('changes status', { ...patch(`${operations}/a/status`, {}), token })
      await api.step('deletes', { method: 'DELETE', path: `${operations}/a`, token })
      await api.step('deletes all', { method: 'DELETE', path: operations, token })
      await api.step('evicts', { ...post(`/api/v1/namespaces/${api.namespace}/pods/p/eviction`, {}), token })
      await api.step('makes a namespace', { ...post('/api/v1/namespaces', { metadata: { name: 'x' } }), token })
      const review = (verb: string, resource: string, group = 'ichor.maesh.dev') =>
        post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          spec: { resourceAttributes: { namespace: api.namespace, verb, group, resource } },
        })
      const answer = (body: any) => [body.kind, body.spec, body.status.allowed]
      await api.step('may read?', { ...review('list', 'talosoperations'), token }, answer)
      await api.step('may create?', { ...review('create', 'talosoperations'), token }, answer)
      await api.step('may an admin?', review('override', 'talosoperations'), answer)
    },
  },
  {
    name: 'tables',
    run: async api => {
      const own = `?fieldSelector=metadata.namespace%3D${api.namespace}`
      const in_ = (group: string, version: string, name: string) =>
        `${group === '' ? '/api' : `/apis/${group}`}/${version}/namespaces/${api.namespace}/${name}`
      await makeNode(api, api.namespace)
      await api.step('nodes', { path: `/api/v1/nodes?fieldSelector=metadata.name%3D${api.namespace}`, accept: table }, columns)
      await makePod(
        api,
        'runs',
        { app: 'a' },
        {
          phase: 'Running',
          podIP: '10.1.1.1',
          podIPs: [{ ip: '10.1.1.1' }],
          conditions: [condition('Ready', 'True')],
          containerStatuses: [container('c', true, running), container('d', true, running)],
        },
      )
      await makePod(
        api,
        'crashes',
        { app: 'a' },
        {
          phase: 'Running',
          containerStatuses: [container('c', true, running), container('d', false, { waiting: { reason: 'CrashLoopBackOff' } }, 4)],
        },
      )
      await makePod(
        api,
        'ended',
        {},
        {
          phase: 'Succeeded',
          containerStatuses: [
            container('c', false, { terminated: { exitCode: 0, reason: 'Completed' } }),
            container('d', false, { terminated: { exitCode: 0, reason: 'Completed' } }),
          ],
        },
      )
      await makePod(
        api,
        'failed',
        {},
        {
          phase: 'Failed',
          containerStatuses: [
            container('c', false, { terminated: { exitCode: 3 } }),
            container('d', false, { terminated: { exitCode: 1, signal: 9 } }),
          ],
        },
      )
      await makePod(api, 'leaves', {}, { phase: 'Running' })
      await api.quiet({ method: 'DELETE', path: `${in_('', 'v1', 'pods')}/leaves` })
      await api.step('pods', { path: `${in_('', 'v1', 'pods')}`, accept: table }, columns)
      await api.quiet(post(in_('coordination.k8s.io', 'v1', 'leases'), { metadata: { name: 'l' }, spec: { holderIdentity: 'me' } }))
      await api.quiet(post(in_('', 'v1', 'secrets'), { metadata: { name: 's' }, stringData: { a: '1', b: '2' } }))
      await api.quiet(post(in_('', 'v1', 'configmaps'), { metadata: { name: 'c' }, data: { a: '1' } }))
      await api.quiet(
        post(in_('', 'v1', 'events'), {
          metadata: { name: 'e' },
          involvedObject: { kind: 'Pod', name: 'p', namespace: api.namespace },
          reason: 'R',
          message: 'M',
          type: 'Normal',
          source: { component: 'c' },
          count: 2,
        }),
      )
      await api.quiet(
        post(in_('policy', 'v1', 'poddisruptionbudgets'), {
          metadata: { name: 'b' },
          spec: { minAvailable: 1, selector: { matchLabels: { app: 'a' } } },
        }),
      )
      for (const name of ['secrets', 'configmaps', 'events', 'serviceaccounts', 'services'])
        await api.step(name, { path: in_('', 'v1', name), accept: table }, columns)
      for (const [group, name] of GROUPS)
        await api.step(
          `${group} ${name}`,
          { path: name === 'volumeattachments' ? `/apis/${group}/v1/${name}` : in_(group, 'v1', name), accept: table },
          columns,
        )
      await api.quiet(
        post('/api/v1/persistentvolumes', {
          metadata: { name: 'in-a-table' },
          spec: {
            accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
            capacity: { storage: '1Gi' },
            csi: { driver: 'd', volumeHandle: 'v' },
            claimRef: { namespace: 'somewhere', name: 'data' },
            persistentVolumeReclaimPolicy: 'Delete',
            storageClassName: 'fast',
            volumeMode: 'Filesystem',
          },
        }),
      )
      await api.quiet(patch('/api/v1/persistentvolumes/in-a-table/status', { status: { phase: 'Bound' } }))
      await api.step('volume', { path: '/api/v1/persistentvolumes/in-a-table', accept: table }, columns)
      await api.quiet({ method: 'DELETE', path: '/api/v1/persistentvolumes/in-a-table' })
      await api.step('namespace', { path: `/api/v1/namespaces/${api.namespace}`, accept: table }, columns)
      await api.step(
        'definitions',
        { path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/talosoperations.ichor.maesh.dev', accept: table },
        columns,
      )
      await api.step(
        'with the whole object',
        { path: `${in_('', 'v1', 'configmaps')}/c?includeObject=Object`, accept: table },
        body => body.rows[0].object,
      )
      await api.step('with metadata', { path: `${in_('', 'v1', 'configmaps')}/c`, accept: table }, body => [
        body.metadata,
        body.rows[0].object,
      ])
      await api.step('with nothing', { path: `${in_('', 'v1', 'configmaps')}/c?includeObject=None`, accept: table }, body => body.rows[0])
      await api.step('an error is no table', { path: `${in_('', 'v1', 'configmaps')}/none`, accept: table })
      await api.step('nothing', { path: `/api/v1/pods${own}x`, accept: table }, body => body.rows)
    },
  },
  {
    name: 'tables of our resources',
    run: async api => {
      const path = (plural: string) => `/apis/ichor.maesh.dev/v1alpha1/namespaces/${api.namespace}/${plural}`
      await api.quiet(
        post(path('talosoperations'), {
          apiVersion: 'ichor.maesh.dev/v1alpha1',
          kind: 'TalosOperation',
          metadata: { name: 'a' },
          spec: { clusterRef: { name: 'c' }, kind: 'reboot', reboot: {} },
        }),
      )
      await api.quiet(
        post(path('talosclusters'), {
          apiVersion: 'ichor.maesh.dev/v1alpha1',
          kind: 'TalosCluster',
          metadata: { name: 'a' },
          spec: { talosconfigSecretRef: { name: 's' } },
        }),
      )
      await api.quiet(
        post(path('talosmachines'), {
          apiVersion: 'ichor.maesh.dev/v1alpha1',
          kind: 'TalosMachine',
          metadata: { name: 'a' },
          spec: { clusterRef: { name: 'c' }, role: 'worker', address: '10.0.0.1' },
        }),
      )
      await api.quiet(
        post(path('etcdsnapshots'), {
          apiVersion: 'ichor.maesh.dev/v1alpha1',
          kind: 'EtcdSnapshot',
          metadata: { name: 'a' },
          spec: { clusterRef: { name: 'c' }, location: 's3://b/k' },
        }),
      )
      const whole = (body: any) => ({ ...columns(body), columns: body.columnDefinitions.slice(1) })
      for (const { plural } of resources) await api.step(`${plural}, new`, { path: path(plural), accept: table }, whole)
      await api.quiet(
        patch(`${path('talosoperations')}/a/status`, {
          status: { phase: 'Running', message: 'It runs.', progress: { done: 1, skipped: 0, total: 3, summary: '1/3' } },
        }),
      )
      await api.quiet(
        patch(`${path('talosclusters')}/a/status`, { status: { conditions: [condition('Other', 'False'), condition('Ready', 'True')] } }),
      )
      await api.quiet(patch(`${path('etcdsnapshots')}/a/status`, { status: { size: 12345, takenAt: '2020-01-01T00:00:00Z' } }))
      for (const { plural } of resources) await api.step(plural, { path: path(plural), accept: table }, whole)
      const watching = await api.watch({ path: `${path('talosoperations')}?watch=true&resourceVersion=0`, accept: table })
      await watching.events(1)
      await api.quiet(patch(`${path('talosoperations')}/a`, { spec: { paused: true } }))
      const events = (await watching.events(2)).slice(0, 2)
      watching.stop()
      api.record('watch', {
        events: events.map(({ type, object }) => ({
          type,
          kind: object.kind,
          columns: object.columnDefinitions?.map((column: any) => column.name),
          rows: object.rows.map((row: any) => [row.cells, row.object.kind]),
        })),
      })
    },
  },
  {
    name: 'eviction',
    run: async api => {
      const pods = `/api/v1/namespaces/${api.namespace}/pods`
      const budgets = `/apis/policy/v1/namespaces/${api.namespace}/poddisruptionbudgets`
      const evict = (name: string, more: object = {}) =>
        post(`${pods}/${name}/eviction`, {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          metadata: { name, namespace: api.namespace },
          ...more,
        })
      const up = { phase: 'Running', conditions: [condition('Ready', 'True')] }
      for (const name of ['a', 'b']) await makePod(api, name, { app: 'a' }, up)
      await makePod(api, 'free', {}, up)
      await makePod(api, 'pending', { app: 'a' }, { phase: 'Pending' })
      await api.step('no such pod', evict('none'))
      await api.step(
        'other name',
        post(`${pods}/a/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'b', namespace: api.namespace } }),
      )
      await api.step('without a budget', evict('free'))
      await api.step('it leaves', { path: `${pods}/free` }, body => [
        body.metadata.deletionGracePeriodSeconds,
        body.metadata.deletionTimestamp !== undefined,
      ])
      const budget = (
        await api.quiet(post(budgets, { metadata: { name: 'pdb' }, spec: { minAvailable: 1, selector: { matchLabels: { app: 'a' } } } }))
      ).body
      // On the real server somebody else computes this; both are told.
      const status = (disruptionsAllowed: number) => ({
        observedGeneration: budget.metadata.generation,
        disruptionsAllowed,
        currentHealthy: 2,
        desiredHealthy: disruptionsAllowed === 0 ? 2 : 1,
        expectedPods: 2,
      })
      await api.quiet(patch(`${budgets}/pdb/status`, { status: status(0) }))
      await api.step('held by the budget', evict('a'))
      await api.step('a pending pod is not held', evict('pending'))
      await api.quiet(patch(`${budgets}/pdb/status`, { status: status(1) }))
      await api.step('dry run', evict('a', { deleteOptions: { dryRun: ['All'] } }))
      await api.step('allowed', evict('a', { deleteOptions: { gracePeriodSeconds: 7 } }))
      await api.step('it leaves too', { path: `${pods}/a` }, body => [body.metadata.deletionGracePeriodSeconds])
      await api.step('the budget is spent', { path: `${budgets}/pdb` }, body => [
        body.status.disruptionsAllowed,
        Object.keys(body.status.disruptedPods),
      ])
      await api.step('held now', evict('b'))
      await api.quiet(post(budgets, { metadata: { name: 'second' }, spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'a' } } } }))
      await api.step('two budgets', evict('b'))
      await api.step('wrong uid', evict('b', { deleteOptions: { preconditions: { uid: '11111111-2222-4333-8444-555555555555' } } }))
    },
  },
  {
    name: 'a new definition',
    run: async api => {
      const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
      const schema = {
        type: 'object',
        properties: {
          spec: {
            type: 'object',
            properties: { size: { type: 'integer', default: 3 } },
            'x-kubernetes-validations': [{ rule: 'self.size < 10', message: 'too big' }],
          },
        },
      }
      const definition = {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: 'widgets.conformance.example.com' },
        spec: {
          group: 'conformance.example.com',
          scope: 'Cluster',
          names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
          versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
        },
      }
      await api.step('create', post(crds, definition), body => [body.kind, body.spec])
      await api.until({ path: `${crds}/widgets.conformance.example.com` }, reply =>
        (reply.body.status?.conditions ?? []).some((each: any) => each.type === 'Established' && each.status === 'True'),
      )
      await api.until({ path: '/apis/conformance.example.com/v1/widgets' }, reply => reply.status === 200)
      await api.step('established', { path: `${crds}/widgets.conformance.example.com` }, body => body.status)
      await api.step(
        'use',
        post('/apis/conformance.example.com/v1/widgets', {
          apiVersion: 'conformance.example.com/v1',
          kind: 'Widget',
          metadata: { name: 'w' },
          spec: {},
        }),
      )
      await api.step(
        'rule',
        post('/apis/conformance.example.com/v1/widgets', {
          apiVersion: 'conformance.example.com/v1',
          kind: 'Widget',
          metadata: { name: 'x' },
          spec: { size: 11 },
        }),
      )
      await api.step('table', { path: '/apis/conformance.example.com/v1/widgets', accept: table }, columns)
      await api.step('no status', { path: '/apis/conformance.example.com/v1/widgets/w/status' })
      await api.step('ours', { path: `${crds}/talosoperations.ichor.maesh.dev` }, body => [body.status, body.spec.names, body.spec.scope])
    },
  },
]
