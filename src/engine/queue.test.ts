import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createSchedule } from '../world/time.ts'
import type { Next } from './queue.ts'
import { createQueue } from './queue.ts'

/** A queue on virtual time, whose passes end when the test says so. */
const bench = (answer: (key: string) => Next | Promise<Next> = () => ({}), concurrency = 2) => {
  const schedule = createSchedule({ seed: 1, start: 0 })
  const started: { readonly key: string; readonly at: number }[] = []
  const running: string[] = []
  const crashes: string[] = []
  let most = 0
  let twice = false
  const queue = createQueue({
    clock: { now: schedule.now, monotonic: schedule.monotonic, after: schedule.after },
    random: () => 0.5,
    concurrency,
    work: async key => {
      started.push({ key, at: schedule.now() })
      twice ||= running.includes(key)
      running.push(key)
      most = Math.max(most, running.length)
      try {
        return await answer(key)
      } finally {
        running.splice(running.indexOf(key), 1)
      }
    },
    crashed: key => crashes.push(key),
  })
  const pass = async (ms: number): Promise<void> => {
    const end = schedule.now() + ms
    await setImmediate()
    for (let next = schedule.next(); next !== undefined && next <= end; next = schedule.next()) {
      schedule.advanceTo(next)
      await setImmediate()
    }
    schedule.advanceTo(end)
  }
  return { queue, schedule, started, crashes, pass, most: () => most, workedTwiceAtOnce: () => twice }
}

/** Promises that are kept by hand. */
const gates = () => {
  const open: (() => void)[] = []
  return { wait: () => new Promise<Next>(resolve => open.push(() => resolve({}))), openAll: () => open.splice(0).forEach(run => run()) }
}

describe('the queue', () => {
  it('takes a key once, however often it was added', async () => {
    const { queue, started, pass } = bench()
    for (let i = 0; i < 5; i++) queue.add('a')
    await pass(0)
    // The first was taken at once; the others are one more look.
    expect(started.length).toBe(2)
  })

  it('looks once more at a key that was added while it was worked on, and never twice at the same time', async () => {
    const { wait, openAll } = gates()
    const { queue, started, pass, workedTwiceAtOnce } = bench(wait)
    queue.add('a')
    await pass(0)
    queue.add('a')
    queue.add('a')
    expect(started.length).toBe(1)
    openAll()
    await pass(0)
    expect(started.length).toBe(2)
    expect(workedTwiceAtOnce()).toBe(false)
  })

  it('works at no key twice at the same time, even when all workers are busy and each pass asks for another at once', async () => {
    const { wait, openAll } = gates()
    let rounds = 0
    const { queue, pass, workedTwiceAtOnce, most } = bench(async () => {
      await wait()
      return rounds++ < 60 ? { againMs: 0 } : {}
    }, 2)
    for (const key of ['a', 'b', 'c', 'd', 'e']) queue.add(key)
    for (let i = 0; i < 60; i++) {
      openAll()
      await pass(1)
    }
    expect(workedTwiceAtOnce()).toBe(false)
    expect(most()).toBe(2)
    expect(queue.depth()).toBe(0)
  })

  it('looks again after the time that the pass said, and at the earliest of several', async () => {
    const { queue, started, pass } = bench(() => ({}))
    queue.addAfter('a', 5000)
    queue.addAfter('a', 2000)
    queue.addAfter('a', 9000)
    await pass(10_000)
    expect(started).toEqual([{ key: 'a', at: 2000 }])
  })

  it('comes back later after each failure, at most after a minute, and quickly again after a success', async () => {
    let fails = true
    const { queue, started, pass } = bench(() => (fails ? { failed: true } : {}))
    queue.add('a')
    await pass(600_000)
    const gaps = started.map((s, i) => s.at - (started[i - 1]?.at ?? 0)).slice(1)
    expect(gaps.slice(0, 5)).toEqual([500, 1000, 2000, 4000, 8000])
    expect(Math.max(...gaps)).toBe(60_000)
    fails = false
    queue.add('a')
    await pass(1)
    fails = true
    const before = started.length
    queue.add('a')
    await pass(600)
    expect(started.length - before).toBe(2)
  })

  it('stays away as long as the server asks', async () => {
    let n = 0
    const { queue, started, pass } = bench(() => (n++ === 0 ? { failed: true, againMs: 30_000 } : {}))
    queue.add('a')
    await pass(60_000)
    expect(started.map(s => s.at)).toEqual([0, 30_000])
  })

  it('slows a key down that is due at once again and again, and nobody else', async () => {
    const { queue, started, pass } = bench(key => (key === 'a' ? { againMs: 0 } : { againMs: 1000 }), 1)
    queue.add('a')
    queue.add('b')
    await pass(60_000)
    const times = (key: string): readonly number[] => started.filter(s => s.key === key).map(s => s.at)
    const gaps = times('a').map((at, i) => at - (times('a')[i - 1] ?? 0))
    expect(gaps.slice(0, 100)).toEqual(Array.from({ length: 100 }, () => 0))
    expect(gaps.slice(100)).toEqual(gaps.slice(100).toSorted((x, y) => x - y))
    expect([gaps[100], gaps[200], gaps[900]]).toEqual([10, 20, 90])
    expect(times('b').length).toBe(61)
  })

  it('never slows down further than to one pass a second, and begins anew after a pause that was asked for', async () => {
    let rests = false
    const { queue, started, pass } = bench(() => (rests ? {} : { againMs: 0 }))
    queue.add('a')
    await pass(2 * 3_600_000)
    expect(started.at(-1)!.at - started.at(-2)!.at).toBe(1000)
    rests = true
    await pass(1000)
    rests = false
    const before = started.length
    queue.add('a')
    await pass(0)
    expect(started.length - before).toBe(100)
  })

  it('survives a pass that throws, and tries it again', async () => {
    let n = 0
    const { queue, started, crashes, pass } = bench(() => {
      if (n++ === 0) throw new Error('no')
      return {}
    })
    queue.add('a')
    await pass(5000)
    expect(crashes).toEqual(['a'])
    expect(started.length).toBe(2)
  })

  it('takes nothing new once it is stopped, and answers when the passes that run have ended', async () => {
    const { wait, openAll } = gates()
    const { queue, started, pass } = bench(wait)
    queue.add('a')
    queue.addAfter('b', 100)
    let ended = false
    void queue.stop().then(() => (ended = true))
    queue.add('c')
    queue.add('a')
    await pass(1000)
    expect(ended).toBe(false)
    openAll()
    await pass(0)
    expect(ended).toBe(true)
    expect(started.map(s => s.key)).toEqual(['a'])
  })

  it('says how long the oldest key has been due and worked on, so that one that is stuck shows', async () => {
    const ends: (() => void)[] = []
    const { queue, pass } = bench(() => new Promise(resolve => ends.push(() => resolve({}))), 1)
    expect(queue.oldestMs()).toBe(0)
    queue.add('a')
    await pass(1_000)
    queue.add('b')
    await pass(4_000)
    expect([queue.depth(), queue.oldestMs()]).toEqual([2, 5_000])
    ends[0]!()
    await pass(0)
    expect([queue.depth(), queue.oldestMs()]).toEqual([1, 4_000])
    ends[1]!()
    await pass(60_000)
    expect([queue.depth(), queue.oldestMs()]).toEqual([0, 0])
  })
})
