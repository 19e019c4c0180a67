import type { World } from '../../world/cluster.ts'
import { createWorld } from '../../world/cluster.ts'
import { parseVersion } from '../../world/releases.ts'
import type { DemoOptions } from './options.ts'

export const CLUSTER = 'home'
export const NAMESPACE = 'ichor-system'

/** A small cluster with something to lose: a web application behind a budget, and a database with a volume. */
export const createDemoWorld = (options: DemoOptions, addresses: readonly string[]): World => {
  // Where there is no second machine for its pods, a budget would hold the drain for ever.
  const canMove = (options.workers || options.controlPlanes) > 1
  return createWorld({
    seed: options.seed,
    controlPlanes: options.controlPlanes,
    workers: options.workers,
    talos: options.from,
    kubernetes: kubernetesFor(options.from),
    addresses: index => addresses[index] ?? '',
    clusterName: CLUSTER,
    scale: options.speed,
    start: Date.now(),
    workloads: [
      { name: 'web', namespace: 'shop', replicas: 3, graceSeconds: 20, ...(canMove ? { budget: { maxUnavailable: 1 } } : {}) },
      { name: 'database', namespace: 'shop', graceSeconds: 60, volume: true },
      { name: 'reports', namespace: 'shop', replicas: 2, graceSeconds: 10 },
    ],
  })
}

/** A Kubernetes that this Talos and the next one know. */
export const kubernetesFor = (talos: string): string => {
  const [, minor = 13] = parseVersion(talos) ?? []
  return minor >= 12 ? 'v1.35.4' : `v1.${minor + 22}.4`
}
