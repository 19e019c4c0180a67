import { GROUP, VERSION } from '../../api/names.ts'

/** A type of object as its path names it. */
export type Resource = {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  /** Plural, lower case: `talosoperations`. */
  readonly plural: string
  readonly kind: string
}

const core = (plural: string, kind: string): Resource => ({ group: '', version: 'v1', plural, kind })
const ichor = (plural: string, kind: string): Resource => ({ group: GROUP, version: VERSION, plural, kind })

export const RESOURCE = {
  talosOperation: ichor('talosoperations', 'TalosOperation'),
  talosCluster: ichor('talosclusters', 'TalosCluster'),
  talosMachine: ichor('talosmachines', 'TalosMachine'),
  etcdSnapshot: ichor('etcdsnapshots', 'EtcdSnapshot'),
  node: core('nodes', 'Node'),
  pod: core('pods', 'Pod'),
  secret: core('secrets', 'Secret'),
  configMap: core('configmaps', 'ConfigMap'),
  event: core('events', 'Event'),
  namespace: core('namespaces', 'Namespace'),
  persistentVolume: core('persistentvolumes', 'PersistentVolume'),
  lease: { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease' },
  daemonSet: { group: 'apps', version: 'v1', plural: 'daemonsets', kind: 'DaemonSet' },
  deployment: { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' },
  budget: { group: 'policy', version: 'v1', plural: 'poddisruptionbudgets', kind: 'PodDisruptionBudget' },
  volumeAttachment: { group: 'storage.k8s.io', version: 'v1', plural: 'volumeattachments', kind: 'VolumeAttachment' },
  crd: { group: 'apiextensions.k8s.io', version: 'v1', plural: 'customresourcedefinitions', kind: 'CustomResourceDefinition' },
} as const satisfies Record<string, Resource>

export type Place = {
  /** Absent: all namespaces, or a type that has none. */
  readonly namespace?: string
  readonly name?: string
  /** For example `status` or `eviction`. */
  readonly subresource?: string
}

/** `v1`, `apps/v1`. */
export const groupVersion = ({ group, version }: Pick<Resource, 'group' | 'version'>): string =>
  group === '' ? version : `${group}/${version}`

export const pathOf = (resource: Resource, { namespace, name, subresource }: Place): string => {
  const parts = [
    resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`,
    ...(namespace ? ['namespaces', encodeURIComponent(namespace)] : []),
    resource.plural,
    ...(name ? [encodeURIComponent(name)] : []),
    ...(name && subresource ? [subresource] : []),
  ]
  return parts.join('/')
}

/** For people: `talosoperations/status ichor-system/up-1`. */
export const describe = (resource: Resource, { namespace, name, subresource }: Place): string => {
  const what = subresource ? `${resource.plural}/${subresource}` : resource.plural
  if (name) return `${what} ${namespace ? `${namespace}/` : ''}${name}`
  return namespace ? `${what} in ${namespace}` : what
}
