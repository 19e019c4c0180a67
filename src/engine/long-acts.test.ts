import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Result } from '../ports/fault.ts'
import type { LongOutcome } from '../core/kind.ts'
import { createLongActs } from './long-acts.ts'

const told = { clock: { now: () => 0, monotonic: () => 0, after: () => () => {} }, everyMs: 5_000 }
const owner = { namespace: 'n', name: 'a', uid: 'u1' }
const receipt: Result<LongOutcome> = { ok: true, value: { receipt: 'done' } }
const byHand = () => {
  let end: (result: Result<LongOutcome>) => void = () => {}
  return { promise: new Promise<Result<LongOutcome>>(resolve => (end = resolve)), end: (result: Result<LongOutcome>) => end(result) }
}

describe('long acts', () => {
  it('run until they end, with their last words, and wake their operation then', async () => {
    const acts = createLongActs(told)
    const hand = byHand()
    let woken = 0
    acts.start(
      owner,
      'wk-1',
      'install',
      call => (call.progress('50 %'), hand.promise),
      () => woken++,
    )
    expect(acts.running('u1')).toEqual([{ target: 'wk-1', step: 'install', progress: '50 %' }])
    expect(acts.settled('u1')).toBeUndefined()
    hand.end(receipt)
    await setImmediate()
    expect(woken).toBe(1)
    expect(acts.running('u1')).toEqual([])
  })

  it('keep their answer until it is dropped', async () => {
    const acts = createLongActs(told)
    acts.start(
      owner,
      'wk-1',
      'install',
      async () => receipt,
      () => {},
    )
    await setImmediate()
    const settled = acts.settled('u1')
    expect(settled).toEqual({ target: 'wk-1', step: 'install', result: receipt })
    expect(acts.settled('u1')).toBe(settled)
    if (settled) acts.drop('u1', settled)
    expect(acts.settled('u1')).toBeUndefined()
  })

  it('that throw end with a fault', async () => {
    const acts = createLongActs(told)
    acts.start(
      owner,
      'wk-1',
      'install',
      () => Promise.reject(new Error('no')),
      () => {},
    )
    await setImmediate()
    expect(acts.settled('u1')?.result).toEqual({ ok: false, fault: { kind: 'unknown', message: 'no' } })
  })

  it('that are cancelled are told so, and what they say afterwards is nobody’s', async () => {
    const acts = createLongActs(told)
    const hand = byHand()
    let [woken, heard] = [0, 0]
    acts.start(
      owner,
      'wk-1',
      'install',
      ({ cancellation }) => (cancellation.onCancel(() => heard++), hand.promise),
      () => woken++,
    )
    acts.start(
      owner,
      'wk-2',
      'install',
      () => new Promise(() => {}),
      () => {},
    )
    acts.cancel('u1', 'wk-1')
    hand.end(receipt)
    await setImmediate()
    expect([heard, woken]).toEqual([1, 0])
    expect(acts.settled('u1')).toBeUndefined()
    expect(acts.running('u1').map(one => one.target)).toEqual(['wk-2'])
    acts.cancelAll()
    expect(acts.running('u1')).toEqual([])
  })

  it('of a namesake that was deleted end when the new one comes', () => {
    const acts = createLongActs(told)
    const never = () => new Promise<never>(() => {})
    acts.start(owner, 'wk-1', 'install', never, () => {})
    acts.start({ ...owner, uid: 'u2' }, 'wk-1', 'install', never, () => {})
    acts.start({ ...owner, name: 'b', uid: 'u3' }, 'wk-1', 'install', never, () => {})
    acts.cancelNamesakes({ namespace: 'n', name: 'a' }, 'u2')
    expect(['u1', 'u2', 'u3'].map(uid => acts.running(uid).length)).toEqual([0, 1, 1])
  })
})
