import type { OperationStatus, TalosOperation } from '../api/talos-operation.ts'
import type { TalosCluster, TalosClusterStatus } from '../api/talos-cluster.ts'
import type { TalosMachine, TalosMachineSpec, TalosMachineStatus } from '../api/talos-machine.ts'
import type { Result } from './fault.ts'

/** Names one namespaced object. */
export type Key = { readonly namespace: string; readonly name: string }

export type TextSource = 'Secret' | 'ConfigMap'
/** `uid` tells it from another one that had its name before; whoever may not read the object does not know it. */
export type Texts = { readonly uid: string; readonly data: Readonly<Record<string, string>> }

/** A `coordination.k8s.io/v1` Lease: the cluster lock and the leader election. */
export type Lease = Key & {
  readonly uid: string
  readonly resourceVersion: string
  /** Empty when nobody holds it. */
  readonly holder: string
  readonly durationSeconds: number
  /** As the Lease says them, RFC 3339 with microseconds; empty where absent. */
  readonly acquireTime: string
  readonly renewTime: string
  readonly transitions: number
  readonly annotations: Readonly<Record<string, string>>
}

/** What a writer of a Lease decides; the rest is the server's. */
export type LeaseWrite = Pick<Lease, 'holder' | 'durationSeconds' | 'acquireTime' | 'renewTime' | 'transitions' | 'annotations'> & {
  /** Set beside those that are there. */
  readonly labels?: Readonly<Record<string, string>>
}

export type HomeEvent = {
  readonly regarding: { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string }
  readonly type: 'Normal' | 'Warning'
  /** A word in CamelCase. */
  readonly reason: string
  readonly message: string
}

export type Watched = 'TalosOperation' | 'TalosCluster' | 'TalosMachine' | 'Lease'

/** A change of metadata. A value of null removes an annotation. */
export type MetadataChange = { readonly annotations?: Readonly<Record<string, string | null>>; readonly finalizers?: readonly string[] }

/**
 * The cluster in which Ichor's own resources live.
 *
 * Every write of an existing object carries the resourceVersion of the object it was decided on and answers `conflict` when another write came
 * between; the caller then observes again.
 */
export type Home = {
  /** From the server, never from a cache: what an operation decides on is what is there. */
  readonly operation: (key: Key) => Promise<Result<TalosOperation>>
  readonly cluster: (key: Key) => Promise<Result<TalosCluster>>
  readonly machine: (key: Key) => Promise<Result<TalosMachine>>
  readonly lease: (key: Key) => Promise<Result<Lease>>
  /** The data of a Secret, decoded. */
  readonly secret: (key: Key) => Promise<Result<Readonly<Record<string, Uint8Array>>>>
  /** The texts of a Secret or a ConfigMap; `invalid` where one of them is no UTF-8. Read anew. */
  readonly texts: (kind: TextSource, key: Key) => Promise<Result<Texts>>

  /** Lists may be as old as the last watch event. */
  readonly operations: (namespace?: string) => Promise<Result<readonly TalosOperation[]>>
  readonly clusters: (namespace?: string) => Promise<Result<readonly TalosCluster[]>>
  readonly machines: (cluster: Key) => Promise<Result<readonly TalosMachine[]>>

  readonly writeOperationStatus: (operation: TalosOperation, status: OperationStatus) => Promise<Result<TalosOperation>>
  readonly changeOperation: (operation: TalosOperation, change: MetadataChange) => Promise<Result<TalosOperation>>
  readonly deleteOperation: (operation: TalosOperation) => Promise<Result<void>>

  readonly writeClusterStatus: (cluster: TalosCluster, status: TalosClusterStatus) => Promise<Result<TalosCluster>>

  readonly createMachine: (
    key: Key,
    spec: TalosMachineSpec,
    meta: { readonly labels: Readonly<Record<string, string>>; readonly annotations: Readonly<Record<string, string>> },
  ) => Promise<Result<TalosMachine>>
  /** Its labels but for these stay. */
  readonly writeMachineSpec: (
    machine: TalosMachine,
    spec: TalosMachineSpec,
    labels: Readonly<Record<string, string>>,
  ) => Promise<Result<TalosMachine>>
  readonly writeMachineStatus: (machine: TalosMachine, status: TalosMachineStatus) => Promise<Result<TalosMachine>>

  readonly createLease: (key: Key, write: LeaseWrite) => Promise<Result<Lease>>
  readonly replaceLease: (lease: Lease, write: LeaseWrite) => Promise<Result<Lease>>

  /**
   * What keeps the API server from enforcing who may start what, a sentence each: an admission policy that is not there, not bound, or not the one of this
   * version. Empty where they hold.
   */
  readonly policies: () => Promise<Result<readonly string[]>>

  /** Best effort: an Event that cannot be written is lost, never a reason to stop. */
  readonly event: (event: HomeEvent) => Promise<void>

  /**
   * Calls back with the key of what changed, also once for everything that exists at the start and after every gap in the watch. With it comes the
   * version that the object has by now, by which a writer knows its own write; absent where the object is gone. The answer stops it.
   */
  readonly watch: (what: readonly Watched[], changed: (what: Watched, key: Key, resourceVersion?: string) => void) => () => void
}
