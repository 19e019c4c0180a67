import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../api/names.ts'
import type { TalosMachine } from '../api/talos-machine.ts'
import type { OperationStatus, TalosOperation } from '../api/talos-operation.ts'
import type { Lease } from '../ports/home.ts'
import { claim, isConfirmed, isHeldBy } from './lock-claim.ts'
import { metadata, operation, world } from './samples.ts'

const holder = (name: string): string => `ichor-controller/op/ichor-system/${name}`
const lease = (change: Partial<Lease> = {}): Lease => ({
  namespace: 'ichor-system',
  name: 'ichor-home',
  uid: 'l',
  resourceVersion: '1',
  holder: holder('a'),
  durationSeconds: 1,
  transitions: 1,
  acquireTime: '2026-09-01T07:30:00.000000Z',
  renewTime: '2026-09-01T07:30:00.000000Z',
  annotations: { [ANNOTATION.holderUid]: 'uid-a' },
  ...change,
})
const named = (name: string, status: OperationStatus = {}, change: Parameters<typeof operation>[1] = {}): TalosOperation =>
  operation(status, { ...change, metadata: { name, creationTimestamp: '2026-09-01T07:00:00Z', ...change.metadata } })
const me = named('me')
const waiting: OperationStatus = { phase: 'Paused', failureReason: 'ClusterLockHeld' }
const machine = { name: 'wk-1', role: 'worker' } as const

const answer = (lock: Lease | undefined, ...others: readonly TalosOperation[]) => {
  const got = claim(me, world({ lock, others }))
  return got.may === 'take' ? `take from ${got.from ?? 'nobody'}` : `wait for ${got.holder}`
}

describe('a claim to the cluster lock', () => {
  it.each([
    ['no Lease yet', undefined, []],
    ['nobody in it', lease({ holder: '' }), []],
  ] as const)('is good with %s', (_, lock, others) => expect(answer(lock, ...others)).toBe('take from nobody'))

  it.each<[string, TalosOperation[]]>([
    ['was deleted', []],
    ['is a namesake with another UID', [named('a', { phase: 'Running' }, { metadata: { uid: 'another' } })]],
    ['is completed', [named('a', { phase: 'Completed' })]],
    ['was cancelled', [named('a', { phase: 'Cancelled' })]],
    ['failed', [named('a', { phase: 'Paused', failureReason: 'DrainBlocked', machines: [{ ...machine, phase: 'Failed' }] })]],
    ['was refused', [named('a', { phase: 'Paused', failureReason: 'PreflightRefused' })]],
  ])('takes it over from a holder that %s', (_, others) => expect(answer(lease(), ...others)).toBe(`take from ${holder('a')}`))

  it.each<[string, TalosOperation]>([
    ['runs', named('a', { phase: 'Running' })],
    ['has just taken it', named('a')],
    ['is asked to be cancelled, and was not yet', named('a', { phase: 'Running' }, { spec: { cancelled: true } })],
    ['is being deleted', named('a', { phase: 'Running' }, { metadata: { deletionTimestamp: '2026-09-01T07:50:00Z' } })],
    ['is paused by its operator', named('a', { phase: 'Paused' }, { spec: { paused: true } })],
    ['failed and is paused by its operator', named('a', { phase: 'Paused', failureReason: 'DrainBlocked' }, { spec: { paused: true } })],
    [
      'failed, and finishes another machine first',
      named('a', { phase: 'Paused', failureReason: 'DrainBlocked', machines: [{ ...machine, phase: 'Running' }] }),
    ],
  ])('waits for a holder that %s', (_, other) => expect(answer(lease(), other)).toBe(`wait for ${holder('a')}`))

  it.each([
    'kured',
    'ichor-controller/op/home',
    'ichor-controller/else/ichor-system/home',
    'op/ichor-system/a',
    'ichor-controller/op/a/b/c',
  ])('leaves %s alone, which is none of ours, however old its hold', identity => {
    expect(answer(lease({ holder: identity, renewTime: '2001-01-01T00:00:00.000000Z' }))).toBe(`wait for ${identity}`)
  })

  const controlPlane = (uid: string): TalosMachine => ({
    metadata: metadata({ name: 'cp-4', uid }),
    spec: { clusterRef: { name: 'home' }, address: '10.0.0.4', role: 'controlplane' },
    status: {},
  })

  it.each([
    ['is there', [controlPlane('uid-a')], 'wait'],
    ['is a namesake with another UID', [controlPlane('another')], 'take'],
    ['was deleted', [], 'take'],
  ] as const)('honours a control plane that joins or is removed: one that %s', (_, machines, may) => {
    const lock = lease({ holder: 'ichor-controller/machine/ichor-system/cp-4' })
    expect(claim(me, world({ lock, machines }))).toMatchObject(
      may === 'take' ? { may, from: lock.holder } : { may, message: expect.stringContaining('that control plane joins or is removed') },
    )
  })

  it.each([
    ['of this cluster', 'home', 'uid-home', 'wait'],
    ['of a cluster of that name that was deleted', 'home', 'another', 'take'],
    ['of a cluster that is none', 'other', 'uid-other', 'take'],
  ] as const)('honours the Job of the CNI: one %s', (_, name, uid, may) => {
    const lock = lease({ holder: `ichor-controller/cni/ichor-system/${name}`, annotations: { [ANNOTATION.holderUid]: uid } })
    expect(claim(me, world({ lock })).may).toBe(may)
  })

  it('asks the operation itself where a hand has taken the UID off the Lease', () => {
    const bare = lease({ annotations: {} })
    const lock = { lease: 'ichor-home', holder: holder('a'), since: '2026-09-01T07:30:00Z' }
    expect(answer(bare, named('a', { phase: 'Running', lock }))).toBe(`wait for ${holder('a')}`)
    expect(answer(bare, named('a', { phase: 'Paused', failureReason: 'DrainBlocked', lock }))).toBe(`take from ${holder('a')}`)
    expect(answer(bare, named('a', { phase: 'Pending' }))).toBe(`take from ${holder('a')}`)
  })

  it('lets older ones that wait go first, by creation time and then UID', () => {
    const older = named('old', waiting, { metadata: { creationTimestamp: '2026-09-01T06:00:00Z' } })
    const younger = named('young', waiting, { metadata: { creationTimestamp: '2026-09-01T07:30:00Z' } })
    const twin = named('twin', waiting, { metadata: { uid: 'a-smaller-uid' } })
    expect(answer(undefined, younger)).toBe('take from nobody')
    expect(answer(undefined, younger, older)).toBe(`wait for ${holder('old')}`)
    expect(answer(undefined, twin)).toBe(`wait for ${holder('twin')}`)
  })

  it.each<[string, TalosOperation]>([
    ['its operator paused', named('old', waiting, { spec: { paused: true }, metadata: { creationTimestamp: '2026-09-01T06:00:00Z' } })],
    ['is cancelled', named('old', waiting, { spec: { cancelled: true }, metadata: { creationTimestamp: '2026-09-01T06:00:00Z' } })],
    [
      'was refused',
      named('old', { phase: 'Paused', failureReason: 'PreflightRefused' }, { metadata: { creationTimestamp: '2026-09-01T06:00:00Z' } }),
    ],
    ['waits for its time', named('old', { phase: 'Pending' }, { metadata: { creationTimestamp: '2026-09-01T06:00:00Z' } })],
  ])('does not wait for an older one that %s', (_, other) => expect(answer(undefined, other)).toBe('take from nobody'))

  it('lets one go first that has machines open, though it is younger: its Lease was deleted by hand', () => {
    const open = named(
      'young',
      { phase: 'Running', machines: [{ ...machine, phase: 'Running' }] },
      { metadata: { creationTimestamp: '2026-09-01T07:30:00Z' } },
    )
    expect(answer(undefined, open)).toBe(`wait for ${holder('young')}`)
  })

  it('names why in its message', () => {
    expect(claim(me, world({ lock: lease(), others: [named('a', { phase: 'Running', message: 'wk-1: rebooting.' })] }))).toMatchObject({
      message: `Waits for the cluster lock, held by ${holder('a')}: wk-1: rebooting. It starts by itself.`,
    })
  })
})

describe('a hold', () => {
  it('is by name and UID', () => {
    expect(isHeldBy(lease(), named('a'))).toBe(true)
    expect(isHeldBy(lease(), named('b'))).toBe(false)
    expect(isHeldBy(lease({ annotations: {} }), named('a'))).toBe(false)
    expect(isHeldBy(undefined, named('a'))).toBe(false)
  })

  it('older than the last retry has to be written once more, or somebody who saw the failure could take it', () => {
    expect(isConfirmed(lease(), named('a'))).toBe(true)
    expect(isConfirmed(lease(), named('a', { lastRetry: '2026-09-01T07:29:00.000Z' }))).toBe(true)
    expect(isConfirmed(lease(), named('a', { lastRetry: '2026-09-01T07:31:00.000Z' }))).toBe(false)
  })
})
