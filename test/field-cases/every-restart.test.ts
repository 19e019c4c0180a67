import { describe, expect, it } from 'vitest'
import { kinds } from '../../src/kinds/registry.ts'
import { play, type Case, type Run } from './play.ts'

/** Steps whose act takes a machine away. */
const TAKES_AWAY = ['reboot', 'upgrade', 'shutdown', 'reset']

/** Where in the story each of them happened to wk-1 first, those behind the act after it; -1 where none did. */
const order = ({ world }: Run, act: string): readonly number[] => {
  const mine = world.journal.entries().filter(e => e.machine === 'wk-1')
  const at = (what: string, detail = '', after = -1) => mine.findIndex((e, i) => i > after && e.what === what && e.detail.includes(detail))
  const acted = at(act)
  return [at('cordon', 'by Ichor'), at('evicted'), acted, at('node', 'Ready', acted), at('uncordon', 'by Ichor', acted)]
}
const rising = (places: readonly number[]): boolean => places.every((place, i) => place > (places[i - 1] ?? -1))

describe('whatever takes a worker away, it is set aside in the same order [B052 devantler-tech/ksail#5604, devantler-tech/ksail#5607]', () => {
  const version = { talos: { version: 'v1.13.9' } }
  const rows: readonly (readonly [string, Partial<Case> & Pick<Case, 'spec'>, string])[] = [
    ['an upgrade', { spec: version }, 'reboot-requested'],
    ['an upgrade by power cycle', { spec: { talos: { ...version.talos, rebootMode: 'powercycle' } } }, 'reboot-requested'],
    [
      'an upgrade of an older machine',
      { cluster: { talos: 'v1.11.5', kubernetes: 'v1.34.1' }, spec: { talos: { version: 'v1.12.4' } } },
      'upgrade-requested',
    ],
    ['a reboot', { spec: { node: { machine: 'wk-1', action: 'reboot' } } }, 'reboot-requested'],
    ['a reboot by power cycle', { spec: { node: { machine: 'wk-1', action: 'reboot', mode: 'powercycle' } } }, 'reboot-requested'],
  ]

  it.each(rows)('%s: cordon, drain, act, Ready, uncordon', async (_, told, act) => {
    const { run, end } = await play({
      ...told,
      cluster: { ...told.cluster, workloads: [{ name: 'web', replicas: 2, budget: { maxUnavailable: 1 }, volume: true, on: [3] }] },
    })
    expect(end.phase).toBe('Completed')
    expect(order(run, act)).toSatisfy(rising)
  })

  it.each([
    ['a shutdown', { machine: 'wk-1', action: 'shutdown' }, 'shutdown-requested'],
    ['a reset', { machine: 'wk-1', action: 'reset' }, 'reset-requested'],
  ])('%s: cordon, drain, act', async (_, node, act) => {
    const { run, end } = await play({
      cluster: { workloads: [{ name: 'web', replicas: 2, budget: { maxUnavailable: 1 }, volume: true, on: [3] }] },
      spec: { node },
      allowed: { away: ['wk-1'], keepsCordon: ['wk-1'] },
    })
    expect(end.phase).toBe('Completed')
    expect(order(run, act).slice(0, 3)).toSatisfy(rising)
  })

  it('and no kind has a way of its own: before each such step stand the cordon and the drain', () => {
    const stages = kinds.flatMap(kind =>
      kind.stages.map(stage => ({ name: `${kind.name} ${stage.name}`, steps: stage.steps.map(s => s.name) })),
    )
    const taking = stages.filter(({ steps }) => steps.some(s => TAKES_AWAY.includes(s)))
    expect(taking.map(s => s.name)).toEqual(expect.arrayContaining(['talos upgrade', 'node reboot', 'node shutdown', 'node reset']))
    for (const { name, steps } of taking) {
      const first = steps.findIndex(s => TAKES_AWAY.includes(s))
      const before = ['cordon', 'drain'].map(s => steps.indexOf(s))
      expect([...before, first], name).toSatisfy(rising)
      if (!steps.some(s => s === 'reboot' || s === 'upgrade')) continue
      const after = ['node-ready', 'uncordon'].map(s => steps.indexOf(s))
      expect([first, ...after], name).toSatisfy(rising)
    }
  })
})
