import { describe, expect, it } from 'vitest'
import type { Connections } from '../ports/connections.ts'
import { ok } from '../ports/fault.ts'
import type { Talos } from '../ports/talos.ts'
import { MINUTE, restartStory } from '../storm/restart-story.ts'
import type { StoryOptions } from '../storm/story.ts'

type Told = Parameters<Talos['watch']>[1]

/** The watches that are open, by address. */
const counted = () => {
  const open = new Map<Told, string>()
  let begun = 0
  const wrap: StoryOptions['wrap'] = ports => {
    const connections: Connections = {
      ...ports.connections,
      talos: async cluster => {
        const talos = await ports.connections.talos(cluster)
        if (!talos.ok) return talos
        const watch: Talos['watch'] = (address, told) => {
          begun += 1
          open.set(told, address)
          const stop = talos.value.watch(address, told)
          return () => {
            open.delete(told)
            stop()
          }
        }
        return ok({ ...talos.value, watch })
      },
    }
    return { ...ports, connections }
  }
  return { open, wrap, begun: () => begun }
}

/** Polls come every 20 s, a look that a watch causes 2 s after word of it; discovery every 300 s, one that a watch causes after 50 s. */
const UNHURRIED = 0.1
const WORD_MS = 2_200
const DISCOVERED_MS = 50_500

describe('a machine that an operation is at', () => {
  it('is looked at as soon as it says something new, long before the next poll', async () => {
    const story = await restartStory({ pace: UNHURRIED })
    const { world } = story
    const changes: { readonly at: number; readonly address: string }[] = []
    const looks: { readonly at: number; readonly address: string }[] = []
    world.calls.intercept(call => {
      if (call.name === 'machine') looks.push({ at: call.at, address: call.target })
      return undefined
    })
    const stop = world.site.listen((machine, change) => {
      if (change !== 'stage' || machine.stage !== 'running') return
      const [address = ''] = machine.addresses
      changes.push({ at: world.schedule.now(), address })
    })
    story.restart('a')
    await story.untilDone('a')
    stop()
    expect(changes.length).toBeGreaterThanOrEqual(2)
    const waited = changes.map(({ at, address }) => (looks.find(look => look.at >= at && look.address === address)?.at ?? Infinity) - at)
    expect(Math.max(...waited)).toBeLessThanOrEqual(WORD_MS)
  })

  it('has its cluster discovered anew soon, too', async () => {
    const story = await restartStory({ pace: UNHURRIED })
    const { world } = story
    const seen: number[] = []
    world.calls.intercept(call => {
      if (call.name === 'members') seen.push(call.at)
      return undefined
    })
    let runningAt = Infinity
    const stop = world.site.listen((machine, change) => {
      if (change === 'stage' && machine.stage === 'running') runningAt = Math.min(runningAt, world.schedule.now())
    })
    story.restart('a')
    await story.untilDone('a')
    stop()
    const next = seen.find(at => at >= runningAt) ?? Infinity
    expect(next - runningAt).toBeLessThanOrEqual(DISCOVERED_MS)
  })

  it('is watched while it is open, and not longer', async () => {
    const { open, wrap, begun } = counted()
    const story = await restartStory({ wrap })
    expect(begun()).toBe(0)
    story.restart('a')
    let most = 0
    await story.until('it is done', () => {
      most = Math.max(most, open.size)
      return story.status('a').phase === 'Completed'
    })
    await story.pass(MINUTE)
    expect([most, begun(), open.size]).toEqual([1, 2, 0])
  })

  it.each(['paused', 'cancelled', 'removed'] as const)('is not watched any more when the operation is %s', async how => {
    const { open, wrap } = counted()
    const story = await restartStory({ wrap })
    story.restart('a')
    await story.until('a machine is watched', () => open.size > 0)
    if (how === 'removed') story.remove('a')
    else story.edit('a', { spec: { [how]: true } })
    await story.until('it is let go', () => open.size === 0, 10 * MINUTE)
    await story.pass(MINUTE)
    expect(open.size).toBe(0)
  })

  it('is not watched any more by who leads no longer', async () => {
    const { open, wrap } = counted()
    const story = await restartStory({ wrap, unled: true })
    const process = story.start()
    await story.pass(MINUTE)
    story.restart('a')
    await story.until('a machine is watched', () => open.size > 0)
    const stopped = process.controller.stop()
    await story.pass(10_000)
    await stopped
    expect(open.size).toBe(0)
  })

  it('is watched anew after the watch ended for a new credential', async () => {
    const { open, wrap, begun } = counted()
    const story = await restartStory({ wrap })
    story.restart('a')
    await story.until('a machine is watched', () => open.size > 0)
    const [told] = open.keys()
    if (!told) throw new Error('none is watched')
    open.delete(told)
    told('ended')
    await story.until('it is watched again', () => open.size > 0, 3_000)
    expect(begun()).toBe(2)
  })
})
