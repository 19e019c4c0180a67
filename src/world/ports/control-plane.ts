import { renderingOf } from '../../api/rendering.ts'
import type { Waiting } from '../../ports/components.ts'
import type { ControlPlaneCalls, ControlPlanePod, RolloutFacts } from '../../ports/control-plane.ts'
import type { Result } from '../../ports/fault.ts'
import { done, failed, ok } from '../../ports/fault.ts'
import { COMPONENTS } from '../kubernetes-config.ts'
import { applyManifest, compareManifests, pruneManifests } from '../manifests.ts'
import { RESOURCE, conditionOf } from '../objects.ts'
import type { Site } from '../site.ts'
import type { KubeObject } from '../store.ts'

type Containers = { readonly containers?: readonly { readonly image?: string }[] }
type ContainerStatus = {
  readonly restartCount?: number
  readonly state?: { readonly waiting?: Waiting; readonly running?: { readonly startedAt: string } }
}

const podOf = (pod: KubeObject): readonly ControlPlanePod[] => {
  const { labels = {}, annotations = {} } = pod.metadata
  const component = COMPONENTS.find(one => one === labels['k8s-app'])
  if (!component || annotations['kubernetes.io/config.mirror'] === undefined) return []
  const [status] = (pod.status as { containerStatuses?: readonly ContainerStatus[] } | undefined)?.containerStatuses ?? []
  const { waiting, running } = status?.state ?? {}
  return [
    {
      component,
      node: (pod.spec as { nodeName?: string }).nodeName ?? '',
      image: (pod.spec as Containers).containers?.[0]?.image ?? '',
      configVersion: renderingOf(annotations),
      ready: conditionOf(pod, 'Ready')?.status === 'True',
      restarts: status?.restartCount ?? 0,
      ...(running ? { startedAt: Date.parse(running.startedAt) } : {}),
      ...(waiting ? { waiting } : {}),
    },
  ]
}

/** Of the Lease of an API server: by host name, when it said last that it serves. */
const servedAtOf = ({ metadata, spec }: KubeObject): readonly (readonly [string, number])[] => {
  const { labels = {} } = metadata
  const host = labels['kubernetes.io/hostname']
  return labels['apiserver.kubernetes.io/identity'] === 'kube-apiserver' && host !== undefined
    ? [[host, Date.parse((spec as { renewTime: string }).renewTime)]]
    : []
}

type SetStatus = {
  readonly desiredNumberScheduled?: number
  readonly updatedNumberScheduled?: number
  readonly numberAvailable?: number
  readonly observedGeneration?: number
}

const rolloutOf = (set: KubeObject): RolloutFacts => {
  const {
    desiredNumberScheduled = 0,
    updatedNumberScheduled = 0,
    numberAvailable = 0,
    observedGeneration = 0,
  } = (set.status ?? {}) as SetStatus
  const { spec } = (set.spec as { template: { spec: Containers } }).template
  return {
    image: spec.containers?.[0]?.image ?? '',
    desired: desiredNumberScheduled,
    updated: updatedNumberScheduled,
    available: numberAvailable,
    isObserved: observedGeneration >= set.metadata.generation,
  }
}

type Call = <T>(name: keyof ControlPlaneCalls, target: string, changes: boolean, run: () => Result<T>) => Promise<Result<T>>

/** The programs of Kubernetes, through the world's Kubernetes port. CoreDNS is there as far as somebody says so. */
export const controlPlaneCalls = (site: Site, call: Call): ControlPlaneCalls => ({
  controlPlane: () =>
    call('controlPlane', '', false, () => {
      const { coreDNS } = site.faults
      const kubeProxy = site.store.get(RESOURCE.daemonSets, 'kube-system', 'kube-proxy')
      return ok({
        pods: site.store.list(RESOURCE.pods, 'kube-system').items.flatMap(podOf),
        servedAt: Object.fromEntries(site.store.list(RESOURCE.leases, 'kube-system').items.flatMap(servedAtOf)),
        ...(kubeProxy ? { kubeProxy: rolloutOf(kubeProxy) } : {}),
        ...(coreDNS
          ? { coreDNS: { ...coreDNS, image: 'registry.k8s.io/coredns:v1.14.2', updated: coreDNS.desired, isObserved: true } }
          : {}),
      })
    }),
  deprecatedApis: () => call('deprecatedApis', '', false, () => ok(site.faults.deprecatedApis)),
  compareManifests: manifests => call('compareManifests', '', false, () => ok(compareManifests(site, manifests))),
  applyManifests: manifests =>
    call<void>('applyManifests', '', true, () => {
      const refused = manifests.flatMap(one => applyManifest(site, one) ?? [])
      return refused[0] === undefined ? done : failed('invalid', refused[0])
    }),
  pruneManifests: (manifests, names) =>
    call<void>('pruneManifests', '', true, () => {
      pruneManifests(site, manifests, names)
      return done
    }),
})
