import type { TalosOperation } from '../../api/talos-operation.ts'
import type { Refusal } from '../../core/kind.ts'
import { apiOutage } from '../../core/machine-steps/api-outage.ts'
import type { World } from '../../core/world.ts'
import { changesAny, isOfControlPlane, type Change } from './change.ts'
import { specOf } from './spec.ts'

/**
 * All that Talos renders the static pod of kube-apiserver from: its arguments, and its files, among which is the configuration of the scheduler
 * (Talos 1.13.9, resources APIServerConfig, AdmissionControlConfig, AuditPolicyConfig and AuthorizationConfig; SchedulerConfig).
 */
const PLACES: readonly string[] = [
  ...['cluster.apiServer', 'KubeAPIServerConfig', 'KubeAdmissionControlConfig', 'KubeAuditPolicyConfig', 'KubeAuthorizerConfig'],
  ...['KubeAuthenticationConfig', 'cluster.scheduler', 'KubeSchedulerConfig', 'cluster.controlPlane', 'KubeClusterConfig.endpoint'],
  ...['cluster.network.serviceSubnets', 'KubeNetworkConfig.serviceSubnets', 'cluster.externalCloudProvider.enabled'],
]

/** A patch at once takes the only API server away for a moment. In the mode reboot the whole machine goes, which etcd has a word about. */
export const apiServerGoes = (operation: TalosOperation, world: World, changes: readonly Change[]): readonly Refusal[] => {
  const { mode } = specOf(operation)
  const isAtOnce = mode === 'try' || mode === 'no-reboot'
  return isAtOnce && changes.some(change => isOfControlPlane(change) && changesAny(change, PLACES)) ? apiOutage(operation, world) : []
}
