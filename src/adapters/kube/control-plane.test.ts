import { describe, expect, it } from 'vitest'
import { controlPlanePodOf, daemonSetOf, deploymentOf, deprecatedApisIn } from './control-plane.ts'

const mirror = (over: object = {}, status: object = {}) => ({
  metadata: {
    name: 'kube-apiserver-cp-1',
    labels: { 'k8s-app': 'kube-apiserver' },
    annotations: { 'kubernetes.io/config.mirror': 'abc', 'talos.dev/config-version': '4' },
  },
  spec: { nodeName: 'cp-1', containers: [{ name: 'kube-apiserver', image: 'registry.k8s.io/kube-apiserver:v1.36.3' }] },
  status: { conditions: [{ type: 'Ready', status: 'True' }], containerStatuses: [{ name: 'kube-apiserver', restartCount: 0 }], ...status },
  ...over,
})

describe('a static pod in the API', () => {
  it('is known by its label and by being a shadow', () => {
    expect(controlPlanePodOf(mirror())).toEqual({
      component: 'kube-apiserver',
      node: 'cp-1',
      image: 'registry.k8s.io/kube-apiserver:v1.36.3',
      configVersion: '4',
      ready: true,
      restarts: 0,
    })
    expect(controlPlanePodOf(mirror({ metadata: { labels: { 'k8s-app': 'kube-apiserver' } } }))).toBeUndefined()
    expect(controlPlanePodOf(mirror({ metadata: { labels: { app: 'web' } } }))).toBeUndefined()
  })

  it('says why its container waits', () => {
    const waiting = { reason: 'CrashLoopBackOff', message: 'back-off 40s restarting failed container' }
    const status = {
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: [{ name: 'kube-apiserver', restartCount: 5, state: { waiting } }],
    }
    expect(controlPlanePodOf(mirror({}, status))).toMatchObject({ ready: false, restarts: 5, waiting })
  })
})

describe('a rollout', () => {
  const template = { spec: { containers: [{ image: 'registry.k8s.io/kube-proxy:v1.36.3' }] } }

  it('of a DaemonSet, whose numbers are about what it says now', () => {
    const status = { desiredNumberScheduled: 6, updatedNumberScheduled: 5, numberAvailable: 6, observedGeneration: 3 }
    const set = { metadata: { generation: 3 }, spec: { template }, status }
    expect(daemonSetOf(set)).toEqual({
      ...{ image: 'registry.k8s.io/kube-proxy:v1.36.3', desired: 6, updated: 5, available: 6, isObserved: true },
    })
    expect(daemonSetOf({ ...set, metadata: { generation: 4 } }).isObserved).toBe(false)
  })

  it('of a Deployment, which has one replica where it names none', () => {
    expect(deploymentOf({ metadata: { generation: 1 }, spec: { template }, status: { observedGeneration: 1 } })).toMatchObject({
      ...{ desired: 1, updated: 0, available: 0, isObserved: true },
    })
  })
})

describe('deprecated APIs', () => {
  it('are told by the metric, subresources with their resource', () => {
    const line = (labels: string): string => `apiserver_requested_deprecated_apis{${labels}} 1`
    const metrics = [
      '# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested',
      line('group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="",version="v1beta3"'),
      line('group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="status",version="v1beta3"'),
      line('group="",removed_release="",resource="componentstatuses",subresource="",version="v1"'),
      'apiserver_request_total{code="200"} 12',
    ].join('\n')
    expect(deprecatedApisIn(metrics)).toEqual([
      { resource: 'flowcontrol.apiserver.k8s.io/v1beta3 flowschemas', removedIn: '1.32' },
      { resource: 'v1 componentstatuses', removedIn: '' },
    ])
  })
})
