import { describe, expect, it } from 'vitest'
import { at, facts, given } from '../../kinds/talos/test-view.ts'
import type { MachineFacts } from '../../ports/talos.ts'
import type { View } from '../world.ts'
import { fewAtATime, workerTurn } from './turn.ts'

/** wk-1 asks while wk-2 is open. All three TalosMachines are of two Nodes: wk-2 was replaced, and is known twice for a while. */
const besideItsTwin = (maxUnavailable: string): View => {
  const view = given({ of: 'wk-1', spec: { maxUnavailable } })
  const machines = view.world.machines.flatMap(m =>
    m.status.nodeName === 'wk-2' ? [m, { ...m, metadata: { ...m.metadata, name: 'wk-2-again' } }] : [m],
  )
  const open = { name: 'wk-2-aaaaa', role: 'worker', phase: 'Running' } as const
  const status = { ...view.operation.status, machines: [{ ...view.target, phase: 'Pending' as const }, open] }
  return { ...view, operation: { ...view.operation, status }, world: { ...view.world, machines } }
}

/** The same, and somebody has deleted the TalosMachine of the one that was replaced: it is known by its Node alone. */
const besideItsHeir = (maxUnavailable: string): View => {
  const view = besideItsTwin(maxUnavailable)
  const status = {
    ...view.operation.status,
    machines: view.operation.status.machines?.map(t => (t.phase === 'Running' ? { ...t, node: 'wk-2' } : t)) ?? [],
  }
  const machines = view.world.machines.filter(m => m.metadata.name !== 'wk-2-aaaaa')
  return { ...view, operation: { ...view.operation, status }, world: { ...view.world, machines } }
}

/** Nothing is known of the second one yet. */
const besideTheUnseen = (maxUnavailable: string): View => {
  const view = besideItsTwin(maxUnavailable)
  const machines = view.world.machines.map(m => (m.metadata.name === 'wk-2-again' ? { ...m, status: {} } : m))
  return { ...view, world: { ...view.world, machines } }
}

describe.each([
  ['that is taken away', workerTurn],
  ['that is not', fewAtATime],
])('a share of the workers, for one %s', (_, turn) => {
  it('counts a worker that is known twice once', () => expect(turn(besideItsTwin('67%')).may).toBe('wait'))
  it('counts one that is replaced once', () => expect(turn(besideItsHeir('67%')).may).toBe('wait'))
  it('counts none that nobody has seen', () => expect(turn(besideTheUnseen('67%')).may).toBe('wait'))
  it('gives what it leaves', () => expect(turn(besideItsTwin('100%')).may).toBe('yes'))
})

describe('a worker that discovery saw away, while another is', () => {
  /** wk-1 asks; wk-2 has lost its Node. */
  const besideTheLost = (now: Partial<MachineFacts>): View =>
    given({
      of: 'wk-1',
      status: { machines: [{ name: 'wk-1-aaaaa', role: 'worker', phase: 'Pending' }] },
      machine: { ok: true, value: facts('wk-1', now) },
      nodes: { 'wk-2': undefined },
      machines: m =>
        m.metadata.name === 'wk-1-aaaaa'
          ? {
              ...m,
              status: {
                ...m.status,
                conditions: [{ type: 'Ready', status: 'False', reason: 'Rebooting', message: '', lastTransitionTime: at(20_000) }],
              },
            }
          : m,
    })
  it('may be opened while it is: it takes nothing more away', () => expect(workerTurn(besideTheLost({ stage: 'booting' })).may).toBe('yes'))
  it('waits once it is back', () => expect(workerTurn(besideTheLost({})).may).toBe('wait'))
})
