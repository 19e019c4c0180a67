import { expect, test } from 'vitest'
import { KEYED_LISTS } from './keyed-lists.ts'
import schema from './schema.json' with { type: 'json' }

test('each list that Talos merges in a way of its own has a rule here', () => {
  const signs = Object.values(schema.types as Readonly<Record<string, Readonly<Record<string, string>>>>).flatMap(fields =>
    Object.values(fields),
  )
  const named = signs.flatMap(sign => [...sign.matchAll(/\[(\w+)\]/g)].map(([, name]) => name))
  expect(new Set(named)).toEqual(new Set<string | undefined>(KEYED_LISTS))
})
