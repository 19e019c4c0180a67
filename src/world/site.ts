import type { Durations } from './durations.ts'
import type { Etcd } from './etcd.ts'
import type { Faults } from './faults.ts'
import type { Registry } from './images.ts'
import type { Journal } from './journal.ts'
import type { Machine } from './machine.ts'
import type { Store } from './store.ts'
import type { Cancel, Schedule } from './time.ts'

/** What changed at a machine: enough for those who live by it to look again. */
export type Change =
  /** The kubelet began to run. */
  | 'kubelet-up'
  /** The kubelet stopped, the machine went off, or its network was cut. */
  | 'kubelet-down'
  | 'stage'
  | 'etcd'
  | 'static-pods'
  | 'services'
  | 'node'
  /** The machine configuration, the one that runs or the one on the disk. */
  | 'config'
  | 'meta'
  /** Talos lies on its disk, or another one beside it. */
  | 'installed'
  /** What it shows on its port. */
  | 'certificate'
  | 'addresses'
  /** Its disk is full, or no longer. */
  | 'disk'

/** The ground that all actors of one world stand on. */
export type Site = {
  readonly schedule: Schedule
  readonly durations: Durations
  readonly journal: Journal
  readonly registry: Registry
  readonly store: Store
  readonly faults: Faults
  readonly etcd: Etcd
  readonly machines: readonly Machine[]
  readonly clusterID: string
  readonly clusterName: string
  /** The one that a control plane has at a time; empty where there is none. */
  readonly virtualAddress: string
  /** Version of the control plane's components, with `v`. */
  readonly kubernetes: () => string
  /** What a vendor put behind the version that the API server tells, and behind the one of a machine's kubelet; mostly nothing. */
  readonly vendorTail: (of: Machine | 'api server') => string
  /** What the Node of a machine calls its addresses. */
  readonly addressType: (machine: Machine) => 'InternalIP' | 'ExternalIP'
  /** Tells all listeners, at once and in the order in which they came. The answer of `listen` unsubscribes. */
  readonly tell: (machine: Machine, change: Change) => void
  readonly listen: (listener: (machine: Machine, change: Change) => void) => () => void
}

/** Plans something that a machine does; it happens only if the machine has not gone down in between. */
export const later = (site: Site, machine: Machine, delayMs: number, run: () => void): Cancel => {
  const { life } = machine
  return site.schedule.after(delayMs, () => {
    if (machine.life === life) run()
  })
}
