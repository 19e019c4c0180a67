import { afterEach, describe, expect, it } from 'vitest'
import { MINUTE, restartStory, type RestartStory } from '../storm/restart-story.ts'

type Entries = ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
type Table = { readonly madeAt: string; readonly entries: Entries }

const real = { Map, Set }
afterEach(() => void Object.assign(globalThis, real))

/** Every Map and Set that is made from here on, with the line that made it. The world is left out: it is no memory of the controller. */
const tablesFromHereOn = (): readonly Table[] => {
  const tables: Table[] = []
  const noted = <T extends MapConstructor | SetConstructor>(constructor: T): T =>
    new Proxy(constructor, {
      construct: (target, given, as) => {
        const made = Reflect.construct(target, given, as) as Entries
        const madeAt = new Error().stack?.split('\n')[2] ?? ''
        if (!madeAt.includes('/src/world/')) tables.push({ madeAt, entries: made })
        return made
      },
    })
  Object.assign(globalThis, { Map: noted(Map), Set: noted(Set) })
  return tables
}

const EACH = 10

/** An operation from its creation until nothing of it exists any more. */
const LIVES: Readonly<Record<string, (story: RestartStory, name: string) => Promise<void>>> = {
  completed: async (story, name) => {
    story.restart(name)
    await story.untilDone(name)
    story.remove(name)
  },
  'deleted in the middle': async (story, name) => {
    story.restart(name)
    await story.until('a machine is at it', () => story.open(name).length > 0)
    story.remove(name)
  },
  refused: async (story, name) => {
    story.restart(name, { clusterRef: { name: 'nowhere' } })
    await story.until('it is refused', () => story.status(name).phase === 'Paused')
    story.remove(name)
  },
}

describe('what the controller keeps of operations that are gone', () => {
  it.each(Object.entries(LIVES))('nothing that grows: %s', async (_, live) => {
    const tables = tablesFromHereOn()
    const story = await restartStory()
    const gone: string[] = []
    for (let i = 0; i < EACH; i++) {
      const name = `gone-${i}-`
      await live(story, name)
      await story.until('it is gone', () => story.operation(name) === undefined)
      gone.push(name)
    }
    await story.pass(5 * MINUTE)

    const mentions = ({ entries }: Table): number => {
      const text = JSON.stringify([...entries])
      return gone.filter(name => text.includes(name)).length
    }
    expect(tables.some(({ madeAt }) => madeAt.includes('/src/engine/'))).toBe(true)
    // What was made for one pass alone is still in our list, and may name the one that it was about.
    expect(tables.filter(table => mentions(table) > 1).map(({ madeAt, entries }) => `${entries.size} entries, made ${madeAt}`)).toEqual([])
  })
})
