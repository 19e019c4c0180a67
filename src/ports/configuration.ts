import type { Result } from './fault.ts'

/** The machine configuration of one machine, secrets and all, byte for byte. */
export type MachineConfiguration = {
  /** What the machine runs. */
  readonly running: string
  /** What the next boot takes: another text where one is staged, or where the one that runs is only tried. */
  readonly onDisk: string
  /**
   * The machine does not tell what is on its disk, so that `onDisk` is the running one here, and whether that is only on trial nobody can see. Talos tells
   * it since 1.10; but after a boot only once it was given another configuration for good, or for the next boot: a trial does not count.
   */
  readonly isDiskUntold?: true
  /**
   * Why they differ; absent where they do not. staged: the one on the disk waits for its boot. trial: the one that runs was written after it, and the
   * machine puts the other one back by itself after a while, unless something ended the trial, which nobody can tell. Any write but another trial
   * ends it, and to be shown a configuration (`dryRun`) as well (talos-api 6.7).
   */
  readonly pending?: 'staged' | 'trial'
}

export const pendingText = (pending: 'staged' | 'trial'): string =>
  pending === 'staged' ? 'a configuration is staged there for the next boot' : 'a configuration is on trial there'

/**
 * How a configuration is taken. no-reboot: at once, and for good. staged: with the next boot. try: at once, and put back by the machine itself after a
 * while unless another one is applied before.
 */
export type ApplyMode = 'no-reboot' | 'staged' | 'try'

/** What a machine says of a configuration that it was only shown. */
export type DryRun =
  | { readonly takes: true }
  /** `why` quotes nothing of the configuration beyond the words of Talos. `needsReboot`: it would take it in the mode staged. */
  | { readonly takes: false; readonly needsReboot: boolean; readonly why: string }

export type ConfigurationChange = {
  /** The whole text that is to be replaced: of what runs, or for `staged` of what is on the disk. */
  readonly from: string
  readonly to: string
  readonly mode: ApplyMode
  /** For `try`: after so long it is put back. */
  readonly tryMs?: number
}

export type ConfigurationCalls = {
  readonly configuration: (address: string) => Promise<Result<MachineConfiguration>>
  /** Shows a configuration to the machine, which changes nothing. In another mode than `try` that ends a trial for good, whatever is answered. */
  readonly dryRun: (address: string, text: string, mode: ApplyMode) => Promise<Result<DryRun>>
  /**
   * Replaces the configuration. Reads it anew first, and answers `conflict` where it is not `from`: Talos itself has no lock, the last one to write
   * wins. `invalid` where the machine refuses it. Its answer may be lost with the network that it changes.
   */
  readonly applyConfiguration: (address: string, change: ConfigurationChange) => Promise<Result<void>>
}
