import { describe, expect, it } from 'vitest'
import type { OperationStatus, Target } from '../api/talos-operation.ts'
import { operationStatus } from '../api/talos-operation.ts'
import type { Step } from './kind.ts'
import { no } from './kind.ts'
import * as ledger from './ledger.ts'
import { operation } from './samples.ts'

const NOW = Date.UTC(2026, 8, 1, 8)
const T = '2026-09-01T08:00:00.000Z'
const step: Step = { name: 'drain', summary: '', done: () => no('no'), failure: 'DrainTimeout' }
const target = (change: Partial<Target> = {}): Target => ({ name: 'wk-1', role: 'worker', phase: 'Running', ...change })
const running = (change: Partial<Target> = {}): OperationStatus => ({
  phase: 'Running',
  machines: [target(change), target({ name: 'wk-2', phase: 'Pending' })],
})
const first = (status: OperationStatus): Target => ledger.targetsOf(status)[0] ?? target()

describe('the ledger', () => {
  it('never changes what it was given', () => {
    const status = JSON.parse(JSON.stringify(running({ step: 'a', actedAt: T }))) as OperationStatus
    const before = JSON.stringify(status)
    ledger.entered(status, NOW, 'wk-1', step)
    ledger.intended(status, NOW, 'wk-1', 'm')
    ledger.closed(status, NOW, 'wk-1', 'Completed', 'm')
    ledger.returned(status, NOW, 'wk-1', 'm')
    ledger.failed(status, NOW, first(status), 'DrainBlocked', 'm')
    expect(JSON.stringify(status)).toBe(before)
  })

  it('starts a step with a new clock and nothing of the one before', () => {
    const next = first(
      ledger.entered(
        running({ step: 'a', actedAt: T, firstActedAt: T, retryAt: T, fault: 'x', stableSince: T, attempts: 3 }),
        NOW,
        'wk-1',
        step,
      ),
    )
    expect(next).toEqual({ name: 'wk-1', role: 'worker', phase: 'Running', step: 'drain', stepStartedAt: T, attempts: 0 })
  })

  it('keeps the first intention, counts, and forgets the bad answer before', () => {
    const once = ledger.intended(running({ step: 'a', retryAt: T, fault: 'x', stableSince: T }), NOW, 'wk-1', 'm')
    const twice = ledger.intended(once, NOW + 5000, 'wk-1', 'm')
    expect(first(twice)).toMatchObject({ firstActedAt: T, actedAt: '2026-09-01T08:00:05.000Z', attempts: 2 })
    expect(first(twice)).not.toHaveProperty('fault')
    expect(first(twice)).not.toHaveProperty('stableSince')
  })

  it('a new intention voids what was said to the try before, and nothing that was said to other steps', () => {
    const receipts = ['pull', 'a'].map(name => ({ step: name, bootID: 'b', value: 'v', at: T }))
    expect(first(ledger.intended(running({ step: 'a', receipts }), NOW, 'wk-1', 'm')).receipts).toEqual(receipts.slice(0, 1))
  })

  it('takes an intention back only where it is certain that nothing was done', () => {
    expect(first(ledger.undone(running({ actedAt: T }), 'wk-1'))).not.toHaveProperty('actedAt')
    expect(first(ledger.unanswered(running({ actedAt: T }), 'wk-1', 'reset', NOW))).toMatchObject({
      actedAt: T,
      retryAt: T,
      fault: 'reset',
    })
  })

  it('a committing step commits from its intention on, and no more when it certainly came to nothing', () => {
    const intended = ledger.intended(running({ step: 'a' }), NOW, 'wk-1', 'm', true)
    expect(first(intended)).toMatchObject({ committed: 'a' })
    expect(first(ledger.undone(intended, 'wk-1'))).not.toHaveProperty('committed')
    expect(first(ledger.unanswered(intended, 'wk-1', 'no answer', NOW))).toMatchObject({ committed: 'a' })
    // The first try may have had its effect, whatever is said to the second.
    const again = ledger.intended(intended, NOW, 'wk-1', 'm', true)
    expect(first(ledger.undone(again, 'wk-1'))).toMatchObject({ committed: 'a' })
    expect(first(ledger.entered(intended, NOW, 'wk-1', step))).toMatchObject({ committed: 'a', step: 'drain' })
    expect(first(ledger.returned(intended, NOW, 'wk-1', 'm'))).not.toHaveProperty('committed')
  })

  it('remembers in a retry that the act was given, until it is in another step', () => {
    const failedAfter = (over: Partial<Target>) => running({ step: 'a', phase: 'Failed', before: {}, ...over })
    const committed = 'a'
    const retried = ledger.retried(failedAfter({ committed, firstActedAt: T }), NOW)
    expect(first(retried)).toMatchObject({ actedBefore: true })
    expect(first(retried)).not.toHaveProperty('firstActedAt')
    // A second try that gave no act takes nothing away from the first.
    expect(first(ledger.retried(failedAfter({ actedBefore: true }), NOW))).toMatchObject({ actedBefore: true })
    expect(first(ledger.retried(failedAfter({ committed }), NOW))).not.toHaveProperty('actedBefore')
    expect(first(ledger.entered(retried, NOW, 'wk-1', step))).not.toHaveProperty('actedBefore')
    expect(first(ledger.closed(retried, NOW, 'wk-1', 'Completed', 'm'))).not.toHaveProperty('actedBefore')
  })

  it('an act that certainly came to nothing was never given, but for one before it', () => {
    const once = ledger.intended(running({ step: 'a' }), NOW, 'wk-1', 'm')
    expect(first(ledger.undone(once, 'wk-1'))).not.toHaveProperty('firstActedAt')
    expect(first(ledger.undone(ledger.intended(once, NOW, 'wk-1', 'm'), 'wk-1'))).toMatchObject({ firstActedAt: T })
  })

  it('keeps the failure of each machine until it is opened anew or done', () => {
    const failed = ledger.failed(
      ledger.failed(running({ before: {} }), NOW, target(), 'BootedOldVersion', 'm'),
      NOW,
      target({ name: 'wk-2' }),
      'DrainTimeout',
      'm',
    )
    expect(failed.machines?.map(t => t.failure)).toEqual([
      { at: T, reason: 'BootedOldVersion' },
      { at: T, reason: 'DrainTimeout' },
    ])
    expect(ledger.failureTriedAnew(failed, first(failed))).toBeUndefined()
    const retried = ledger.retried(failed, NOW + 1000)
    expect(ledger.failureTriedAnew(retried, first(retried))?.reason).toBe('BootedOldVersion')
    expect(first(ledger.opened(retried, NOW, 'wk-1', {}, {}))).not.toHaveProperty('failure')
    expect(first(ledger.closed(retried, NOW, 'wk-1', 'Completed', 'm'))).not.toHaveProperty('failure')
  })

  it('a retry takes back what its own step committed to, and nothing that an earlier one did', () => {
    const failedIn = (committed: string) => first(ledger.retried(running({ step: 'b', phase: 'Failed', before: {}, committed }), NOW))
    expect(failedIn('b')).not.toHaveProperty('committed')
    expect(failedIn('a')).toMatchObject({ committed: 'a' })
  })

  it('replaces the receipt of a step, under the boot id that was recorded', () => {
    const once = ledger.received(running({ before: { bootID: 'b1' } }), NOW, 'wk-1', 'pull', 'x')
    const twice = ledger.received(once, NOW, 'wk-1', 'pull', 'y')
    expect(first(twice).receipts).toEqual([{ step: 'pull', bootID: 'b1', value: 'y', at: T }])
  })

  it('returns a machine as if it had never been opened, but for what was chosen and when that ended', () => {
    const opened = running({
      hostname: 'h',
      node: 'n',
      address: 'a',
      step: 'drain',
      actedAt: T,
      before: { bootID: 'b' },
      goal: { image: 'x' },
      receipts: [],
    })
    expect(first(ledger.returned(opened, NOW, 'wk-1', 'paused'))).toEqual({
      name: 'wk-1',
      hostname: 'h',
      node: 'n',
      address: 'a',
      goal: { image: 'x' },
      finishedAt: ledger.iso(NOW),
      role: 'worker',
      phase: 'Pending',
      message: 'paused',
    })
  })

  it('retries a machine to which nothing was done that cannot be undone from its turn on, unless it is to go on where it stands', () => {
    const failed = running({
      hostname: 'h',
      step: 'pull',
      phase: 'Failed',
      before: {},
      goal: {},
      failure: { at: T, reason: 'ImageNotFound' },
    })
    expect(first(ledger.retried(failed, NOW))).toEqual({
      ...{ name: 'wk-1', hostname: 'h', role: 'worker', phase: 'Pending', message: 'retrying' },
      failure: { at: T, reason: 'ImageNotFound' },
    })
    expect(first(ledger.retried(failed, NOW, { inPlace: true }))).toMatchObject({ phase: 'Running', step: 'pull' })
  })

  it('fails with reason, machine and step, and keeps that as the last failure through a retry', () => {
    const failed = ledger.failed(
      running({ step: 'drain', before: { bootID: 'b' } }),
      NOW,
      first(running({ step: 'drain' })),
      'DrainBlocked',
      'held by a budget',
    )
    expect(failed).toMatchObject({
      phase: 'Paused',
      failureReason: 'DrainBlocked',
      message: 'held by a budget',
      lastFailure: { reason: 'DrainBlocked', machine: 'wk-1', step: 'drain' },
    })
    const retried = ledger.retried(failed, NOW + 1000, { inPlace: true })
    expect(retried).toMatchObject({ phase: 'Running', lastRetry: '2026-09-01T08:00:01.000Z', lastFailure: { reason: 'DrainBlocked' } })
    expect(retried).not.toHaveProperty('failureReason')
    expect(first(retried)).toMatchObject({ phase: 'Running', step: 'drain', stepStartedAt: '2026-09-01T08:00:01.000Z' })
  })

  it('retries a machine that could not be opened from its opening on, and a refusal by new checks', () => {
    const unopened: OperationStatus = {
      phase: 'Paused',
      failureReason: 'MachineUnreachable',
      machines: [target({ phase: 'Failed', stepStartedAt: T })],
    }
    expect(first(ledger.retried(unopened, NOW))).toEqual({ name: 'wk-1', role: 'worker', phase: 'Pending', message: 'retrying' })
    const refused: OperationStatus = {
      phase: 'Paused',
      failureReason: 'PreflightRefused',
      preflight: { checkedAt: T, underLock: true, refusals: [] },
    }
    expect(ledger.retried(refused, NOW)).toMatchObject({ phase: 'Pending' })
    expect(ledger.retried(refused, NOW)).not.toHaveProperty('preflight')
  })

  it('does not make a failed operation a running one by what its open machines still do', () => {
    const failed: OperationStatus = { phase: 'Paused', failureReason: 'DrainBlocked', message: 'held', machines: [target()] }
    expect(ledger.waiting(failed, NOW, 'wk-1', 'booting', undefined)).toMatchObject({
      phase: 'Paused',
      failureReason: 'DrainBlocked',
      message: 'held',
    })
    expect(ledger.intended(failed, NOW, 'wk-1', 'rebooting')).toMatchObject({ phase: 'Paused', failureReason: 'DrainBlocked' })
  })

  it('begins the time of a machine with its turn, and takes it back while it is not its turn', () => {
    const due = ledger.waiting(running(), NOW, 'wk-2', 'it does not answer', undefined)
    expect(ledger.targetsOf(due)[1]).toMatchObject({ stepStartedAt: T })
    const notDue = ledger.notYet(due, NOW, 'wk-2', 'outside the window', undefined)
    expect(ledger.targetsOf(notDue)[1]).not.toHaveProperty('stepStartedAt')
    expect(notDue.waiting?.for).toBe('outside the window')
  })

  it('stops all open machines when a fault of ours makes every question useless', () => {
    const broken = ledger.broken(running(), NOW, 'E-1: no')
    expect(broken).toMatchObject({ phase: 'Paused', failureReason: 'InternalError' })
    expect(ledger.targetsOf(broken).map(t => t.phase)).toEqual(['Failed', 'Pending'])
  })

  it('keeps twenty decisions, the last ones', () => {
    let status = running()
    for (let i = 0; i < 30; i++) status = ledger.closed(status, NOW + i, 'wk-1', 'Completed', `n ${i}`)
    expect(status.history?.length).toBe(20)
    expect(status.history?.at(-1)?.message).toBe('wk-1: n 29')
  })

  it('cuts what is too long for the CRD', () => {
    const long = 'x'.repeat(9000)
    const status = ledger.received(
      ledger.unanswered(ledger.failed(running({ step: 'a' }), NOW, first(running()), 'InstallFailed', long), 'wk-1', long, NOW),
      NOW,
      'wk-1',
      'pull',
      long,
    )
    const others = [
      status,
      ledger.waiting(running(), NOW, 'wk-1', long, undefined),
      ledger.notYet(running(), NOW, 'wk-2', long, undefined),
      ledger.held({}, NOW, long, undefined),
      ledger.intended(running(), NOW, 'wk-1', long),
      ledger.closed(running(), NOW, 'wk-1', 'Completed', long),
      ledger.returned(running(), NOW, 'wk-1', long),
      ledger.remarked(running(), 'wk-1', long),
      ledger.queued({}, NOW, { lease: 'l', holder: 'h' }, long),
    ]
    expect(others.filter(one => !operationStatus.safeParse(one).success)).toEqual([])
  })
})

describe('the conditions', () => {
  const conditions = (status: OperationStatus): string =>
    (ledger.withConditions(status, operation(status), NOW).conditions ?? [])
      .filter(c => c.status === 'True')
      .map(c => c.type)
      .join(' ')

  it.each<[string, OperationStatus, string]>([
    ['Pending', { phase: 'Pending' }, 'Reconciling'],
    ['Running', { phase: 'Running' }, 'Reconciling'],
    ['Paused, queued', { phase: 'Paused', failureReason: 'ClusterLockHeld' }, 'Reconciling'],
    ['Paused by its operator', { phase: 'Paused' }, ''],
    ['Paused, failed', { phase: 'Paused', failureReason: 'DrainBlocked' }, 'Stalled'],
    ['Paused, refused', { phase: 'Paused', failureReason: 'PreflightRefused' }, 'Stalled'],
    ['Completed', { phase: 'Completed' }, 'Ready Finished'],
    ['Cancelled', { phase: 'Cancelled' }, 'Finished'],
  ])('of %s', (_, status, expected) => expect(conditions(status)).toBe(expected))

  it('change their time with their status only, and carry the generation', () => {
    const before = ledger.withConditions({ phase: 'Running', message: 'a' }, operation(), NOW)
    const after = ledger.withConditions({ ...before, message: 'b' }, operation(before, { metadata: { generation: 2 } }), NOW + 60_000)
    expect(after.conditions?.map(c => [c.lastTransitionTime, c.observedGeneration, c.message])).toEqual(Array(4).fill([T, 2, 'b']))
    expect(after.observedGeneration).toBe(2)
  })
})
