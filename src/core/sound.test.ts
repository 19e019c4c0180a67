import { describe, expect, it } from 'vitest'
import type { OperationStatus, Target } from '../api/talos-operation.ts'
import { kinds } from '../kinds/registry.ts'
import type { Kind } from './kind.ts'
import { iso } from './ledger.ts'
import { metadata, operation, world } from './samples.ts'
import { unsound, withoutFuture } from './sound.ts'

const kind = kinds.find(k => k.name === 'talos') as Kind
const NOW = Date.UTC(2026, 8, 1, 8)
const machines = ['wk-1', 'wk-2'].map(name => ({
  metadata: metadata({ name }),
  spec: { clusterRef: { name: 'home' }, address: '10.5.0.9', role: 'worker' as const },
  status: { nodeName: name },
}))
const open = (change: Partial<Target> = {}): Target => ({
  name: 'wk-1',
  role: 'worker',
  node: 'wk-1',
  phase: 'Running',
  step: 'install',
  committed: 'install',
  before: { bootID: 'b1' },
  goal: { node: 'wk-1' },
  ...change,
})
const why = (status: OperationStatus, spec = {}) =>
  unsound(
    kind,
    operation({ phase: 'Running', ...status }, { spec: { kind: 'talos', talos: { version: 'v1.13.9' }, ...spec } }),
    world({ machines }),
  )
const whyOf = (change: Partial<Target>) => why({ machines: [open(change)] })

describe('what cannot have come to be by carrying it out', () => {
  it.each<[string, Partial<Target>, string]>([
    ['a step of another version', { step: 'warp' }, 'there is no step warp in the stage'],
    ['a committing step of another version', { committed: 'warp' }, 'there is no committed warp'],
    ['committed, but nowhere', { step: undefined }, 'committed by install, but in no step'],
    ['nothing of what it was before', { before: undefined }, 'its boot id before is not recorded'],
    ['no boot id', { before: { version: 'v1.13.5' } }, 'its boot id before is not recorded'],
    ['nothing of what was chosen', { goal: undefined }, 'what was chosen for it is not recorded'],
    ['no Node to be drained', { node: undefined, goal: { drain: 'wait' } }, 'to be drained, but its node is not recorded'],
    ['another role', { role: 'controlplane' }, 'TalosMachine wk-1 says worker'],
    ['the Node of another machine', { goal: { node: 'WK-2' } }, 'that of TalosMachine wk-2'],
    ['a phase of another version', { phase: 'Verifying' as Target['phase'] }, 'there is no phase Verifying'],
  ])('%s', (_, change, words) => {
    expect(whyOf(change)).toContain(`status.machines, wk-1: `)
    expect(whyOf(change)).toContain(words)
  })

  it('a stage or a phase that there is not, and an end with a machine open', () => {
    expect(() => why({ stage: 'warp', machines: [open()] })).toThrow('has no stage warp')
    expect(why({ phase: 'Warped' as 'Running' })).toBe('there is no phase Warped')
    expect(why({ phase: 'Completed', machines: [open()] })).toContain('in the middle of its steps')
    expect(why({ phase: 'Completed', machines: [open()] }, { cancelled: true })).toBeUndefined()
  })

  it.each<[string, Partial<Target>]>([
    ['an open machine', {}],
    ['one whose TalosMachine is gone', { name: 'wk-9', role: 'controlplane' }],
    ['a Node that nobody knows', { goal: { node: 'wk-9' } }],
    ['one that is closed, whatever stands there', { phase: 'Failed', step: 'warp', role: 'controlplane' }],
    ['one whose turn has not come', { phase: 'Pending', before: undefined, goal: undefined, committed: undefined, step: undefined }],
  ])('not %s', (_, change) => {
    expect(whyOf(change)).toBeUndefined()
  })
})

describe('times that have not come yet', () => {
  const far = '9999-12-31T23:59:59Z'
  const receipt = (at: string) => ({ step: 'try', bootID: 'b', value: 'taken', at })
  it('are taken for now, also where they are no times', () => {
    const status: OperationStatus = {
      lastRetry: far,
      startedAt: 'never',
      waiting: { for: 'x', since: far },
      machines: [
        open({
          startedAt: far,
          stepStartedAt: far,
          actedAt: far,
          firstActedAt: far,
          stableSince: far,
          retryAt: far,
          receipts: [receipt(far)],
        }),
        open({ name: 'wk-2', receipts: [receipt(iso(NOW - 1000))] }),
      ],
    }
    const [now, made] = [iso(NOW), operation(status).metadata.creationTimestamp]
    expect(withoutFuture({ ...operation(status), status }, NOW)).toEqual({
      lastRetry: now,
      startedAt: now,
      waiting: { for: 'x', since: now },
      machines: [
        open({
          startedAt: made,
          stepStartedAt: now,
          actedAt: now,
          firstActedAt: now,
          stableSince: now,
          retryAt: now,
          receipts: [receipt(made)],
        }),
        open({ name: 'wk-2', receipts: [receipt(iso(NOW - 1000))] }),
      ],
    })
  })

  it('stay where a clock is only a little ahead, or a try is put off', () => {
    const status: OperationStatus = {
      lastRetry: iso(NOW + 60_000),
      machines: [open({ stepStartedAt: iso(NOW + 60_000), retryAt: iso(NOW + 1_800_000) })],
      lastFailure: { at: iso(NOW), reason: 'InstallFailed', message: 'x' },
      waiting: { for: 'x', since: iso(NOW), until: far },
    }
    expect(withoutFuture({ ...operation(status), status }, NOW)).toBe(status)
  })
})
