import type { Cancellation } from '../ports/clock.ts'
import type { Result } from '../ports/fault.ts'
import { failed } from '../ports/fault.ts'
import type { Key } from '../ports/home.ts'
import type { LongCall } from '../ports/talos.ts'
import type { LongOutcome } from '../core/kind.ts'
import type { RunningAct } from '../core/world.ts'
import { createProgress, type Progress } from './progress.ts'
import { asError } from './thrown.ts'

/** The operation that a long act belongs to: its name and, because names come again, its UID. */
export type Owner = Key & { readonly uid: string }

export type SettledAct = { readonly target: string; readonly step: string; readonly result: Result<LongOutcome> }

/**
 * Acts that take minutes run beside the queue. This table is only an optimisation: after a crash it is empty, the step is asked whether it is
 * done and, if not, is nudged again.
 */
export type LongActs = {
  readonly start: (
    owner: Owner,
    target: string,
    step: string,
    run: (call: LongCall) => Promise<Result<LongOutcome>>,
    settled: () => void,
  ) => void
  readonly running: (operationUid: string) => readonly RunningAct[]
  /** One that has ended. It stays until it is dropped, so that its answer is not lost with a write that did not work. */
  readonly settled: (operationUid: string) => SettledAct | undefined
  readonly drop: (operationUid: string, act: SettledAct) => void
  readonly cancel: (operationUid: string, target?: string) => void
  /** Those of operations of this name, all but the one with this UID. */
  readonly cancelNamesakes: (key: Key, exceptUid?: string) => void
  readonly cancelAll: () => void
}

export const createLongActs = (options: Parameters<typeof createProgress>[0]): LongActs => {
  type Entry = {
    readonly owner: Owner
    readonly target: string
    readonly step: string
    readonly progress: Progress
    settled?: SettledAct
    readonly cancel: () => void
  }
  const entries = new Set<Entry>()

  const cancelWhere = (matches: (entry: Entry) => boolean): void => {
    for (const entry of entries) {
      if (!matches(entry)) continue
      entries.delete(entry)
      entry.cancel()
    }
  }

  return {
    start: (owner, target, step, run, settled) => {
      const { cancellation, cancel } = createCancellation()
      const progress = createProgress(options)
      const entry: Entry = { owner, target, step, progress, cancel }
      entries.add(entry)
      const call: LongCall = { cancellation, progress: progress.tell }
      const end = (result: Result<LongOutcome>): void => {
        entry.settled = { target, step, result }
        if (entries.has(entry)) settled()
      }
      run(call).then(end, (error: unknown) => end(failed('unknown', asError(error).message)))
    },
    running: uid =>
      [...entries]
        .filter(e => e.owner.uid === uid && !e.settled)
        .map(({ target, step, progress }) => ({ target, step, progress: progress.shown() })),
    settled: uid => [...entries].find(e => e.owner.uid === uid && e.settled)?.settled,
    drop: (uid, act) => {
      for (const entry of entries) if (entry.owner.uid === uid && entry.settled === act) entries.delete(entry)
    },
    cancel: (uid, target) => cancelWhere(e => e.owner.uid === uid && (target === undefined || e.target === target)),
    cancelNamesakes: ({ namespace, name }, exceptUid) =>
      cancelWhere(({ owner }) => owner.namespace === namespace && owner.name === name && owner.uid !== exceptUid),
    cancelAll: () => cancelWhere(() => true),
  }
}

const createCancellation = (): { readonly cancellation: Cancellation; readonly cancel: () => void } => {
  let cancelled = false
  const listeners = new Set<() => void>()
  return {
    cancellation: {
      get cancelled() {
        return cancelled
      },
      onCancel: run => {
        if (cancelled) run()
        else listeners.add(run)
        return () => listeners.delete(run)
      },
    },
    cancel: () => {
      cancelled = true
      for (const run of listeners) run()
      listeners.clear()
    },
  }
}
