import type { JSONSchemaProps } from '../api/structural.ts'
import type { PrintColumn } from '../api/schema.ts'

export type Subresource = { readonly name: string; readonly kind: string; readonly group?: string; readonly verbs: readonly string[] }

/** One resource as the API serves it. */
export type ResourceType = {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly singular: string
  readonly kind: string
  readonly listKind: string
  readonly namespaced: boolean
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly verbs: readonly string[]
  readonly subresources: readonly Subresource[]
  /** Where the store keeps it. Two resources of one shelf are two views of the same objects. */
  readonly shelf: string
  /** Whether metadata.generation is counted. */
  readonly generation: boolean
  /** For resources that a CustomResourceDefinition made. */
  readonly custom?: { readonly schema: JSONSchemaProps; readonly columns: readonly PrintColumn[] }
}

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

type Short = {
  readonly group?: string
  readonly names?: readonly string[]
  readonly categories?: readonly string[]
  readonly cluster?: boolean
  readonly status?: boolean
  readonly generation?: boolean
  readonly verbs?: readonly string[]
  readonly shelf?: string
  readonly more?: readonly Subresource[]
}

const builtIn = (plural: string, kind: string, short: Short = {}): ResourceType => {
  const group = short.group ?? ''
  const singular = kind.toLowerCase()
  return {
    group,
    version: 'v1',
    plural,
    singular,
    kind,
    listKind: `${kind}List`,
    namespaced: !short.cluster,
    shortNames: short.names ?? [],
    categories: short.categories ?? [],
    verbs: short.verbs ?? VERBS,
    subresources: [...(short.more ?? []), ...(short.status ? [{ name: 'status', kind, verbs: ['get', 'patch', 'update'] }] : [])],
    shelf: short.shelf ?? (group === '' ? plural : `${plural}.${group}`),
    generation: short.generation ?? false,
  }
}

/** The verbs of namespaces: there is no deletion of all of them. */
const FEWER = VERBS.filter(verb => verb !== 'deletecollection')
const ALL = ['all']

/** The types that operators, kubectl and our own client use. Discovery shows exactly these. */
export const BUILT_IN: readonly ResourceType[] = [
  builtIn('configmaps', 'ConfigMap', { names: ['cm'] }),
  builtIn('events', 'Event', { names: ['ev'] }),
  builtIn('namespaces', 'Namespace', { names: ['ns'], cluster: true, status: true, verbs: FEWER }),
  builtIn('nodes', 'Node', { names: ['no'], cluster: true, status: true }),
  builtIn('persistentvolumes', 'PersistentVolume', { names: ['pv'], cluster: true, status: true }),
  builtIn('pods', 'Pod', {
    names: ['po'],
    categories: ALL,
    status: true,
    generation: true,
    more: [{ name: 'eviction', kind: 'Eviction', group: 'policy', verbs: ['create'] }],
  }),
  builtIn('secrets', 'Secret'),
  builtIn('serviceaccounts', 'ServiceAccount', { names: ['sa'] }),
  builtIn('services', 'Service', { names: ['svc'], categories: ALL, status: true }),
  builtIn('validatingadmissionpolicies', 'ValidatingAdmissionPolicy', {
    group: 'admissionregistration.k8s.io',
    categories: ['api-extensions'],
    cluster: true,
    status: true,
    generation: true,
  }),
  builtIn('validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding', {
    group: 'admissionregistration.k8s.io',
    categories: ['api-extensions'],
    cluster: true,
    generation: true,
  }),
  builtIn('customresourcedefinitions', 'CustomResourceDefinition', {
    group: 'apiextensions.k8s.io',
    names: ['crd', 'crds'],
    categories: ['api-extensions'],
    cluster: true,
    status: true,
    generation: true,
  }),
  builtIn('daemonsets', 'DaemonSet', { group: 'apps', names: ['ds'], categories: ALL, status: true, generation: true }),
  builtIn('deployments', 'Deployment', { group: 'apps', names: ['deploy'], categories: ALL, status: true, generation: true }),
  builtIn('replicasets', 'ReplicaSet', { group: 'apps', names: ['rs'], categories: ALL, status: true, generation: true }),
  builtIn('selfsubjectreviews', 'SelfSubjectReview', { group: 'authentication.k8s.io', cluster: true, verbs: ['create'] }),
  builtIn('selfsubjectaccessreviews', 'SelfSubjectAccessReview', { group: 'authorization.k8s.io', cluster: true, verbs: ['create'] }),
  builtIn('leases', 'Lease', { group: 'coordination.k8s.io' }),
  builtIn('events', 'Event', { group: 'events.k8s.io', names: ['ev'], shelf: 'events' }),
  builtIn('poddisruptionbudgets', 'PodDisruptionBudget', { group: 'policy', names: ['pdb'], status: true, generation: true }),
  builtIn('clusterrolebindings', 'ClusterRoleBinding', { group: 'rbac.authorization.k8s.io', cluster: true }),
  builtIn('clusterroles', 'ClusterRole', { group: 'rbac.authorization.k8s.io', cluster: true }),
  builtIn('volumeattachments', 'VolumeAttachment', { group: 'storage.k8s.io', cluster: true, status: true }),
]

/** Whether writes to the object itself leave status alone, and writes to its status leave all else. */
export const hasStatus = (type: ResourceType): boolean => type.subresources.some(subresource => subresource.name === 'status')

export const apiVersionOf = (type: ResourceType): string => (type.group === '' ? type.version : `${type.group}/${type.version}`)
