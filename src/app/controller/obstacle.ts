import type { KubeClient } from '../../adapters/kube/client.ts'
import { at } from '../../adapters/kube/json.ts'
import type { Resource } from '../../adapters/kube/resource.ts'
import { RESOURCE } from '../../adapters/kube/resource.ts'

type Asked = { readonly namespace: string | undefined; readonly leaseNamespace: string }
type Right = {
  readonly verbs: readonly string[]
  readonly resource: Resource
  readonly subresource?: string
  readonly namespace: string | undefined
}

const TYPES = [RESOURCE.talosCluster, RESOURCE.talosMachine, RESOURCE.talosOperation]
const REVIEW: Resource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
}

/**
 * What keeps a controller from doing anything at all, as one sentence that says what helps; undefined where nothing does. Without it a replica that may not
 * even read its Lease would look like one that does not lead.
 */
export const obstacle = async (client: KubeClient, asked: Asked): Promise<string | undefined> => {
  const served = await Promise.all(TYPES.map(type => client.serves(type)))
  const missing: string[] = []
  for (const [i, answer] of served.entries()) {
    if (!answer.ok) return `the Kubernetes API cannot be used: ${answer.fault.message}`
    if (!answer.value) missing.push(TYPES[i]!.plural)
  }
  if (missing.length > 0)
    return `Ichor's resource types are not installed on ${client.peer} (${missing.join(', ')}); install them with: ichor install --crds-only`
  const denied = await deniedRights(client, asked)
  if (denied.length === 0) return undefined
  return `this controller's credential may not ${denied.join('; ')}. Give it the rights of the chart's controller role, or another kubeconfig`
}

const deniedRights = async (client: KubeClient, { namespace, leaseNamespace }: Asked): Promise<readonly string[]> => {
  const rights: readonly Right[] = [
    { verbs: ['get', 'create', 'patch'], resource: RESOURCE.lease, namespace: leaseNamespace },
    ...TYPES.map(resource => ({ verbs: ['get', 'list', 'watch'], resource, namespace })),
    { verbs: ['patch', 'delete'], resource: RESOURCE.talosOperation, namespace },
    ...TYPES.map(resource => ({ verbs: ['update'], resource, subresource: 'status', namespace })),
    { verbs: ['create', 'patch'], resource: RESOURCE.talosMachine, namespace },
    { verbs: ['get'], resource: RESOURCE.secret, namespace },
  ]
  const sentences = await Promise.all(
    rights.map(async right => {
      const allowed = await Promise.all(right.verbs.map(verb => isAllowed(client, verb, right)))
      const verbs = right.verbs.filter((_, i) => !allowed[i])
      const what = right.subresource ? `${right.resource.plural}/${right.subresource}` : right.resource.plural
      return verbs.length === 0 ? undefined : `${verbs.join(', ')} ${what}${right.namespace ? ` in ${right.namespace}` : ''}`
    }),
  )
  return sentences.filter(sentence => sentence !== undefined)
}

/** Where the question itself is not answered, the deed will tell. */
const isAllowed = async (client: KubeClient, verb: string, { resource, subresource, namespace }: Right): Promise<boolean> => {
  const resourceAttributes = {
    verb,
    group: resource.group,
    resource: resource.plural,
    ...(subresource ? { subresource } : {}),
    ...(namespace ? { namespace } : {}),
  }
  const answer = await client.create(REVIEW, {}, { apiVersion: 'authorization.k8s.io/v1', kind: REVIEW.kind, spec: { resourceAttributes } })
  return !answer.ok || at(answer.value, 'status', 'allowed') !== false
}
