import { loadKubeConfig } from '../adapters/kube/kubeconfig.ts'
import type { KubeConfigOptions } from '../adapters/kube/kubeconfig.ts'
import type { OperationSpec } from '../api/talos-operation.ts'
import { timing } from '../core/timing.ts'
import type { Kind } from '../core/kind.ts'
import type { Plan } from '../engine/plan.ts'
import { planOperation } from '../engine/plan.ts'
import type { Fault, Result } from '../ports/fault.ts'
import type { Home } from '../ports/home.ts'
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
    const hidden = await unreadableSecret(ports.home, operation)
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

/** A Secret that the reader may not read: then nothing is known from here, and nothing is wrong either. The controller has rights of its own. */
const unreadableSecret = async (
  home: Home,
  { namespace, spec }: { readonly namespace: string; readonly spec: OperationSpec },
): Promise<Fault | undefined> => {
  const cluster = await home.cluster({ namespace, name: spec.clusterRef.name })
  if (!cluster.ok) return undefined
  const { talosconfigSecretRef, kubeconfigSecretRef } = cluster.value.spec
  for (const ref of [talosconfigSecretRef, kubeconfigSecretRef]) {
    const read = ref && (await home.secret({ namespace, name: ref.name }))
    if (read && !read.ok && read.fault.kind === 'forbidden') return read.fault
  }
  return undefined
}
