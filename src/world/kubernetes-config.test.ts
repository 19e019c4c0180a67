import { describe, expect, it } from 'vitest'
import { readKubernetesConfig } from './kubernetes-config.ts'

const KUBERNETES = 'v1.36.2'
const config = (type: string, machine = '', cluster = '', more = ''): string =>
  `version: v1alpha1\nmachine:\n    type: ${type}\n${machine}cluster:\n    clusterName: home\n${cluster}${more}`
const read = (...parts: Parameters<typeof config>) => readKubernetesConfig(config(...parts), KUBERNETES)

describe('what a configuration says of Kubernetes', () => {
  it('falls back to what Talos brings', () => {
    const { components, kubelet, taints, labels, registersNode } = read('controlplane')
    expect([...components].map(([, { image }]) => image)).toEqual([
      'registry.k8s.io/kube-apiserver:v1.36.2',
      'registry.k8s.io/kube-controller-manager:v1.36.2',
      'registry.k8s.io/kube-scheduler:v1.36.2',
    ])
    expect(kubelet.image).toBe('ghcr.io/siderolabs/kubelet:v1.36.2')
    expect(taints).toEqual([{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }])
    expect(labels).toEqual({ 'node-role.kubernetes.io/control-plane': '' })
    expect(registersNode).toBe(true)
  })

  it('a worker has no static pods, no role and no taint', () => {
    const { components, taints, labels } = read('worker')
    expect([components.size, taints, labels]).toEqual([0, [], {}])
  })

  it('reads labels, annotations and taints with and without a value', () => {
    const { labels, annotations, taints } = read(
      'worker',
      '    nodeLabels:\n        a: "1"\n    nodeAnnotations:\n        b: two\n    nodeTaints:\n        x: NoExecute\n        y: v:NoSchedule\n',
    )
    expect(labels).toEqual({ a: '1' })
    expect(annotations).toEqual({ b: 'two' })
    expect(taints).toEqual([
      { key: 'x', effect: 'NoExecute' },
      { key: 'y', value: 'v', effect: 'NoSchedule' },
    ])
  })

  it('lets pods onto control planes where that is said', () => {
    expect(read('controlplane', '', '    allowSchedulingOnControlPlanes: true\n').taints).toEqual([])
  })

  it('has the documents of 1.14 speak for the whole of their part', () => {
    const { kubelet, components, labels, taints, registersNode } = read(
      'controlplane',
      '',
      '',
      [
        ...['---', 'apiVersion: v1alpha1', 'kind: KubeletConfig', 'image: ghcr.io/siderolabs/kubelet:v1.36.3'],
        ...['---', 'apiVersion: v1alpha1', 'kind: KubeAPIServerConfig', 'image: registry.k8s.io/kube-apiserver:v1.36.3'],
        ...['---', 'apiVersion: v1alpha1', 'kind: KubeSchedulerConfig', 'enabled: false'],
        ...[
          '---',
          'apiVersion: v1alpha1',
          'kind: KubeNodeConfig',
          'labels:',
          '    zone: a',
          'taints: {}',
          'skipNodeRegistration: true',
          '',
        ],
      ].join('\n'),
    )
    expect(kubelet.image).toBe('ghcr.io/siderolabs/kubelet:v1.36.3')
    expect([...components.keys()]).toEqual(['kube-apiserver', 'kube-controller-manager'])
    expect(components.get('kube-apiserver')?.image).toBe('registry.k8s.io/kube-apiserver:v1.36.3')
    expect(labels['zone']).toBe('a')
    expect(taints).toEqual([])
    expect(registersNode).toBe(false)
  })

  it('names an argument that is not to be set', () => {
    const { components } = read('controlplane', '', '    apiServer:\n        extraArgs:\n            etcd-servers: http://x\n')
    expect(components.get('kube-apiserver')?.denied).toBe('etcd-servers')
    expect(components.get('kube-scheduler')?.denied).toBeUndefined()
  })

  it('tells certificates and files from what makes another process', () => {
    const plain = read('controlplane')
    const names = read('controlplane', '', '    apiServer:\n        certSANs:\n            - 10.5.0.9\n')
    const audited = read('controlplane', '', '    apiServer:\n        auditPolicy:\n            kind: Policy\n')
    const rendered = ({ components }: typeof plain) => components.get('kube-apiserver')?.rendered
    expect(rendered(names)).toBe(rendered(plain))
    expect(names.secrets).not.toBe(plain.secrets)
    expect(rendered(audited)).toBe(rendered(plain))
    expect(audited.secrets).toBe(plain.secrets)
    expect(audited.files).not.toEqual(plain.files)
  })
})
