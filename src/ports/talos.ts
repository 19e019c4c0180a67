import type { Cancellation } from './clock.ts'
import type { ComponentCalls } from './components.ts'
import type { ConfigurationCalls } from './configuration.ts'
import type { Diagnostics } from './diagnostics.ts'
import type { Result } from './fault.ts'
import type { MachineActions } from './machine-actions.ts'

export type MachineStage =
  | 'unknown'
  | 'booting'
  | 'installing'
  | 'maintenance'
  | 'running'
  | 'rebooting'
  | 'shutting down'
  | 'resetting'
  | 'upgrading'

/** What one machine says about itself, all read from that machine. */
export type MachineFacts = {
  readonly address: string
  readonly hostname: string
  /** Empty where Kubernetes registration is off. */
  readonly nodename: string
  readonly role: 'controlplane' | 'worker'
  /** SMBIOS UUID; may be zero or the same on two machines. Empty where the machine does not say. */
  readonly uuid: string
  /** Talos' own node identity. */
  readonly nodeID: string
  readonly clusterID: string
  readonly clusterName: string
  /** Running version with `v`. */
  readonly version: string
  readonly platform: string
  readonly arch: string
  readonly secureBoot: boolean
  readonly bootID: string
  readonly stage: MachineStage
  /** Counts only in stage running: everywhere else Talos says true without looking. */
  readonly ready: boolean
  /** `name: reason` of each condition that is not met. */
  readonly unmet: readonly string[]
  /** Schematic id of the running image; empty where no Image Factory made it. */
  readonly schematic: string
  /** Host of the Image Factory that made it; empty where unknown. */
  readonly factory: string
  /** System extensions that run, without the schematic. */
  readonly extensions: readonly string[]
  /** `machine.install.image` of its configuration. */
  readonly installImage: string
  /** META key 6 is set: a failed boot would fall back to the other slot. */
  readonly fallbackArmed: boolean
  /** The current etcd quota in bytes: `quota-backend-bytes` of the configuration, or etcd's default. Control planes only. */
  readonly etcdQuotaBytes: number
}

export type EtcdMember = {
  /** 16 lower-case hexadecimal digits. */
  readonly id: string
  /** Only for display: it may be spelled unlike the Node. */
  readonly name: string
  readonly peerURLs: readonly string[]
  readonly isLearner: boolean
}

/** etcd as one control plane sees it, asked at that control plane. */
export type EtcdView = {
  readonly service: { readonly state: string; readonly healthy: boolean }
  readonly members: readonly EtcdMember[]
  readonly status: {
    readonly memberID: string
    /** Member id of the leader; empty when there is none. */
    readonly leader: string
    readonly raftTerm: bigint
    readonly raftIndex: bigint
    readonly raftAppliedIndex: bigint
    readonly dbSize: number
    readonly dbSizeInUse: number
    readonly errors: readonly string[]
    readonly isLearner: boolean
    readonly protocolVersion: string
    readonly storageVersion: string
  }
  readonly alarms: readonly { readonly memberID: string; readonly alarm: 'NOSPACE' | 'CORRUPT' }[]
}

/** A member of the cluster as Talos' discovery knows it. */
export type ClusterMember = {
  readonly hostname: string
  readonly nodeID: string
  readonly role: 'controlplane' | 'worker'
  readonly addresses: readonly string[]
  readonly operatingSystem: string
}

export type InstallOutcome = {
  readonly exitCode: number
  /** The last meaningful lines of the installer, oldest first. */
  readonly lines: readonly string[]
}

/** How far a long act is, for people; never a fact to decide on. */
export type Progress = (message: string) => void

export type LongCall = { readonly cancellation: Cancellation; readonly progress: Progress }

/** Takes the next bytes of a snapshot, which are its own only until it has answered; nothing more comes before that. A fault ends the download. */
export type SnapshotSink = (bytes: Uint8Array) => Promise<Result<void>>

/** What came through, whole: `sha256` is of all of it, in lower-case hexadecimal digits. */
export type SnapshotDigest = { readonly bytes: number; readonly sha256: string }

export type EtcdSnapshots = {
  /**
   * Streams a snapshot of the database of this control plane into the sink, with constant memory. Succeeds only when all of it came and the checksum
   * at its end is right. Each call begins at the first byte, so a sink is for one call. A fault of the sink is the answer; what the sink
   * has by then is no snapshot.
   */
  readonly snapshot: (address: string, sink: SnapshotSink, call: LongCall) => Promise<Result<SnapshotDigest>>
}

export type RebootMode = 'default' | 'powercycle' | 'force'

/**
 * The Talos API of one cluster. Every call goes to the machine's own address and has a deadline. An answer OK of `reboot` or `upgrade` means
 * queued: whether it happened is told by the boot id alone.
 */
export type Talos = MachineActions &
  ComponentCalls &
  ConfigurationCalls &
  Diagnostics & {
    /** Hosts that the talosconfig names: where a cluster is asked for its members first. */
    readonly endpoints: readonly string[]
    /** From when and until when the client certificate is valid, milliseconds since 1970. */
    readonly credentialBegins: number
    readonly credentialExpires: number
    /** When the first of the CAs ends that it trusts, milliseconds since 1970. */
    readonly authorityExpires: number
    /** Organizations of the client certificate: its roles. */
    readonly roles: readonly string[]

    readonly members: (address: string) => Promise<Result<readonly ClusterMember[]>>
    readonly machine: (address: string) => Promise<Result<MachineFacts>>
    readonly etcd: (address: string) => Promise<Result<EtcdView>>
    /**
     * Tells `changed` when the machine may say something new of its stage, its readiness or its boot, and once at the beginning: a reason to look, never a
     * fact. Goes on through reboots and lost connections, until it is stopped by the answer. `ended`: its credential was replaced, and whoever still
     * wants to hear watches anew.
     */
    readonly watch: (address: string, told: (what: 'changed' | 'ended') => void) => () => void

    /** Pulls into the containerd that the installer runs from; answers the reference to install, pinned by digest where the machine gives one. */
    readonly pull: (address: string, image: string, call: LongCall) => Promise<Result<string>>
    /** LifecycleService.Upgrade, Talos 1.13 and newer: runs the installer and nothing else. */
    readonly install: (address: string, image: string, call: LongCall) => Promise<Result<InstallOutcome>>
    /** MachineService.Upgrade, for older machines: drains, installs and reboots by itself. May take minutes to answer. */
    readonly upgrade: (
      address: string,
      request: { readonly image: string; readonly preserve: boolean; readonly rebootMode: RebootMode },
    ) => Promise<Result<void>>
    readonly reboot: (address: string, mode: RebootMode) => Promise<Result<void>>
    readonly forfeitLeadership: (address: string) => Promise<Result<void>>
    /** Sets `machine.install.image` in the live configuration without a reboot; reads it anew first and changes nothing else. */
    readonly setInstallImage: (address: string, image: string) => Promise<Result<void>>
  }
