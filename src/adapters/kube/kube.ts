import { ANNOTATION, CONTROLLER } from '../../api/names.ts'
import type { Result } from '../../ports/fault.ts'
import { done } from '../../ports/fault.ts'
import type { ControlPlaneFacts } from '../../ports/control-plane.ts'
import type { CiliumFacts, ClusterAddons, Kube, NodeFacts, PodFacts, VolumeFacts } from '../../ports/kube.ts'
import type { ApiFault, ApiResult } from './classify.ts'
import type { KubeClient, KubeObject } from './client.ts'
import { budgetOf, claimOf, mayComeBack, nodeOf, podOf, tagVersion, withAge } from './facts.ts'
import type { Json } from './json.ts'
import { at, deepFreeze, list, record, text, texts } from './json.ts'
import type { Resource } from './resource.ts'
import { anyObject, servedTypes } from './any-object.ts'
import {
  API_SERVER_LEASES,
  CONTROL_PLANE_PODS,
  controlPlanePodOf,
  daemonSetOf,
  deploymentOf,
  deprecatedApisIn,
  servedAtIn,
} from './control-plane.ts'
import { manifestsOf } from './manifests.ts'
import { RESOURCE } from './resource.ts'

const SYSTEM = 'kube-system'
const CILIUM_AGENT = 'cilium-agent'

/** The Kubernetes API of a managed cluster. Everything is read from the server each time: the facts are few and decide what is broken next. */
export const openKube = (client: KubeClient): Kube => {
  const all = async <T>(resource: Resource, read: (object: KubeObject) => T, fieldSelector?: string): Promise<ApiResult<readonly T[]>> => {
    const listed = await client.list(resource, { fieldSelector })
    return listed.ok ? { ok: true, value: deepFreeze(listed.value.items.map(read)) } : listed
  }

  const patchNode = async (node: NodeFacts, annotations: Json, spec: Json): Promise<Result<void>> => {
    const patch = { metadata: { resourceVersion: node.resourceVersion, annotations }, ...(Object.keys(spec).length === 0 ? {} : { spec }) }
    // By the name that tells our cordons from those of others.
    const patched = await client.patch(RESOURCE.node, { name: node.name }, patch, { fieldManager: CONTROLLER })
    return patched.ok ? done : patched
  }

  /** A 409 on a pod by UID has two causes; which, the pod itself tells. */
  const isAnother = async (pod: PodFacts): Promise<boolean> => {
    const now = await client.get(RESOURCE.pod, pod)
    return now.ok ? text(at(now.value, 'metadata', 'uid')) !== pod.uid : now.fault.kind === 'notFound'
  }

  const gone = async (pod: PodFacts, answer: ApiResult<unknown>): Promise<Result<void>> => {
    if (answer.ok || answer.fault.kind === 'notFound') return done
    if (answer.fault.kind === 'conflict' && (await isAnother(pod))) return done
    return answer
  }

  const cilium = async (): Promise<ApiResult<CiliumFacts | undefined>> => {
    const agent = await optional(client.get(RESOURCE.daemonSet, { namespace: SYSTEM, name: 'cilium' }))
    if (!agent.ok) return agent
    if (!agent.value) return { ok: true, value: undefined }
    const config = await client.get(RESOURCE.configMap, { namespace: SYSTEM, name: 'cilium-config' })
    // Not there, or not for us to read: told apart from an API that does not answer.
    if (!config.ok && config.fault.kind !== 'notFound' && config.fault.kind !== 'forbidden') return config
    const containers = list(at(agent.value, 'spec', 'template', 'spec', 'containers')).map(record)
    const container = containers.find(({ name }) => name === CILIUM_AGENT) ?? containers[0]
    return {
      ok: true,
      value: { version: tagVersion(text(container?.['image'])), config: config.ok ? texts(config.value['data']) : undefined },
    }
  }

  const types = servedTypes(client)
  const object = anyObject(client, types)
  const manifests = manifestsOf(client, types)

  return {
    version: () => client.version(),
    clockAhead: () => client.clockAhead(),
    nodes: () => all(RESOURCE.node, nodeOf),
    podsOn: async node => {
      const listed = await client.list(RESOURCE.pod, { fieldSelector: `spec.nodeName=${node}` })
      if (!listed.ok) return listed
      const found = listed.value.items.map(pod => [pod, podOf(pod)] as const)
      // Asked only where somebody may want to know. A server that does not say leaves them without an age.
      const now = found.some(([, facts]) => mayComeBack(facts)) ? await client.time() : undefined
      return { ok: true, value: deepFreeze(found.map(([pod, facts]) => (now?.ok ? withAge(pod, facts, now.value) : facts))) }
    },
    budgets: async () => {
      const budgets = await all(RESOURCE.budget, budgetOf)
      return budgets.ok ? { ok: true, value: budgets.value.filter(budget => budget !== undefined) } : budgets
    },
    volumeAttachments: async node => {
      // The server has no field selector for their node.
      const attachments = await all(RESOURCE.volumeAttachment, one => ({
        name: text(at(one, 'metadata', 'name')),
        node: text(at(one, 'spec', 'nodeName')),
        volume: text(at(one, 'spec', 'source', 'persistentVolumeName')),
      }))
      if (!attachments.ok) return attachments
      const found = await Promise.all(attachments.value.filter(one => one.node === node).map(one => withClaim(client, one)))
      const failed = found.find(one => !one.ok)
      return failed ?? { ok: true, value: deepFreeze(found.flatMap(one => (one.ok ? [one.value] : []))) }
    },
    addons: async (): Promise<Result<ClusterAddons>> => {
      const found = await cilium()
      if (!found.ok) return found
      const proxy = await optional(client.get(RESOURCE.daemonSet, { namespace: SYSTEM, name: 'kube-proxy' }))
      return proxy.ok ? { ok: true, value: deepFreeze({ cilium: found.value, kubeProxy: proxy.value !== undefined }) } : proxy
    },

    controlPlane: async (): Promise<Result<ControlPlaneFacts>> => {
      const [pods, leases, kubeProxy, coreDNS] = await Promise.all([
        client.list(RESOURCE.pod, { namespace: SYSTEM, labelSelector: CONTROL_PLANE_PODS }),
        client.list(RESOURCE.lease, { namespace: SYSTEM, labelSelector: API_SERVER_LEASES }),
        optional(client.get(RESOURCE.daemonSet, { namespace: SYSTEM, name: 'kube-proxy' })),
        optional(client.get(RESOURCE.deployment, { namespace: SYSTEM, name: 'coredns' })),
      ])
      if (!pods.ok) return pods
      // They prove more than a pod does; without them that has to do.
      if (!leases.ok && leases.fault.kind !== 'forbidden') return leases
      if (!kubeProxy.ok) return kubeProxy
      if (!coreDNS.ok) return coreDNS
      return {
        ok: true,
        value: deepFreeze({
          pods: pods.value.items.map(controlPlanePodOf).filter(pod => pod !== undefined),
          servedAt: servedAtIn(leases.ok ? leases.value.items : []),
          ...(kubeProxy.value ? { kubeProxy: daemonSetOf(kubeProxy.value) } : {}),
          ...(coreDNS.value ? { coreDNS: deploymentOf(coreDNS.value) } : {}),
        }),
      }
    },
    deprecatedApis: async () => {
      const metrics = await client.metrics()
      return metrics.ok ? { ok: true, value: deprecatedApisIn(metrics.value) } : metrics
    },
    compareManifests: manifests.compare,
    applyManifests: manifests.apply,
    pruneManifests: manifests.prune,

    object,

    cordon: (node, operationUid) => patchNode(node, { [ANNOTATION.cordonedBy]: operationUid }, { unschedulable: true }),
    uncordon: node => patchNode(node, { [ANNOTATION.cordonedBy]: null }, node.cordonedBy === undefined ? {} : { unschedulable: null }),

    evict: async pod => {
      const { namespace, name, uid } = pod
      const eviction = {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { namespace, name },
        deleteOptions: { preconditions: { uid } },
      }
      const answer = await client.create(RESOURCE.pod, { namespace, name, subresource: 'eviction' }, eviction)
      return gone(pod, answer.ok ? answer : { ok: false, fault: evictionFault(answer.fault) })
    },
    deleteNode: async node => {
      const answer = await client.delete(RESOURCE.node, { name: node.name }, { preconditions: { uid: node.uid } })
      // Gone, or another of the same name: this very Node is no more.
      return answer.ok || answer.fault.kind === 'notFound' || answer.fault.kind === 'conflict' ? done : answer
    },
    deletePod: async pod =>
      gone(pod, await client.delete(RESOURCE.pod, { namespace: pod.namespace, name: pod.name }, { preconditions: { uid: pod.uid } })),
  }
}

type Attachment = { readonly name: string; readonly volume: string }

/** Whose volume it is. One that is gone, or not for us to read, has nobody that we could name. */
const withClaim = async (client: KubeClient, { name, volume }: Attachment): Promise<ApiResult<VolumeFacts>> => {
  if (volume === '') return { ok: true, value: { name } }
  const found = await client.get(RESOURCE.persistentVolume, { name: volume })
  if (!found.ok) return found.fault.kind === 'notFound' || found.fault.kind === 'forbidden' ? { ok: true, value: { name } } : found
  const claim = claimOf(found.value)
  return { ok: true, value: claim === '' ? { name } : { name, claim } }
}

/** Absence as a value. */
const optional = async (answer: Promise<ApiResult<KubeObject>>): Promise<ApiResult<KubeObject | undefined>> => {
  const got = await answer
  return !got.ok && got.fault.kind === 'notFound' ? { ok: true, value: undefined } : got
}

// The server's 429 does not ask us to stay away for long; its 500 says that more than one budget covers the pod. Both are the budgets' No,
// which may change, and not a fault of the server.
const evictionFault = (fault: ApiFault): ApiFault =>
  fault.code === 500 && /PodDisruptionBudget/i.test(fault.message) ? { ...fault, kind: 'busy' } : fault
