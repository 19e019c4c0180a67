import { expect, it } from 'vitest'
import { createStory } from '../../storm/story.ts'
import { runningSlot } from '../../world/slots.ts'

it('carries three control planes and two workers to the new version', async () => {
  const story = createStory({ loud: true })
  story.start()
  await story.until('machines are discovered', () => story.world.store.list('talosmachines.ichor.maesh.dev').items.length === 5)
  story.create({ name: 'up', spec: { kind: 'talos', talos: { version: 'v1.13.9' } } })
  await story.until('it is completed', () => story.operation('up')?.status.phase === 'Completed')
  expect(story.world.machines.map(m => runningSlot(m.disk).version)).toEqual(Array(5).fill('v1.13.9'))
})
