import type { Resource } from '../../adapters/kube/resource.ts'
import { RESOURCE } from '../../adapters/kube/resource.ts'

export const OPERATION = RESOURCE.talosOperation
export const CLUSTER = RESOURCE.talosCluster
export const MACHINE = RESOURCE.talosMachine
export const LEASE = RESOURCE.lease
export const SECRET = RESOURCE.secret
export const CRD = RESOURCE.crd
export const DEPLOYMENT: Resource = { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' }
export const SELF_REVIEW: Resource = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'selfsubjectreviews',
  kind: 'SelfSubjectReview',
}

/** `talosoperation.ichor.maesh.dev/home`, as `kubectl -o name` says it. */
export const qualifiedName = ({ kind, group }: Resource, name: string): string => `${kind.toLowerCase()}${group ? `.${group}` : ''}/${name}`
