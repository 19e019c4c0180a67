import { RESOURCE, ensure } from './objects.ts'
import type { Machine } from './machine.ts'
import type { Site } from './site.ts'
import type { Draft } from './store.ts'

/** An application of the managed cluster. */
export type Workload = {
  readonly name: string
  /** Default `default`. */
  readonly namespace?: string
  /** Default 1. */
  readonly replicas?: number
  /** Seconds that a pod may take to stop; default 30. */
  readonly graceSeconds?: number
  /** A PodDisruptionBudget of the same name over its pods. */
  readonly budget?: { readonly minAvailable?: number | string; readonly maxUnavailable?: number | string }
  /** Uses a volume; of a DaemonSet each pod has its own. */
  readonly volume?: boolean
  /** A DaemonSet: one pod on every node. */
  readonly daemon?: boolean
  /** A pod without an owner: nobody makes it anew. */
  readonly bare?: boolean
  /** Of its pods, as Kubernetes writes them. */
  readonly tolerations?: readonly object[]
  /** Labels besides `app`. */
  readonly labels?: Readonly<Record<string, string>>
  /** Where the pods are at the start, by index of the machine; default: anywhere. */
  readonly on?: readonly number[]
}

export type Cilium = { readonly version: string; readonly config?: Readonly<Record<string, string>> }

const namespace = (site: Site, name: string): void =>
  void ensure(site.store, RESOURCE.namespaces, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
    status: { phase: 'Active' },
  })

/** What runs on every node. */
export type Addon = { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly image: (site: Site) => string }

export const FLANNEL: Addon = {
  name: 'kube-flannel',
  labels: { 'k8s-app': 'flannel', tier: 'node' },
  image: () => 'ghcr.io/siderolabs/flannel:v0.28.5',
}
export const KUBE_PROXY: Addon = {
  name: 'kube-proxy',
  labels: { 'k8s-app': 'kube-proxy', tier: 'node' },
  image: site => `registry.k8s.io/kube-proxy:${site.kubernetes()}`,
}

export const daemonSet = ({ name, labels }: Pick<Addon, 'name' | 'labels'>, image: string): Draft => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name, namespace: 'kube-system', labels },
  spec: {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { hostNetwork: true, containers: [{ name, image }] } },
  },
})

const daemon = (site: Site, addon: Addon): void => void ensure(site.store, RESOURCE.daemonSets, daemonSet(addon, addon.image(site)))

/** Namespaces and the network: Cilium, or Flannel as Talos brings it; kube-proxy unless Cilium replaces it. */
export const installAddons = (site: Site, options: { readonly cilium: Cilium | undefined; readonly kubeProxy: boolean }): void => {
  for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease', 'ichor-system']) namespace(site, name)
  const { cilium } = options
  if (cilium) {
    const image = `quay.io/cilium/cilium:v${cilium.version.replace(/^v/, '')}`
    daemon(site, { name: 'cilium', labels: { 'k8s-app': 'cilium' }, image: () => image })
    ensure(site.store, RESOURCE.configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'cilium-config', namespace: 'kube-system' },
      data: { 'kube-proxy-replacement': options.kubeProxy ? 'false' : 'true', ...cilium.config },
    })
  } else daemon(site, FLANNEL)
  if (options.kubeProxy) daemon(site, KUBE_PROXY)
}

/** A volume that comes and goes with its pod. */
const EPHEMERAL = {
  ephemeral: { volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } } },
}

export const installWorkload = (site: Site, workload: Workload, machines: readonly Machine[]): void => {
  const { name, replicas = 1, graceSeconds = 30, budget } = workload
  const ns = workload.namespace ?? 'default'
  namespace(site, ns)
  const labels = { app: name, ...workload.labels }
  const spec = {
    terminationGracePeriodSeconds: graceSeconds,
    containers: [{ name, image: `registry.example.com/${name}:1` }],
    ...(workload.tolerations ? { tolerations: workload.tolerations } : {}),
    ...(workload.volume
      ? { volumes: [{ name: 'data', ...(workload.daemon ? EPHEMERAL : { persistentVolumeClaim: { claimName: name } }) }] }
      : {}),
  }
  if (budget)
    ensure(site.store, RESOURCE.budgets, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace: ns },
      spec: { ...budget, selector: { matchLabels: labels } },
    })
  if (workload.daemon) {
    ensure(site.store, RESOURCE.daemonSets, {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name, namespace: ns, labels },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    })
    return
  }
  const on = (at: number): string | undefined => {
    const index = workload.on?.[at % workload.on.length]
    return index === undefined ? undefined : machines[index]?.name
  }
  const pod = (at: number) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    spec: { ...spec, nodeName: on(at) },
    status: { phase: 'Pending', conditions: [] },
  })
  if (workload.bare) {
    for (let at = 0; at < replicas; at++)
      site.store.create(RESOURCE.pods, { ...pod(at), metadata: { name: replicas > 1 ? `${name}-${at}` : name, namespace: ns, labels } })
    return
  }
  const template = { metadata: { labels }, spec }
  const selector = { matchLabels: labels }
  const deployment = ensure(site.store, RESOURCE.deployments, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: ns, labels },
    spec: { replicas, selector, template },
  })
  const set = ensure(site.store, RESOURCE.replicaSets, {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `${name}-${site.schedule.random.hex(10)}`,
      namespace: ns,
      labels,
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'Deployment', name, uid: deployment.metadata.uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: { replicas, selector, template },
  })
  if (!workload.on) return
  for (let at = 0; at < replicas; at++) {
    const ownerReferences = [
      {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        name: set.metadata.name,
        uid: set.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]
    site.store.create(RESOURCE.pods, {
      ...pod(at),
      metadata: { generateName: `${set.metadata.name}-`, namespace: ns, labels, ownerReferences },
    })
  }
}
