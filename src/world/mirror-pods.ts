import { COMPONENTS, imageVersion } from './kubernetes-config.ts'
import type { Machine } from './machine.ts'
import { RESOURCE, change, timestamp, withCondition } from './objects.ts'
import type { Site } from './site.ts'
import type { StaticPod } from './static-pods.ts'
import { annotationsOf } from './static-pods.ts'
import type { KubeObject } from './store.ts'

/** The status of its only container. */
export const containerStatusOf = (component: string, pod: StaticPod) => ({
  ...{ name: component, image: pod.image, restartCount: pod.restarts, ready: pod.isRunning },
  state: pod.isRunning ? { running: { startedAt: timestamp(pod.startedAt) } } : { waiting: pod.waiting },
})

/**
 * The shadows of a machine's static pods in the Kubernetes API. One outlives its pod, Ready as ever, until the kubelet has another pod to show in its
 * place: one that runs, or one that it cannot start. The next boot begins the same pods anew and says so in their containers only.
 */
export const keepMirrorsOf = (site: Site, machine: Machine, nodeUID: string): void => {
  const { store, schedule } = site
  for (const component of COMPONENTS) {
    const pod = machine.pods.get(component)
    const name = `${component}-${machine.name}`
    const there = store.get(RESOURCE.pods, 'kube-system', name)
    if (!pod) {
      if (there) store.remove(RESOURCE.pods, 'kube-system', name, { uid: there.metadata.uid, gracePeriodSeconds: 0 })
      continue
    }
    if (!pod.isRunning && !pod.waiting) continue
    const annotations = annotationsOf(component, pod)
    const isSame = there?.metadata.annotations?.['kubernetes.io/config.hash'] === annotations['kubernetes.io/config.hash']
    const state = containerStatusOf(component, pod)
    if (there && isSame) {
      const told = (there.status as { containerStatuses?: readonly unknown[] }).containerStatuses?.[0]
      if (JSON.stringify(told) === JSON.stringify(state)) continue
      change(store, RESOURCE.pods, 'kube-system', name, now => ({ ...now, status: statusOf(now, schedule.now(), pod, state) }))
      continue
    }
    if (there) store.remove(RESOURCE.pods, 'kube-system', name, { uid: there.metadata.uid, gracePeriodSeconds: 0 })
    store.create(RESOURCE.pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: 'kube-system',
        labels: {
          'app.kubernetes.io/component': 'control-plane',
          'app.kubernetes.io/managed-by': 'Talos',
          'app.kubernetes.io/name': component,
          'app.kubernetes.io/version': imageVersion(pod.image).replace(/^v/, ''),
          component,
          'k8s-app': component,
          tier: 'control-plane',
        },
        annotations,
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: machine.name, uid: nodeUID, controller: true }],
      },
      spec: { nodeName: machine.name, hostNetwork: true, containers: [{ name: component, image: pod.image }] },
      status: statusOf(undefined, schedule.now(), pod, state),
    })
  }
}

const statusOf = (before: KubeObject | undefined, now: number, { isRunning }: StaticPod, state: ReturnType<typeof containerStatusOf>) => ({
  phase: isRunning ? 'Running' : 'Pending',
  conditions: withCondition(before, now, { type: 'Ready', status: isRunning ? 'True' : 'False' }),
  containerStatuses: [state],
})
