import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ANNOTATION, FINALIZER, operationHolder } from '../api/names.ts'
import type { OperationStatus, TalosOperation, Target } from '../api/talos-operation.ts'
import type { Lease } from '../ports/home.ts'
import type { MachineFacts } from '../ports/talos.ts'
import { decide } from './decide.ts'
import type { Decision } from './decision.ts'
import type { Kind, Step } from './kind.ts'
import { no } from './kind.ts'
import { iso } from './ledger.ts'
import { operation, world } from './samples.ts'
import { NO_FACTS } from './world.ts'

const NOW = Date.UTC(2026, 8, 1, 8)
const STOPPED_AT = NOW - 60_000

const work: Step = {
  name: 'work',
  summary: '',
  done: () => no('it is not done'),
  act: { long: false, disruptive: true, describe: () => 'doing it', run: async () => ({ ok: true, value: undefined }) },
  failure: 'InternalError',
  commits: true,
}
const sample: Kind = {
  name: 'sample',
  block: 'sample',
  summary: 'Does it.',
  spec: z.object({}),
  checkNeeds: () => [],
  checks: () => ({ found: {}, refusals: [], notes: [] }),
  stages: [
    {
      name: 'rollout',
      summary: '',
      orderNeeds: () => [],
      order: () => [],
      turn: () => ({ may: 'yes' }),
      open: () => ({ open: { goal: {} } }),
      steps: [work],
      abandon: [],
      preview: () => ({ from: '', to: '', loses: [] }),
    },
  ],
}

const target = (name: string, change: Partial<Target>): Target => ({
  name,
  role: 'worker',
  phase: 'Running',
  before: { bootID: 'b1' },
  goal: {},
  step: 'work',
  startedAt: iso(STOPPED_AT),
  stepStartedAt: iso(STOPPED_AT),
  ...change,
})
const other = operation(
  { phase: 'Paused', failureReason: 'RebootTimeout', machines: [target('wk-2', { phase: 'Failed', committed: 'work' })] },
  { metadata: { name: 'other', creationTimestamp: '2026-09-01T07:30:00Z' }, spec: { kind: 'another' } },
)
const lease = ({ metadata: { namespace, name, uid } }: TalosOperation, acquiredAt: number): Lease => ({
  namespace: 'ichor-system',
  name: 'ichor-home',
  uid: 'l',
  resourceVersion: '1',
  holder: operationHolder(namespace, name),
  durationSeconds: 1,
  transitions: 1,
  acquireTime: iso(acquiredAt),
  renewTime: iso(acquiredAt),
  annotations: { [ANNOTATION.holderUid]: uid },
})
const facts = {
  ...NO_FACTS,
  nodes: { ok: true, value: [] },
  machines: { 'wk-1': { ok: true, value: { bootID: 'b1', nodename: 'wk-1', stage: 'running' } as MachineFacts } },
} as const
const preflight = { checkedAt: iso(STOPPED_AT), underLock: true, refusals: [] }
const mine = (status: OperationStatus, spec: Partial<TalosOperation['spec']> = {}): TalosOperation =>
  operation({ phase: 'Running', preflight, ...status }, { metadata: { finalizers: [FINALIZER] }, spec })
const decided = (me: TalosOperation, lock: Lease | undefined = lease(other, STOPPED_AT)): Decision =>
  decide(sample, me, world({ now: NOW, lock, others: [other], facts }))

const open = target('wk-1', {})
const committed = target('wk-1', { committed: 'work' })
const unfinished = {
  phase: 'Paused',
  failureReason: 'UnfinishedOperation',
  lastFailure: { at: iso(STOPPED_AT), reason: 'UnfinishedOperation', message: '' },
} as const

describe('where another operation left a machine half done', () => {
  it.each([
    ['nothing open', { ...open, phase: 'Pending' as const }],
    ['a machine open', open],
    ['a machine half done', committed],
  ])('one with %s does not go on with the lock in its hands', (_, machine) => {
    expect(decided(mine({ machines: [machine] }))).toMatchObject({ do: 'record', status: { failureReason: 'UnfinishedOperation' } })
  })

  it('a machine that was not half done is closed without taking the lock', () => {
    expect(decided(mine({ ...unfinished, machines: [open] }))).toMatchObject({ do: 'record', status: { machines: [{ phase: 'Pending' }] } })
  })

  it('its own half done machine is carried to its end with the lock, which is given back then', () => {
    expect(decided(mine({ ...unfinished, machines: [committed] }))).toMatchObject({ do: 'acquire' })
    const me = mine({ ...unfinished, machines: [committed] })
    expect(decided(me, lease(me, NOW))).toMatchObject({ do: 'act' })
    const ended = mine({ ...unfinished, machines: [{ ...open, phase: 'Pending' }] })
    expect(decided(ended, lease(ended, NOW))).toEqual({ do: 'release' })
  })

  it('who is paused meanwhile is told so before it takes the lock for that, so that it does not keep it', () => {
    expect(decided(mine({ machines: [committed] }, { paused: true }))).toMatchObject({
      do: 'record',
      status: { failureReason: 'UnfinishedOperation' },
    })
    expect(decided(mine({ machines: [committed] }, { cancelled: true }))).toMatchObject({ do: 'acquire' })
  })

  it('the lock that it had when its cluster went away stays its own', () => {
    const me = mine({ ...unfinished, machines: [{ ...open, phase: 'Pending' }] }, { paused: true })
    expect(decided(me, lease(me, STOPPED_AT - 1))).not.toEqual({ do: 'release' })
  })
})
