import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ANNOTATION, FINALIZER } from '../api/names.ts'
import type { TalosMachine } from '../api/talos-machine.ts'
import type { OperationStatus, TalosOperation, Target } from '../api/talos-operation.ts'
import { done as nothing } from '../ports/fault.ts'
import type { Lease } from '../ports/home.ts'
import type { NodeFacts } from '../ports/kube.ts'
import { decide } from './decide.ts'
import type { Decision } from './decision.ts'
import type { Kind, Step } from './kind.ts'
import { YES, kind, no, unknown, wait } from './kind.ts'
import { iso } from './ledger.ts'
import { isMarked } from './machine-steps/coming-back.ts'
import { nodeOfTarget } from './machine-steps/target.ts'
import { metadata, operation, world } from './samples.ts'
import type { Facts, World } from './world.ts'
import { NO_FACTS, nodeFacts } from './world.ts'

const NOW = Date.UTC(2026, 8, 1, 8)
const IDLE_MS = 15_000
const act = { long: false, disruptive: true, describe: () => 'doing it', run: async () => nothing } as const

const work: Step = {
  name: 'work',
  summary: '',
  done: () => no('it is not done'),
  act,
  settleMs: () => 60_000,
  failure: 'InternalError',
  commits: true,
}
/** One committing step; and the mark on the Node, which is taken off where that is Ready. */
const sample: Kind = kind({
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
      turn: () => YES,
      open: () => ({ open: { goal: {} } }),
      steps: [work],
      abandon: [
        {
          name: 'give-back',
          summary: '',
          done: view => (!nodeFacts(view.world).ok ? unknown('the Nodes cannot be read') : isMarked(view) ? no('it is marked') : YES),
          guard: view => {
            const node = nodeOfTarget(view)
            return node.ok && node.value?.ready === true ? YES : wait('it is not healthy, so its cordon stays')
          },
          act: { ...act, disruptive: false },
          failure: 'InternalError',
        },
      ],
      preview: () => ({ from: '', to: '', loses: [] }),
    },
  ],
})

const lease: Lease = {
  namespace: 'ichor-system',
  name: 'ichor-home',
  uid: 'l',
  resourceVersion: '1',
  holder: 'ichor-controller/op/ichor-system/up',
  durationSeconds: 1,
  transitions: 1,
  acquireTime: '2026-09-01T07:30:00.000000Z',
  renewTime: '2026-09-01T07:30:00.000000Z',
  annotations: { [ANNOTATION.holderUid]: 'uid-up' },
}
const lock = { lease: 'ichor-home', holder: lease.holder, since: lease.acquireTime }

const node = (name: string, change: Partial<NodeFacts> = {}): NodeFacts => ({
  ...{ name, uid: name, resourceVersion: '1', controlPlane: false, ready: true, readySince: 0, unschedulable: true, bootID: 'b1' },
  ...{ systemUUID: '', kubeletVersion: '', kernelVersion: '', osImage: '', addresses: [], labels: {} },
  annotations: { [ANNOTATION.cordonedBy]: 'uid-up' },
  ...change,
})
const away = { ok: false, fault: { kind: 'unreachable', message: 'no answer' } } as const
/** The Nodes that bear the mark, and are Ready where not said otherwise. No machine answers: nobody here asks them. */
const factsOf = (nodes: readonly NodeFacts[] | undefined): Facts => ({
  ...NO_FACTS,
  nodes: nodes ? { ok: true, value: nodes } : away,
  machines: { 'wk-1': away, 'wk-2': away },
})

const target = (name: string, change: Partial<Target> = {}): Target => ({
  ...{ name, node: name, role: 'worker', phase: 'Running', before: { bootID: 'b1' }, goal: {}, startedAt: iso(NOW) },
  ...{ step: 'work', stepStartedAt: iso(NOW) },
  ...change,
})
/** Its step was acted on just now, and the effect is waited for. */
const committed = (name: string): Target => target(name, { actedAt: iso(NOW), committed: 'work' })
const pending = (name: string): Target => ({ name, node: name, role: 'worker', phase: 'Pending' })
const failed = (name: string): Target => target(name, { phase: 'Failed', message: 'it did not work' })

const decided = (op: TalosOperation, seen: Partial<World>): Decision => decide(sample, op, world({ now: NOW, lock: lease, ...seen }))
const statusOf = (answer: Decision): OperationStatus => ('status' in answer && answer.status ? answer.status : {})

const STOPPED = { phase: 'Paused', failureReason: 'DrainBlocked', message: 'held' } as const
const stops: readonly (readonly [string, OperationStatus, Partial<TalosOperation['spec']>])[] = [
  ['paused', { phase: 'Running' }, { paused: true }],
  ['cancelled', { phase: 'Running' }, { cancelled: true }],
  ['failed', STOPPED, {}],
]
const stopped = (machines: readonly Target[], status: OperationStatus, asked: Partial<TalosOperation['spec']>): TalosOperation =>
  operation({ lock, ...status, machines: [...machines] }, { spec: asked, metadata: { finalizers: [FINALIZER] } })

describe.each(stops)('%s, with several machines open', (_, status, asked) => {
  const op = (...machines: readonly Target[]): TalosOperation => stopped(machines, status, asked)

  it('goes on with one while another waits', () => {
    const answer = decided(op(committed('wk-1'), target('wk-2', { committed: 'work' })), { facts: factsOf([]) })
    expect(answer).toMatchObject({ do: 'act', view: { target: { name: 'wk-2' } } })
  })

  it('gathers the words of all that wait', () => {
    const answer = decided(op(committed('wk-1'), committed('wk-2')), { facts: factsOf([]) })
    expect(answer.do).toBe('wait')
    expect(statusOf(answer).machines?.map(t => t.message)).toEqual([
      expect.stringMatching(/finishing wk-1: wk-1: work: it is not done/),
      expect.stringMatching(/finishing wk-2: wk-2: work: it is not done/),
    ])
  })

  it('closes one that is not committed while another waits', () => {
    const answer = decided(op(committed('wk-1'), target('wk-2')), { facts: factsOf([]) })
    expect(statusOf(answer).machines?.map(t => t.phase)).toEqual(['Running', asked.cancelled ? 'Cancelled' : 'Pending'])
  })

  it('gives a cordon back while another waits', () => {
    const answer = decided(op(committed('wk-1'), failed('wk-2')), { facts: factsOf([node('wk-2')]) })
    expect(answer).toMatchObject({ do: 'act', step: { name: 'give-back' }, view: { target: { name: 'wk-2' } } })
  })

  it('gives a cordon back behind one that cannot have its own', () => {
    const seen = { facts: factsOf([node('wk-1', { ready: false }), node('wk-2')]) }
    const told = decided(op(failed('wk-1'), failed('wk-2')), seen)
    expect(statusOf(told).machines?.[0]?.message).toBe('it did not work (it is not healthy, so its cordon stays)')
    const answer = decided(op(...(statusOf(told).machines ?? [])), seen)
    expect(answer).toMatchObject({ do: 'act', step: { name: 'give-back' }, view: { target: { name: 'wk-2' } } })
  })
})

describe('a cordon that stays', () => {
  const sick = { facts: factsOf([node('wk-1', { ready: false })]) }

  it('is told once, also where there is no room for the words', () => {
    const full = { ...failed('wk-1'), message: 'x'.repeat(1024) }
    expect(decided(stopped([full], STOPPED, {}), sick)).toEqual({ do: 'rest', forMs: IDLE_MS })
  })

  it('does not hide that the lock was taken over', () => {
    const told = { ...failed('wk-1'), message: 'it is not healthy, so its cordon stays' }
    const answer = decided(stopped([told], STOPPED, {}), { ...sick, lock: { ...lease, holder: 'ichor-controller/op/ichor-system/b' } })
    expect(answer).toMatchObject({ do: 'record', status: STOPPED })
    expect(statusOf(answer)).not.toHaveProperty('lock')
  })
})

describe('a machine that waits for its turn again, with the mark on its Node', () => {
  const PAUSED = { paused: true }
  const marked = (...machines: readonly Target[]): TalosOperation => stopped(machines, { phase: 'Running' }, PAUSED)

  it('has its cordon back', () => {
    const answer = decided(marked(pending('wk-1'), pending('wk-2')), { facts: factsOf([node('wk-2')]) })
    expect(answer).toMatchObject({ do: 'act', step: { name: 'give-back' }, view: { target: { name: 'wk-2' } } })
  })

  it('has it back also where the name of its Node is known only since it was opened', () => {
    const nameless: Target = { name: 'wk-1', role: 'worker', phase: 'Pending' }
    const machine: TalosMachine = {
      metadata: metadata({ name: 'wk-1' }),
      spec: { clusterRef: { name: 'home' }, address: '10.0.0.1', role: 'worker' },
      status: { nodeName: 'wk-1' },
    }
    expect(decided(marked(nameless), { facts: factsOf([node('wk-1')]), machines: [machine] })).toMatchObject({ do: 'act' })
  })

  it.each<[string, readonly NodeFacts[] | undefined]>([
    ['its Node is not Ready', [node('wk-1', { ready: false })]],
    ['the Nodes cannot be read', undefined],
  ])('is looked at again, paused and with its finalizer, while %s', (_, nodes) => {
    const facts = factsOf(nodes)
    let op = marked(pending('wk-1'))
    let answer = decided(op, { facts })
    for (let i = 0; i < 3 && answer.do === 'record'; i++) {
      op = { ...op, status: answer.status }
      answer = decided(op, { facts })
    }
    expect(answer).toEqual({ do: 'rest', forMs: IDLE_MS })
    expect(op.status.phase).toBe('Paused')
    expect(op.status.machines?.[0]?.message).toBe(nodes && '(it is not healthy, so its cordon stays)')
  })

  it('lets the operation rest once it has its cordon back', () => {
    const op = marked(pending('wk-1'))
    const facts = factsOf([node('wk-1', { annotations: {} })])
    expect(decided(op, { facts })).toEqual({ do: 'drop-finalizer' })
    const bare = { ...op, metadata: { ...op.metadata, finalizers: [] } }
    const answer = decided(bare, { facts })
    expect(statusOf(answer).phase).toBe('Paused')
    expect(decided({ ...bare, status: statusOf(answer) }, { facts })).toEqual({ do: 'rest' })
  })

  it('keeps no operation from its end', () => {
    const op = stopped([pending('wk-1')], { phase: 'Running' }, { cancelled: true })
    expect(statusOf(decided(op, { facts: factsOf(undefined) })).phase).toBe('Cancelled')
  })

  it('is left alone while another operation works on it', () => {
    const other = { ...operation({ phase: 'Running', machines: [committed('wk-1')] }), metadata: metadata({ name: 'b' }) }
    const seen = { facts: factsOf([node('wk-1')]), others: [other], lock: { ...lease, holder: 'ichor-controller/op/ichor-system/b' } }
    expect(decided(operation({ ...STOPPED, machines: [pending('wk-1')] }), seen)).toEqual({ do: 'rest', forMs: IDLE_MS })
    expect(decided(operation({ ...STOPPED, machines: [pending('wk-1')] }), { ...seen, others: [] })).toMatchObject({ do: 'act' })
  })
})
