// What tools that know nothing of Ichor make of an operation: the rules of kstatus (sigs.k8s.io/cli-utils), by which Flux and others wait, those of
// `kubectl wait`, and the lines of Lua that the page gives Argo CD.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LuaFactory } from 'wasmoon'
import { PHASE_NAMES } from '../src/api/phases.ts'
import { REASON_NAMES } from '../src/api/reasons.ts'
import type { OperationStatus, TalosOperation } from '../src/api/talos-operation.ts'
import { UNSEEN } from '../src/api/schema.ts'
import { withConditions } from '../src/core/ledger.ts'
import { operation } from '../src/core/samples.ts'

type Verdict = 'Terminating' | 'InProgress' | 'Failed' | 'Current'

/** kstatus of a type that it does not know. */
const kstatus = ({ metadata, status }: TalosOperation): Verdict => {
  if (metadata.deletionTimestamp !== undefined) return 'Terminating'
  if (status.observedGeneration !== undefined && status.observedGeneration !== metadata.generation) return 'InProgress'
  const is = (type: string) => status.conditions?.find(c => c.type === type)?.status
  if (is('Reconciling') === 'True') return 'InProgress'
  if (is('Stalled') === 'True') return 'Failed'
  return is('Ready') === undefined || is('Ready') === 'True' ? 'Current' : 'InProgress'
}

/** `kubectl wait --for=condition=TYPE`. */
const waitEnds = ({ metadata, status }: TalosOperation, type: string): boolean => {
  const condition = status.conditions?.find(c => c.type === type)
  return condition?.status === 'True' && (condition.observedGeneration ?? 0) >= metadata.generation
}

const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'observability.md'), 'utf8')

/** `resource.customizations.health` of Argo CD, which runs it with the object as `obj`. */
const lua = /_TalosOperation: \|\n((?: {6}.*\n)+)/.exec(page)?.[1] ?? ''
const engine = await new LuaFactory().createEngine({ enableProxy: false })
const argo = (one: TalosOperation): { readonly status: string; readonly message: string } => {
  engine.global.set('obj', one)
  return engine.doStringSync(lua) as { readonly status: string; readonly message: string }
}

const TYPES = ['Ready', 'Reconciling', 'Stalled', 'Finished'] as const
const told = (status: OperationStatus): TalosOperation => operation(withConditions(status, operation(status), Date.UTC(2026, 8, 1)))
const row = (status: OperationStatus): readonly string[] => {
  const one = told(status)
  return [
    ...TYPES.map(type => (one.status.conditions?.find(c => c.type === type)?.status === 'True' ? 'True' : 'False')),
    kstatus(one),
    argo(one).status,
  ]
}

const rows = [...page.matchAll(/^\| (.+?) \| (True|False) \| (True|False) \| (True|False) \| (True|False) \| (\w+) \| (\w+) \|$/gm)].map(
  ([, state = '', ...rest]) => [state, rest] as const,
)

describe('an operation, to tools that know conditions', () => {
  it.each<[string, readonly OperationStatus[]]>([
    ['checks are running, it runs, or it waits for the world', [{ phase: 'Pending' }, { phase: 'Running' }]],
    ['it waits for the cluster lock (`Paused`, `ClusterLockHeld`)', [{ phase: 'Paused', failureReason: 'ClusterLockHeld' }]],
    [
      'failed or refused (`Paused` with any other reason)',
      REASON_NAMES.filter(reason => reason !== 'ClusterLockHeld').map(failureReason => ({ phase: 'Paused', failureReason })),
    ],
    ['paused by its operator', [{ phase: 'Paused' }]],
    ['`Completed`', [{ phase: 'Completed' }]],
    ['`Cancelled`', [{ phase: 'Cancelled' }]],
  ])('that is so: %s: is what the page says', (state, statuses) => {
    const expected = rows.find(([name]) => name === state)?.[1]
    for (const status of statuses) expect(row(status), JSON.stringify(status)).toEqual(expected)
  })

  it('has a row for each phase, and the page has no more', () => {
    expect(rows.length).toBe(6)
    expect(PHASE_NAMES).toEqual(['Pending', 'Running', 'Paused', 'Completed', 'Cancelled'])
  })

  it('is in progress as soon as somebody changed it, until the controller has seen that', () => {
    const done = told({ phase: 'Completed' })
    const changed = { ...done, metadata: { ...done.metadata, generation: done.metadata.generation + 1 } }
    expect([kstatus(done), kstatus(changed)]).toEqual(['Current', 'InProgress'])
    expect([argo(done).status, argo(changed).status]).toEqual(['Healthy', 'Progressing'])
    expect(TYPES.filter(type => waitEnds(done, type))).toEqual(['Ready', 'Finished'])
    expect(TYPES.filter(type => waitEnds(changed, type))).toEqual([])
  })

  it('is not taken for done before the controller has looked at it first', () => {
    // No conditions at all are Current to kstatus, so a new one has answered no generation (the default of its CRD).
    expect(kstatus(operation(UNSEEN))).toBe('InProgress')
    expect(argo(operation({})).status).toBe('Progressing')
    expect(kstatus(told({ phase: 'Pending' }))).toBe('InProgress')
  })

  it('says in each condition what it says itself', () => {
    const one = told({ phase: 'Paused', failureReason: 'DrainBlocked', message: 'wk-1: drain: shop/web is held.' })
    const { status } = one
    expect(argo(one)).toEqual({ status: 'Degraded', message: 'wk-1: drain: shop/web is held.' })
    expect(new Set(status.conditions?.map(({ reason, message }) => `${reason}: ${message}`))).toEqual(
      new Set(['DrainBlocked: wk-1: drain: shop/web is held.']),
    )
  })
})
