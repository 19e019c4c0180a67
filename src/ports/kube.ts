import type { ObjectRef } from '../api/talos-cluster.ts'
import type { LabelSelector } from '../api/talos-operation.ts'
import type { ControlPlaneCalls } from './control-plane.ts'
import type { Result } from './fault.ts'

/** A Node of the managed cluster, as far as operations need it. */
export type NodeFacts = {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly controlPlane: boolean
  readonly ready: boolean
  /** When the Ready condition changed last, milliseconds since 1970. */
  readonly readySince: number
  readonly unschedulable: boolean
  /** It has a taint that keeps pods without a toleration away, besides that of a cordon. */
  readonly tainted?: boolean
  readonly bootID: string
  readonly systemUUID: string
  readonly kubeletVersion: string
  readonly kernelVersion: string
  readonly osImage: string
  /** Internal and external addresses. */
  readonly addresses: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** The operation (its UID) whose cordon it has; absent where it has none, or one that anybody else set. */
  readonly cordonedBy?: string
}

export type PodFacts = {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly node: string
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
  readonly labels: Readonly<Record<string, string>>
  /** A static pod's shadow: it goes with its node and cannot be evicted. */
  readonly mirror: boolean
  /** The controlling owner's kind, for example DaemonSet; empty for a bare pod. */
  readonly ownerKind: string
  /** PersistentVolumeClaims that it uses, of its own namespace; absent where it uses none. */
  readonly claims?: readonly string[]
  /** deletionTimestamp is set: it is on its way out. */
  readonly terminating: boolean
  /** The scheduler puts it on a cordoned Node too. */
  readonly toleratesCordon?: boolean
  /** How long ago it was made, milliseconds, all by the server's own clock and right to a second. Absent but for those that tolerate a cordon, or where it cannot be told. */
  readonly ageMs?: number
  /** Its Ready condition, as the API has it: the shadow of a static pod goes on saying so for a while after the pod is gone. */
  readonly ready?: boolean
  /** When the youngest of its running containers started, milliseconds since 1970 by the clock of its machine; absent while none runs. */
  readonly startedAt?: number
}

/** A VolumeAttachment: a volume that is attached to a node. */
export type VolumeFacts = {
  readonly name: string
  /** `namespace/name` of the PersistentVolumeClaim that has the volume; absent where none has it, or where it cannot be told. */
  readonly claim?: string
}

/** A PodDisruptionBudget that covers a pod. */
export type BudgetFacts = {
  readonly namespace: string
  readonly name: string
  readonly disruptionsAllowed: number
  /** Label selector of `policy/v1`. */
  readonly matchLabels: Readonly<Record<string, string>>
  /** Absent where there are none. All must hold, as well as the labels. */
  readonly matchExpressions?: LabelSelector['matchExpressions']
}

export type CiliumFacts = {
  /** Of the agent's image, without `v`. */
  readonly version: string
  /** The keys of the ConfigMap cilium-config; undefined where it cannot be read. */
  readonly config: Readonly<Record<string, string>> | undefined
}

export type ClusterAddons = { readonly cilium: CiliumFacts | undefined; readonly kubeProxy: boolean }

/** The Kubernetes API of one managed cluster. */
export type Kube = ControlPlaneCalls & {
  /** The API server's own version, for example `v1.36.2`. */
  readonly version: () => Promise<Result<string>>
  /** How far the API server's clock is ahead of ours, milliseconds; right to about a second. */
  readonly clockAhead: () => Promise<Result<number>>
  readonly nodes: () => Promise<Result<readonly NodeFacts[]>>
  readonly podsOn: (node: string) => Promise<Result<readonly PodFacts[]>>
  readonly budgets: () => Promise<Result<readonly BudgetFacts[]>>
  readonly volumeAttachments: (node: string) => Promise<Result<readonly VolumeFacts[]>>
  readonly addons: () => Promise<Result<ClusterAddons>>
  /**
   * Any object, as the server has it now and never out of a cache. `unsupported` where it serves no such type, `invalid` where the reference has a
   * namespace too many or too few.
   */
  readonly object: (ref: ObjectRef) => Promise<Result<Readonly<Record<string, unknown>>>>

  /** Makes a schedulable node unschedulable and marks the cordon as ours; `conflict` when the Node changed since it was read, so it is never another's. */
  readonly cordon: (node: NodeFacts, operationUid: string) => Promise<Result<void>>
  /** Takes our mark off, and lifts the cordon where it is ours; `conflict` when the Node changed since it was read. */
  readonly uncordon: (node: NodeFacts) => Promise<Result<void>>

  /** By the Eviction API. `busy` when a PodDisruptionBudget forbids it now; a pod that is gone is a success. */
  readonly evict: (pod: PodFacts) => Promise<Result<void>>
  /** Takes the Node out of the cluster; only this very one (by UID). One that is gone is a success. */
  readonly deleteNode: (node: NodeFacts) => Promise<Result<void>>
  /** With the pod's own grace period, past every budget; only this very pod (by UID). */
  readonly deletePod: (pod: PodFacts) => Promise<Result<void>>
}
