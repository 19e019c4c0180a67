import type { Manifest, StaticComponent, Waiting } from './components.ts'
import type { Result } from './fault.ts'

/** A static pod as the Kubernetes API shows it. It may outlive its pod there for a while, Ready as ever. */
export type ControlPlanePod = {
  readonly component: StaticComponent
  readonly node: string
  readonly image: string
  /** Which rendering of Talos it is, by its annotations; empty where it has none. */
  readonly configVersion: string
  readonly ready: boolean
  readonly restarts: number
  /** Since when its process runs, milliseconds since 1970 by the clock of its machine, in whole seconds; absent while it does not. */
  readonly startedAt?: number
  readonly waiting?: Waiting
}

/** How far a DaemonSet or a Deployment is with what it was told. */
export type RolloutFacts = {
  readonly image: string
  readonly desired: number
  /** Pods made of what it says now. */
  readonly updated: number
  readonly available: number
  /** Its controller has seen what it says now, so that the numbers are about that. */
  readonly isObserved: boolean
}

export type ControlPlaneFacts = {
  readonly pods: readonly ControlPlanePod[]
  /**
   * When each API server said last that it serves, by the host name that it goes by: milliseconds since 1970 by the clock of its machine. Each has a
   * Lease for that, since Kubernetes 1.26. Empty where none has, or where they are not for us to read.
   */
  readonly servedAt: Readonly<Record<string, number>>
  /** Absent where the cluster has no such object. */
  readonly kubeProxy?: RolloutFacts
  readonly coreDNS?: RolloutFacts
}

/** An API that somebody has asked for since the API server started, and that a release does not serve any more. */
export type DeprecatedApi = {
  /** `flowcontrol.apiserver.k8s.io/v1beta3 flowschemas` */
  readonly resource: string
  /** `1.32`; empty where nobody has decided yet. */
  readonly removedIn: string
}

/** What applying a manifest would do, or what became of one. */
export type ManifestChange = {
  /** `Service kube-system/kube-dns` */
  readonly name: string
  /**
   * same: nothing. refused: the API server does not take it, in the words of `detail`. leftover: no manifest, but Talos' inventory has it and it lives;
   * only pruning deletes it. kept: the same, but pruning leaves it alone, too.
   */
  readonly would: 'same' | 'create' | 'change' | 'refused' | 'leftover' | 'kept'
  /** For `change` the fields, and for `refused` and `kept` why. Never a value. */
  readonly detail: string
}

/** The programs of Kubernetes as its API shows them. */
export type ControlPlaneCalls = {
  readonly controlPlane: () => Promise<Result<ControlPlaneFacts>>
  /** By the metrics of the API server that answers; others may have been asked for more. */
  readonly deprecatedApis: () => Promise<Result<readonly DeprecatedApi[]>>
  /** By a dry run of server-side apply; writes nothing. What is left over is found by the inventory that Talos keeps since 1.13, and comes last. */
  readonly compareManifests: (manifests: readonly Manifest[]) => Promise<Result<readonly ManifestChange[]>>
  /** Server-side apply in Talos' own name, what others need first. Goes on after one that is refused; the answer is the first fault. Deletes nothing. */
  readonly applyManifests: (manifests: readonly Manifest[]) => Promise<Result<void>>
  /** Deletes those leftovers that are named, and takes them out of the inventory. */
  readonly pruneManifests: (manifests: readonly Manifest[], names: readonly string[]) => Promise<Result<void>>
}
