// Sabotage proves the checkers: each spoils one line of the source, and the checker that is named has to find it out.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { checkers } from '../../src/storm/checkers/all.ts'
import { loadStorm } from './sabotage.ts'
import { sabotages } from './sabotages/all.ts'
import { planOf } from './spoiling.ts'

// The last one plays the runs of all of them: a busy machine decides nothing.
vi.setConfig({ testTimeout: 300_000 })

const folder = join(import.meta.dirname, '..', '..', '.cache', 'storm')
afterAll(() => {
  for (const file of readdirSync(folder)) if (file.endsWith(`-${process.pid}.mjs`)) rmSync(join(folder, file))
})

describe('a line is spoiled', () => {
  it.each(sabotages.map(s => [s.name, s.caughtBy, s] as const))('%s: %s finds it', async (_, caughtBy, sabotage) => {
    const storm = await loadStorm(sabotage)
    const { violations } = await storm.judge(planOf(sabotage), sabotage.isAlone ? { only: caughtBy } : {})
    expect(violations.map(v => v.checker)).toContain(caughtBy)
  })

  it('none: nothing is found in any of these runs', async () => {
    const storm = await loadStorm()
    // Many are found in the same run.
    const plans = new Map(sabotages.map(s => [JSON.stringify(planOf(s)), { name: s.name, plan: planOf(s) }]))
    for (const { name, plan } of plans.values()) {
      const { violations } = await storm.judge(plan)
      expect(violations, name).toEqual([])
    }
  })

  it('all found by checkers that exist', () => {
    const names = new Set([...checkers.map(c => c.name), 'liveness', 'no-internal-error'])
    expect(sabotages.filter(s => !names.has(s.caughtBy))).toEqual([])
    expect(new Set(sabotages.map(s => s.name)).size).toBe(sabotages.length)
    // And there is no checker that has never found anything.
    expect([...names].filter(name => name !== 'no-internal-error' && !sabotages.some(s => s.caughtBy === name))).toEqual([])
  })
})
