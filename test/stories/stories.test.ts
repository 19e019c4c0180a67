// Golden stories. `UPDATE_STORIES=1 npx vitest run test/stories` writes them anew; read the difference before committing it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { listen, type Teller } from './tell.ts'
import { NAME, play } from '../field-cases/play.ts'
import { stories } from './cases.ts'

const isUpdating = process.env['UPDATE_STORIES'] === '1'

it.each(Object.entries(stories))('%s', async (name, told) => {
  let teller: Teller | undefined
  await play({
    ...told,
    arrange: async run => {
      await told.arrange?.(run)
      teller = listen(run, NAME)
    },
  })
  const text = `${told.title}\n\n${teller?.text() ?? ''}`
  const path = join(import.meta.dirname, `${name}.txt`)
  if (isUpdating) writeFileSync(path, text)
  expect(text).toBe(readFileSync(path, 'utf8'))
})

it('keeps no text of a story that is told no more', () => {
  const texts = readdirSync(import.meta.dirname).filter(file => file.endsWith('.txt'))
  expect(texts.toSorted()).toEqual(
    Object.keys(stories)
      .map(name => `${name}.txt`)
      .toSorted(),
  )
})
