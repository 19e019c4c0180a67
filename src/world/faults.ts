import type { DeprecatedApi } from '../ports/control-plane.ts'
import type { Machine } from './machine.ts'

export type InstallerFault = {
  readonly exitCode: number
  readonly lines: readonly string[]
  /** How many runs of the installer fail; Infinity for all. */
  times: number
}

/** What is wrong with one machine. Scenarios set these before or while the world runs. */
export type MachineFaults = {
  installer: InstallerFault | undefined
  /** So many boots of a freshly installed slot fail; Talos then reverts to the slot before, if META 6 is armed. */
  failedBoots: number
  /** So many boots of a freshly installed slot fail before META can be read: the other slot boots, and META 6 stays. */
  bootsOldSlot: number
  /** A reboot never comes to its end: the machine stays dark until it is switched off and on. */
  rebootNeverEnds: boolean
  /** So much longer takes its firmware, in milliseconds, before it boots anything. */
  firmwareMs: number
  /** Stopping pods takes this long instead of the usual; Infinity for ever. */
  stopPodsMs: number | undefined
  /** The kubelet takes so long from the order to start until its process runs, in milliseconds, instead of the usual. */
  kubeletStartMs: number | undefined
  /** The kubelet does not register with the API after a boot. */
  kubeletNeverRegisters: boolean
  /** Its kube-apiserver ends as soon as it is begun, and is begun again and again; a boot ends that. `crashApiServer` begins it. */
  apiServerCrashes: boolean
  /** etcd of this machine does not start at its boot, however often that is tried, until this ends. */
  etcdNeverStarts: boolean
  /** Every answer comes so much later, in milliseconds. */
  slowMs: number
  /** No more than so many bytes a second come through, each way. */
  bytesPerSecond: number | undefined
  /** The partition of images and data has no room: nothing can be pulled or uploaded. */
  diskFull: boolean
  /** The boot partition has no room for another kernel: every installer fails, and what runs goes on. */
  bootPartitionFull: boolean
  /** Its clock is ahead by so much, in milliseconds; behind where that is negative. `setClock` of the world sets it. */
  clockOffsetMs: number
  /** What it has against every configuration that it is given or shown, in Talos' words. */
  refusesConfig: string | undefined
  /** No time server answers it: after a boot it waits for one. */
  timeNeverSyncs: boolean
}

/** What is wrong with the rest of the world. */
export type Faults = {
  readonly of: (machine: Machine) => MachineFaults
  /** The API server answers 503 until then, milliseconds since 1970. */
  apiDownUntil: number
  /** So many of the next writes of an operation's status find that somebody else wrote in between. */
  statusConflicts: number
  /** Budgets, `namespace/name`, that never allow a disruption, whatever their numbers say. */
  readonly closedBudgets: Set<string>
  /** Bootstrap manifests, `Service kube-system/kube-dns`, that the API server does not take, and what it says. */
  readonly refusedManifests: Map<string, string>
  /** Images, or the ends of them, whose process ends at once, and what it writes before. */
  readonly crashing: Map<string, string>
  /** What the API server counts of APIs that a release does not serve any more. */
  deprecatedApis: readonly DeprecatedApi[]
  /** What is missing of the admission policies, a sentence each. */
  policyGaps: readonly string[]
  /** Pods of the Deployment of CoreDNS, which is nobody's in the world; undefined where there is none. */
  coreDNS: { readonly desired: number; readonly available: number } | undefined
}

const fine = (): MachineFaults => ({
  installer: undefined,
  failedBoots: 0,
  bootsOldSlot: 0,
  rebootNeverEnds: false,
  firmwareMs: 0,
  stopPodsMs: undefined,
  kubeletStartMs: undefined,
  kubeletNeverRegisters: false,
  apiServerCrashes: false,
  etcdNeverStarts: false,
  slowMs: 0,
  bytesPerSecond: undefined,
  diskFull: false,
  bootPartitionFull: false,
  clockOffsetMs: 0,
  timeNeverSyncs: false,
  refusesConfig: undefined,
})

export const createFaults = (): Faults => {
  const machines = new Map<Machine, MachineFaults>()
  return {
    of: machine => {
      const found = machines.get(machine) ?? fine()
      machines.set(machine, found)
      return found
    },
    apiDownUntil: 0,
    statusConflicts: 0,
    closedBudgets: new Set(),
    refusedManifests: new Map(),
    crashing: new Map(),
    deprecatedApis: [],
    policyGaps: [],
    coreDNS: undefined,
  }
}
