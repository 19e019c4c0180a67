/** What probes look at; undefined until the controller has started. Times in milliseconds. */
export type Vitals = {
  readonly isLeading: boolean
  /** Infinity before the first lists are in. */
  readonly stalenessMs: number
  readonly queue: { readonly depth: number; readonly oldestMs: number }
  /** Since the Kubernetes API answered last, whatever it said; Infinity before the first answer. */
  readonly silenceMs: number
}

export type Check = { readonly name: string; readonly problem: string | undefined }

/** A server speaks at least once a minute on a watch, and a silent one is opened anew after two and a half. */
const STALE_MS = 3 * 60_000
/** A pass waits for nobody: it asks, with deadlines of seconds. */
const STUCK_MS = 5 * 60_000
const SILENT_MS = 60_000
/**
 * Not ready is a hint, not alive is an order to start anew. That helps against a fault of ours and against nothing else, so it is given only when what is wrong does not
 * mend by itself.
 */
const PATIENCE = 3

/** Whether this process works, for who would start it anew. */
export const livenessChecks = (vitals: Vitals | undefined): readonly Check[] => [
  { name: 'ping', problem: undefined },
  // Before the first lists there is nothing that a new start would mend.
  { name: 'watches', problem: vitals && vitals.stalenessMs !== Infinity ? stale(vitals, STALE_MS * PATIENCE) : undefined },
  { name: 'queue', problem: vitals && stuck(vitals, STUCK_MS * PATIENCE) },
]

/** Whether this replica does its part: the leader works, a standby could lead at once. */
export const readinessChecks = (vitals: Vitals | undefined): readonly Check[] => [
  { name: 'started', problem: vitals ? undefined : 'something that only a person can give is missing; the log says what' },
  {
    name: 'api',
    problem:
      vitals && vitals.silenceMs > SILENT_MS
        ? vitals.silenceMs === Infinity
          ? 'the Kubernetes API has not answered yet'
          : `the Kubernetes API has not answered for ${seconds(vitals.silenceMs)}`
        : undefined,
  },
  { name: 'lists', problem: vitals?.isLeading && vitals.stalenessMs === Infinity ? 'the first lists have not come yet' : undefined },
  { name: 'watches', problem: vitals && vitals.stalenessMs !== Infinity ? stale(vitals, STALE_MS) : undefined },
  { name: 'queue', problem: vitals && stuck(vitals, STUCK_MS) },
]

const stale = ({ stalenessMs }: Vitals, limitMs: number): string | undefined =>
  stalenessMs > limitMs ? `what is watched was last known to be current ${seconds(stalenessMs)} ago` : undefined

const stuck = ({ queue: { depth, oldestMs } }: Vitals, limitMs: number): string | undefined =>
  oldestMs > limitMs ? `the oldest of ${depth} in the queue has been there for ${seconds(oldestMs)}` : undefined

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`
