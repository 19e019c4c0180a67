import { troubles } from './faults/all.ts'
import type { Plan, Strike } from './plan.ts'

/** Less than the five minutes that the shortest step has. */
const SHORTEST_DEADLINE_MS = 240_000
/** Between two outages so near to each other not much can be done. */
const BREATH_MS = 60_000

/** Nobody can do anything meanwhile: the API is away, or whoever would ask it is frozen. */
const isOutage = ({ family, what }: Strike): boolean => family === 'api-away' || (family === 'leaders' && what.startsWith('frozen'))

/** Through which time of outages that follow each other, or run into each other, nobody can work. One that falls at a call may fall between any two. */
const longestOutage = (strikes: readonly Strike[]): number => {
  const outages = strikes.filter(isOutage)
  const anywhere = outages.reduce((sum, { when, forMs = 0 }) => sum + ('call' in when ? forMs : 0), 0)
  let [longest, begin, end] = [0, 0, Number.NEGATIVE_INFINITY]
  for (const { at, forMs } of outages
    .flatMap(({ when, forMs = 0 }) => ('at' in when ? [{ at: when.at, forMs }] : []))
    .toSorted((a, b) => a.at - b.at)) {
    if (at - end > BREATH_MS) begin = at
    end = Math.max(end, at + forMs)
    longest = Math.max(longest, end - begin)
  }
  return longest + anywhere
}

/**
 * Whether nothing but time may be lost in this run, and no more of it than a step has. Below 1.13 Talos itself asks the Kubernetes API in the middle of an
 * upgrade, and gives the upgrade up where nobody answers.
 */
export const isHarmless = ({ strikes, shape }: Plan): boolean =>
  strikes.every(({ family }) => troubles[family].harmless && (family !== 'api-away' || shape.talos >= 'v1.13')) &&
  longestOutage(strikes) < SHORTEST_DEADLINE_MS
