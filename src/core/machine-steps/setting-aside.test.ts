import { describe, expect, it } from 'vitest'
import type { Kube } from '../../ports/kube.ts'
import type { Talos } from '../../ports/talos.ts'
import { at, given, pod, type Given } from '../../kinds/talos/test-view.ts'
import type { View } from '../world.ts'
import { drain } from './setting-aside.ts'

const MINUTE = 60_000
const force = { spec: { drain: { policy: 'force', timeout: '2m' } }, pods: [pod('db')] }

/** What a drain does to a pod that a budget holds, where it has been in sight for so long. */
const deed = async (over: Given, watchedMs = Infinity): Promise<readonly string[]> => {
  const asked: string[] = []
  const busy = { ok: false, fault: { kind: 'busy', message: 'the budget needs it' } } as const
  const kube: Pick<Kube, 'evict' | 'deletePod'> = {
    evict: () => Promise.resolve((asked.push('evict'), busy)),
    deletePod: () => Promise.resolve((asked.push('delete'), { ok: true, value: undefined })),
  }
  const view = given(over)
  const seen: View = { ...view, world: { ...view.world, watchedMs } }
  if (!drain.act || drain.act.long) throw new Error('a round of evictions is one short act')
  await drain.act.run({ kube: kube as Kube, talos: {} as Talos }, seen)
  expect(drain.act.describe(seen)).toBe(asked.includes('delete') ? 'deleting the pods that would not be evicted' : 'evicting its pods')
  return asked
}

describe('past the budgets', () => {
  const asked = { stepStartedAt: at(3 * MINUTE), firstActedAt: at(2 * MINUTE), attempts: 50 }
  it.each([
    ['when evictions were asked for all the time', { ...force, target: asked }, Infinity, ['evict', 'delete']],
    ['not before', { ...force, target: { ...asked, firstActedAt: at(2 * MINUTE - 1) } }, Infinity, ['evict']],
    ['not when nobody has asked yet', { ...force, target: { stepStartedAt: at(60 * MINUTE) } }, Infinity, ['evict']],
    ['not when one round was all', { ...force, target: { ...asked, attempts: 1 } }, Infinity, ['evict']],
    ['not by who has come only now', { ...force, target: asked }, 5000, ['evict']],
    ['not without the policy', { pods: force.pods, target: { ...asked, firstActedAt: at(60 * MINUTE) } }, Infinity, ['evict']],
    [
      'soon, where the time is short',
      { ...force, spec: { drain: { policy: 'force', timeout: '1s' } }, target: { ...asked, attempts: 1 } },
      1000,
      ['evict', 'delete'],
    ],
  ] as readonly (readonly [string, Given, number, readonly string[]])[])('%s', async (_, over, watchedMs, expected) => {
    expect(await deed(over, watchedMs)).toEqual(expected)
  })
})

describe('the time of a drain', () => {
  const minutes = (over: Given): number => (drain.deadlineMs?.(given(over)) ?? Number.NaN) / MINUTE
  const asked = { stepStartedAt: at(12 * MINUTE), firstActedAt: at(5 * MINUTE) }
  it.each([
    ['runs from the first round of evictions', { target: asked }, 17],
    ['is longer by what deleting may take', { ...force, target: asked }, 14],
    ['does not run while nobody can ask, which has a limit of its own', {}, 30],
    ['nor is that limit shorter than it', { spec: { drain: { timeout: '2h' } } }, 120],
  ] as readonly (readonly [string, Given, number])[])('%s', (_, over, expected) => expect(minutes(over)).toBe(expected))
})
