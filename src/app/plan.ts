import { loadKubeConfig } from '../adapters/kube/kubeconfig.ts'
import type { KubeConfigOptions } from '../adapters/kube/kubeconfig.ts'
import type { OperationSpec } from '../api/talos-operation.ts'
import { timing } from '../core/timing.ts'
import type { Kind } from '../core/kind.ts'
import type { Plan } from '../engine/plan.ts'
import { unreadableSecret } from '../engine/examine.ts'
import { planOperation } from '../engine/plan.ts'
import type { Result } from '../ports/fault.ts'
import { openPorts } from './open-ports.ts'
import { systemClock } from './system-clock.ts'

/** A plan made right here, with the reader's own rights: it reads the Secrets of the cluster and asks its machines, and writes nothing. */
export const planHere = async (
  kubeconfig: KubeConfigOptions,
  userAgent: string,
  kind: Kind,
  operation: { readonly namespace: string; readonly name: string; readonly spec: OperationSpec },
): Promise<Result<Plan>> => {
  const config = await loadKubeConfig(kubeconfig)
  if (!config.ok) return config
  const ports = openPorts({ config: config.value, userAgent, namespace: operation.namespace })
  try {
    const cluster = await ports.home.cluster({ namespace: operation.namespace, name: operation.spec.clusterRef.name })
    const { talosconfigSecretRef, kubeconfigSecretRef } = cluster.ok ? cluster.value.spec : {}
    const hidden = await unreadableSecret(ports.home, operation.namespace, [talosconfigSecretRef, kubeconfigSecretRef])
    if (hidden) return { ok: false, fault: hidden }
    return await planOperation(
      { ...ports, clock: systemClock, timing: timing(), self: undefined },
      kind,
      operation.namespace,
      operation.name,
      operation.spec,
    )
  } finally {
    ports.close()
  }
}
