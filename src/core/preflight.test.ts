import { describe, expect, it } from 'vitest'
import { facts, given, node } from '../kinds/talos/test-view.ts'
import type { MachineFacts } from '../ports/talos.ts'
import { identity, type Known } from './preflight.ts'

const { world } = given()
const NAMES = ['cp-1', 'cp-2', 'cp-3', 'wk-1', 'wk-2'] as const

/** All machines, the second worker of which says something else of itself. */
const refusals = (saysOfItself: Partial<MachineFacts>): readonly string[] => {
  const known = NAMES.map((name, i): Known => {
    const machine = world.machines[i]
    if (!machine) throw new Error(`there is no ${name}`)
    return { machine, facts: facts(name, name === 'wk-2' ? saysOfItself : {}), name }
  })
  return identity(world, known, [...NAMES.slice(0, 4).map(name => node(name))]).map(({ rule, message }) => `${rule}: ${message}`)
}

describe('every machine is one', () => {
  it('and has a Node of its own, whatever the case of its name', () =>
    expect(refusals({ hostname: 'WK-1', nodename: 'WK-1' })).toEqual([
      'MachineAmbiguous: TalosMachines wk-1-aaaaa and wk-2-aaaaa have the same Node name wk-1: only one of them can be that Node. Give the other another host name.',
    ]))
  it('which is told once where it is the same machine', () =>
    expect(refusals(facts('wk-1'))).toEqual([
      expect.stringContaining('have the same Talos node id id-wk-1'),
      expect.stringContaining('is answered by wk-1'),
    ]))
  it('or has none', () => expect(refusals({ nodename: '' })).toEqual([]))
})
