import type { TalosOperation } from '../../api/talos-operation.ts'
import { kind } from '../../core/kind.ts'
import { checkNeeds, checks } from './checks.ts'
import { kubeProxyStage } from './kube-proxy.ts'
import { kubeletStage } from './kubelet.ts'
import { manifestsStage } from './manifests.ts'
import { pullStage } from './pull.ts'
import { kubernetesSpec } from './spec.ts'
import { staticPodStage } from './static-pods.ts'
import { specOf, STATIC_COMPONENTS } from './view.ts'

/** `Kubernetes v1.35.4 -> v1.35.5 on 6 machines`; undefined where there was another version nowhere. */
const outcome = (operation: TalosOperation): string | undefined => {
  const { preflight, stages = [] } = operation.status
  const { version } = specOf(operation)
  const from = preflight?.kubernetes?.lowest
  const done = Math.max(0, ...stages.map(stage => stage.done))
  if (from === undefined || from === version || done === 0) return undefined
  const left = stages.find(stage => stage.name === kubeletStage.name)?.skipped ?? 0
  const machines = (count: number): string => `${count} ${count === 1 ? 'machine' : 'machines'}`
  return `Kubernetes ${from} -> ${version} on ${machines(done)}${left > 0 ? `; kubelet skipped on ${machines(left)}` : ''}`
}

/** Upgrades Kubernetes: the control plane component by component, then kube-proxy, then the kubelets, then what Talos brings into the cluster. */
export const kubernetes = kind({
  name: 'kubernetes',
  block: 'kubernetes',
  summary: 'Upgrades Kubernetes: the static pods of the control planes, kube-proxy, the kubelets, and the bootstrap manifests.',
  spec: kubernetesSpec,
  // It reboots nothing.
  ignores: ['timeouts'],
  whole: true,
  outcome,
  checkNeeds,
  checks,
  stages: [pullStage, ...STATIC_COMPONENTS.map(staticPodStage), kubeProxyStage, kubeletStage, manifestsStage],
})
