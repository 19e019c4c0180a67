import { cordonedByOperation } from '../../api/cordon-owner.ts'
import { ANNOTATION, CONTROLLER, CONTROL_PLANE_LABEL } from '../../api/names.ts'
import { claimsOf } from '../../api/pod-claims.ts'
import { toleratesCordon } from '../../api/tolerations.ts'
import type { Result } from '../../ports/fault.ts'
import { done, failed, ok } from '../../ports/fault.ts'
import type { BudgetFacts, Kube, NodeFacts, PodFacts, VolumeFacts } from '../../ports/kube.ts'
import { countBudgets } from '../budgets.ts'
import { apiServerVersion } from '../api-server.ts'
import { clockOf } from '../certificates.ts'
import type { World } from '../cluster.ts'
import { withCordon } from '../cordon.ts'
import { RESOURCE, conditionOf, timestamp } from '../objects.ts'
import type { KubeObject } from '../store.ts'
import { controlPlaneCalls } from './control-plane.ts'
import { readObject } from './any-object.ts'
import type { Client } from './client.ts'
import { apiObjection, vipObjection } from './client.ts'

type NodeStatus = { addresses?: { type: string; address: string }[]; nodeInfo?: Record<string, string> }

/** What is in the store never changes, so each of its objects is read once. */
const readOnce = <T>(read: (object: KubeObject) => T): ((object: KubeObject) => T) => {
  const known = new WeakMap<KubeObject, T>()
  return object => {
    const before = known.get(object)
    if (before !== undefined) return before
    const facts = read(object)
    known.set(object, facts)
    return facts
  }
}

const nodeFacts = readOnce((node: KubeObject): NodeFacts => {
  const { addresses = [], nodeInfo = {} } = (node.status ?? {}) as NodeStatus
  const ready = conditionOf(node, 'Ready')
  const { annotations = {}, managedFields } = node.metadata
  const unschedulable = (node.spec as { unschedulable?: boolean } | undefined)?.unschedulable === true
  const cordonedBy = cordonedByOperation({ unschedulable, annotations, managedFields })
  return {
    name: node.metadata.name,
    uid: node.metadata.uid,
    resourceVersion: node.metadata.resourceVersion,
    controlPlane: node.metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined,
    ready: ready?.status === 'True',
    readySince: ready ? Date.parse(ready.lastTransitionTime) : 0,
    unschedulable,
    tainted: ((node.spec as { taints?: { effect: string }[] } | undefined)?.taints ?? []).some(t => t.effect !== 'PreferNoSchedule'),
    bootID: nodeInfo.bootID ?? '',
    systemUUID: nodeInfo.systemUUID ?? '',
    kubeletVersion: nodeInfo.kubeletVersion ?? '',
    kernelVersion: nodeInfo.kernelVersion ?? '',
    osImage: nodeInfo.osImage ?? '',
    addresses: addresses.filter(a => a.type === 'InternalIP' || a.type === 'ExternalIP').map(a => a.address),
    labels: node.metadata.labels ?? {},
    annotations,
    ...(cordonedBy === undefined ? {} : { cordonedBy }),
  }
})

type PodStatus = {
  phase?: PodFacts['phase']
  containerStatuses?: { state?: { running?: { startedAt: string } } }[]
}

const startOf = (pod: KubeObject): { readonly startedAt?: number } => {
  const starts = ((pod.status as PodStatus | undefined)?.containerStatuses ?? []).flatMap(c =>
    c.state?.running ? [Date.parse(c.state.running.startedAt)] : [],
  )
  return starts.length === 0 ? {} : { startedAt: Math.max(...starts) }
}

const claimsIn = (pod: KubeObject): Pick<PodFacts, 'claims'> => {
  const claims = claimsOf(pod.metadata.name, (pod.spec as { volumes?: unknown }).volumes)
  return claims.length > 0 ? { claims } : {}
}

const podFacts = readOnce((pod: KubeObject): PodFacts => ({
  namespace: pod.metadata.namespace ?? '',
  name: pod.metadata.name,
  uid: pod.metadata.uid,
  node: (pod.spec as { nodeName?: string }).nodeName ?? '',
  phase: (pod.status as PodStatus | undefined)?.phase ?? 'Pending',
  labels: pod.metadata.labels ?? {},
  mirror: pod.metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined,
  ownerKind: pod.metadata.ownerReferences?.find(o => o.controller)?.kind ?? '',
  terminating: pod.metadata.deletionTimestamp !== undefined,
  ready: conditionOf(pod, 'Ready')?.status === 'True',
  ...claimsIn(pod),
  ...(toleratesCordon((pod.spec as { tolerations?: unknown }).tolerations) ? { toleratesCordon: true } : {}),
  ...startOf(pod),
}))

/** The server says the second of its clock, as it says that of a creation. */
const aged = (pod: KubeObject, now: number): PodFacts => {
  const facts = podFacts(pod)
  const { toleratesCordon: tolerates, ownerKind, mirror } = facts
  if (!tolerates || mirror || ownerKind === '' || ownerKind === 'DaemonSet') return facts
  return { ...facts, ageMs: Date.parse(timestamp(now)) - Date.parse(pod.metadata.creationTimestamp) }
}

type VolumeSpec = { readonly claimRef?: { readonly namespace: string; readonly name: string } }

const volumeFacts = ({ metadata: { name } }: KubeObject, volume: KubeObject | undefined): VolumeFacts => {
  const { claimRef } = (volume?.spec ?? {}) as VolumeSpec
  return claimRef ? { name, claim: `${claimRef.namespace}/${claimRef.name}` } : { name }
}

type Selector = Pick<BudgetFacts, 'matchExpressions'> & { readonly matchLabels?: Record<string, string> }

const budgetFacts = (budget: KubeObject): BudgetFacts => {
  const { selector } = budget.spec as { selector?: Selector }
  return {
    namespace: budget.metadata.namespace ?? '',
    name: budget.metadata.name,
    disruptionsAllowed: (budget.status as { disruptionsAllowed?: number } | undefined)?.disruptionsAllowed ?? 0,
    matchLabels: selector?.matchLabels ?? {},
    ...(selector?.matchExpressions ? { matchExpressions: selector.matchExpressions } : {}),
  }
}

const imageVersion = (set: KubeObject): string => {
  const image = (set.spec as { template: { spec: { containers: { image: string }[] } } }).template.spec.containers[0]?.image ?? ''
  return image.replace(/@.*$/, '').split(':').at(-1)?.replace(/^v/, '') ?? ''
}

/** The Kubernetes API of the world's cluster, for one client. */
export const createKube = (world: World, client: Client): Kube => {
  const { store, site } = world
  const call = <T>(name: keyof Kube, target: string, changes: boolean, run: () => Result<T>): Promise<Result<T>> =>
    client.call({ port: 'kube', name, target, changes }, () => vipObjection(world) ?? apiObjection(world) ?? run())

  const daemonSet = (name: string) => store.get(RESOURCE.daemonSets, 'kube-system', name)
  /** The Node as it was read, cordoned or not, with our mark or without. */
  const changeNode = (name: 'cordon' | 'uncordon', node: NodeFacts, isCordoned: boolean, mark?: string) =>
    call<void>(name, node.name, true, () => {
      const now = store.get(RESOURCE.nodes, '', node.name)
      if (!now) return failed('notFound', `nodes "${node.name}" not found`)
      const edited = withCordon(now, isCordoned, CONTROLLER, timestamp(store.now()))
      const { [ANNOTATION.cordonedBy]: _mark, ...others } = edited.metadata.annotations ?? {}
      const annotations = mark === undefined ? others : { ...others, [ANNOTATION.cordonedBy]: mark }
      const written = store.update(RESOURCE.nodes, {
        ...edited,
        metadata: { ...edited.metadata, annotations, uid: node.uid, resourceVersion: node.resourceVersion },
      })
      if (!written.ok) return failed(written.fault.code === 404 ? 'notFound' : 'conflict', written.fault.message)
      if (isCordoned !== node.unschedulable) site.journal.write(node.name, name, 'by Ichor')
      return done
    })

  return {
    version: () => call('version', '', false, () => ok(apiServerVersion(site) + site.vendorTail('api server'))),
    clockAhead: () =>
      call('clockAhead', '', false, () => {
        const serving = world.vip.holder() ?? site.machines.find(m => m.role === 'controlplane' && m.powered && !m.cut)
        return ok(serving ? clockOf(site, serving) - site.schedule.now() : 0)
      }),
    nodes: () => call('nodes', '', false, () => ok(store.list(RESOURCE.nodes).items.map(nodeFacts))),
    podsOn: node =>
      call('podsOn', node, false, () =>
        ok(
          store
            .list(RESOURCE.pods)
            .items.filter(pod => (pod.spec as { nodeName?: string }).nodeName === node)
            .map(pod => aged(pod, store.now())),
        ),
      ),
    budgets: () =>
      call('budgets', '', false, () => {
        countBudgets(site)
        return ok(store.list(RESOURCE.budgets).items.map(budgetFacts))
      }),
    volumeAttachments: node =>
      call('volumeAttachments', node, false, () =>
        ok(
          store
            .list(RESOURCE.attachments)
            .items.filter(a => (a.spec as { nodeName: string }).nodeName === node)
            .map(a =>
              volumeFacts(
                a,
                store.get(RESOURCE.volumes, '', (a.spec as { source: { persistentVolumeName: string } }).source.persistentVolumeName),
              ),
            ),
        ),
      ),
    addons: () =>
      call('addons', '', false, () => {
        const cilium = daemonSet('cilium')
        const config = store.get(RESOURCE.configMaps, 'kube-system', 'cilium-config')?.data as Record<string, string> | undefined
        return ok({
          cilium: cilium ? { version: imageVersion(cilium), config } : undefined,
          kubeProxy: daemonSet('kube-proxy') !== undefined,
        })
      }),

    ...controlPlaneCalls(site, call),

    object: ref => call('object', `${ref.kind} ${ref.name}`, false, () => readObject(store, ref)),

    cordon: (node, operationUid) => changeNode('cordon', node, true, operationUid),
    uncordon: node => changeNode('uncordon', node, node.unschedulable && node.cordonedBy === undefined),

    evict: pod =>
      call<void>('evict', `${pod.namespace}/${pod.name}`, true, () => {
        const evicted = world.evict(pod.namespace, pod.name, pod.uid)
        // Gone, or replaced by a namesake: this very pod is no more.
        if (evicted.ok || evicted.code === 404 || evicted.code === 409) return done
        const cause = evicted.cause ? ` ${evicted.cause}` : ''
        return failed('busy', `evict ${pod.namespace}/${pod.name}: ${evicted.message}${cause}`)
      }),
    deleteNode: node =>
      call<void>('deleteNode', node.name, true, () => {
        const removed = store.remove(RESOURCE.nodes, '', node.name, { uid: node.uid })
        if (removed.ok) site.journal.write(node.name, 'node-deleted')
        return done
      }),
    deletePod: pod =>
      call<void>('deletePod', `${pod.namespace}/${pod.name}`, true, () => {
        const removed = store.remove(RESOURCE.pods, pod.namespace, pod.name, { uid: pod.uid })
        if (removed.ok) site.journal.write(pod.node, 'pod-deleted', `${pod.namespace}/${pod.name}`)
        return done
      }),
  }
}
