import type { PortCall } from '../../world/calls.ts'
import type { Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'

/** What happens to the controllers themselves: they die, freeze, are replaced, and their clocks go wrong. */

/** At a moment told by time the next call of that sort is hit; told by a call, that very call. */
const nextCall = (stage: Stage, isHit: (call: PortCall) => boolean, verdict: Parameters<Stage['disturb']>[0]): (() => void) => {
  const stop = stage.disturb(call => {
    if (!isHit(call)) return undefined
    stop()
    return verdict(call)
  })
  return stop
}

export const crash: Trouble<Stage> = {
  family: 'crash',
  harmless: true,
  draw: ({ random, calls }) => ({
    family: 'crash',
    what: random.chance(0.5) ? 'killed before' : 'killed after',
    when: { call: random.between(1, calls) },
    forMs: random.between(500, 45_000),
  }),
  strike: (stage, { what, forMs = 1000 }) =>
    nextCall(
      stage,
      call => call.changes && stage.replicaOf(call.client) !== undefined,
      call => {
        const replica = stage.replicaOf(call.client)
        if (!replica) return undefined
        stage.note(`${call.client} is ${what} ${call.port}.${call.name} ${call.target}`)
        stage.kill(replica, forMs)
        return { do: 'silence', when: what === 'killed before' ? 'before' : 'after' }
      },
    ),
}

export const lostReply: Trouble<Stage> = {
  family: 'lost-reply',
  harmless: true,
  draw: ({ random, calls }) => ({
    family: 'lost-reply',
    what: 'the answer is lost',
    when: { call: random.between(1, calls) },
    forMs: random.chance(0.5) ? 0 : random.between(500, 9000),
    times: random.between(1, 3),
  }),
  strike: (stage, { forMs = 0, times = 1 }) => {
    let left = times
    const stop = stage.disturb(call => {
      if (!call.changes || left <= 0) return undefined
      if (--left === 0) stop()
      stage.note(`the answer to ${call.client}'s ${call.port}.${call.name} ${call.target} is lost`)
      return { do: 'fail', when: 'after', fault: { kind: 'unreachable', message: 'connection reset by peer' }, afterMs: forMs }
    })
    return stop
  },
}

export const leaders: Trouble<Stage> = {
  family: 'leaders',
  harmless: true,
  draw: ({ random, calls, horizonMs }) => {
    const what = random.pick(['frozen', 'frozen', 'frozen', 'frozen at a call', 'frozen at a call', 'stopped in good order'])
    return {
      family: 'leaders',
      what,
      when: what === 'frozen at a call' ? { call: random.between(1, calls) } : { at: random.between(0, horizonMs) },
      machine: random.between(0, 2),
      forMs: random.between(500, 60_000),
    }
  },
  strike: (stage, { what, machine = 0, forMs = 1000 }) => {
    if (what === 'frozen at a call')
      return nextCall(
        stage,
        call => call.changes && stage.replicaOf(call.client)?.isFrozen === false,
        call => {
          const replica = stage.replicaOf(call.client)
          if (!replica) return undefined
          stage.note(`${call.client} is frozen for ${forMs} ms in ${call.port}.${call.name} ${call.target}`)
          stage.freeze(replica, forMs)
          return undefined
        },
      )
    const replica = stage.replicas[machine % stage.replicas.length]
    if (!replica) return undefined
    const { name } = replica.process.ports.client
    if (what === 'frozen') {
      stage.note(`${name} is frozen for ${forMs} ms`)
      stage.freeze(replica, forMs)
      return undefined
    }
    stage.note(`${name} is stopped in good order, for ${forMs} ms`)
    const { process } = replica
    void process.controller.stop().then(() => stage.kill(replica, forMs))
    // It has ten seconds for it, as a pod has thirty.
    stage.story.world.schedule.after(10_000, () => {
      if (replica.process === process) stage.kill(replica, forMs)
    })
    return undefined
  },
}

export const clock: Trouble<Stage> = {
  family: 'clock',
  harmless: false,
  draw: ({ random, horizonMs }) => ({
    family: 'clock',
    what: random.pick(['jumps', 'jumps', 'drifts']),
    when: { at: random.between(0, horizonMs) },
    machine: random.between(0, 2),
    times: random.pick([-1, 1]) * random.between(1, 3600),
    forMs: random.between(10_000, horizonMs),
  }),
  strike: (stage, { what, machine = 0, times = 1 }) => {
    const replica = stage.replicas[machine % stage.replicas.length]
    if (!replica) return
    const { name } = replica.process.ports.client
    const { clockOffset, clockRate } = stage.weather
    if (what === 'drifts') {
      const rate = 1 + Math.sign(times) * (Math.abs(times) % 10) * 0.01
      stage.note(`the clock of ${name} runs ${rate} times as fast`)
      clockRate.set(name, rate)
      return () => void clockRate.set(name, 1)
    }
    stage.note(`the clock of ${name} is ${times} s off`)
    clockOffset.set(name, times * 1000)
    return () => void clockOffset.set(name, 0)
  },
}
