import { certificates } from './certificates.ts'
import { clock } from './clock.ts'
import type { ClusterSight } from './cluster-sight.ts'
import { controllerSight, drain } from './controller-sight.ts'
import { credential } from './credential.ts'
import { endpoints } from './endpoints.ts'
import { etcd } from './etcd.ts'
import { lock } from './lock.ts'
import type { Look } from './look.ts'
import { machines } from './machines.ts'
import { nodes } from './nodes.ts'
import { operations } from './operations.ts'
import { versions } from './versions.ts'

/** What is asked of a cluster before it is made known to Ichor: what would keep Ichor from working on it. */
export const onboardingLooks: readonly Look<ClusterSight>[] = [credential, endpoints, clock, certificates, versions, nodes]

/** All that is looked at in a cluster, in the order in which it is told. */
export const clusterLooks: readonly Look<ClusterSight>[] = [
  credential,
  endpoints,
  clock,
  certificates,
  versions,
  machines,
  nodes,
  etcd,
  controllerSight,
  drain,
  lock,
  operations,
]
