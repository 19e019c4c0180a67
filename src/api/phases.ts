/** The phases of an operation and what each tells its reader. */
export const PHASES = {
  Pending: 'Accepted, nothing done yet: the checks are running.',
  Running: 'It advances, or waits for the world; the message says for what, since when and until when.',
  Paused: 'It does not advance. failureReason says why: empty means that an operator paused it.',
  Completed: 'Done, as observed on the machines.',
  Cancelled: 'Stopped for good at a safe point.',
} as const satisfies Record<string, string>

export type Phase = keyof typeof PHASES
export const PHASE_NAMES = Object.keys(PHASES) as [Phase, ...Phase[]]

/** The phases of one machine within an operation. */
export const TARGET_PHASES = {
  Pending: 'Its turn has not come.',
  Running: 'Open: its steps are being carried out.',
  Completed: 'Closed: done, as observed.',
  Skipped: 'Not touched; the message says why (held, or already there).',
  Failed: 'A step failed; the operation is paused.',
  Cancelled: 'Closed before it was done, because the operation was paused, cancelled or deleted.',
} as const satisfies Record<string, string>

export type TargetPhase = keyof typeof TARGET_PHASES
export const TARGET_PHASE_NAMES = Object.keys(TARGET_PHASES) as [TargetPhase, ...TargetPhase[]]

export const isFinished = (phase: Phase | undefined): boolean => phase === 'Completed' || phase === 'Cancelled'
