import type { Cancellation } from '../ports/clock.ts'
import type { Result } from '../ports/fault.ts'
import { failed } from '../ports/fault.ts'
import type { LongCall } from '../ports/talos.ts'
import type { LongOutcome } from '../core/kind.ts'
import type { RunningAct } from '../core/world.ts'

export type SettledAct = { readonly target: string; readonly step: string; readonly result: Result<LongOutcome> }

/**
 * Acts that take minutes run beside the queue. This table is only an optimisation: after a crash it is empty, the step is asked whether it is
 * done and, if not, is nudged again.
 */
export type LongActs = {
  readonly start: (operationUid: string, target: string, step: string, run: (call: LongCall) => Promise<Result<LongOutcome>>, settled: () => void) => void
  readonly running: (operationUid: string) => readonly RunningAct[]
  /** What has ended since it was asked last, each told once. */
  readonly take: (operationUid: string) => readonly SettledAct[]
  readonly cancel: (operationUid: string, target?: string) => void
  readonly cancelAll: () => void
}

export const createLongActs = (): LongActs => {
  type Entry = { readonly uid: string; readonly target: string; readonly step: string; progress: string; result?: Result<LongOutcome>; readonly cancel: () => void }
  const entries = new Set<Entry>()

  const cancelWhere = (matches: (entry: Entry) => boolean): void => {
    for (const entry of entries) {
      if (!matches(entry)) continue
      entries.delete(entry)
      entry.cancel()
    }
  }

  return {
    start: (uid, target, step, run, settled) => {
      const { cancellation, cancel } = createCancellation()
      const entry: Entry = { uid, target, step, progress: '', cancel }
      entries.add(entry)
      const call: LongCall = { cancellation, progress: (message) => (entry.progress = message) }
      const end = (result: Result<LongOutcome>): void => {
        entry.result = result
        if (entries.has(entry)) settled()
      }
      run(call).then(end, (error: unknown) => end(failed('unknown', error instanceof Error ? error.message : String(error))))
    },
    running: (uid) => [...entries].filter((e) => e.uid === uid && !e.result).map(({ target, step, progress }) => ({ target, step, progress })),
    take: (uid) => {
      const settled: SettledAct[] = []
      for (const entry of entries) {
        if (entry.uid !== uid || !entry.result) continue
        entries.delete(entry)
        settled.push({ target: entry.target, step: entry.step, result: entry.result })
      }
      return settled
    },
    cancel: (uid, target) => cancelWhere((e) => e.uid === uid && (target === undefined || e.target === target)),
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
      onCancel: (run) => {
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
