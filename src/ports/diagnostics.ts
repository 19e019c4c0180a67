import type { Result } from './fault.ts'

/** What a machine can be asked besides what operations decide on: for whoever looks for faults. Nothing is changed by it. */
export type Diagnostics = {
  /** How far the machine's clock is ahead of ours, milliseconds; negative where it is behind. Right to about a second. */
  readonly clockAhead: (address: string) => Promise<Result<number>>
  /** Addresses that this machine may have for a time and another one after it: those of Talos' virtual (shared) IPs. */
  readonly virtualAddresses: (address: string) => Promise<Result<readonly string[]>>
}
