/** One thing that happened: a call that changed something, or a change of state worth telling. */
export type JournalEntry = {
  /** Milliseconds since 1970. */
  readonly at: number
  /** Name of the machine; empty where none is concerned. */
  readonly machine: string
  /** A word, for example `boot`, `install`, `cordon`. */
  readonly what: string
  readonly detail: string
}

export type Journal = {
  readonly entries: () => readonly JournalEntry[]
  readonly write: (machine: string, what: string, detail?: string) => void
  /** Entries of one sort, of one machine if named. */
  readonly of: (what: string, machine?: string) => readonly JournalEntry[]
  /** Called with each new entry. The answer unsubscribes. */
  readonly onEntry: (listener: (entry: JournalEntry) => void) => () => void
  /** Seconds since the start, machine, what, detail: one line each. */
  readonly text: () => string
}

export const createJournal = (now: () => number, limit = 20_000): Journal => {
  const start = now()
  const entries: JournalEntry[] = []
  const listeners = new Set<(entry: JournalEntry) => void>()
  return {
    entries: () => entries,
    write: (machine, what, detail = '') => {
      const entry = { at: now(), machine, what, detail }
      entries.push(entry)
      if (entries.length > limit) entries.splice(0, entries.length - limit)
      for (const listener of listeners) listener(entry)
    },
    of: (what, machine) => entries.filter(e => e.what === what && (machine === undefined || e.machine === machine)),
    onEntry: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    text: () =>
      entries.map(e => `${((e.at - start) / 1000).toFixed(1)} ${e.machine || '-'} ${e.what}${e.detail ? ` ${e.detail}` : ''}`).join('\n'),
  }
}
