import type { TalosMachine } from '../../api/talos-machine.ts'
import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import type { Fault, Result } from '../../ports/fault.ts'
import type { Lease } from '../../ports/home.ts'
import type { ClusterMember, MachineFacts, Talos } from '../../ports/talos.ts'
import type { Validity } from '../expiring.ts'
import { openTargets } from '../ledger.ts'
import type { World } from '../world.ts'

/** What a talosconfig says of itself. */
export type Access = Pick<Talos, 'endpoints' | 'roles' | 'credentialBegins' | 'credentialExpires' | 'authorityExpires'>

export type Certificate = Validity & {
  /** Fits after "The": `client certificate of the kubeconfig`. */
  readonly what: string
  /** How one gets another. */
  readonly remedy: string
  readonly command?: string
  /** It signs others, and is not replaced in an afternoon. */
  readonly isAuthority?: true
}

/** One Talos cluster as it was seen from where we are, each part with the fault in its place where it could not be. */
export type ClusterSight = {
  /** Its TalosCluster, its machines and the facts; made up from the talosconfig alone where it is not registered. */
  readonly world: World
  readonly isRegistered: boolean
  readonly access: Result<Access>
  /** Why we ourselves may not read the talosconfig; the controller may all the same. */
  readonly hidden: Fault | undefined
  /** By the first endpoint of the talosconfig that answers. */
  readonly members: Result<readonly ClusterMember[]>
  /** How far the clock of a TalosMachine is ahead of ours, milliseconds. */
  readonly clocks: Readonly<Record<string, Result<number>>>
  readonly serverClock: Result<number>
  /** The virtual addresses that a TalosMachine may have. */
  readonly virtual: Readonly<Record<string, Result<readonly string[]>>>
  /** Addresses of the names that the talosconfig has as endpoints. */
  readonly resolved: Readonly<Record<string, readonly string[]>>
  /** Besides those of the talosconfig. */
  readonly certificates: readonly Certificate[]
  readonly lock: Result<Lease | undefined>
  readonly operations: Result<readonly TalosOperation[]>
  /** Nodes on which the controller's pods are, where this is the cluster that it runs in. */
  readonly controllerNodes: readonly string[]
  /** Where it is installed; absent where that is the namespace of the cluster. */
  readonly controllerNamespace?: string
  /** Machines are looked at with a talosconfig of one's own, besides. */
  readonly isSeenBesides?: boolean
  /** For how long no controller has been at work, milliseconds; absent where one is, or it is not known. */
  readonly controllerSilentMs?: number
}

export type SeenMachine = { readonly machine: TalosMachine; readonly facts: MachineFacts; readonly name: string }

/** As people call it. */
export const nameOf = ({ metadata, status }: TalosMachine): string => status.hostname ?? metadata.name

/** Those that answered. */
export const answering = ({ world }: ClusterSight): readonly SeenMachine[] =>
  world.machines.flatMap(machine => {
    const facts = world.facts.machines[machine.metadata.name]
    return facts?.ok ? [{ machine, facts: facts.value, name: facts.value.hostname || nameOf(machine) }] : []
  })

/** Why nothing can be said of machines; undefined where some have answered. */
export const silence = (sight: ClusterSight): Fault | undefined => {
  if (answering(sight).length > 0) return undefined
  if (!sight.access.ok) return sight.access.fault
  if (!sight.members.ok) return sight.members.fault
  const first = Object.values(sight.world.facts.machines).find(facts => !facts.ok)
  return first && !first.ok ? first.fault : { kind: 'notFound', message: 'no machine of it is known' }
}

/** The operation that has such a machine open: what it does to it is no fault. */
export const workOn = ({ operations }: ClusterSight, is: (target: Target) => boolean): string | undefined =>
  operations.ok
    ? operations.value.find(({ status }) => status.phase === 'Running' && openTargets(status).some(is))?.metadata.name
    : undefined

/** `ichor … NAME -n NAMESPACE`. */
export const inNamespace = ({ world }: ClusterSight, command: string): string => `${command} -n ${world.cluster.metadata.namespace}`
