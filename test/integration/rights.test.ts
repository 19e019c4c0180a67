// Who may do what, asked of a real API server: every cell of the table in docs/security.md, by every way in. Roles and policies are those that are
// installed; nobody here is asked what they think that they would do.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { kubeClient } from '../../src/adapters/kube/client.ts'
import { loadKubeConfig } from '../../src/adapters/kube/kubeconfig.ts'
import { type InstalledPolicy, policyGaps } from '../../src/adapters/kube/policies.ts'
import { openTransport } from '../../src/adapters/kube/transport.ts'
import { ANNOTATION, API_VERSION, CONTROLLER, GROUP, leaseName, operationHolder } from '../../src/api/names.ts'
import { startRightOf, startRights } from '../../src/api/start-rights.ts'
import { toCrd } from '../../src/api/structural.ts'
import type { OperationSpec } from '../../src/api/talos-operation.ts'
import { POLICY, policies } from '../../src/install/policies.ts'
import { controllerRoles, peoplesRoles, userOf as userOfAccount } from '../../src/install/roles.ts'
import { DEEDS, type DeedName, IDENTITIES, type IdentityName, mayDo, type Way } from '../../src/install/who-may.ts'
import { kinds } from '../../src/kinds/registry.ts'
import { resources } from '../../src/app/resources.ts'
import { type KubeAnswer, type KubeRequest, type RealKubeApiserver, startKubeApiserver } from '../real/kube-apiserver.ts'
import { realClock } from '../kube/clocks.ts'
import { realParts } from '../real/parts.ts'

const servers = await realParts('etcd', 'kube-apiserver')
const NAMESPACE = 'clusters'
const controller = { name: 'ichor-controller', namespace: 'ichor-system' }
const CONTROLLER_USER = userOfAccount(controller)
const userOf = (identity: IdentityName): string =>
  identity.startsWith('GitOps')
    ? `system:serviceaccount:flux-system:${identity.endsWith('admin') ? 'admins' : 'operators'}`
    : `a-${identity}`
const ROLE_OF: Readonly<Record<IdentityName, string | undefined>> = {
  nobody: undefined,
  'ichor-viewer': 'ichor-viewer',
  'ichor-operator': 'ichor-operator',
  'ichor-admin': 'ichor-admin',
  view: 'view',
  edit: 'edit',
  admin: 'admin',
  'GitOps, with ichor-operator': 'ichor-operator',
  'GitOps, with ichor-admin': 'ichor-admin',
  'cluster-admin': 'cluster-admin',
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const ichor = (plural: string, name = '', subresource = ''): string =>
  [`/apis/${API_VERSION}/namespaces/${NAMESPACE}/${plural}`, name, subresource].filter(Boolean).join('/')

/** One spec of each kind, and of each action of a kind that has some; the blocks are the least that the API server takes. */
const specs: readonly OperationSpec[] = [
  { kind: 'talos', talos: { version: 'v1.13.9' } },
  { kind: 'kubernetes', kubernetes: { version: 'v1.35.4' } },
  { kind: 'config', config: { patches: [{ inline: 'machine: {sysctls: {vm.swappiness: "1"}}' }] } },
  { kind: 'node', node: { machine: 'wk-1', action: 'reboot' } },
  { kind: 'node', node: { machine: 'wk-1', action: 'shutdown' } },
  { kind: 'node', node: { machine: 'wk-1', action: 'restart-service', service: 'kubelet' } },
  { kind: 'node', node: { machine: 'cp-1', action: 'etcd-defrag' } },
  { kind: 'node', node: { machine: 'cp-1', action: 'forfeit-leadership' } },
  { kind: 'node', node: { machine: 'wk-1', action: 'reset' } },
]
  .filter(spec => kinds.some(kind => kind.name === spec.kind))
  .map(spec => ({ clusterRef: { name: 'home' }, ...spec }) as unknown as OperationSpec)
const isDangerous = (spec: OperationSpec): boolean => startRightOf(kinds, spec) !== undefined
const harmless = specs.filter(spec => !isDangerous(spec))
const dangerous = specs.filter(isDangerous)

describe.skipIf('missing' in servers)(`who may do what${'missing' in servers ? ` (${servers.missing})` : ''}`, () => {
  let server: RealKubeApiserver
  let count = 0

  const must = async (request: KubeRequest): Promise<KubeAnswer['body']> => {
    const answer = await server.request(request)
    expect(answer.status, `${request.method ?? 'GET'} ${request.path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
    return answer.body
  }
  const write = (path: string, body: object) => must({ path: `${path}?fieldValidation=Strict`, method: 'POST', body })
  const PATHS: Readonly<Record<string, (namespace?: string) => string>> = {
    ClusterRole: () => `${RBAC}/clusterroles`,
    ClusterRoleBinding: () => `${RBAC}/clusterrolebindings`,
    Role: namespace => `${RBAC}/namespaces/${namespace}/roles`,
    RoleBinding: namespace => `${RBAC}/namespaces/${namespace}/rolebindings`,
    ServiceAccount: namespace => `/api/v1/namespaces/${namespace}/serviceaccounts`,
    ValidatingAdmissionPolicy: () => '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
    ValidatingAdmissionPolicyBinding: () => '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
  }
  const bind = (name: string, role: string, subject: object) =>
    write(role === 'cluster-admin' ? `${RBAC}/clusterrolebindings` : `${RBAC}/namespaces/${NAMESPACE}/rolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [subject],
    })
  /** What the controller manager, which does not run here, makes of the labels: all rules of the roles that say so. */
  const aggregate = async (name: string) => {
    const { items } = await must({ path: `${RBAC}/clusterroles?labelSelector=rbac.authorization.k8s.io/aggregate-to-${name}%3Dtrue` })
    const rules = (items as readonly { readonly rules: readonly object[] | null }[]).flatMap(role => role.rules ?? [])
    await must({
      path: `${RBAC}/clusterroles/${name}`,
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body: { rules },
    })
  }

  /** A policy and its binding hold a moment after they were written: they do when they refuse. */
  const policiesHold = () =>
    vi.waitFor(
      async () => {
        const name = `probe-${++count}`
        await write(ichor('talosoperations'), operation(name, harmless[0]!))
        const written = await server.request(changing('patch', name, { status: { phase: 'Running' } }, 'status'))
        expect(written.body).toMatchObject({ message: expect.stringContaining(POLICY.status) as string })
        const body = operation(`${name}-dangerous`, dangerous[0]!)
        const started = await server.request({ path: ichor('talosoperations'), method: 'POST', body, user: userOf('ichor-operator') })
        expect(started.body).toMatchObject({ message: expect.stringContaining(POLICY.operations) as string })
        const made = { metadata: { name: leaseName(name) }, spec: { holderIdentity: 'me' } }
        const taken = await server.request({ path: leases(), method: 'POST', body: made, user: userOf('edit') })
        expect(taken.body).toMatchObject({ message: expect.stringContaining(POLICY.leases) as string })
      },
      { timeout: 30_000, interval: 200 },
    )

  beforeAll(async () => {
    const users = [CONTROLLER_USER, ...IDENTITIES.map(({ name }) => userOf(name))]
    server = await startKubeApiserver({ users: Object.fromEntries(users.map(user => [user, []])) })
    for (const name of [NAMESPACE, controller.namespace]) await write('/api/v1/namespaces', { metadata: { name } })
    for (const definition of resources()) await write('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', toCrd(definition))
    const rights = startRights(kinds)
    const installed = new Set(
      (await must({ path: `${RBAC}/clusterroles` })).items.map((role: { metadata: { name: string } }) => role.metadata.name),
    )
    for (const object of [
      ...peoplesRoles(rights.map(right => right.subresource)).filter(role => !installed.has(role.metadata.name)),
      ...controllerRoles(controller, { allNamespaces: true }),
      ...policies(rights, CONTROLLER_USER),
    ])
      await write(PATHS[object.kind]!(object.metadata.namespace), object)
    // The most that is aggregated comes first: view is part of edit, and edit of admin.
    for (const name of ['view', 'edit', 'admin']) await aggregate(name)
    for (const { name } of IDENTITIES) {
      const [role, user] = [ROLE_OF[name], userOf(name)]
      if (role) await bind(user.replaceAll(':', '-'), role, { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user })
    }
    await policiesHold()
  }, 120_000)
  afterAll(() => server?.stop())

  const operation = (name: string, spec: object, annotations: Readonly<Record<string, string>> = {}) => ({
    apiVersion: API_VERSION,
    kind: 'TalosOperation',
    metadata: { name, annotations, labels: { cell: name } },
    spec,
  })
  /** The request that makes this change of an operation by this way. For `update`, `now` is the object as it is. */
  const changing = (
    way: Way,
    name: string,
    change: Change,
    subresource = '',
    now?: KubeAnswer['body'],
    plural = 'talosoperations',
  ): KubeRequest => {
    const path = ichor(plural, name, subresource)
    switch (way) {
      case 'patch':
        return { path, method: 'PATCH', contentType: 'application/merge-patch+json', body: change }
      case 'json patch':
        return { path, method: 'PATCH', contentType: 'application/json-patch+json', body: jsonPatchOf(change) }
      case 'apply':
        return {
          path: `${path}?fieldManager=somebody&force=true`,
          method: 'PATCH',
          contentType: 'application/apply-patch+yaml',
          body: { apiVersion: API_VERSION, kind: 'TalosOperation', ...change },
        }
      default: {
        const { metadata, spec, status } = now
        return {
          path,
          method: 'PUT',
          body: {
            ...now,
            metadata: { ...metadata, annotations: { ...metadata.annotations, ...change.metadata?.annotations } },
            spec: { ...spec, ...change.spec },
            status: { ...status, ...change.status },
          },
        }
      }
    }
  }
  type Change = {
    readonly metadata?: { readonly annotations: Readonly<Record<string, string>> }
    readonly spec?: object
    readonly status?: object
  }
  const jsonPatchOf = ({ metadata, spec = {}, status }: Change) => [
    ...Object.entries(metadata?.annotations ?? {}).map(([key, value]) => ({
      op: 'add',
      path: `/metadata/annotations/${key.replace('/', '~1')}`,
      value,
    })),
    ...Object.entries(spec).map(([key, value]) => ({ op: 'add', path: `/spec/${key}`, value })),
    ...(status ? [{ op: 'add', path: '/status', value: status }] : []),
  ]

  const machines = [{ name: 'wk-1', role: 'worker', phase: 'Pending' }]
  /** An operation as the deed finds it; where it has a phase, it has begun with its machines as well. */
  const existing = async (
    spec: object,
    { phase, annotations = {}, begun = true }: { phase?: string; annotations?: Readonly<Record<string, string>>; begun?: boolean } = {},
  ) => {
    const name = `op-${++count}`
    // An annotation is there, so that a JSON patch can add another.
    const created = await write(ichor('talosoperations'), operation(name, spec, { 'example.org/some': 'one', ...annotations }))
    if (phase === undefined) return { name, now: created }
    const now = await must({
      ...changing('update', name, { status: begun ? { phase, machines } : { phase } }, 'status', created),
      user: CONTROLLER_USER,
    })
    return { name, now }
  }

  type Cell = { readonly user: string; readonly way: Way; readonly spec: OperationSpec }
  const starting = ({ way }: Cell, spec: object, annotations?: Readonly<Record<string, string>>): KubeRequest => {
    const name = `op-${++count}`
    const body = operation(name, spec, annotations)
    return way === 'create'
      ? { path: ichor('talosoperations'), method: 'POST', body }
      : {
          path: `${ichor('talosoperations', name)}?fieldManager=somebody`,
          method: 'PATCH',
          contentType: 'application/apply-patch+yaml',
          body,
        }
  }
  const change = async ({ way }: Cell, found: Awaited<ReturnType<typeof existing>>, wanted: Change): Promise<KubeRequest> =>
    changing(way, found.name, wanted, '', found.now)
  const deleting = async ({ way, spec }: Cell, phase?: string, begun = true): Promise<KubeRequest> => {
    const { name } = await existing(spec, phase === undefined ? {} : { phase, begun })
    const path = way === 'delete' ? ichor('talosoperations', name) : `${ichor('talosoperations')}?labelSelector=cell%3D${name}`
    return { path, method: 'DELETE' }
  }
  const signed = (user: string) => ({ [ANNOTATION.overrideBy]: user })
  const retry = { metadata: { annotations: { [ANNOTATION.retry]: 'true' } } }

  const leases = (name = ''): string => `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases${name && `/${name}`}`
  /** A Lease that the controller, or another, has written; it may be there. */
  const lease = async (name: string, by = CONTROLLER_USER): Promise<KubeAnswer['body']> => {
    const there = await server.request({ path: leases(name) })
    if (there.status === 200) return there.body
    const body = { metadata: { name, labels: { cell: name } }, spec: { holderIdentity: operationHolder(NAMESPACE, 'other') } }
    return must({ path: leases(), method: 'POST', body, user: by })
  }
  const changingLease = (way: Way, found: KubeAnswer['body'], spec: object): KubeRequest =>
    way === 'update'
      ? { path: leases(found.metadata.name), method: 'PUT', body: { ...found, spec: { ...found.spec, ...spec } } }
      : { path: leases(found.metadata.name), method: 'PATCH', contentType: 'application/merge-patch+json', body: { spec } }

  type Asked = KubeRequest | readonly KubeRequest[]
  /** The requests of a deed; where there are several, all are to have the same end. */
  const requestsOf: Readonly<Record<DeedName, (cell: Cell) => Asked | Promise<Asked>>> = {
    'see operations, clusters, machines, the lock and Events': ({ way }) =>
      [
        ...['talosoperations', 'talosclusters', 'talosmachines', 'etcdsnapshots'].map(plural => ichor(plural)),
        `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`,
        `/api/v1/namespaces/${NAMESPACE}/events`,
      ].map(path =>
        way === 'watch'
          ? { path: `${path}?watch=true&timeoutSeconds=1` }
          : // What is not there is seen as well.
            { path: way === 'get' ? `${path}/home` : path },
      ),
    'start an operation': cell => starting(cell, cell.spec, { [ANNOTATION.requestedBy]: cell.user }),
    'start one that can take a cluster down': cell => starting(cell, cell.spec),
    'start it paused': cell => starting(cell, { ...cell.spec, paused: true }),
    'start with spec.override, signed': cell => starting(cell, { ...cell.spec, override: true }, signed(cell.user)),
    'start with spec.override, not signed': cell => starting(cell, { ...cell.spec, override: true }),
    "start with spec.override, in another's name": cell => starting(cell, { ...cell.spec, override: true }, signed('somebody-else')),
    'start with spec.ignoreWindows': cell => starting(cell, { ...cell.spec, ignoreWindows: true }),
    'start with a patch that lies in a Secret': cell => {
      const patches = [{ secretKeyRef: { name: 'talos', key: 'talosconfig' } }]
      return starting(cell, { clusterRef: { name: 'home' }, kind: 'config', config: { patches } })
    },
    "start in another's name (requested-by)": cell => starting(cell, cell.spec, { [ANNOTATION.requestedBy]: 'somebody-else' }),
    pause: async cell => change(cell, await existing(cell.spec), { spec: { paused: true } }),
    'pause one that can take a cluster down': async cell => change(cell, await existing(cell.spec), { spec: { paused: true } }),
    resume: async cell => change(cell, await existing({ ...cell.spec, paused: true }), { spec: { paused: false } }),
    'resume one that can take a cluster down': async cell =>
      change(cell, await existing({ ...cell.spec, paused: true }), { spec: { paused: false } }),
    retry: async cell => change(cell, await existing(cell.spec, { phase: 'Paused' }), retry),
    'retry one that can take a cluster down': async cell => change(cell, await existing(cell.spec, { phase: 'Paused' }), retry),
    cancel: async cell => change(cell, await existing(cell.spec), { spec: { cancelled: true } }),
    'turn spec.override on, signed': async cell =>
      change(cell, await existing(cell.spec), { metadata: { annotations: signed(cell.user) }, spec: { override: true } }),
    'turn spec.override on, not signed': async cell => change(cell, await existing(cell.spec), { spec: { override: true } }),
    'change who asked (requested-by)': async cell =>
      change(cell, await existing(cell.spec, { annotations: { [ANNOTATION.requestedBy]: 'admin' } }), {
        metadata: { annotations: { [ANNOTATION.requestedBy]: cell.user } },
      }),
    'change who overrode (override-by)': async cell =>
      change(cell, await existing({ ...cell.spec, override: true }, { annotations: signed('admin') }), {
        metadata: { annotations: signed(cell.user) },
      }),
    'change a frozen field': async cell => change(cell, await existing(cell.spec), { spec: { minReadySeconds: 7 } }),
    'write the status of an operation': async ({ way, spec }) => {
      const { name, now } = await existing(spec)
      return changing(way, name, { status: { phase: 'Completed' } }, 'status', now)
    },
    'write the status of a cluster or a machine': async ({ way }) =>
      Promise.all(
        ['talosclusters', 'talosmachines'].map(async plural =>
          changing(way, 'home', { status: {} }, 'status', await must({ path: ichor(plural, 'home') }), plural),
        ),
      ),
    delete: cell => deleting(cell, 'Running'),
    'delete one that can take a cluster down, before it began': async cell => [
      await deleting(cell),
      // Paused by a person, or refused by the checks.
      await deleting(cell, 'Paused', false),
    ],
    'delete one that can take a cluster down, while it runs': async cell => [
      await deleting(cell, 'Running'),
      await deleting(cell, 'Paused'),
    ],
    'hold a machine back': () => ({
      path: ichor('talosmachines', 'home'),
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body: { metadata: { annotations: { [ANNOTATION.upgradeHold]: 'true' } } },
    }),
    'add, change or remove a TalosCluster': async ({ way }) => {
      const name = `cluster-${++count}`
      const body = { apiVersion: API_VERSION, kind: 'TalosCluster', metadata: { name }, spec: { talosconfigSecretRef: { name: 'talos' } } }
      if (way === 'create') return { path: ichor('talosclusters'), method: 'POST', body }
      await write(ichor('talosclusters'), body)
      return way === 'delete'
        ? { path: ichor('talosclusters', name), method: 'DELETE' }
        : changing('patch', name, { spec: { talosconfigSecretRef: { name: 'other' } } }, '', undefined, 'talosclusters')
    },
    'release the cluster lock by force': async ({ way }) =>
      changingLease(way, await lease(leaseName(`cluster-${++count}`)), { holderIdentity: 'somebody', leaseTransitions: 1 }),
    'give the cluster lock to an operation': async ({ way }) =>
      changingLease(way, await lease(leaseName(`cluster-${++count}`)), { holderIdentity: operationHolder(NAMESPACE, 'mine') }),
    'delete the cluster lock': async ({ way }) => {
      const { name } = (await lease(leaseName(`cluster-${++count}`))).metadata
      return { path: way === 'delete' ? leases(name) : `${leases()}?labelSelector=cell%3D${name}`, method: 'DELETE' }
    },
    "change or delete the leading controller's Lease": async ({ way }) => {
      const found = await lease(CONTROLLER)
      return way === 'delete' ? { path: leases(CONTROLLER), method: 'DELETE' } : changingLease(way, found, { holderIdentity: 'me' })
    },
    'delete a Lease that is not of Ichor': async () => ({
      path: leases((await lease(`other-${++count}`, 'admin')).metadata.name),
      method: 'DELETE',
    }),
    'read Secrets': ({ way }) => ({ path: `/api/v1/namespaces/${NAMESPACE}/secrets${way === 'get' ? '/talos' : ''}` }),
    'act in the name of ichor-admin by impersonation': cell => ({ ...starting(cell, cell.spec), as: { user: userOf('ichor-admin') } }),
  }

  beforeAll(async () => {
    if (!server) return
    await write(ichor('talosclusters'), {
      ...{ apiVersion: API_VERSION, kind: 'TalosCluster', metadata: { name: 'home' } },
      spec: { talosconfigSecretRef: { name: 'talos' } },
    })
    await write(ichor('talosmachines'), {
      ...{ apiVersion: API_VERSION, kind: 'TalosMachine', metadata: { name: 'home' } },
      spec: { clusterRef: { name: 'home' }, address: '10.5.0.2', role: 'worker' },
    })
    for (const plural of ['talosclusters', 'talosmachines'])
      await must({
        ...changing('update', 'home', { status: {} }, 'status', await must({ path: ichor(plural, 'home') }), plural),
        user: CONTROLLER_USER,
      })
    await write(`/api/v1/namespaces/${NAMESPACE}/secrets`, { metadata: { name: 'talos' }, stringData: { talosconfig: 'x' } })
  })

  it('has a spec for each kind and each action that the table speaks of', () => {
    const known = kinds.flatMap(kind => (kind.actions ? kind.actions.map(action => `${kind.name} ${action.name}`) : [kind.name]))
    expect(
      specs.map(spec => [spec.kind, (spec['node'] as { action?: string } | undefined)?.action].filter(Boolean).join(' ')).toSorted(),
    ).toEqual(known.toSorted())
  })

  describe.each(DEEDS.map(deed => [deed.name, deed] as const))('%s', (_, deed) => {
    const samples =
      'on' in deed
        ? deed.on === 'dangerous'
          ? dangerous
          : deed.ways.includes('create' as never)
            ? harmless
            : harmless.slice(0, 1)
        : harmless.slice(0, 1)
    it.each(deed.ways.map(way => [way]))('by %s', async way => {
      const got: Record<string, string> = {}
      const expected: Record<string, string> = {}
      for (const identity of IDENTITIES) {
        const user = userOf(identity.name)
        const answers: string[] = []
        for (const spec of samples) {
          const requests = await requestsOf[deed.name]({ user, way, spec })
          const ask = async (request: KubeRequest): Promise<string> => {
            const { status, body } = await server.request({ ...request, user })
            return verdictOf(status, body, request.path)
          }
          answers.push(...(await Promise.all((Array.isArray(requests) ? requests : [requests]).map(ask))))
        }
        got[identity.name] = [...new Set(answers)].join(', ')
        expected[identity.name] = mayDo(identity, deed) ? 'yes' : 'no'
      }
      expect(got).toEqual(expected)
    })
  })

  it('the controller itself is let through, and only it', async () => {
    const [spec] = dangerous
    const { name } = await existing(spec!, { phase: 'Running' })
    const user = CONTROLLER_USER
    await must({ ...changing('patch', name, { metadata: { annotations: { [ANNOTATION.retry]: 'true' } } }), user })
    await must({ path: ichor('talosoperations', name), method: 'DELETE', user })
    const other = CONTROLLER_USER.replace(controller.namespace, NAMESPACE)
    const again = await existing(spec!)
    const answer = await server.request({
      ...changing('update', again.name, { status: { phase: 'Running' } }, 'status', again.now),
      as: { user: other, groups: ['system:masters'] },
    })
    expect(answer.status).toBe(403)
  })

  it('the controller sees whether the policies hold, and that nobody narrowed them', async () => {
    const config = await loadKubeConfig({ kubeconfigPath: server.kubeconfigPath(CONTROLLER_USER) })
    if (!config.ok) throw new Error(config.fault.message)
    const transport = openTransport({ config: config.value, clock: realClock, userAgent: 'ichor/test' })
    try {
      const gaps = () => policyGaps(kubeClient(transport), user => policies(startRights(kinds), user) as readonly InstalledPolicy[])
      expect(await gaps()).toEqual({ ok: true, value: [] })
      const path = `${PATHS['ValidatingAdmissionPolicyBinding']!()}/ichor-operations`
      const narrow = (matchResources: object | null) =>
        must({ path, method: 'PATCH', contentType: 'application/merge-patch+json', body: { spec: { matchResources } } })
      await narrow({ namespaceSelector: { matchLabels: { guarded: 'true' } } })
      const wrong = `ValidatingAdmissionPolicyBinding ichor-operations is not the one of this version for the controller ${CONTROLLER_USER}`
      expect(await gaps()).toEqual({ ok: true, value: [wrong] })
      await narrow(null)
      expect(await gaps()).toEqual({ ok: true, value: [] })
      const { apiVersion, kind, metadata, spec } = await must({ path })
      await must({ path, method: 'DELETE' })
      expect(await gaps()).toEqual({ ok: true, value: ['ValidatingAdmissionPolicyBinding ichor-operations is not there'] })
      await write(PATHS['ValidatingAdmissionPolicyBinding']!(), { apiVersion, kind, metadata: { name: metadata.name }, spec })
    } finally {
      transport.close()
      await policiesHold()
    }
  })

  it('what is deleted with its namespace is let go', async () => {
    for (const cleaner of [
      'system:serviceaccount:kube-system:namespace-controller',
      'system:serviceaccount:kube-system:generic-garbage-collector',
      'system:kube-controller-manager',
    ]) {
      const { name } = await existing(dangerous[0]!, { phase: 'Running' })
      // They may delete anything; what is asked is whether the policy lets them.
      await must({ path: ichor('talosoperations', name), method: 'DELETE', as: { user: cleaner, groups: ['system:masters'] } })
    }
  })

  it('the locks of a namespace go with it, and the Lease of the leader', async () => {
    for (const cleaner of [
      'system:serviceaccount:kube-system:namespace-controller',
      'system:serviceaccount:kube-system:generic-garbage-collector',
    ])
      for (const name of [leaseName('gone'), CONTROLLER]) {
        await lease(name)
        await must({ path: leases(name), method: 'DELETE', as: { user: cleaner, groups: ['system:masters'] } })
      }
  })

  it('a lock is made by nobody else, and the right to release one may be for one cluster', async () => {
    const [user, cluster] = [userOf('edit'), 'only']
    const body = (name: string) => ({ metadata: { name }, spec: { holderIdentity: 'me' } })
    const made = await server.request({ path: leases(), method: 'POST', body: body(leaseName(cluster)), user })
    expect(made).toMatchObject({ status: 403 })
    expect(made.body.message).toContain(
      `${user} needs the verb unlock on talosclusters/${cluster} in namespace ${NAMESPACE} to change the lock of that cluster; the ClusterRole ichor-admin has it`,
    )
    await write(PATHS['Role']!(NAMESPACE), {
      metadata: { name: 'unlocks' },
      rules: [{ apiGroups: [GROUP], resources: ['talosclusters'], resourceNames: [cluster], verbs: ['unlock'] }],
    })
    await write(PATHS['RoleBinding']!(NAMESPACE), {
      metadata: { name: 'unlocks' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'unlocks' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    })
    await lease(leaseName(cluster))
    await lease(leaseName('another'))
    const release = (name: string) => server.request({ ...changingLease('patch', { metadata: { name } }, { holderIdentity: null }), user })
    await vi.waitFor(async () => expect((await release(leaseName(cluster))).status).toBe(200), { timeout: 10_000, interval: 100 })
    expect((await release(leaseName('another'))).status).toBe(403)
  })

  it('ichor lock release --force works for who has the right, and for nobody else', async () => {
    await lease(leaseName('home'))
    const release = (identity: IdentityName) =>
      promisify(execFile)(join(import.meta.dirname, '../../bin/ichor'), [
        ...['lock', 'release', 'home', '--force', '--confirm', 'home', '-n', NAMESPACE],
        ...['--kubeconfig', server.kubeconfigPath(userOf(identity))],
      ])
    await expect(release('edit')).rejects.toMatchObject({ stderr: expect.stringContaining('needs the verb unlock') as string })
    expect((await lease(leaseName('home'))).spec.holderIdentity).toBe(operationHolder(NAMESPACE, 'other'))
    expect((await release('ichor-admin')).stdout).toContain('the lock of cluster home is free')
    expect((await lease(leaseName('home'))).spec.holderIdentity).toBeUndefined()
  })

  it('a refusal says who needs what, and where it is to be had', async () => {
    const user = userOf('ichor-operator')
    const said = async (request: KubeRequest): Promise<string> => (await server.request({ ...request, user })).body.message
    const create = (spec: object, annotations?: Readonly<Record<string, string>>) =>
      starting({ user, way: 'create', spec: harmless[0]! }, spec, annotations)
    expect(await said(create(dangerous[0]!))).toContain(
      `${user} needs the verb start on talosoperations/node-reset in namespace ${NAMESPACE} to start this operation; the ClusterRole ichor-admin has it`,
    )
    expect(await said(create({ ...harmless[0]!, override: true }, signed(user)))).toContain('needs the verb override on talosoperations')
    expect(await said(create(harmless[0]!, { [ANNOTATION.requestedBy]: 'me' }))).toContain(`to "${user}" or not at all`)
  })
})

const verdictOf = (status: number, body: any, path: string): string => {
  if (status < 300) return 'yes'
  // A name that is not there was looked up; an annotation in another's name is refused as invalid.
  if (status === 404 && path.endsWith('/home')) return 'yes'
  if (status === 403 || (status === 422 && /ValidatingAdmissionPolicy|cannot be changed after creation/.test(body.message))) return 'no'
  return `${status} ${body.message}`
}
