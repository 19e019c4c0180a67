import { describe, expect, it } from 'vitest'
import { unifiedDiff } from './text-diff.ts'

const numbers = (...lines: (string | number)[]): string => `${lines.join('\n')}\n`
const to = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1)

describe('a unified diff', () => {
  it('is empty where nothing differs', () => {
    expect(unifiedDiff('a\nb\n', 'a\nb\n')).toBe('')
  })
  it('shows a line that came, with three lines around it', () => {
    expect(unifiedDiff(numbers(...to(9)), numbers(1, 2, 3, 4, 'new', 5, 6, 7, 8, 9))).toBe(
      '--- a\n+++ b\n@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+new\n 5\n 6\n 7\n',
    )
  })
  it('joins what is near and parts what is far', () => {
    const after = [...to(30)].map(line => (line === 2 || line === 6 || line === 25 ? `${line}!` : line))
    expect(
      unifiedDiff(numbers(...to(30)), numbers(...after))
        .split('\n')
        .filter(line => !line.startsWith(' ')),
    ).toEqual(['--- a', '+++ b', '@@ -1,9 +1,9 @@', '-2', '+2!', '-6', '+6!', '@@ -22,7 +22,7 @@', '-25', '+25!', ''])
  })
  it('counts from nothing', () => {
    expect(unifiedDiff('', 'a\n')).toBe('--- a\n+++ b\n@@ -0,0 +1 @@\n+a\n')
  })
})
