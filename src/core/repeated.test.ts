import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../api/names.ts'
import type { Lease } from '../ports/home.ts'
import { iso } from './ledger.ts'
import { deedsAfter, deedsOn, repeated } from './repeated.ts'
import { operation, world } from './samples.ts'

const NOW = Date.UTC(2026, 8, 1, 8)
const MINUTE = 60_000
const kind = { deed: () => 'reboot wk-1', stages: [] }
const lease = (deeds?: string): Lease => ({
  namespace: 'ichor-system',
  name: 'ichor-home',
  uid: 'l',
  resourceVersion: '1',
  holder: '',
  durationSeconds: 1,
  transitions: 1,
  acquireTime: '',
  renewTime: '',
  annotations: deeds === undefined ? {} : { [ANNOTATION.deeds]: deeds },
})
const done = operation({
  phase: 'Completed',
  completedAt: iso(NOW),
  machines: [{ name: 'wk-1', role: 'worker', phase: 'Completed' }],
})
const after = (minutes: number, deeds: string | undefined, spec = {}) =>
  repeated(kind, operation({}, { spec }), world({ now: NOW + minutes * MINUTE, lock: lease(deeds) }))

describe('what was done is remembered', () => {
  const deeds = deedsAfter(kind, done, world({ now: NOW, lock: lease() }))

  it('for an hour, under its name', () => {
    expect(after(20, deeds)).toMatchObject([{ rule: 'DoneAlready', overridable: false, message: expect.stringContaining('20m ago') }])
    expect(after(61, deeds)).toEqual([])
    expect(repeated(kind, operation({}, { metadata: { name: 'other' } }), world({ now: NOW, lock: lease(deeds) }))).toEqual([])
    expect(repeated({ deed: () => 'reboot wk-2' }, operation({}), world({ now: NOW, lock: lease(deeds) }))).toEqual([])
  })
  it('and is no refusal for those who mean it', () => expect(after(1, deeds, { again: true })).toEqual([]))
  it('not of a kind for which there would be nothing to do', () => {
    expect(deedsAfter({ stages: [] }, done, world({ now: NOW, lock: lease() }))).toBeUndefined()
    expect(repeated({}, operation({}), world({ now: NOW, lock: lease(deeds) }))).toEqual([])
  })
  it('only where something was done, also by one that was cancelled meanwhile', () => {
    const ended = (machine: object) =>
      deedsAfter(
        kind,
        operation({
          phase: 'Cancelled',
          completedAt: iso(NOW),
          machines: [{ name: 'wk-1', role: 'worker', phase: 'Cancelled', ...machine }],
        }),
        world({ now: NOW, lock: lease() }),
      )
    expect(ended({})).toBeUndefined()
    expect(ended({ phase: 'Failed', committed: 'reboot' })).toContain('reboot wk-1')
  })
  it('once for each name, and not without end', () => {
    let text: string | undefined
    for (let i = 0; i < 100; i++)
      text = deedsAfter(kind, { ...done, metadata: { ...done.metadata, name: `op-${i % 50}` } }, world({ now: NOW + i, lock: lease(text) }))
    const names = deedsOn(lease(text), NOW).map(d => d.name)
    expect(names.length).toBe(32)
    expect(new Set(names).size).toBe(32)
    expect(names.at(-1)).toBe('op-49')
  })
  it.each(['', '{', 'null', '"x"', '[1,null,{"name":1}]'])('what somebody wrote there, %j, is nothing', text =>
    expect(deedsOn(lease(text), NOW)).toEqual([]),
  )
})
