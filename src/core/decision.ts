import type { OperationStatus, TalosOperation, Target } from '../api/talos-operation.ts'
import { FINALIZER } from '../api/names.ts'
import type { Act, Kind, Step } from './kind.ts'
import * as ledger from './ledger.ts'
import { isHeldBy } from './lock-claim.ts'
import { deedOf } from './repeated.ts'
import { stageTitle } from './stages.ts'
import type { Need, View, World } from './world.ts'
import { isKnown } from './world.ts'

/** What one pass does. Exactly one thing, and then the world is looked at again. */
export type Decision =
  /** The answer needs facts that were not gathered yet. */
  | { readonly do: 'look'; readonly needs: readonly Need[] }
  /** A choice or an observation goes into status, and nothing else happens. */
  | { readonly do: 'record'; readonly status: OperationStatus; readonly event?: Told }
  /** The same, and then wait: for the time, or for a change that a watch tells of. */
  | { readonly do: 'wait'; readonly status: OperationStatus; readonly forMs: number }
  /** The intention (already in `status`) is written, then the act is done. */
  | { readonly do: 'act'; readonly status: OperationStatus; readonly view: View; readonly step: Step; readonly act: Act }
  | { readonly do: 'acquire'; readonly takeOver: string | undefined }
  /** `deeds`: what is left on the Lease of what was done. */
  | { readonly do: 'release'; readonly deeds?: string }
  /** The same where it does not hold the lock, whoever does. */
  | { readonly do: 'remember'; readonly deeds: string }
  | { readonly do: 'cancel-act'; readonly target: string; readonly step: string }
  | { readonly do: 'add-finalizer' }
  | { readonly do: 'drop-finalizer' }
  | { readonly do: 'drop-retry'; readonly status: OperationStatus | undefined; readonly event?: Told }
  | { readonly do: 'delete' }
  /** Nothing to do until something changes. */
  | { readonly do: 'rest'; readonly forMs?: number }

export type Told = { readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string }

export const record = (operation: TalosOperation, status: OperationStatus, event?: Told): Decision =>
  event ? { do: 'record', status, event } : { do: 'record', status }

export const holdsLock = (operation: TalosOperation, world: World): boolean => isHeldBy(world.lock, operation)

/** Timers reach so far; whatever lies further off is looked at again on the way. */
export const LONGEST_REST_MS = 3_600_000

/** Until a moment, as far as timers reach; undefined: for ever. */
export const restUntil = (until: number | undefined, now: number): number => Math.min((until ?? Infinity) - now, LONGEST_REST_MS)

export const hasFinalizer = (operation: TalosOperation): boolean => operation.metadata.finalizers.includes(FINALIZER)

export const look = (world: World, needs: readonly Need[]): Decision | undefined => {
  const missing = needs.filter(n => !isKnown(world.facts, n))
  return missing.length > 0 ? { do: 'look', needs: missing } : undefined
}

/** Writes the status if it says anything new, and rests. */
export const rest = (operation: TalosOperation, status: OperationStatus, forMs?: number): Decision =>
  status.phase !== operation.status.phase ||
  status.message !== operation.status.message ||
  status.failureReason !== operation.status.failureReason ||
  status.lock?.holder !== operation.status.lock?.holder
    ? { do: 'record', status }
    : forMs === undefined
      ? { do: 'rest' }
      : { do: 'rest', forMs }

/** It is open, or was left in the middle by a failure. */
export const isHalfWay = ({ phase, before }: Target): boolean => phase === 'Running' || (phase === 'Failed' && before !== undefined)

export const isInTheMiddle = (status: OperationStatus): boolean => ledger.targetsOf(status).some(isHalfWay)

/** Whether the finalizer guards nothing: neither a machine in the middle, nor what has to be remembered of what was done, which is told when it ends. */
export const isUnguarded = (kind: Pick<Kind, 'deed'>, operation: TalosOperation): boolean =>
  hasFinalizer(operation) && !isInTheMiddle(operation.status) && deedOf(kind, operation) === undefined

export const doneOf = (status: OperationStatus): string =>
  [stageTitle(status), `${status.progress?.done ?? 0} of ${status.progress?.total ?? 0} machines were done`].filter(Boolean).join(': ')
