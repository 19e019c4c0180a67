import { tolerates, toleratesCordon } from '../api/tolerations.ts'
import { CONTROL_PLANE_LABEL } from '../api/names.ts'
import type { ApiServer } from './api-server.ts'
import { countBudgets } from './budgets.ts'
import { keepMirrorsOf } from './mirror-pods.ts'
import type { Nodes } from './nodes.ts'
import { RESOURCE, change, conditionOf, timestamp, withCondition } from './objects.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import type { Draft, KubeObject } from './store.ts'
import { reconcileVolumes } from './volumes.ts'

type PodSpec = { nodeName?: string; terminationGracePeriodSeconds?: number; tolerations?: readonly object[] }
type PodStatus = { phase?: string }

const CONTROL_PLANE_TAINT = { key: CONTROL_PLANE_LABEL, effect: 'NoSchedule' }

const specOf = (pod: KubeObject): PodSpec => pod.spec as PodSpec
const phaseOf = (pod: KubeObject): string => (pod.status as PodStatus | undefined)?.phase ?? 'Pending'
const ownerOf = (pod: KubeObject) => pod.metadata.ownerReferences?.find(o => o.controller)
const imageOf = (podSpec: unknown): string | undefined =>
  (podSpec as { containers?: readonly { image?: string }[] } | undefined)?.containers?.[0]?.image
const leaving = (pod: KubeObject): boolean => pod.metadata.deletionTimestamp !== undefined

/**
 * What the scheduler, the controllers and the kubelets do to pods, as far as a drain can tell: pods that are deleted end after their time, and are made
 * anew elsewhere; pods of DaemonSets and static pods stay with their node; budgets are counted. One pass over everything, after every change.
 */
export const keepWorkloads = (site: Site, api: ApiServer, nodes: Nodes): { readonly pass: () => void } => {
  const { store, schedule, durations, journal, machines } = site
  /** UIDs of pods whose start or end is under way. */
  const starting = new Set<string>()
  const ending = new Set<string>()

  const machineOf = (pod: KubeObject) => machines.find(m => m.name === specOf(pod).nodeName)
  const pods = (): readonly KubeObject[] => store.list(RESOURCE.pods).items
  const statusesOf = (pod: KubeObject) => (pod.status as { containerStatuses?: readonly object[] }).containerStatuses ?? []
  const started = (pod: KubeObject) =>
    ((pod.spec as { containers?: readonly { name: string; image: string }[] }).containers ?? []).map(({ name, image }) => ({
      ...{ name, image, ready: true, restartCount: 0 },
      state: { running: { startedAt: timestamp(schedule.now()) } },
    }))
  const setReady = (pod: KubeObject, ready: boolean): void => {
    const { namespace = '', name } = pod.metadata
    change(store, RESOURCE.pods, namespace, name, now => ({
      ...now,
      status: {
        ...(now.status as object),
        ...(ready ? { phase: 'Running', startTime: timestamp(schedule.now()) } : {}),
        containerStatuses: ready ? started(now) : statusesOf(now).map(container => ({ ...container, ready })),
        conditions: withCondition(now, schedule.now(), { type: 'Ready', status: ready ? 'True' : 'False' }),
      },
    }))
  }

  /** Ends a pod that is being deleted, if its kubelet lives to do it. */
  const end = (pod: KubeObject): void => {
    const { namespace = '', name, uid } = pod.metadata
    if (ending.has(uid)) return
    const machine = machineOf(pod)
    const node = specOf(pod).nodeName
    const gone = (): void => {
      ending.delete(uid)
      if (store.get(RESOURCE.pods, namespace, name)?.metadata.uid !== uid) return
      api.whenAvailable(() => {
        if (store.remove(RESOURCE.pods, namespace, name, { uid, gracePeriodSeconds: 0 }).ok)
          journal.write(node ?? '', 'pod-gone', `${namespace}/${name}`)
      })
    }
    if (!node || !machine || !nodes.of(machine)) return gone()
    if (!machine.kubelet || machine.cut) return
    ending.add(uid)
    const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000
    const takes = graceMs > 0 ? durations.fixed(schedule.random.between(Math.min(500, graceMs), graceMs)) : durations.draw('killPod')
    schedule.after(takes, () => {
      if (machine.kubelet && !machine.cut) gone()
      else ending.delete(uid)
    })
  }

  /** A pod that is bound, and whose kubelet runs, becomes ready after a while. */
  const start = (pod: KubeObject): void => {
    const { namespace = '', name, uid } = pod.metadata
    const machine = machineOf(pod)
    if (starting.has(uid) || !machine?.kubelet || machine.cut) return
    starting.add(uid)
    const { life } = machine
    schedule.after(durations.draw('startPod'), () => {
      starting.delete(uid)
      const now = store.get(RESOURCE.pods, namespace, name)
      if (now?.metadata.uid !== uid || leaving(now) || machine.life !== life || !machine.kubelet || machine.cut) return
      api.whenAvailable(() => {
        const still = store.get(RESOURCE.pods, namespace, name)
        if (still?.metadata.uid !== uid) return
        setReady(still, true)
      })
    })
  }

  const place = (pod: KubeObject): void => {
    const all = pods()
    const load = (name: string): number =>
      all.filter(p => specOf(p).nodeName === name && !leaving(p) && ownerOf(p)?.uid !== undefined && ownerOf(p)?.uid === ownerOf(pod)?.uid)
        .length
    const workers = machines.some(m => m.role === 'worker')
    const { tolerations } = specOf(pod)
    const everywhere = tolerates(tolerations, CONTROL_PLANE_TAINT)
    const mayBeCordoned = toleratesCordon(tolerations)
    const candidates = machines
      .filter(
        m => (everywhere || !workers || m.role === 'worker') && nodes.isReady(m.name) && (mayBeCordoned || nodes.isSchedulable(m.name)),
      )
      .toSorted((a, b) => load(a.name) - load(b.name) || a.index - b.index)
    const chosen = candidates[0]
    if (!chosen) return
    const { namespace = '', name } = pod.metadata
    change(store, RESOURCE.pods, namespace, name, now => ({ ...now, spec: { ...specOf(now), nodeName: chosen.name } }))
  }

  const podFrom = (set: KubeObject, name: Partial<Draft['metadata']>, extra: object): Draft => {
    const template = (set.spec as { template?: { metadata?: { labels?: Record<string, string> }; spec?: object } }).template ?? {}
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...name,
        namespace: set.metadata.namespace,
        labels: template.metadata?.labels,
        ownerReferences: [
          {
            apiVersion: 'apps/v1',
            kind: set.kind,
            name: set.metadata.name,
            uid: set.metadata.uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: { ...template.spec, ...extra },
      status: { phase: 'Pending', conditions: [] },
    }
  }

  /** Pods by the UID of their owner. */
  const owned = (): ReadonlyMap<string, readonly KubeObject[]> => Map.groupBy(pods(), pod => ownerOf(pod)?.uid ?? '')

  const keepReplicas = (): void => {
    const byOwner = owned()
    for (const set of store.list(RESOURCE.replicaSets).items) {
      const owner = ownerOf(set)
      const deployment = owner && store.get(RESOURCE.deployments, set.metadata.namespace ?? '', owner.name)
      const replicas = ((deployment ?? set).spec as { replicas?: number }).replicas ?? 1
      if ((set.spec as { replicas?: number }).replicas !== replicas)
        change(store, RESOURCE.replicaSets, set.metadata.namespace ?? '', set.metadata.name, now => ({
          ...now,
          spec: { ...(now.spec as object), replicas },
        }))
      const own = (byOwner.get(set.metadata.uid) ?? []).filter(pod => !leaving(pod))
      for (let missing = replicas - own.length; missing > 0; missing--)
        store.create(RESOURCE.pods, podFrom(set, { generateName: `${set.metadata.name}-` }, {}))
      for (const pod of own.slice(replicas))
        store.remove(RESOURCE.pods, pod.metadata.namespace ?? '', pod.metadata.name, { uid: pod.metadata.uid })
      const readyReplicas = own.filter(pod => conditionOf(pod, 'Ready')?.status === 'True').length
      const status = { replicas: own.length, readyReplicas, availableReplicas: readyReplicas }
      change(store, RESOURCE.replicaSets, set.metadata.namespace ?? '', set.metadata.name, now => ({ ...now, status }))
      if (deployment)
        change(store, RESOURCE.deployments, set.metadata.namespace ?? '', deployment.metadata.name, now => ({
          ...now,
          status: { ...status, observedGeneration: now.metadata.generation, updatedReplicas: own.length },
        }))
    }
  }

  const keepDaemons = (): void => {
    const byOwner = owned()
    for (const set of store.list(RESOURCE.daemonSets).items) {
      const own = byOwner.get(set.metadata.uid) ?? []
      for (const machine of machines) {
        if (!nodes.of(machine) || own.some(pod => specOf(pod).nodeName === machine.name && !leaving(pod))) continue
        store.create(RESOURCE.pods, podFrom(set, { generateName: `${set.metadata.name}-` }, { nodeName: machine.name }))
      }
      const isCurrent = (pod: KubeObject): boolean =>
        imageOf(pod.spec) === imageOf((set.spec as { template?: { spec?: unknown } }).template?.spec)
      const old = own.filter(pod => !leaving(pod) && !isCurrent(pod))
      // One after the other: the next goes when all others are there.
      if (old[0] && own.every(pod => conditionOf(pod, 'Ready')?.status === 'True' && !leaving(pod)))
        store.remove(RESOURCE.pods, old[0].metadata.namespace ?? '', old[0].metadata.name, { uid: old[0].metadata.uid })
      const ready = own.filter(pod => conditionOf(pod, 'Ready')?.status === 'True').length
      const wanted = machines.filter(m => nodes.of(m)).length
      const status = {
        desiredNumberScheduled: wanted,
        currentNumberScheduled: own.length,
        numberReady: ready,
        numberAvailable: ready,
        updatedNumberScheduled: wanted - old.length,
        observedGeneration: set.metadata.generation,
      }
      change(store, RESOURCE.daemonSets, set.metadata.namespace ?? '', set.metadata.name, now => ({ ...now, status }))
    }
  }

  const keepMirrors = (): void => {
    for (const machine of machines) {
      const node = nodes.of(machine)
      if (node && machine.role === 'controlplane' && machine.staticPods && machine.kubelet && !machine.cut && nodes.isOf(machine))
        keepMirrorsOf(site, machine, node.metadata.uid)
    }
  }

  const pass = (): void => {
    if (!api.available()) return api.whenAvailable(react)
    for (const pod of pods()) if (leaving(pod)) end(pod)
    keepReplicas()
    keepDaemons()
    keepMirrors()
    for (const pod of pods()) {
      if (!leaving(pod) && !specOf(pod).nodeName) place(pod)
      else if (
        !leaving(pod) &&
        // Static pods are their machine's own affair.
        ownerOf(pod)?.kind !== 'Node' &&
        phaseOf(pod) !== 'Succeeded' &&
        phaseOf(pod) !== 'Failed' &&
        conditionOf(pod, 'Ready')?.status !== 'True' &&
        machineOf(pod)
      )
        start(pod)
      else if (specOf(pod).nodeName && !store.get(RESOURCE.nodes, '', specOf(pod).nodeName ?? '') && !leaving(pod))
        store.remove(RESOURCE.pods, pod.metadata.namespace ?? '', pod.metadata.name, { uid: pod.metadata.uid, gracePeriodSeconds: 0 })
    }
    reconcileVolumes(site, react)
    countBudgets(site)
  }
  let planned = false
  const react = (): void => {
    if (planned) return
    planned = true
    schedule.after(durations.draw('react'), () => {
      planned = false
      pass()
    })
  }
  const watched = [
    RESOURCE.pods,
    RESOURCE.deployments,
    RESOURCE.replicaSets,
    RESOURCE.daemonSets,
    RESOURCE.budgets,
    RESOURCE.nodes,
    RESOURCE.attachments,
  ]
  for (const resource of watched) store.watch(resource, undefined, react)

  // Containers start anew with their kubelet; a Node that fell silent takes the readiness of its pods with it.
  site.listen((machine, what) => {
    if (what === 'static-pods') return react()
    if (what !== 'node' && what !== 'kubelet-up') return
    const isReady = nodes.isReady(machine.name)
    if (what === 'kubelet-up' || isReady) return react()
    later(site, machine, 1, react)
    for (const pod of pods()) {
      if (specOf(pod).nodeName === machine.name && ownerOf(pod)?.kind !== 'Node' && conditionOf(pod, 'Ready')?.status === 'True')
        setReady(pod, false)
    }
  })
  return { pass }
}
