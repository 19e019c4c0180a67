import fc from 'fast-check'
import { expect, test } from 'vitest'
import { diffLines, type DiffLine } from './diff-lines.ts'

const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 30 })
const side = (lines: readonly DiffLine[], other: DiffLine['sign']): string[] =>
  lines.filter(({ sign }) => sign !== other).map(line => line.text)

test('of both texts nothing is lost, and nothing is added', () => {
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after)
      expect(side(lines, '+')).toEqual(before)
      expect(side(lines, '-')).toEqual(after)
    }),
  )
})

test('no shorter way leads from one to the other', () => {
  const common = (a: readonly string[], b: readonly string[]): number => {
    const rows = Array.from({ length: a.length + 1 }, () => Array.from({ length: b.length + 1 }, () => 0))
    for (let i = 1; i <= a.length; i++)
      for (let j = 1; j <= b.length; j++)
        rows[i]![j] = a[i - 1] === b[j - 1] ? rows[i - 1]![j - 1]! + 1 : Math.max(rows[i - 1]![j]!, rows[i]![j - 1]!)
    return rows[a.length]![b.length]!
  }
  fc.assert(
    fc.property(text, text, (before, after) => {
      expect(diffLines(before, after).filter(({ sign }) => sign === ' ')).toHaveLength(common(before, after))
    }),
  )
})

test('texts that have nothing in common, of many lines', () => {
  const many = (sign: string): string[] => Array.from({ length: 1500 }, (_, index) => `${sign}${index}`)
  expect(diffLines(many('a'), many('b'))).toHaveLength(3000)
})
