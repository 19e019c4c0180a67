import { describe, expect, it } from 'vitest'
import { createSchedule } from '../world/time.ts'
import type { Next } from './queue.ts'
import { createSight } from './sight.ts'

const bench = () => {
  const schedule = createSchedule({ seed: 1, start: 0 })
  const sight = createSight({ clock: { now: schedule.now, monotonic: schedule.monotonic, after: schedule.after }, longestGapMs: 30_000 })
  /** Looks so many milliseconds after the look before; answers for how long it was in sight. */
  const look = async (afterMs: number, next: Next = { againMs: 2000 }, key = 'a'): Promise<number> => {
    schedule.advanceTo(schedule.now() + afterMs)
    let told = -1
    await sight.look(key, async watchedMs => {
      told = watchedMs
      return next
    })
    return told
  }
  return { look, schedule, sight }
}

describe('the sight of an operation', () => {
  it('begins with the first look and grows with each that follows', async () => {
    const { look } = bench()
    expect([await look(0), await look(2000), await look(15_000)]).toEqual([0, 2000, 17_000])
  })

  it('begins anew after a look that failed, and after one whose outcome was not written', async () => {
    const { look } = bench()
    expect([await look(0), await look(2000, { failed: true }), await look(2000), await look(2000)]).toEqual([0, 2000, 0, 2000])
    expect([await look(2000, { againMs: 200, lost: true }), await look(200), await look(2000)]).toEqual([4000, 0, 2000])
  })

  it('begins anew after a pass that crashed', async () => {
    const { look, sight } = bench()
    await look(0)
    await expect(sight.look('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await look(2000)).toBe(0)
  })

  it('begins anew where nobody looked for too long, however long a look itself takes', async () => {
    const { look, schedule, sight } = bench()
    await look(0)
    await sight.look('a', async () => {
      schedule.advanceTo(schedule.now() + 60_000)
      return { againMs: 2000 }
    })
    expect(await look(30_000)).toBe(90_000)
    expect(await look(30_001)).toBe(0)
  })

  it('is that of one operation', async () => {
    const { look } = bench()
    await look(0)
    expect(await look(2000, { againMs: 2000 }, 'b')).toBe(0)
    expect(await look(2000)).toBe(4000)
  })

  it('ends with what rests until something changes', async () => {
    const { look } = bench()
    await look(0, {})
    expect(await look(2000)).toBe(0)
  })
})
