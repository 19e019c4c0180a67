import type { Workload } from '../src/world/population.ts'

/** What runs on the machines of the measured clusters: as in the demo, something with a budget, something with a volume, and something plain. */
export const workloads: readonly Workload[] = [
  { name: 'web', namespace: 'shop', replicas: 3, graceSeconds: 20, budget: { maxUnavailable: 1 } },
  { name: 'database', namespace: 'shop', graceSeconds: 60, volume: true },
  { name: 'reports', namespace: 'shop', replicas: 2, graceSeconds: 10 },
]
