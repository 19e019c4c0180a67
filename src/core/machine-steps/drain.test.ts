import { describe, expect, it } from 'vitest'
import type { Kube, PodFacts } from '../../ports/kube.ts'
import { blockedBy, deleteAll, drainDone, drainNeeds, drainStableMs, evictAll } from './drain.ts'
import { at, given, NOW, node, pod, type Given } from '../../kinds/talos/test-view.ts'

const budget = (name: string, disruptionsAllowed: number, matchLabels: Readonly<Record<string, string>> = { app: 'db' }) => ({
  namespace: 'default',
  name,
  disruptionsAllowed,
  matchLabels,
})
const self = { namespace: 'ichor-system', pod: 'ichor-0', node: 'wk-1' }
const own = pod('ichor-0', { namespace: 'ichor-system', labels: { app: 'ichor' } })
const silent = { 'wk-1': node('wk-1', { ready: false, readySince: Date.parse(at(3_600_000)) }) }

const answer = (over: Given): string => {
  const found = drainDone(given(over))
  if (found.is === 'yes') return found.but === undefined ? 'yes' : `yes, but ${found.but}`
  return found.is === 'failed' ? found.message : `${found.is}: ${found.why}`
}

describe('drained', () => {
  it.each([
    ['nothing there', {}, 'yes'],
    [
      'what stays: static pods, daemons, what has ended',
      {
        pods: [
          pod('a', { mirror: true }),
          pod('b', { ownerKind: 'DaemonSet' }),
          pod('c', { phase: 'Succeeded' }),
          pod('d', { phase: 'Failed' }),
        ],
      },
      'yes',
    ],
    ['a pod', { pods: [pod('db')] }, 'no: 1 pod is still there: default/db'],
    ['a pod on its way', { pods: [pod('db', { terminating: true })] }, 'no: 1 pod is still there: default/db'],
    ['a pod without an owner', { pods: [pod('db', { ownerKind: '' })] }, 'no: 1 pod is still there: default/db'],
    [
      'many pods',
      { pods: ['a', 'b', 'c', 'd', 'e', 'f'].map(name => pod(name)) },
      'no: 6 pods are still there: default/a, default/b, default/c, default/d and 2 more',
    ],
    [
      'a budget',
      { pods: [pod('db')], budgets: [budget('keep', 0)] },
      'no: pod default/db is held by PodDisruptionBudget keep (allowed disruptions 0)',
    ],
    ['a budget with room', { pods: [pod('db')], budgets: [budget('keep', 1)] }, 'no: 1 pod is still there: default/db'],
    [
      'a budget of another namespace',
      { pods: [pod('db')], budgets: [{ ...budget('keep', 0), namespace: 'other' }] },
      'no: 1 pod is still there: default/db',
    ],
    ['a budget of other pods', { pods: [pod('db')], budgets: [budget('keep', 0, { app: 'web' })] }, 'no: 1 pod is still there: default/db'],
    [
      'a budget by expression, of other pods',
      { pods: [pod('db')], budgets: [{ ...budget('keep', 0, {}), matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['db'] }] }] },
      'no: 1 pod is still there: default/db',
    ],
    [
      'a budget by expression',
      { pods: [pod('db')], budgets: [{ ...budget('keep', 0, {}), matchExpressions: [{ key: 'app', operator: 'In', values: ['db'] }] }] },
      'no: pod default/db is held by PodDisruptionBudget keep (allowed disruptions 0)',
    ],
    [
      'two budgets, which the Eviction API refuses for ever',
      { pods: [pod('db')], budgets: [budget('one', 1), budget('two', 1)] },
      'no: pod default/db is covered by 2 PodDisruptionBudgets (one, two), so it cannot be evicted at all',
    ],
    [
      'volumes',
      { volumes: [{ name: 'csi-1', claim: 'default/db' }, { name: 'csi-2' }] },
      'no: volumes are still attached: csi-1 of claim default/db, csi-2',
    ],
    [
      'volumes of pods that stay',
      {
        pods: [pod('logs', { ownerKind: 'DaemonSet', claims: ['scratch'] }), { ...own, claims: ['state'] }],
        self,
        nodes: { 'wk-2': node('wk-2', { ready: false }) },
        volumes: [
          { name: 'csi-1', claim: 'default/scratch' },
          { name: 'csi-2', claim: 'ichor-system/state' },
        ],
      },
      'yes',
    ],
    [
      'a volume of the same name elsewhere',
      { pods: [pod('logs', { ownerKind: 'DaemonSet', claims: ['db'] })], volumes: [{ name: 'csi-1', claim: 'other/db' }] },
      'no: volumes are still attached: csi-1 of claim other/db',
    ],
    [
      'a volume of a pod that has ended',
      { pods: [pod('job', { phase: 'Succeeded', claims: ['db'] })], volumes: [{ name: 'csi-1', claim: 'default/db' }] },
      'no: volumes are still attached: csi-1 of claim default/db',
    ],
    [
      'a volume that nobody can tell of, where pods with volumes stay',
      { pods: [pod('logs', { ownerKind: 'DaemonSet', claims: ['scratch'] })], volumes: [{ name: 'csi-1' }] },
      'yes, but volumes are still attached, and may be of pods that stay: csi-1',
    ],
    ['the API is away', { pods: 'away' }, 'unknown: its pods cannot be listed: 503'],
    [
      'a dead kubelet, and a pod that was asked to go',
      { pods: [pod('db', { terminating: true })], volumes: [{ name: 'csi-1' }], nodes: silent },
      'yes',
    ],
    ['a dead kubelet, and a pod that was not', { pods: [pod('db')], nodes: silent }, 'no: 1 pod is still there: default/db'],
    [
      'a kubelet that fell silent only now',
      { pods: [pod('db', { terminating: true })], nodes: { 'wk-1': node('wk-1', { ready: false, readySince: NOW - 1000 }) } },
      'no: 1 pod is still there: default/db',
    ],
    ['our own pod', { pods: [own], self }, 'no: 1 pod is still there: ichor-system/ichor-0'],
    ['our own pod, and nowhere else to go', { pods: [own], self, nodes: { 'wk-2': node('wk-2', { ready: false }) } }, 'yes'],
    [
      'our own pod, and the other worker is cordoned',
      { pods: [own], self, nodes: { 'wk-2': node('wk-2', { unschedulable: true }) } },
      'yes',
    ],
  ] as readonly (readonly [string, Given, string])[])('%s', (_, over, expected) => {
    expect(answer(over)).toBe(expected)
  })

  const back = pod('op', { toleratesCordon: true, ageMs: 58_000 })
  it.each([
    ['stays, where it came since the drain began, a minute ago', { target: { step: 'drain' }, pods: [back] }, 'yes'],
    [
      'does not, where the same second may be meant',
      { target: { step: 'drain' }, pods: [{ ...back, ageMs: 59_001 }] },
      'no: 1 pod is still there: default/op',
    ],
    [
      'does not, where nobody knows when it came',
      { target: { step: 'drain' }, pods: [pod('op', { toleratesCordon: true })] },
      'no: 1 pod is still there: default/op',
    ],
    ['does not, before the drain', { target: { step: 'cordon' }, pods: [back] }, 'no: 1 pod is still there: default/op'],
    [
      'does not, where nobody would put it back',
      { target: { step: 'drain' }, pods: [{ ...back, ownerKind: '' }] },
      'no: 1 pod is still there: default/op',
    ],
    [
      'does not, where it cannot have come back',
      { target: { step: 'drain' }, pods: [{ ...back, toleratesCordon: false }] },
      'no: 1 pod is still there: default/op',
    ],
    [
      'is told of, while others are waited for',
      { target: { step: 'drain' }, pods: [pod('db'), back, { ...back, name: 'op-2' }] },
      'no: 1 pod is still there: default/db; default/op, default/op-2 stay: they tolerate the cordon and would be put back',
    ],
    [
      'is told of beside a budget',
      { target: { step: 'drain' }, pods: [pod('db'), back], budgets: [budget('keep', 0)] },
      'no: pod default/db is held by PodDisruptionBudget keep (allowed disruptions 0); default/op stays: it tolerates the cordon and would be put back',
    ],
  ] as readonly (readonly [string, Given, string])[])('a pod that tolerates the cordon %s', (_, over, expected) =>
    expect(answer(over)).toBe(expected),
  )

  it('for two minutes it waits for volumes of which it cannot be told whose they are', () => {
    const logs = pod('logs', { ownerKind: 'DaemonSet', claims: ['scratch'] })
    const wait = (over: Given): number | undefined => drainStableMs(given(over))
    expect(wait({ pods: [logs], volumes: [{ name: 'csi-1' }] })).toBe(120_000)
    expect(wait({ pods: [logs], volumes: [{ name: 'csi-1', claim: 'default/scratch' }] })).toBeUndefined()
    expect(wait({ pods: [logs, pod('db')], volumes: [{ name: 'csi-1' }] })).toBeUndefined()
  })

  it('asks for volumes once the pods are gone', () => {
    const needs = (over: Given): readonly string[] => drainNeeds(given(over)).map(need => need.what)
    expect(needs({ pods: [pod('db')] })).toEqual(['pods', 'budgets'])
    expect(needs({ pods: [pod('logs', { ownerKind: 'DaemonSet' })] })).toEqual(['pods', 'budgets', 'volumes'])
    expect(needs({ pods: 'away' })).toEqual(['pods', 'budgets'])
  })

  it('whoever has come to the drain only now believes no clock', () => {
    const view = given({ target: { step: 'drain' }, pods: [back] })
    expect(drainDone({ ...view, world: { ...view.world, watchedMs: 5000 } })).toMatchObject({ is: 'no' })
    expect(drainDone({ ...view, world: { ...view.world, watchedMs: 59_000 } })).toMatchObject({ is: 'yes' })
  })

  it('past the drain, what tolerates the cordon does not begin it anew, and anything else does', () => {
    const old = pod('op', { toleratesCordon: true, ageMs: 3_600_000 })
    expect(drainDone(given({ target: { step: 'reboot' }, pods: [old] }), true)).toMatchObject({ is: 'yes' })
    expect(drainDone(given({ target: { step: 'reboot' }, pods: [old, pod('db')] }), true)).toMatchObject({ is: 'no' })
  })

  it('is nothing that can be asked of a machine without a Node', () =>
    expect(() => answer({ target: { node: undefined, goal: {} }, pods: [pod('db')] })).toThrow('wk-1 is to be drained, and has no node'))
})

/** A Kubernetes API in which every pod goes, but for those that are named. */
const api = (
  denies: Readonly<Record<string, 'busy' | 'forbidden'>> = {},
  evictions: Readonly<Record<string, 'busy' | 'forbidden' | 'unreachable'>> = denies,
) => {
  const gone: string[] = []
  const take =
    (how: string, denies: Readonly<Record<string, 'busy' | 'forbidden' | 'unreachable'>>) =>
    (p: PodFacts): ReturnType<Kube['evict']> => {
      const denied = denies[p.name]
      if (denied) return Promise.resolve({ ok: false, fault: { kind: denied, message: `${denied} ${p.name}` } })
      gone.push(`${how} ${p.name}`)
      return Promise.resolve({ ok: true, value: undefined })
    }
  return { kube: { evict: take('evicted', evictions), deletePod: take('deleted', denies) } as Kube, gone }
}

describe('a round', () => {
  it('asks every pod that is not on its way already', async () => {
    const { kube, gone } = api()
    await evictAll(kube, given({ pods: [pod('b'), pod('a'), pod('c', { terminating: true }), pod('d', { mirror: true })] }))
    expect(gone).toEqual(['evicted a', 'evicted b'])
  })

  it('goes on past a pod that a budget holds', async () => {
    const { kube, gone } = api({ a: 'busy' })
    expect(await evictAll(kube, given({ pods: [pod('a'), pod('b')] }))).toMatchObject({ ok: true })
    expect(gone).toEqual(['evicted b'])
  })

  it('says when it may not', async () => {
    const { kube } = api({ a: 'forbidden' })
    expect(await evictAll(kube, given({ pods: [pod('a'), pod('b')] }))).toMatchObject({ ok: false, fault: { kind: 'forbidden' } })
  })

  it.each([
    ['leaves our own pod to the last', [pod('a'), own], ['evicted a']],
    ['waits with it until the others are gone', [pod('a', { terminating: true }), own], []],
    ['and then takes it', [own], ['evicted ichor-0']],
  ])('%s', async (_, pods, expected) => {
    const { kube, gone } = api()
    await evictAll(kube, given({ pods, self }))
    expect(gone).toEqual(expected)
  })

  it('deletes, where that was asked for, what is not evicted', async () => {
    const { kube, gone } = api({}, { a: 'busy', c: 'unreachable' })
    await deleteAll(kube, given({ pods: [pod('a'), pod('b'), pod('c')] }))
    expect(gone).toEqual(['deleted a', 'evicted b', 'deleted c'])
  })

  it('deletes nothing where it may not evict', async () => {
    const { kube, gone } = api({}, { a: 'forbidden' })
    expect(await deleteAll(kube, given({ pods: [pod('a')] }))).toMatchObject({ ok: false, fault: { kind: 'forbidden' } })
    expect(gone).toEqual([])
  })
})

it('a pod on its way is held by nobody', () => {
  expect(blockedBy(given({ pods: [pod('db', { terminating: true })], budgets: [budget('keep', 0)] }))).toEqual([])
})
