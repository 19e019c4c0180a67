import { expect, it } from 'vitest'
import { newerLines } from './guide.ts'

it('names the newest release that is left to upgrade to, and how to go there', () => {
  expect(newerLines('v1.13.8', 'bin/ichor', false)).toEqual([
    'The registry has newer releases, up to v1.13.9. To go there:',
    '',
    '  bin/ichor upgrade talos v1.13.9 --wait',
  ])
  expect(newerLines('v1.11.6', 'ichor', true).at(-1)).toBe('  ichor upgrade talos v1.12.11 --wait --acknowledge api-outage')
})

it('says how to have something left where there is nothing newer', () => {
  expect(newerLines('v1.13.9', 'bin/ichor', false)).toEqual([
    'The registry has nothing newer than v1.13.9; start with --to v1.13.8 to have something left to do.',
  ])
})
