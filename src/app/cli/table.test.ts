import { expect, it } from 'vitest'
import { age, alignedLines, clipped, wrapped } from './table.ts'

it('aligns wide letters by the room they take', () => {
  expect(
    alignedLines(
      ['NAME', 'AGE'],
      [
        ['日本', '1m'],
        ['a', '2h'],
      ],
    ),
  ).toEqual(['NAME   AGE', '日本   1m', 'a      2h'])
})

it.each([
  [0, '0s'],
  [119_000, '119s'],
  [120_000, '2m'],
  [185_000, '3m5s'],
  [3 * 3_600_000 + 60_000, '3h1m'],
  [9 * 3_600_000, '9h'],
  [50 * 3_600_000, '2d2h'],
  [30 * 86_400_000, '30d'],
  [3 * 365 * 86_400_000, '3y'],
  [-5, '0s'],
])('writes %i ms as kubectl does', (ms, text) => {
  expect(age(ms)).toBe(text)
})

it('clips what does not fit, and keeps colours closed', () => {
  expect(clipped('short', 10)).toBe('short')
  expect(clipped('\u001b[31mabcdefgh\u001b[39m', 5)).toBe('\u001b[31mabcd…\u001b[39m')
})

it('wraps between words', () => {
  expect(wrapped('one two three', 9)).toEqual(['one two', '  three'])
  expect(wrapped('one', 2)).toEqual(['one'])
})
