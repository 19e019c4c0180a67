import { describe, expect, it } from 'vitest'
import { createRestarts } from './restarts.ts'

const killed = { exitCode: 137, livedMs: 1_200 }
const failed = { exitCode: 1, livedMs: 300 }

describe('the restarts of the controller', () => {
  it('never end where it is killed, and become slower up to some seconds', () => {
    const { after } = createRestarts()
    const waits = Array.from({ length: 20 }, () => after(killed))
    expect(waits.slice(0, 6)).toEqual([500, 1_000, 2_000, 4_000, 5_000, 5_000])
    expect(waits.at(-1)).toBe(5_000)
  })

  it('end after five errors of its own in a row', () => {
    const { after } = createRestarts()
    expect(Array.from({ length: 5 }, () => after(failed))).toEqual([500, 1_000, 2_000, 4_000, 'never'])
  })

  it('count anew after a kill, after an end that somebody asked for, and after a life that was long', () => {
    for (const between of [killed, { exitCode: 0, livedMs: 300 }, { exitCode: 1, livedMs: 60_000 }]) {
      const { after } = createRestarts()
      for (let n = 0; n < 4; n++) after(failed)
      expect(after(between)).not.toBe('never')
      expect(after(failed)).not.toBe('never')
    }
  })

  it('are quick again after a life that was long', () => {
    const { after } = createRestarts()
    for (let n = 0; n < 6; n++) after(killed)
    expect(after({ ...killed, livedMs: 60_000 })).toBe(500)
  })
})
