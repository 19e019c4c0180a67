import type { Result } from '../../ports/fault.ts'
import type { Certificate } from './cluster-sight.ts'

/** A CustomResourceDefinition, as far as it decides whether it fits. */
export type CrdFacts = {
  readonly versions: readonly { readonly name: string; readonly served: boolean; readonly storage: boolean; readonly schema: unknown }[]
  /** As which versions objects may be stored. */
  readonly stored: readonly string[]
  readonly established: boolean
  /** Why not; empty where it is. */
  readonly message: string
}

export type PodSight = {
  readonly name: string
  readonly node: string
  readonly ready: boolean
  /** Why it does not run, in the words of its kubelet or scheduler; empty where it does. */
  readonly why: string
}

export type DeploymentSight = {
  readonly replicas: number
  readonly available: number
  readonly image: string
  /** It looks after all namespaces. */
  readonly isEverywhere: boolean
  /** Of Helm, where that has installed it. */
  readonly release?: string
  readonly pods: Result<readonly PodSight[]>
}

/** What somebody may do with Ichor, and whether it is so. */
export type Ability = { readonly what: string; readonly may: boolean }

/** The cluster in which Ichor's own resources live, as it was seen from where we are, with our own rights. */
export type InstallationSight = {
  readonly now: number
  /** Of the installation. */
  readonly namespace: string
  /** The namespace that was asked about: another one where Ichor is not installed in it. */
  readonly asked: string
  /** Our own version, without v. */
  readonly program: string
  /** Its address. */
  readonly server: string
  readonly version: Result<string>
  readonly serverClock: Result<number>
  readonly certificates: readonly Certificate[]
  /** As this program would write them, by name. */
  readonly wantedCrds: Readonly<Record<string, CrdFacts>>
  readonly crds: Readonly<Record<string, Result<CrdFacts | undefined>>>
  /** What keeps the API server from enforcing who may start what, a sentence each, and for which controller the policies are. */
  readonly policies: Result<{ readonly gaps: readonly string[]; readonly controller: string }>
  /** The controller for which the policies that are there were made, whether they are whole or not. */
  readonly policiesFor: string | undefined
  /** Whom the API server takes us for. */
  readonly self: string
  readonly own: Result<readonly Ability[]>
  /** What the controller may not do that it has to. */
  readonly controllerLacks: Result<readonly string[]>
  readonly deployment: Result<DeploymentSight | undefined>
  /** Of the leader. */
  readonly lease: Result<{ readonly holder: string; readonly renewed: number; readonly lastsMs: number } | undefined>
}
