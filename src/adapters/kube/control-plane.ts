// The programs of Kubernetes as its API shows them: the shadows of static pods, what the controllers roll out, and what the API server counts.
import { renderingOf } from '../../api/rendering.ts'
import type { StaticComponent, Waiting } from '../../ports/components.ts'
import type { ControlPlanePod, DeprecatedApi, RolloutFacts } from '../../ports/control-plane.ts'
import type { KubeObject } from './client.ts'
import type { Json } from './json.ts'
import { at, list, number, record, text, texts } from './json.ts'

const COMPONENTS: readonly StaticComponent[] = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror'

/** Talos labels its static pods so. */
export const CONTROL_PLANE_PODS = `k8s-app in (${COMPONENTS.join(',')})`

/** Undefined for a pod that is no static pod. */
export const controlPlanePodOf = (pod: KubeObject): ControlPlanePod | undefined => {
  const annotations = texts(at(pod, 'metadata', 'annotations'))
  const component = COMPONENTS.find(one => one === texts(at(pod, 'metadata', 'labels'))['k8s-app'])
  if (!component || annotations[MIRROR_ANNOTATION] === undefined) return undefined
  const status = list(at(pod, 'status', 'containerStatuses'))
    .map(record)
    .find(({ name }) => name === component)
  const waiting = waitingOf(status)
  return {
    component,
    node: text(at(pod, 'spec', 'nodeName')),
    image: firstImage(at(pod, 'spec')),
    configVersion: renderingOf(annotations),
    ready: list(at(pod, 'status', 'conditions'))
      .map(record)
      .some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    restarts: number(status?.['restartCount']),
    ...startedAtOf(status),
    ...(waiting ? { waiting } : {}),
  }
}

const startedAtOf = (status: Json | undefined): { readonly startedAt?: number } => {
  const startedAt = Date.parse(text(at(status, 'state', 'running', 'startedAt')))
  return Number.isNaN(startedAt) ? {} : { startedAt }
}

/** Each kube-apiserver renews one of these while it serves, in the name of its process. */
export const API_SERVER_LEASES = 'apiserver.kubernetes.io/identity=kube-apiserver'

export const servedAtIn = (leases: readonly KubeObject[]): Readonly<Record<string, number>> =>
  Object.fromEntries(
    leases.flatMap(lease => {
      const host = texts(at(lease, 'metadata', 'labels'))['kubernetes.io/hostname']
      const renewed = Date.parse(text(at(lease, 'spec', 'renewTime')))
      return host === undefined || Number.isNaN(renewed) ? [] : [[host, renewed]]
    }),
  )

const waitingOf = (status: Json | undefined): Waiting | undefined => {
  const waiting = record(at(status, 'state', 'waiting'))
  return text(waiting['reason']) === '' ? undefined : { reason: text(waiting['reason']), message: text(waiting['message']) }
}

const firstImage = (podSpec: unknown): string => text(record(list(at(podSpec, 'containers'))[0])['image'])

const isObserved = (object: KubeObject): boolean =>
  number(at(object, 'status', 'observedGeneration')) >= number(at(object, 'metadata', 'generation'))

export const daemonSetOf = (set: KubeObject): RolloutFacts => ({
  image: firstImage(at(set, 'spec', 'template', 'spec')),
  desired: number(at(set, 'status', 'desiredNumberScheduled')),
  updated: number(at(set, 'status', 'updatedNumberScheduled')),
  available: number(at(set, 'status', 'numberAvailable')),
  isObserved: isObserved(set),
})

export const deploymentOf = (deployment: KubeObject): RolloutFacts => {
  const replicas = at(deployment, 'spec', 'replicas')
  return {
    image: firstImage(at(deployment, 'spec', 'template', 'spec')),
    desired: typeof replicas === 'number' ? replicas : 1,
    updated: number(at(deployment, 'status', 'updatedReplicas')),
    available: number(at(deployment, 'status', 'availableReplicas')),
    isObserved: isObserved(deployment),
  }
}

const METRIC = /^apiserver_requested_deprecated_apis\{([^}]*)\} 1$/
const LABEL = /(\w+)="([^"]*)"/g

/** Reads the metric `apiserver_requested_deprecated_apis`: one line for each API, its value always 1. */
export const deprecatedApisIn = (metrics: string): readonly DeprecatedApi[] => {
  const found = metrics.split('\n').flatMap((line): readonly DeprecatedApi[] => {
    const labels = METRIC.exec(line)?.[1]
    if (labels === undefined) return []
    const {
      group = '',
      version = '',
      resource = '',
      removed_release: removedIn = '',
    } = Object.fromEntries([...labels.matchAll(LABEL)].map(([, name = '', value = '']) => [name, value]))
    return [{ resource: `${group === '' ? '' : `${group}/`}${version} ${resource}`, removedIn }]
  })
  // Subresources are told apart there.
  return found.filter((one, index) => found.findIndex(o => o.resource === one.resource && o.removedIn === one.removedIn) === index)
}
