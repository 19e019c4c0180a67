import type { Fault } from '../../ports/fault.ts'
import type { Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'

/** What happens to the Kubernetes API, as its client sees it. */

const ANSWERS: readonly Fault[] = [
  { kind: 'conflict', message: '409 Conflict: the object has been modified' },
  { kind: 'busy', message: '429 Too Many Requests', retryAfterMs: 1000 },
  { kind: 'busy', message: '500 Internal Server Error: etcdserver: request timed out' },
  { kind: 'busy', message: '503 Service Unavailable' },
  { kind: 'busy', message: '410 Gone: too old resource version' },
  { kind: 'unreachable', message: 'connection reset by peer' },
]

export const apiErrors: Trouble<Stage> = {
  family: 'api-errors',
  harmless: true,
  draw: ({ random, horizonMs }) => ({
    family: 'api-errors',
    what: random.pick(['some fail', 'many fail', 'writes fail', 'writes fail after their effect', 'conflicts', 'nothing but conflicts']),
    when: { at: random.between(0, horizonMs) },
    forMs: random.between(2000, 60_000),
  }),
  strike: (stage, { what }) => {
    stage.note(`the Kubernetes API: ${what}`)
    const { faults } = stage.story.world
    if (what.endsWith('conflicts')) {
      // Somebody else writes the operation between our look and our write, every time or every other.
      let count = 0
      const stop = stage.disturb(({ name }) => {
        if (name === 'writeOperationStatus') faults.statusConflicts = what === 'conflicts' && stage.random.chance(0.5) ? 0 : ++count
        return undefined
      })
      return () => {
        stop()
        faults.statusConflicts = 0
      }
    }
    const share = what === 'some fail' ? 0.1 : 0.5
    return stage.disturb(call => {
      if ((call.port !== 'home' && call.port !== 'kube') || (what.startsWith('writes') && !call.changes)) return undefined
      if (!stage.random.chance(share)) return undefined
      const fault = call.changes ? stage.random.pick(ANSWERS) : stage.random.pick(ANSWERS.slice(1))
      const isLate = what === 'writes fail after their effect' && fault.kind !== 'conflict'
      return { do: 'fail', when: isLate ? 'after' : 'before', fault }
    })
  },
}

export const watch: Trouble<Stage> = {
  family: 'watch',
  harmless: true,
  draw: ({ random, horizonMs }) => ({
    family: 'watch',
    what: random.pick(['cut', 'cut', 'stalled', 'stalled', 'machines end theirs']),
    when: { at: random.between(0, horizonMs) },
    forMs: random.between(1000, 180_000),
  }),
  strike: (stage, { what, forMs = 0 }) => {
    const { weather } = stage
    if (what === 'machines end theirs') {
      stage.note('the watches of machines end')
      for (const end of weather.machineWatches) end()
      return
    }
    if (weather.watches !== 'fine') return
    stage.note(`watches are ${what} for ${forMs} ms`)
    weather.watches = what === 'cut' ? 'cut' : 'stalled'
    for (const tell of weather.changed) tell()
    return () => {
      weather.watches = 'fine'
      for (const tell of weather.changed) tell()
    }
  },
}

export const stale: Trouble<Stage> = {
  family: 'stale',
  harmless: true,
  draw: ({ random, horizonMs }) => ({
    family: 'stale',
    what: 'lists are stale',
    when: { at: random.between(0, horizonMs) },
    forMs: random.between(1000, 120_000),
  }),
  strike: (stage, { what, forMs = 0 }) => {
    stage.note(`${what} for ${forMs} ms`)
    stage.weather.areListsStale = true
    return () => void (stage.weather.areListsStale = false)
  },
}

export const apiAway: Trouble<Stage> = {
  family: 'api-away',
  harmless: true,
  draw: ({ random, horizonMs }) => ({
    family: 'api-away',
    what: 'the API is away',
    when: { at: random.between(0, horizonMs) },
    forMs: random.between(1000, 180_000),
  }),
  strike: (stage, { what, forMs = 0 }) => {
    stage.note(`${what} for ${forMs} ms`)
    stage.byHand(undefined, () => stage.story.world.apiOutage(forMs))
  },
}
