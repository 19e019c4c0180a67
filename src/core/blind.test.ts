import { describe, expect, it } from 'vitest'
import { ANNOTATION, FINALIZER } from '../api/names.ts'
import type { OperationStatus, Target } from '../api/talos-operation.ts'
import { decideBlindly } from './blind.ts'
import { iso } from './ledger.ts'
import { operation } from './samples.ts'

const NOW = Date.UTC(2026, 8, 1, 8)
const gone = { rule: 'UnknownCluster', message: 'There is no TalosCluster home in namespace ichor-system.', overridable: false } as const
const pins = { 'ConfigMap/patches/a': 'hash' }
const preflight = { checkedAt: iso(NOW - 60_000), underLock: true, refusals: [], pins }
const left: Target = { name: 'cp-2', role: 'controlplane', phase: 'Failed', before: { bootID: 'b1' }, step: 'verify', committed: 'reboot' }
const failed: OperationStatus = {
  phase: 'Paused',
  failureReason: 'RebootTimeout',
  message: 'cp-2 did not come back.',
  preflight,
  machines: [{ name: 'cp-1', role: 'controlplane', phase: 'Completed' }, left],
}
const retry = { annotations: { [ANNOTATION.retry]: 'true' }, finalizers: [FINALIZER] }
const decided = (status: OperationStatus, metadata: Parameters<typeof operation>[1] = { metadata: { finalizers: [FINALIZER] } }) =>
  decideBlindly(operation(status, metadata), gone, NOW)

describe('an operation whose cluster is gone', () => {
  it('that failed and left a machine half done stays as it is, and is looked at again', () => {
    expect(decided(failed)).toEqual({ do: 'rest', forMs: 60_000 })
    // A person's pause beside it changes nothing of that.
    expect(decided(failed, { metadata: { finalizers: [FINALIZER] }, spec: { paused: true } })).toEqual({ do: 'rest', forMs: 60_000 })
  })

  it('cannot be retried meanwhile, and says why', () => {
    expect(decided(failed, { metadata: retry })).toMatchObject({ do: 'drop-retry', status: undefined, event: { message: gone.message } })
    expect(decided(failed, { metadata: retry, spec: { paused: true } })).toEqual({ do: 'rest', forMs: 60_000 })
  })

  it('can be cancelled and deleted all the same', () => {
    expect(decided(failed, { spec: { cancelled: true } })).toMatchObject({ do: 'record', status: { phase: 'Cancelled' } })
  })

  it('that has gone over machines keeps what its spec was pinned to', () => {
    const between = { ...failed, phase: 'Running' as const, failureReason: undefined, machines: failed.machines?.slice(0, 1) }
    expect(decided(between)).toMatchObject({
      do: 'record',
      status: { failureReason: 'PreflightRefused', preflight: { refusals: [{ rule: 'UnknownCluster' }], pins } },
    })
  })

  it('that failed before it touched a machine is refused', () => {
    expect(decided({ ...failed, machines: [{ ...left, before: undefined }] })).toMatchObject({ do: 'record' })
  })
})
