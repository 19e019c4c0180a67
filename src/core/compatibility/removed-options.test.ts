import { describe, expect, it } from 'vitest'
import { parseVersion } from '../versions.ts'
import { removedOptions } from './removed-options.ts'

const removed = (configuration: string, version: string): readonly string[] => {
  const parsed = parseVersion(version)
  if (!parsed) throw new Error(version)
  return removedOptions(configuration, parsed).map(({ component, option, goneIn }) => `${component} ${option} ${goneIn}`)
}

const OLD = `version: v1alpha1
machine:
  type: controlplane
  kubelet:
    extraArgs:
      pod-infra-container-image: registry.k8s.io/pause:3.9
      v: "2"
    extraConfig:
      featureGates: {SizeMemoryBackedVolumes: true, NodeSwap: true}
cluster:
  apiServer:
    extraArgs:
      feature-gates: StatefulSetAutoDeletePVC=true, MutatingAdmissionPolicy=true
      enable-admission-plugins: NodeRestriction,SecurityContextDeny
  controllerManager:
    extraArgs: {bind-address: 0.0.0.0}
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: cp-1
`

const NEW = `version: v1alpha1
machine: {type: controlplane}
cluster:
  apiServer:
    extraArgs: {feature-gates: StatefulSetAutoDeletePVC=true}
---
apiVersion: v1alpha1
kind: KubeAPIServerConfig
extraArgs:
  feature-gates:
    - HonorPVReclaimPolicy=true
    - TopologyAwareHints=false
---
apiVersion: v1alpha1
kind: KubeletConfig
config:
  featureGates: {MemoryManager: true}
`

describe('options that a release does not know', () => {
  it.each<[string, string, string, readonly string[]]>([
    ['a release that knows them all', OLD, 'v1.29.6', []],
    [
      'flags, gates of both places and a plugin',
      OLD,
      'v1.35.4',
      [
        'kube-apiserver feature gate StatefulSetAutoDeletePVC 1.35',
        'kube-apiserver admission plugin SecurityContextDeny 1.30',
        'kubelet --pod-infra-container-image 1.35',
        'kubelet feature gate SizeMemoryBackedVolumes 1.35',
      ].toSorted(),
    ],
    ['only what is gone by then', OLD, 'v1.34.4', ['kube-apiserver admission plugin SecurityContextDeny 1.30']],
    [
      'documents of their own, which then say it all, and lists',
      NEW,
      'v1.36.2',
      [
        'kube-apiserver feature gate HonorPVReclaimPolicy 1.36',
        'kube-apiserver feature gate TopologyAwareHints 1.36',
        'kubelet feature gate MemoryManager 1.36',
      ],
    ],
    ['a configuration that gives nothing', 'version: v1alpha1\nmachine: {type: worker}\ncluster: {}\n', 'v1.37.2', []],
  ])('%s', (_, configuration, version, wanted) => expect(removed(configuration, version).toSorted()).toEqual(wanted))
})
