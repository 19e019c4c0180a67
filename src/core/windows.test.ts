import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MaintenanceWindow } from '../api/talos-cluster.ts'
import { windowAt, windowProblems } from './windows.ts'

const at = (text: string) => Date.parse(text)
const window = (schedule: string, duration: string, timeZone = 'UTC'): MaintenanceWindow => ({ schedule, duration, timeZone })
const told = (windows: readonly MaintenanceWindow[] | undefined, now: string): string => {
  const state = windowAt(windows, at(now))
  const time = (ms: number | undefined) => (ms === undefined ? 'never' : new Date(ms).toISOString().replace(':00.000Z', 'Z'))
  return state.open ? `open until ${time(state.closesAt)}` : `opens ${time(state.opensAt)}`
}

describe('a maintenance window', () => {
  const nightly = [window('0 2 * * *', '4h')]
  const weekend = [window('0 22 * * FRI', '56h', 'Europe/Berlin')]
  it.each<[string, readonly MaintenanceWindow[] | undefined, string, string]>([
    ['none at all', undefined, '2026-05-01T12:00:00Z', 'open until never'],
    ['an empty list', [], '2026-05-01T12:00:00Z', 'open until never'],
    ['before it opens', nightly, '2026-05-01T01:59:59.999Z', 'opens 2026-05-01T02:00Z'],
    ['as it opens', nightly, '2026-05-01T02:00:00.000Z', 'open until 2026-05-01T06:00Z'],
    ['within', nightly, '2026-05-01T04:30:12.345Z', 'open until 2026-05-01T06:00Z'],
    ['the last moment', nightly, '2026-05-01T05:59:59.999Z', 'open until 2026-05-01T06:00Z'],
    ['as it closes', nightly, '2026-05-01T06:00:00.000Z', 'opens 2026-05-02T02:00Z'],
    ['over midnight and days', weekend, '2026-05-03T23:00:00Z', 'open until 2026-05-04T04:00Z'],
    ['in another time zone', weekend, '2026-05-01T19:59:59Z', 'opens 2026-05-01T20:00Z'],
    ['in another time zone, in winter', weekend, '2026-01-02T20:30:00Z', 'opens 2026-01-02T21:00Z'],
    [
      'a start that daylight saving skips',
      [window('30 2 * * *', '1h', 'Europe/Berlin')],
      '2026-03-29T00:59:00Z',
      'opens 2026-03-29T01:00Z',
    ],
    [
      'a start that occurs twice opens once',
      [window('30 2 * * *', '30m', 'Europe/Berlin')],
      '2026-10-25T01:00:00Z',
      'opens 2026-10-26T01:30Z',
    ],
    ['a day that few months have', [window('0 0 31 * *', '1h')], '2026-06-01T00:00:00Z', 'opens 2026-07-31T00:00Z'],
    ['a day that never comes', [window('0 0 30 2 *', '1h')], '2026-06-01T00:00:00Z', 'opens never'],
    [
      'two that touch are one',
      [window('0 2 * * *', '2h'), window('0 4 * * *', '2h')],
      '2026-05-01T03:00:00Z',
      'open until 2026-05-01T06:00Z',
    ],
    [
      'two that overlap are one',
      [window('0 2 * * *', '3h'), window('0 4 * * *', '2h')],
      '2026-05-01T02:00:00Z',
      'open until 2026-05-01T06:00Z',
    ],
    [
      'a short one within a long one',
      [window('0 2 * * *', '4h'), window('0 3 * * *', '30m')],
      '2026-05-01T03:10:00Z',
      'open until 2026-05-01T06:00Z',
    ],
    ['the nearest of two', [window('0 2 * * *', '1h'), window('0 20 * * *', '1h')], '2026-05-01T12:00:00Z', 'opens 2026-05-01T20:00Z'],
    ['one that never closes', [window('* * * * *', '1h')], '2026-05-01T12:00:00Z', 'open until never'],
    ['one for a whole month', [window('0 0 1 5 *', '720h')], '2026-05-01T12:00:00Z', 'open until 2026-05-31T00:00Z'],
    ['fractions of an hour', [window('0 2 * * *', '1h30m')], '2026-05-01T03:29:00Z', 'open until 2026-05-01T03:30Z'],
  ])('%s', (_, windows, now, expected) => expect(told(windows, now)).toBe(expected))
})

describe('a window that cannot be read', () => {
  it.each<[string, MaintenanceWindow, RegExp]>([
    ['four fields', window('0 2 * *', '1h'), /^Maintenance window 1: "0 2 \* \*" is no cron expression of five fields/],
    ['six fields', window('0 0 2 * * *', '1h'), /five fields/],
    ['a nickname', window('@daily', '1h'), /five fields/],
    ['a word', window('nightly', '1h'), /five fields/],
    ['a minute that does not exist', window('61 2 * * *', '1h'), /is no cron expression: .*61/],
    ['a day of the week that does not exist', window('0 2 * * FOO', '1h'), /is no cron expression/],
    ['a time zone that does not exist', window('0 2 * * *', '1h', 'Mars/Olympus'), /"Mars\/Olympus" is no IANA time zone/],
    ['no time zone', window('0 2 * * *', '1h', ''), /is no IANA time zone/],
    ['a duration without unit', window('0 2 * * *', '4'), /"4" is no duration/],
    ['a duration of nothing', window('0 2 * * *', '0s'), /"0s" is no duration/],
  ])('%s', (_, bad, expected) => {
    expect(windowProblems([bad])).toEqual([expect.stringMatching(expected)])
    expect(windowAt([bad], at('2026-05-01T02:30:00Z'))).toEqual({ open: false, opensAt: undefined, problems: windowProblems([bad]) })
  })
  it('does not close the others', () => {
    const windows = [window('nightly', '1h'), window('0 2 * * *', '4h')]
    expect(windowAt(windows, at('2026-05-01T03:00:00Z'))).toMatchObject({ open: true })
    expect(windowAt(windows, at('2026-05-01T12:00:00Z'))).toMatchObject({
      open: false,
      opensAt: at('2026-05-02T02:00:00Z'),
      problems: [expect.stringContaining('window 1')],
    })
  })
})

describe('whatever the windows are', () => {
  const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu')
  const drawn = fc.record({
    schedule: fc
      .tuple(fc.nat(59), fc.nat(23), fc.constantFrom('*', '1', '15'), fc.constantFrom('*', 'SAT', '1-5'))
      .map(([m, h, day, week]) => `${m} ${h} ${day} * ${week}`),
    duration: fc.integer({ min: 1, max: 1800 }).map(m => `${m}m`),
    timeZone: zone,
  })
  const moment = fc.integer({ min: at('2026-01-01T00:00:00Z'), max: at('2027-01-01T00:00:00Z') })
  it('is open just before it closes and from the moment it opens', () => {
    fc.assert(
      fc.property(fc.array(drawn, { minLength: 1, maxLength: 3 }), moment, (windows, now) => {
        const state = windowAt(windows, now)
        if (state.open) {
          if (state.closesAt === undefined) return
          expect(state.closesAt).toBeGreaterThan(now)
          expect(windowAt(windows, state.closesAt - 1).open).toBe(true)
          expect(windowAt(windows, state.closesAt).open).toBe(false)
        } else if (state.opensAt !== undefined) {
          expect(state.opensAt).toBeGreaterThan(now)
          expect(windowAt(windows, state.opensAt - 1).open).toBe(false)
          expect(windowAt(windows, state.opensAt).open).toBe(true)
        }
      }),
      { numRuns: 60 },
    )
  })
})
