import type { Result } from './fault.ts'
import type { LongCall } from './talos.ts'

/** A service of a machine. */
export type ServiceFacts = {
  readonly id: string
  /** As Talos says it, `Running`. */
  readonly state: string
  /** unknown: it has no health check, or none was made yet. */
  readonly health: 'healthy' | 'unhealthy' | 'unknown'
  /** When it began to run last, by the clock of its machine, in milliseconds since 1970; absent where it does not run, or began longer ago than Talos remembers. */
  readonly startedAt?: number
  /** What it did last, in Talos' words: why it failed, or what it waits for. Absent where Talos remembers nothing. */
  readonly lastEvent?: string
}

/** What is wiped: the partitions STATE and EPHEMERAL, so that Talos stays installed and has neither configuration nor data; or the whole system disk. */
export type Wipe = 'state' | 'disk'

/**
 * What can be done to one machine, beside an upgrade. As with `reboot`, OK of `shutdown` and `reset` means queued. The calls about etcd go to control
 * planes; on a worker they answer `unsupported`.
 */
export type MachineActions = {
  /** The service of that name; undefined where the machine has none. */
  readonly service: (address: string, id: string) => Promise<Result<ServiceFacts | undefined>>
  /** `unsupported` where Talos lets nobody restart it, `notFound` where the machine has no such service. */
  readonly restartService: (address: string, id: string) => Promise<Result<void>>
  /** `force`: without Talos' own drain, whose failure would take the machine down in disorder. */
  readonly shutdown: (address: string, options: { readonly force: boolean }) => Promise<Result<void>>
  /** Graceful: Talos drains, and leaves etcd if it is still in it. */
  readonly reset: (address: string, options: { readonly wipe: Wipe; readonly reboot: boolean }) => Promise<Result<void>>
  /** The UUID of whatever machine answers in maintenance mode, which proves itself to nobody. `unreachable` where none does. */
  readonly maintenance: (address: string) => Promise<Result<{ readonly uuid: string }>>

  /** Gives back what is free in the database file of this member, which answers nobody meanwhile. */
  readonly defragment: (address: string, call: LongCall) => Promise<Result<void>>
  /** Takes all alarms away; those whose cause is still there come back. */
  readonly disarmAlarms: (address: string) => Promise<Result<void>>
  /** The machine takes itself out of etcd, stops its etcd and deletes its data. Tries for minutes where etcd is not well. */
  readonly leaveEtcd: (address: string, call: LongCall) => Promise<Result<void>>
  /** Asked of a control plane whose own etcd is well, about any member by its id; one that is gone is a success. */
  readonly removeMember: (address: string, memberID: string) => Promise<Result<void>>
}
