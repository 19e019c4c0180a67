import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ANNOTATION, LABEL } from '../api/names.ts'
import {
  allowedUnavailable,
  holdOf,
  matchesSelector,
  naturally,
  rolloutOrder,
  workerQuota,
  type Candidate,
  type WorkerState,
} from './rollout-order.ts'

const marks = (labels: Record<string, string> = {}, annotations: Record<string, string> = {}) => ({ labels, annotations })
const order = (value: string) => ({ [LABEL.upgradeOrder]: value })
const machine = (name: string, labels: Record<string, string> = {}, node?: Record<string, string>): Candidate => ({
  name,
  role: name.startsWith('cp') ? 'controlplane' : 'worker',
  machine: marks(labels),
  ...(node === undefined ? {} : { node: marks(node) }),
})

describe('the order of targets', () => {
  it.each<[string, readonly Candidate[], string | undefined, readonly string[]]>([
    [
      'control planes first, then as people count',
      ['wk-10', 'wk-2', 'cp-2', 'cp-1'].map(n => machine(n)),
      undefined,
      ['cp-1', 'cp-2', 'wk-2', 'wk-10'],
    ],
    [
      'the etcd leader last among control planes',
      ['cp-1', 'cp-2', 'cp-3', 'wk-1'].map(n => machine(n)),
      'cp-1',
      ['cp-2', 'cp-3', 'cp-1', 'wk-1'],
    ],
    [
      'the leader last whatever its label says',
      [machine('cp-1', order('1')), machine('cp-2'), machine('cp-3', order('5'))],
      'cp-1',
      ['cp-3', 'cp-2', 'cp-1'],
    ],
    [
      'smaller numbers first, those without last',
      [machine('wk-1'), machine('wk-2', order('10')), machine('wk-3', order('9'))],
      undefined,
      ['wk-3', 'wk-2', 'wk-1'],
    ],
    ['a number orders within its tier only', [machine('wk-1', order('0')), machine('cp-1', order('99'))], undefined, ['cp-1', 'wk-1']],
    ['the Node speaks where the TalosMachine is silent', [machine('wk-1'), machine('wk-2', {}, order('1'))], undefined, ['wk-2', 'wk-1']],
    [
      'the TalosMachine is heard before its Node',
      [machine('wk-1', order('1'), order('9')), machine('wk-2', order('2'))],
      undefined,
      ['wk-1', 'wk-2'],
    ],
    [
      'the host name sorts where it is known',
      [
        { ...machine('wk-b'), hostname: 'a-1' },
        { ...machine('wk-a'), hostname: 'a-2' },
      ],
      undefined,
      ['wk-b', 'wk-a'],
    ],
    ['a leader among workers is none', [machine('wk-1'), machine('wk-2')], 'wk-1', ['wk-1', 'wk-2']],
  ])('%s', (_, candidates, leader, expected) => expect(rolloutOrder(candidates, leader).order).toEqual(expected))

  it.each(['first', '1.5', '-1', '', '99999999999'])('reads the label %j as absent, and says so', label => {
    const { order: names, notes } = rolloutOrder([machine('wk-1', order(label), order('1')), machine('wk-2', order('7'))])
    expect(names).toEqual(['wk-2', 'wk-1'])
    expect(notes).toEqual([
      `wk-1: the label ${LABEL.upgradeOrder} is ${JSON.stringify(label)}, which is no whole number; it is read as if it were absent.`,
    ])
  })

  it('keeps everyone, whatever comes in, and does not depend on how it came', () => {
    const candidate = fc.record({
      name: fc.string({ maxLength: 8 }),
      role: fc.constantFrom<'controlplane' | 'worker'>('controlplane', 'worker'),
      label: fc.option(fc.oneof(fc.nat(20).map(String), fc.string({ maxLength: 3 })), { nil: undefined }),
    })
    const drawn = fc.uniqueArray(candidate, { selector: c => c.name, maxLength: 12 })
    fc.assert(
      fc.property(drawn, fc.string({ maxLength: 8 }), fc.infiniteStream(fc.nat()), (list, leader, chance) => {
        const candidates = list.map(({ name, role, label }): Candidate => ({
          name,
          role,
          machine: marks(label === undefined ? {} : order(label)),
        }))
        const shuffled = candidates
          .map(c => [chance.next().value ?? 0, c] as const)
          .toSorted((a, b) => a[0] - b[0])
          .map(([, c]) => c)
        const result = rolloutOrder(candidates, leader).order
        expect(result.toSorted()).toEqual(candidates.map(c => c.name).toSorted())
        expect(rolloutOrder(shuffled, leader).order).toEqual(result)
        const roles = result.map(n => candidates.find(c => c.name === n)?.role)
        expect(roles.lastIndexOf('controlplane')).toBeLessThan(roles.includes('worker') ? roles.indexOf('worker') : roles.length + 1)
      }),
    )
  })
})

describe('names as people count', () => {
  it.each([
    ['wk-2', 'wk-10', -1],
    ['wk-10', 'wk-10', 0],
    ['wk-1', 'wk-1a', -1],
    ['wk-01', 'wk-1', -1],
    ['a', 'b', -1],
    ['rack2-9', 'rack10-1', -1],
    ['9'.repeat(30), `1${'0'.repeat(30)}`, -1],
  ])('%s and %s', (a, b, sign) => {
    expect(naturally(a, b)).toBe(sign)
    expect(naturally(b, a)).toBe(sign === 0 ? 0 : -sign)
  })
})

describe('holds', () => {
  const held = (value: string | undefined, node?: string) =>
    holdOf({
      machine: marks({}, value === undefined ? {} : { [ANNOTATION.upgradeHold]: value }),
      ...(node === undefined ? {} : { node: marks({}, { [ANNOTATION.upgradeHold]: node }) }),
    })
  it.each<[string, string | undefined, string | undefined, string | undefined]>([
    ['true', 'true', undefined, 'true'],
    ['a reason', 'waiting for the vendor', undefined, 'waiting for the vendor'],
    ['an empty value', '', undefined, ''],
    ['false', 'false', undefined, undefined],
    ['nothing', undefined, undefined, undefined],
    ['the Node alone', undefined, 'true', 'true'],
    ['the machine says false, the Node true', 'false', 'true', undefined],
  ])('%s', (_, value, node, expected) => expect(held(value, node)).toBe(expected))
})

describe('the machine selector', () => {
  const labels = { zone: 'a', disk: 'ssd' }
  it.each<[string, Parameters<typeof matchesSelector>[0], boolean]>([
    ['absent', undefined, true],
    ['empty', {}, true],
    ['a label', { matchLabels: { zone: 'a' } }, true],
    ['two labels of which one differs', { matchLabels: { zone: 'a', disk: 'hdd' } }, false],
    ['In', { matchExpressions: [{ key: 'zone', operator: 'In', values: ['b', 'a'] }] }, true],
    ['In without the label', { matchExpressions: [{ key: 'rack', operator: 'In', values: ['a'] }] }, false],
    ['NotIn', { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }, false],
    ['NotIn without the label', { matchExpressions: [{ key: 'rack', operator: 'NotIn', values: ['a'] }] }, true],
    ['Exists', { matchExpressions: [{ key: 'disk', operator: 'Exists' }] }, true],
    ['DoesNotExist', { matchExpressions: [{ key: 'disk', operator: 'DoesNotExist' }] }, false],
    ['both parts have to hold', { matchLabels: { zone: 'a' }, matchExpressions: [{ key: 'rack', operator: 'Exists' }] }, false],
  ])('%s', (_, selector, expected) => expect(matchesSelector(selector, labels)).toBe(expected))
})

describe('how many workers may be away', () => {
  it.each<[number | string, number, number]>([
    [1, 20, 1],
    [3, 20, 3],
    ['3', 20, 3],
    ['25%', 20, 5],
    ['25%', 7, 1],
    ['10%', 3, 1],
    ['100%', 3, 3],
    [50, 3, 50],
    ['50%', 0, 1],
    ['abc', 20, 1],
  ])('%s of %i is %i', (max, workers, expected) => expect(allowedUnavailable(max, workers)).toBe(expected))
})

describe('the quota of workers', () => {
  /** Which of the pending, asked in their order, may be opened before any of them is done. */
  const openInTurn = (pending: readonly string[], input: Parameters<typeof workerQuota>[0]): readonly string[] =>
    pending.reduce<readonly string[]>(
      (chosen, name) => (workerQuota({ ...input, open: [...input.open, ...chosen] }).mayOpen(name) ? [...chosen, name] : chosen),
      [],
    )
  const worker = (name: string, running = true): WorkerState => ({ name, node: name, running })
  const quota = (
    workers: readonly WorkerState[],
    notReady: readonly string[],
    open: readonly string[],
    maxUnavailable: number | string = 1,
  ) => workerQuota({ workers, nodes: workers.map(w => ({ name: w.name, ready: !notReady.includes(w.name) })), open, maxUnavailable })
  const all = ['wk-1', 'wk-2', 'wk-3'].map(n => worker(n))

  it('lets one go', () => expect(quota(all, [], [])).toMatchObject({ limit: 1, unready: [], free: 1 }))
  it('is spent by an open target', () => expect(quota(all, [], ['wk-1']).mayOpen('wk-2')).toBe(false))
  it('does not count an open target twice', () => expect(quota(all, ['wk-1'], ['wk-1'], 2)).toMatchObject({ unready: [], free: 1 }))
  it('does not count open control planes', () => expect(quota(all, [], ['cp-1']).free).toBe(1))
  it('is spent by a foreign worker that is not Ready', () => {
    const q = quota(all, ['wk-3'], [])
    expect(q).toMatchObject({ unready: ['wk-3'], free: 0 })
    expect(q.mayOpen('wk-1')).toBe(false)
  })
  it('is spent by a machine that does not run', () => expect(quota([...all, worker('wk-4', false)], [], []).free).toBe(0))
  it('is spent by a Node that is gone', () =>
    expect(workerQuota({ workers: all, nodes: [{ name: 'wk-1', ready: true }], open: [], maxUnavailable: 3 })).toMatchObject({
      unready: ['wk-2', 'wk-3'],
      free: 1,
    }))
  it('a machine outside Kubernetes counts by itself', () =>
    expect(workerQuota({ workers: [{ name: 'wk-1', running: true }], nodes: [], open: [], maxUnavailable: 1 }).free).toBe(1))
  it('counts two TalosMachines of one Node as one worker, so that a share is not a share of more than there is', () => {
    const replaced = { ...worker('wk-2-new'), node: 'wk-2' }
    expect(quota([...all, replaced], [], [], '50%').limit).toBe(1)
    expect(quota([...all, worker('wk-4')], [], [], '50%').limit).toBe(2)
  })
  it('lets an unready worker be upgraded, which may be its cure (siderolabs/omni#893)', () => {
    expect(quota(all, ['wk-2', 'wk-3'], []).mayOpen('wk-3')).toBe(true)
    expect(quota(all, ['wk-2', 'wk-3'], ['wk-2']).mayOpen('wk-3')).toBe(false)
  })
  it('goes past a ready worker to one that needs it', () => {
    const input = { workers: all, nodes: all.map(w => ({ name: w.name, ready: w.name !== 'wk-3' })), open: [], maxUnavailable: 1 }
    expect(openInTurn(['wk-1', 'wk-2', 'wk-3'], input)).toEqual(['wk-3'])
  })
  it('a stranger is no worker', () => expect(quota(all, [], []).mayOpen('wk-9')).toBe(false))

  it('is never exceeded, whatever the workers are', () => {
    const state = fc.record({ running: fc.boolean(), ready: fc.boolean(), open: fc.boolean() })
    fc.assert(
      fc.property(
        fc.array(state, { minLength: 1, maxLength: 25 }),
        fc.oneof(
          fc.integer({ min: 1, max: 10 }),
          fc.integer({ min: 1, max: 100 }).map(p => `${p}%`),
        ),
        (states, maxUnavailable) => {
          const workers = states.map((s, i) => worker(`wk-${i}`, s.running))
          const nodes = states.map((s, i) => ({ name: `wk-${i}`, ready: s.ready }))
          const limit = allowedUnavailable(maxUnavailable, workers.length)
          const open = states.flatMap((s, i) => (s.open ? [`wk-${i}`] : [])).slice(0, limit)
          const pending = workers.map(w => w.name).filter(n => !open.includes(n))
          const input = { workers, nodes, open, maxUnavailable }
          const before = workerQuota(input)
          const opened = openInTurn(pending, input)
          expect(open.length + opened.length).toBeLessThanOrEqual(limit)
          const taken = opened.filter(n => !before.unready.includes(n))
          // What was ready goes away only as long as everything that is away together stays within the limit.
          if (taken.length > 0) expect(open.length + before.unready.length + taken.length).toBeLessThanOrEqual(limit)
          // It never stands still for nothing: something is open, or is opened, or nothing is pending.
          expect(open.length + opened.length > 0 || pending.length === 0 || before.free === 0).toBe(true)
        },
      ),
    )
  })
})
