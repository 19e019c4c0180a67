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
  /** Stopping pods takes this long instead of the usual; Infinity for ever. */
  stopPodsMs: number | undefined
  /** The kubelet does not register with the API after a boot. */
  kubeletNeverRegisters: boolean
  /** etcd of this machine does not start. */
  etcdNeverStarts: boolean
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
}

const fine = (): MachineFaults => ({
  installer: undefined,
  failedBoots: 0,
  bootsOldSlot: 0,
  rebootNeverEnds: false,
  stopPodsMs: undefined,
  kubeletNeverRegisters: false,
  etcdNeverStarts: false,
})

export const createFaults = (): Faults => {
  const machines = new Map<string, MachineFaults>()
  return {
    of: machine => {
      const found = machines.get(machine.name) ?? fine()
      machines.set(machine.name, found)
      return found
    },
    apiDownUntil: 0,
    statusConflicts: 0,
    closedBudgets: new Set(),
  }
}
