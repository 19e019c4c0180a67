import type { Resource } from '../../adapters/kube/resource.ts'
import { RESOURCE } from '../../adapters/kube/resource.ts'

export const OPERATION = RESOURCE.talosOperation
export const CLUSTER = RESOURCE.talosCluster
export const MACHINE = RESOURCE.talosMachine
export const LEASE = RESOURCE.lease
export const SECRET = RESOURCE.secret
export const EVENT = RESOURCE.event
export const CRD = RESOURCE.crd
export const NAMESPACE = RESOURCE.namespace
export const DEPLOYMENT = RESOURCE.deployment
/** Talos' own: who has one gets a talosconfig in a Secret of its name (talos-api 1.8). */
export const TALOS_ACCOUNT: Resource = { group: 'talos.dev', version: 'v1alpha1', plural: 'serviceaccounts', kind: 'ServiceAccount' }
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
