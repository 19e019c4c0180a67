import { expect, test } from 'vitest'
import { age, shortDuration } from './age.ts'

const [minute, hour, day] = [60, 3600, 86_400]

test.each([
  [-5, '<invalid>'],
  [-0.5, '0s'],
  [119, '119s'],
  [2 * minute, '2m'],
  [9 * minute + 59, '9m59s'],
  [10 * minute + 30, '10m'],
  [179 * minute, '179m'],
  [3 * hour + 5 * minute, '3h5m'],
  [8 * hour + minute, '8h'],
  [47 * hour, '47h'],
  [2 * day + hour, '2d1h'],
  [8 * day, '8d'],
  [729 * day, '729d'],
  [730 * day + day, '2y1d'],
  [8 * 365 * day, '8y'],
])('%d seconds are %s', (seconds, words) => {
  expect(shortDuration(seconds)).toBe(words)
})

test('a time that is none has no age', () => {
  expect(age('', 0)).toBe('<unknown>')
})
