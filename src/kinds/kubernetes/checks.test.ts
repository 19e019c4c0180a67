// What is found before the first touch, in the invented cluster.
import { describe, expect, it } from 'vitest'
import { createStory, type Story, type StoryOptions } from '../../storm/story.ts'
import { stageConfig, tryConfig } from '../../world/configuration.ts'
import type { World } from '../../world/cluster.ts'

const MINUTE = 60_000

type Given = { readonly arrange?: (world: World) => void; readonly options?: StoryOptions; readonly version?: string }

const checked = async ({ arrange, options = {}, version = 'v1.36.2' }: Given): Promise<Story> => {
  const story = createStory({ seed: 3, kubernetes: 'v1.35.4', ...options })
  story.start()
  await story.pass(MINUTE)
  arrange?.(story.world)
  story.create({ name: 'op', spec: { kind: 'kubernetes', kubernetes: { version } } })
  await story.until('it has settled', () => ['Completed', 'Paused'].includes(story.operation('op')?.status.phase ?? ''))
  return story
}
const refusalsOf = (story: Story): readonly string[] =>
  (story.operation('op')?.status.preflight?.refusals ?? []).map(r => `${r.rule}: ${r.message}`)

const other = (text: string): string => `${text}\n---\napiVersion: v1alpha1\nkind: KmsgLogConfig\nname: remote\nurl: udp://192.0.2.1:514/\n`

describe('a machine with another configuration than the one that runs', () => {
  it.each<[string, (world: World) => void]>([
    ['is staged', world => stageConfig(world.site, world.machine('wk-2'), other(world.machine('wk-2').config))],
    ['is on trial', world => tryConfig(world.site, world.machine('wk-2'), other(world.machine('wk-2').config), 60 * MINUTE)],
  ])('which %s is not written to, so nothing is begun', async (_, arrange) => {
    const story = await checked({ arrange })
    expect(refusalsOf(story)).toEqual([expect.stringMatching(/^ConfigPending: wk-2 has another configuration .*`ichor node reboot wk-2`/)])
    expect(story.world.journal.of('component-image')).toEqual([])
    expect(story.holder()).toBe('')
  })

  it('may have it where no image is to be set', async () => {
    const stage = (world: World): void => stageConfig(world.site, world.machine('wk-2'), other(world.machine('wk-2').config))
    const story = await checked({ arrange: stage, version: 'v1.35.4' })
    expect(story.operation('op')?.status.phase).toBe('Completed')
  })
})
