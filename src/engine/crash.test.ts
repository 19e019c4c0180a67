import { describe, expect, it } from 'vitest'
import type { RestartStory } from '../storm/restart-story.ts'
import { MINUTE, restartStory } from '../storm/restart-story.ts'
import type { StoryOptions } from '../storm/story.ts'
import { createStory } from '../storm/story.ts'
import { postWatchmen } from '../storm/watchmen.ts'
import { runningSlot } from '../world/slots.ts'
import type { PortCall } from '../world/calls.ts'

/** A quick world: what counts here is the order of things, not their length. */
const quick: StoryOptions = {
  durations: {
    reboot: [3000, 6000],
    pull: [1000, 3000],
    install: [1000, 4000],
    stopPods: [500, 1500],
    staticPods: [1000, 3000],
    registerNode: [1000, 3000],
    nodeReady: [500, 1500],
    nodeMonitorGrace: [40_000, 50_000],
  },
}

/** The calls of the whole story, as the first controller makes them. */
const callsOf = async (options: StoryOptions): Promise<readonly PortCall[]> => {
  const story = await restartStory(options)
  const calls: PortCall[] = []
  story.world.calls.intercept(call => {
    calls.push(call)
    return undefined
  })
  story.restart('a')
  await story.untilDone('a')
  await story.until('the lock is free', () => story.holder() === '', MINUTE)
  return calls
}

/** Kills the process at the k-th call, starts another, and answers the story at its end. */
const killedAt = async (options: StoryOptions, k: number, when: 'before' | 'after'): Promise<RestartStory> => {
  const story = await restartStory({ ...options, unled: true })
  const first = story.start('ichor-0')
  await story.until('machines are discovered', () => story.world.store.list('talosmachines.ichor.maesh.dev').items.length === 2)
  await story.pass(1)
  let n = 0
  let isKilled = false
  story.world.calls.intercept(call => {
    if (call.client !== 'ichor-0' || ++n !== k) return undefined
    isKilled = true
    first.kill()
    return { do: 'silence', when }
  })
  story.restart('a')
  await story.until('the process is dead', () => isKilled || story.status('a').phase === 'Completed')
  story.start('ichor-1')
  await story.untilDone('a')
  await story.until('the lock is free', () => story.holder() === '' && story.finalizers('a').length === 0, 2 * MINUTE)
  return story
}

const wellDone = (story: RestartStory): readonly string[] => {
  const wrong: string[] = []
  for (const machine of story.world.machines) {
    const installs = story.world.journal.of('installed', machine.name).length
    const reboots = story.world.journal.of('reboot-requested', machine.name).length
    if (runningSlot(machine.disk).version !== 'v1.13.9') wrong.push(`${machine.name} runs ${runningSlot(machine.disk).version}`)
    if (reboots !== 1) wrong.push(`${machine.name} was rebooted ${reboots} times`)
    if (installs !== 1) wrong.push(`${machine.name} was installed ${installs} times`)
    const node = story.world.store.get('nodes', '', machine.name)
    if ((node?.['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable) wrong.push(`${machine.name} is still cordoned`)
  }
  return wrong
}

/** Heartbeats of the leader, and what discovery writes, come again by themselves; a handful of each stands for all. */
const isWorthATry = (call: PortCall, i: number): boolean =>
  ['replaceLease', 'writeMachineStatus', 'writeClusterStatus', 'event'].includes(call.name) ? i % 9 === 0 : call.changes

describe('kill -9', () => {
  it('before and after each call that changes something, and before some others, changes nothing but time', async () => {
    const calls = await callsOf(quick)
    const wrong: string[] = []
    let runs = 0
    for (const [i, call] of calls.entries()) {
      for (const when of ['before', 'after'] as const) {
        if (!isWorthATry(call, i) && (when === 'after' || i % 61 !== 0)) continue
        runs++
        const story = await killedAt(quick, i + 1, when)
        // An installer that was cut off is run again, and writes the same slot once more; nothing else happens twice.
        for (const what of wellDone(story))
          if (!/was installed 2 times/.test(what))
            wrong.push(`killed ${when} call ${i + 1}, ${call.port}.${call.name} ${call.target}: ${what}`)
      }
    }
    expect(wrong).toEqual([])
    expect(runs).toBeGreaterThan(50)
  }, 120_000)
})

describe('the kind talos on three control planes and two workers', () => {
  it.each([11, 12, 13, 14, 15, 16])(
    'seed %i: killed again and again, each machine is rebooted once and one control plane is away at most',
    async seed => {
      const story = createStory({ seed, controlPlanes: 3, workers: 2 })
      const watchmen = postWatchmen(story.world)
      const { random } = story.world.schedule
      let process = story.start('ichor-0')
      await story.until('machines are discovered', () => story.world.store.list('talosmachines.ichor.maesh.dev').items.length === 5)
      let [generation, dead, mayDieAt] = [0, false, 0]
      story.world.calls.intercept(call => {
        // Left alone for a while after each start, as an installer needs a minute to end.
        if (dead || !call.changes || call.at < mayDieAt || random.next() > 0.15) return undefined
        dead = true
        process.kill()
        return { do: 'silence', when: random.next() < 0.5 ? 'before' : 'after' }
      })
      story.create({ name: 'up', spec: { kind: 'talos', talos: { version: 'v1.13.9' } } })
      const isOver = () => story.operation('up')?.status.phase === 'Completed' || story.operation('up')?.status.phase === 'Paused'
      while (!isOver()) {
        await story.until('it dies or is over', () => dead || isOver())
        if (!dead) break
        dead = false
        mayDieAt = story.world.schedule.now() + random.next() * 120_000
        process = story.start(`ichor-${++generation}`)
      }
      expect(story.operation('up')?.status).toMatchObject({ phase: 'Completed' })
      expect(watchmen.complaints()).toEqual([])
      expect(watchmen.counts('reboot-requested')).toEqual({ 'cp-1': 1, 'cp-2': 1, 'cp-3': 1, 'wk-1': 1, 'wk-2': 1 })
      expect(generation).toBeGreaterThan(8)
    },
    60_000,
  )
})

describe('lost answers', () => {
  it('after the effect of any call that changes something change nothing but time', async () => {
    const calls = await callsOf(quick)
    const wrong: string[] = []
    for (const [i, call] of calls.entries()) {
      if (!isWorthATry(call, i)) continue
      const story = await restartStory(quick)
      let n = 0
      story.world.calls.intercept(() =>
        ++n === i + 1
          ? { do: 'fail', when: 'after', fault: { kind: 'unreachable', message: 'connection reset' }, afterMs: 5000 }
          : undefined,
      )
      story.restart('a')
      await story.untilDone('a')
      for (const what of wellDone(story))
        if (!/was installed 2 times/.test(what)) wrong.push(`lost the answer to call ${i + 1}, ${call.port}.${call.name}: ${what}`)
    }
    expect(wrong).toEqual([])
  }, 60_000)
})
