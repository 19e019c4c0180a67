import { GROUP } from '../api/names.ts'
import type { KubeObject, Place } from './object.ts'
import { object } from './object.ts'

/** One rule of a Role. */
export type Rule = {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
  readonly verbs: readonly string[]
}

const READ = ['get', 'list', 'watch']
const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection']
const TYPES = ['talosclusters', 'talosmachines', 'talosoperations', 'etcdsnapshots']
const LEASES = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] }

const own = (resources: readonly string[], verbs: readonly string[]): Rule => ({ apiGroups: [GROUP], resources, verbs })

/** Sees everything that Ichor has, the cluster lock and the Events among it, and nothing else. */
const viewer: readonly Rule[] = [
  own(TYPES, READ),
  { ...LEASES, verbs: READ },
  { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: READ },
]

/** Starts, pauses, cancels and deletes operations, but for those that need the verb `start`; holds machines back and orders them. */
const operator: readonly Rule[] = [own(['talosoperations'], WRITE), own(['talosmachines'], ['update', 'patch'])]

/** All that a person may do: also what can take a cluster down, and what goes past a refusal. */
const admin = (subresources: readonly string[]): readonly Rule[] => [
  own(['talosclusters', 'talosmachines', 'etcdsnapshots'], WRITE),
  own(
    subresources.map(subresource => `talosoperations/${subresource}`),
    ['start'],
  ),
  own(['talosoperations'], ['override']),
  // `ichor lock release --force`.
  own(['talosclusters'], ['unlock']),
  { ...LEASES, verbs: ['update', 'patch'] },
  // It leaves one, and who may empty a lock has to be able to.
  { apiGroups: [''], resources: ['events'], verbs: ['create'] },
]

const clusterRole = (name: string, rules: readonly Rule[], labels: Readonly<Record<string, string>> = {}): KubeObject =>
  object('rbac.authorization.k8s.io/v1', 'ClusterRole', { name, labels }, { rules })

const aggregatedTo = (...names: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map(name => [`rbac.authorization.k8s.io/aggregate-to-${name}`, 'true']))

/**
 * The roles of people. Who views, edits or administrates a namespace also views, or starts, its operations: the talosconfig lies in that namespace, and
 * whoever edits it can read that. The verbs `start` and `override` come with no other role: they are given by a binding to ichor-admin.
 */
export const peoplesRoles = (subresources: readonly string[]): readonly KubeObject[] => [
  clusterRole('ichor-viewer', viewer, aggregatedTo('view', 'edit', 'admin')),
  clusterRole('ichor-operator', [...viewer, ...operator], aggregatedTo('edit', 'admin')),
  clusterRole('ichor-admin', [...viewer, ...operator, ...admin(subresources)]),
]

/** What the controller does with its own resources, in the namespaces that it looks after. */
const atHome: readonly Rule[] = [
  own(['talosclusters', 'talosoperations', 'talosmachines'], READ),
  own(['talosoperations'], ['patch', 'delete']),
  own(['talosmachines'], ['create', 'patch']),
  own(['talosclusters/status', 'talosoperations/status', 'talosmachines/status'], ['update']),
  // Talosconfigs and kubeconfigs; and patches, which may lie in either.
  { apiGroups: [''], resources: ['secrets', 'configmaps'], verbs: ['get'] },
  { ...LEASES, verbs: [...READ, 'create', 'patch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
]

/** What it does in the cluster that it runs in, where that is one whose machines it works on. */
const inTheCluster: readonly Rule[] = [
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'delete'] },
  { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['list'] },
  { apiGroups: ['storage.k8s.io'], resources: ['volumeattachments'], verbs: ['list'] },
  // Whose volume it is that is attached to a Node.
  { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get'] },
  { apiGroups: ['apps'], resources: ['daemonsets', 'deployments'], verbs: ['get'] },
  // Of Cilium, in kube-system; there is no narrower way to name an object of one namespace in a role of the cluster.
  { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] },
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
    verbs: ['get'],
  },
  // By which each API server says that it is up, in kube-system.
  { ...LEASES, verbs: ['list'] },
  // Which deprecated APIs are still asked for.
  { nonResourceURLs: ['/metrics'], verbs: ['get'] },
]

/** Label of a ClusterRole whose rules the controller gets as well: what the health gates of a TalosCluster look at. */
export const AGGREGATE_TO_CONTROLLER = `${GROUP}/aggregate-to-controller`

const RBAC = 'rbac.authorization.k8s.io'

const binding = (kind: 'Role' | 'ClusterRole', name: string, place: Place, controller: Controller): KubeObject =>
  object(
    `${RBAC}/v1`,
    place.namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    { name, ...place },
    {
      roleRef: { apiGroup: RBAC, kind, name },
      subjects: [{ kind: 'ServiceAccount', name: controller.name, namespace: controller.namespace }],
    },
  )

/** The name of the ServiceAccount, unless somebody has a reason for another. */
export const CONTROLLER_ACCOUNT = 'ichor-controller'

/** The ServiceAccount that the controller runs as. */
export type Controller = { readonly name: string; readonly namespace: string }

/** How the API server knows it. */
export const userOf = ({ name, namespace }: Controller): string => `system:serviceaccount:${namespace}:${name}`

/** The controller's own rights, and no more: in its own namespace, or with `allNamespaces` in all of them. */
export const controllerRoles = (controller: Controller, { allNamespaces }: { readonly allNamespaces: boolean }): readonly KubeObject[] => {
  const { name, namespace } = controller
  const gates = `${name}-gates`
  return [
    object('v1', 'ServiceAccount', { name, namespace }, {}),
    clusterRole(name, allNamespaces ? [...inTheCluster, ...atHome] : inTheCluster),
    binding('ClusterRole', name, {}, controller),
    {
      ...clusterRole(gates, []),
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [AGGREGATE_TO_CONTROLLER]: 'true' } }] },
    },
    binding('ClusterRole', gates, {}, controller),
    ...(allNamespaces
      ? []
      : [object(`${RBAC}/v1`, 'Role', { name, namespace }, { rules: atHome }), binding('Role', name, { namespace }, controller)]),
  ]
}
