import type { Resource } from '../../adapters/kube/resource.ts'
import { RESOURCE } from '../../adapters/kube/resource.ts'

export const OPERATION = RESOURCE.talosOperation
export const CLUSTER = RESOURCE.talosCluster
export const MACHINE = RESOURCE.talosMachine
export const LEASE = RESOURCE.lease
export const SECRET = RESOURCE.secret
export const EVENT = RESOURCE.event
export const CRD = RESOURCE.crd
export const DEPLOYMENT: Resource = { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' }
export const SELF_REVIEW: Resource = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'selfsubjectreviews',
  kind: 'SelfSubjectReview',
}

/** The name in what `-o name` printed, and in kubectl's own ways to write it; any other text as it is. */
export const bareName = ({ kind, plural, group }: Resource, text: string): string => {
  const slash = text.indexOf('/')
  const type = text.slice(0, Math.max(0, slash)).toLowerCase()
  return [kind.toLowerCase(), plural].some(word => type === word || type === `${word}.${group}`) ? text.slice(slash + 1) : text
}

/** `talosoperation.ichor.maesh.dev/home`, as `kubectl -o name` says it. */
export const qualifiedName = ({ kind, group }: Resource, name: string): string => `${kind.toLowerCase()}${group ? `.${group}` : ''}/${name}`
