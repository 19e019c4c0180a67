import { formatDuration } from '../../api/duration.ts'
import type { Result } from '../../ports/fault.ts'
import type { ClusterSight } from './cluster-sight.ts'
import { answering } from './cluster-sight.ts'
import { type Finding, type Look, orFine, unseenFor, warning, wrong } from './look.ts'

/** A clock that was read; `ahead` is against ours, milliseconds. `at` is where a machine is asked for its time. */
export type Timepiece = { readonly whose: string; readonly ahead: number; readonly at?: string }

/** More than reading it over a network explains. */
const NOTABLE_MS = 10_000
/** From here on certificates of the last minute are refused, and leases are taken for dead. */
const HARMFUL_MS = 60_000

/** Whether the clocks agree: ours, those of the machines, and that of the API server. Who is alone is wrong. */
export const clock: Look<ClusterSight> = {
  name: 'clocks',
  look: sight => {
    const { clocks, serverClock } = sight
    const read = answering(sight).flatMap(({ machine, name, facts }): readonly Timepiece[] => {
      const ahead = clocks[machine.metadata.name]
      return ahead?.ok ? [{ whose: name, ahead: ahead.value, at: facts.address }] : []
    })
    return judged([...read, ...serverTime(serverClock)], firstFault([...Object.values(clocks), serverClock]))
  },
}

export const serverTime = (ahead: Result<number>): readonly Timepiece[] =>
  ahead.ok ? [{ whose: 'the API server', ahead: ahead.value }] : []

const firstFault = (all: readonly Result<number>[]) => all.map(one => (one.ok ? undefined : one.fault)).find(fault => fault !== undefined)

/** Ours is one of them: where most others agree on another time, it is the one that is wrong. */
export const judged = (others: readonly Timepiece[], fault: Parameters<typeof unseenFor>[1] | undefined): readonly Finding[] => {
  if (others.length === 0) return [unseenFor('Other clocks', fault ?? { kind: 'unknown', message: 'there is nobody to ask' })]
  const all: readonly Timepiece[] = [{ whose: 'this computer', ahead: 0 }, ...others]
  const common = median(all.map(({ ahead }) => ahead))
  const off = all.filter(({ ahead }) => Math.abs(ahead - common) > NOTABLE_MS)
  // Two that differ do not tell which is wrong.
  const undecided = all.length === 2 && off.length > 0
  if (undecided) {
    const [, other] = all
    return [
      tell(
        `The clocks of this computer and of ${other?.whose} differ by ${formatDuration(Math.abs(other?.ahead ?? 0))}.`,
        other?.ahead ?? 0,
        other,
      ),
    ]
  }
  return orFine(
    off.map(piece => {
      const by = piece.ahead - common
      return tell(`The clock of ${piece.whose} is ${formatDuration(Math.abs(by))} ${by > 0 ? 'ahead' : 'behind'}.`, by, piece)
    }),
    `${all.length} agree to ${Math.max(1, Math.ceil((Math.max(...all.map(one => one.ahead)) - Math.min(...all.map(one => one.ahead))) / 1000))} s.`,
  )
}

const tell = (message: string, by: number, piece: Timepiece | undefined): Finding => {
  const cure = piece?.at
    ? { remedy: 'See whether it reaches its time server (machine.time.servers).', command: `talosctl -n ${piece.at} time` }
    : piece?.whose === 'this computer'
      ? { remedy: 'Set it by a time server.' }
      : { remedy: 'See which of them is right, and let both follow a time server.' }
  return Math.abs(by) > HARMFUL_MS ? wrong(`${message} Certificates and leases are judged by it.`, cure) : warning(message, cure)
}

/** Of an even number the lower one of the two in the middle, by how far it is from ours: who is nearer is rather right. */
const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  if (sorted.length % 2 === 1) return sorted[Math.floor(half)] ?? 0
  const [low = 0, high = 0] = [sorted[half - 1], sorted[half]]
  return Math.abs(low) <= Math.abs(high) ? low : high
}
