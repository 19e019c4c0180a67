import { kind } from '../../core/kind.ts'
import { checkNeeds, checks } from './checks.ts'
import { kubeProxyStage } from './kube-proxy.ts'
import { kubeletStage } from './kubelet.ts'
import { manifestsStage } from './manifests.ts'
import { pullStage } from './pull.ts'
import { kubernetesSpec } from './spec.ts'
import { staticPodStage } from './static-pods.ts'
import { STATIC_COMPONENTS } from './view.ts'

/** Upgrades Kubernetes: the control plane component by component, then kube-proxy, then the kubelets, then what Talos brings into the cluster. */
export const kubernetes = kind({
  name: 'kubernetes',
  block: 'kubernetes',
  summary: 'Upgrades Kubernetes: the static pods of the control planes, kube-proxy, the kubelets, and the bootstrap manifests.',
  spec: kubernetesSpec,
  // It reboots nothing.
  ignores: ['timeouts'],
  checkNeeds,
  checks,
  stages: [pullStage, ...STATIC_COMPONENTS.map(staticPodStage), kubeProxyStage, kubeletStage, manifestsStage],
})
