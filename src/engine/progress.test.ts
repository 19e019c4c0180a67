import { describe, expect, it } from 'vitest'
import { createProgress } from './progress.ts'

const made = () => {
  let now = 0
  const clock = { now: () => now, monotonic: () => now, after: () => () => {} }
  const progress = createProgress({ clock, everyMs: 5_000 })
  /** What is shown when it was told at that time. */
  const at = (ms: number, message?: string): string => {
    now = ms
    if (message !== undefined) progress.tell(message)
    return progress.shown()
  }
  return { at }
}

describe('the progress of a long act', () => {
  it('is shown at once, and then at most every five seconds', () => {
    const { at } = made()
    expect(at(0)).toBe('')
    expect(at(10, 'one')).toBe('one')
    expect(at(20, 'two')).toBe('one')
    expect(at(30, 'three')).toBe('one')
    expect(at(5_010)).toBe('three')
    expect(at(5_020, 'four')).toBe('three')
  })

  it('is shown at once where it leaps by ten percent', () => {
    const { at } = made()
    expect(at(0, 'installing, 40 %')).toBe('installing, 40 %')
    expect(at(1, 'installing, 49 %')).toBe('installing, 40 %')
    expect(at(2, 'installing, 50 %')).toBe('installing, 50 %')
    // Back, as of another bar: not a leap.
    expect(at(3, 'installing, 0 %')).toBe('installing, 50 %')
    expect(at(5_002)).toBe('installing, 0 %')
  })

  it('of a thousand lines in ten seconds is twelve changes at most', () => {
    const { at } = made()
    const shown = Array.from({ length: 1_000 }, (_, i) => at(i * 10, `installing, ${Math.floor(i / 10)} %`))
    expect(new Set(shown).size).toBeLessThanOrEqual(12)
  })
})
