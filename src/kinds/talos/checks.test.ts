import { expect, it } from 'vitest'
import { createStory } from '../../storm/story.ts'
import { stageConfig } from '../../world/configuration.ts'

it('that the reboot takes what is staged is told in the plan', async () => {
  const story = createStory({ seed: 3, controlPlanes: 1, workers: 2 })
  story.start()
  await story.pass(60_000)
  const { site } = story.world
  const machine = story.world.machine('wk-2')
  stageConfig(site, machine, `${machine.config}\n# another\n`)
  const before = machine.config
  story.create({ name: 'op', spec: { kind: 'talos', talos: { version: 'v1.13.9' }, acknowledge: ['api-outage'] } })
  await story.until('it is done', () => story.operation('op')?.status.phase === 'Completed')
  expect(story.operation('op')?.status.preflight?.notes).toContainEqual(
    expect.stringMatching(/^A configuration is staged on wk-2, which the reboot takes into effect/),
  )
  expect(story.world.machine('wk-2').config).not.toBe(before)
})
