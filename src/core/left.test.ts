import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../api/names.ts'
import type { TalosMachine } from '../api/talos-machine.ts'
import type { Lease } from '../ports/home.ts'
import { withoutLeft } from './left.ts'
import { iso } from './ledger.ts'
import { deedsAfter } from './repeated.ts'
import { metadata, operation } from './samples.ts'

const NOW = Date.UTC(2026, 8, 1, 8)
const DAY = 86_400_000
const machine = (name: string, change: Partial<TalosMachine['status']> = {}): TalosMachine => ({
  metadata: metadata({ name }),
  spec: { clusterRef: { name: 'home' }, address: '10.5.0.5', role: 'worker' },
  status: change,
})
const machines = [machine('wk-1'), machine('wk-2')]
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
const stage = { name: 'reset', removes: true } as never
const reset = { deed: () => 'reset wk-1', stages: [stage] }
const ended = (phase: 'Completed' | 'Failed' = 'Completed') =>
  operation({ phase: 'Completed', completedAt: iso(NOW), machines: [{ name: 'wk-1', role: 'worker', phase, committed: 'reset' }] })
const names = (deeds: string | undefined, all = machines) => withoutLeft(all, lease(deeds)).map(m => m.metadata.name)

describe('a machine that was reset', () => {
  const deeds = deedsAfter(reset, ended(), { lock: lease(), now: NOW, machines })

  it('is none of the cluster, though its TalosMachine is there', () => expect(names(deeds)).toEqual(['wk-2']))

  it('also when more was done since, days later', () => {
    const lock = lease(deeds)
    const later = deedsAfter({ deed: () => 'reboot wk-2', stages: [] }, ended(), { lock, now: NOW + 9 * DAY, machines })
    expect(names(later)).toEqual(['wk-2'])
    expect(later).toContain('reboot wk-2')
  })

  it('is one again where it was seen since', () => {
    expect(names(deeds, [machine('wk-1', { lastSeen: iso(NOW + 1) })])).toEqual(['wk-1'])
    expect(names(deeds, [machine('wk-1', { lastSeen: iso(NOW - 1) })])).toEqual([])
  })

  it('is not another one of its name', () => {
    const other = { ...machine('wk-1'), metadata: metadata({ name: 'wk-1', uid: 'another' }) }
    expect(names(deeds, [other])).toEqual(['wk-1'])
  })

  it('is one of the cluster as long as its reset was not seen to end', () => {
    expect(names(deedsAfter(reset, ended('Failed'), { lock: lease(), now: NOW, machines }))).toEqual(['wk-1', 'wk-2'])
    expect(names(undefined)).toEqual(['wk-1', 'wk-2'])
  })

  it('is one where something else was done to it', () => {
    expect(names(deedsAfter({ deed: () => 'reboot wk-1', stages: [] }, ended(), { lock: lease(), now: NOW, machines }))).toEqual([
      'wk-1',
      'wk-2',
    ])
  })
})
