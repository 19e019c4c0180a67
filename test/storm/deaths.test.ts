// Some of all deaths, others every day: `npm run storm -- --deaths` plays each.
import { describe, expect, it } from 'vitest'
import { stormKinds } from '../../src/storm/operations.ts'
import { cases, dieAtEachCall } from './deaths.ts'

const STRIDE = 8

describe('a death at a call', () => {
  it('of every kind', () => {
    expect([...new Set(Object.values(cases).map(c => c.spec.kind))].toSorted()).toEqual(stormKinds.toSorted())
  })

  it.each(Object.entries(cases))(
    '%s: changes nothing but time',
    async (_, told) => {
      const today = Math.floor(Date.now() / 86_400_000)
      const { deaths, wrong } = await dieAtEachCall(told, STRIDE, today)
      expect(wrong).toEqual([])
      expect(deaths).toBeGreaterThan(0)
    },
    180_000,
  )
})
