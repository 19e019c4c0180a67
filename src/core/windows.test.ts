import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MaintenanceWindow } from '../api/talos-cluster.ts'
import { windowAt } from './windows.ts'

const at = (text: string) => Date.parse(text)
const window = (schedule: string, duration: string, timeZone = 'UTC'): MaintenanceWindow => ({ schedule, duration, timeZone })
const told = (windows: readonly MaintenanceWindow[], now: string): string => {
  const state = windowAt(windows, at(now))
  if (state.open) return 'open'
  return state.opensAt === undefined ? 'opens never' : `opens ${new Date(state.opensAt).toISOString().replace(':00.000Z', 'Z')}`
}

describe('a maintenance window', () => {
  const nightly = [window('0 2 * * *', '4h')]
  const weekend = [window('0 22 * * FRI', '56h', 'Europe/Berlin')]
  it.each<[string, readonly MaintenanceWindow[], string, string]>([
    ['none at all', [], '2026-05-01T12:00:00Z', 'open'],
    ['before it opens', nightly, '2026-05-01T01:59:59.999Z', 'opens 2026-05-01T02:00Z'],
    ['as it opens', nightly, '2026-05-01T02:00:00.000Z', 'open'],
    ['within', nightly, '2026-05-01T04:30:12.345Z', 'open'],
    ['the last moment', nightly, '2026-05-01T05:59:59.999Z', 'open'],
    ['as it closes', nightly, '2026-05-01T06:00:00.000Z', 'opens 2026-05-02T02:00Z'],
    ['over midnight and days', weekend, '2026-05-03T23:00:00Z', 'open'],
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
    ['two that touch, where they touch', [window('0 2 * * *', '2h'), window('0 4 * * *', '2h')], '2026-05-01T04:00:00Z', 'open'],
    ['two that overlap, after the first', [window('0 2 * * *', '3h'), window('0 4 * * *', '2h')], '2026-05-01T05:30:00Z', 'open'],
    ['a long one after a short one within', [window('0 2 * * *', '4h'), window('0 3 * * *', '30m')], '2026-05-01T03:40:00Z', 'open'],
    ['the nearest of two', [window('0 2 * * *', '1h'), window('0 20 * * *', '1h')], '2026-05-01T12:00:00Z', 'opens 2026-05-01T20:00Z'],
    ['one that never closes', [window('* * * * *', '1h')], '2026-05-01T12:00:00Z', 'open'],
    ['one for a whole month, at its end', [window('0 0 1 5 *', '720h')], '2026-05-30T23:59:59.999Z', 'open'],
    ['one for a whole month, after it', [window('0 0 1 5 *', '720h')], '2026-05-31T00:00:00Z', 'opens 2027-05-01T00:00Z'],
    ['fractions of an hour', [window('0 2 * * *', '1h30m')], '2026-05-01T03:29:00Z', 'open'],
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
    expect(windowAt([bad], at('2026-05-01T02:30:00Z'))).toEqual({
      open: false,
      opensAt: undefined,
      problems: [expect.stringMatching(expected)],
    })
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
  /** Windows that nothing is known of yet. */
  const afresh = (windows: readonly MaintenanceWindow[], now: number) => windowAt([...windows], now)
  it('is open from the moment it opens, and not before', () => {
    fc.assert(
      fc.property(fc.array(drawn, { minLength: 1, maxLength: 3 }), moment, (windows, now) => {
        const state = afresh(windows, now)
        if (state.open || state.opensAt === undefined) return
        expect(state.opensAt).toBeGreaterThan(now)
        expect(afresh(windows, state.opensAt - 1).open).toBe(false)
        expect(afresh(windows, state.opensAt).open).toBe(true)
      }),
      { numRuns: 60 },
    )
  })
  it('says the same whatever was asked before', () => {
    const near = fc.integer({ min: at('2026-03-28T00:00:00Z'), max: at('2026-03-30T00:00:00Z') })
    fc.assert(
      fc.property(fc.array(drawn, { minLength: 1, maxLength: 3 }), fc.array(near, { minLength: 2, maxLength: 12 }), (windows, moments) => {
        for (const now of moments) expect(windowAt(windows, now)).toEqual(afresh(windows, now))
      }),
      { numRuns: 40 },
    )
  })
})
