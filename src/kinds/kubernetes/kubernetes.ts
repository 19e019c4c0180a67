import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import { imageTitle } from '../../core/component-image.ts'
import { kind } from '../../core/kind.ts'
import { chosen } from '../../core/machine-steps/target.ts'
import { checkNeeds, checks } from './checks.ts'
import { kubeProxyStage } from './kube-proxy.ts'
import { kubeletStage } from './kubelet.ts'
import { manifestsStage } from './manifests.ts'
import { pullStage } from './pull.ts'
import { kubernetesSpec } from './spec.ts'
import { staticPodStage } from './static-pods.ts'
import { specOf, STATIC_COMPONENTS } from './view.ts'

/** Of the program that the stage is about: a machine that is done keeps no images in status, but has the version by then. */
const change = (operation: TalosOperation, target: Target): string => {
  const [from, image] = [chosen(target, 'from'), chosen(target, 'image')]
  if (from !== '' && image !== '') return `${imageTitle(from)} → ${imageTitle(image)}`
  return target.phase === 'Completed' && operation.status.stage !== pullStage.name ? specOf(operation).version : ''
}

/** Upgrades Kubernetes: the control plane component by component, then kube-proxy, then the kubelets, then what Talos brings into the cluster. */
export const kubernetes = kind({
  name: 'kubernetes',
  block: 'kubernetes',
  summary: 'Upgrades Kubernetes: the static pods of the control planes, kube-proxy, the kubelets, and the bootstrap manifests.',
  spec: kubernetesSpec,
  // It reboots nothing.
  ignores: ['timeouts'],
  change: { title: 'Kubernetes', of: change },
  checkNeeds,
  checks,
  stages: [pullStage, ...STATIC_COMPONENTS.map(staticPodStage), kubeProxyStage, kubeletStage, manifestsStage],
})
