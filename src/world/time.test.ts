import { describe, expect, it } from 'vitest'
import { createRandom } from './random.ts'
import { advanceUntil, createSchedule, outcome } from './time.ts'

describe('the schedule', () => {
  it('runs events in the order of their time, and those of one moment in the order of planning', () => {
    const schedule = createSchedule({ seed: 1, start: 1000 })
    const seen: string[] = []
    schedule.after(50, () => seen.push(`b@${schedule.now()}`))
    schedule.after(10, () => {
      seen.push(`a@${schedule.now()}`)
      schedule.after(40, () => seen.push(`c@${schedule.now()}`))
    })
    const cancel = schedule.at(1020, () => seen.push('never'))
    cancel()
    expect(schedule.next()).toBe(1010)
    schedule.advanceTo(1200)
    expect(seen).toEqual(['a@1010', 'b@1050', 'c@1050'])
    expect(schedule.now()).toBe(1200)
    expect(schedule.monotonic()).toBe(200)
    expect(schedule.next()).toBeUndefined()
  })

  it('stays in order with thousands of events', () => {
    const schedule = createSchedule({ seed: 2, start: 0 })
    const seen: number[] = []
    for (let i = 0; i < 3000; i++) {
      const at = schedule.random.between(0, 500)
      schedule.at(at, () => seen.push(at))
    }
    schedule.advanceTo(500)
    expect(seen).toHaveLength(3000)
    expect(seen).toEqual([...seen].toSorted((a, b) => a - b))
  })

  it('gives promises room between events', async () => {
    const schedule = createSchedule({ seed: 3, start: 0 })
    const sleep = (ms: number) => new Promise<void>(resolve => void schedule.after(ms, resolve))
    const work = async () => {
      for (let i = 0; i < 5; i++) await sleep(100)
      return schedule.now()
    }
    expect(await outcome(schedule, work())).toBe(500)
    await expect(outcome(schedule, new Promise(() => {}))).rejects.toThrow('never settled')
    expect(await advanceUntil(schedule, () => false, { until: 10_000 })).toBe(false)
  })
})

it('a seed repeats its numbers, a neighbour has others', () => {
  const draw = (seed: number) => {
    const random = createRandom(seed)
    return Array.from({ length: 5 }, () => random.uuid())
  }
  expect(draw(7)).toEqual(draw(7))
  expect(draw(7)).not.toEqual(draw(8))
  expect(draw(7)[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const random = createRandom(1)
  const drawn = Array.from({ length: 1000 }, () => random.between(3, 5))
  expect([Math.min(...drawn), Math.max(...drawn)]).toEqual([3, 5])
})
