// What an operation says it ignores it never looks at: told with odd values there, its story is the same to the letter.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { KindBlock, OptionalField } from '../../src/api/talos-operation.ts'
import { kinds } from '../../src/kinds/registry.ts'
import { NAME, play } from '../field-cases/play.ts'
import { stories, type Told } from './cases.ts'
import { listen, type Teller } from './tell.ts'

const odd: Readonly<Record<OptionalField, unknown>> = {
  maxUnavailable: '100%',
  drain: { policy: 'force', timeout: '1s' },
  timeouts: { reboot: '1s' },
  minReadySeconds: 1234,
}

const ignoredBy = ({ spec }: Told): readonly OptionalField[] => {
  const kind: KindBlock | undefined = kinds.find(({ block }) => block in spec)
  const action = kind?.actions?.find(({ name }) => name === (spec[kind.block] as { readonly action?: string }).action)
  return (action ?? kind)?.ignores ?? []
}

const told = Object.entries(stories).filter(([, story]) => ignoredBy(story).length > 0)

it.each(told)('%s', async (name, story) => {
  const fields = ignoredBy(story).filter(field => !(field in story.spec))
  let teller: Teller | undefined
  await play({
    ...story,
    spec: { ...story.spec, ...Object.fromEntries(fields.map(field => [field, odd[field]])) },
    arrange: async run => {
      await story.arrange?.(run)
      teller = listen(run, NAME)
    },
  })
  expect(`${story.title}\n\n${teller?.text() ?? ''}`).toBe(readFileSync(join(import.meta.dirname, `${name}.txt`), 'utf8'))
})

it('every one that ignores something has a story', () => {
  const all = kinds.flatMap((kind: KindBlock) => [kind, ...(kind.actions ?? [])]).filter(one => one.ignores !== undefined)
  const played = new Set(
    told.map(([, { spec }]) => {
      const [block = ''] = Object.keys(spec).filter(key => kinds.some(kind => kind.block === key))
      return (spec[block] as { readonly action?: string }).action ?? block
    }),
  )
  expect([...played].toSorted()).toEqual(all.map(({ name }) => name).toSorted())
})
