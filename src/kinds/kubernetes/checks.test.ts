// What is found before the first touch, in the invented cluster.
import { describe, expect, it } from 'vitest'
import { createStory, type Story, type StoryOptions } from '../../storm/story.ts'
import type { World } from '../../world/cluster.ts'
import { withImageOf } from '../../world/component-images.ts'
import { setConfig, stageConfig, tryConfig } from '../../world/configuration.ts'

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
  it.each<[string, RegExp, (world: World) => void]>([
    [
      'is staged',
      /^ConfigPending: wk-2 has another configuration that is staged .*`ichor node reboot wk-2`/,
      world => stageConfig(world.site, world.machine('wk-2'), other(world.machine('wk-2').config)),
    ],
    [
      'is on trial',
      /^ConfigPending: wk-2 has a configuration on trial/,
      world => tryConfig(world.site, world.machine('wk-2'), other(world.machine('wk-2').config), 60 * MINUTE),
    ],
  ])('which %s is not written to, so nothing is begun', async (_, expected, arrange) => {
    const story = await checked({ arrange })
    expect(refusalsOf(story)).toEqual([expect.stringMatching(expected)])
    expect(story.world.journal.of('component-image')).toEqual([])
    expect(story.holder()).toBe('')
  })

  it('may have it where no image is to be set', async () => {
    const stage = (world: World): void => stageConfig(world.site, world.machine('wk-2'), other(world.machine('wk-2').config))
    const story = await checked({ arrange: stage, version: 'v1.35.4' })
    expect(story.operation('op')?.status.phase).toBe('Completed')
  })
})

describe('a static pod that is not Ready', () => {
  it('is not told of where the Nodes cannot be read, by which pods are told apart', async () => {
    const gone = { do: 'fail', when: 'before', fault: { kind: 'unreachable', message: '410 Gone' } } as const
    const story = await checked({ arrange: world => void world.calls.intercept(({ name }) => (name === 'nodes' ? gone : undefined)) })
    expect(refusalsOf(story)).toEqual([expect.stringMatching(/^KubernetesUnreachable: The Nodes of the cluster cannot be read/)])
  })

  const MISSING = 'registry.k8s.io/kube-scheduler:v1.35.99'
  it.each<[string, (world: World) => void, RegExp]>([
    [
      'because its image is nowhere',
      world => {
        world.registry.remove('kube-scheduler:v1.35.99')
        setConfig(world.site, world.machine('cp-2'), withImageOf(world.machine('cp-2').config, 'kube-scheduler', MISSING))
      },
      /^StaticPodNotReady: kube-scheduler on cp-2 is not Ready: (?:ImagePullBackOff, Back-off pulling|ErrImagePull, failed to pull and unpack) image "registry\.k8s\.io\/kube-scheduler:v1\.35\.99".*not found\. Mend it first\.$/,
    ],
    [
      'because it ends at once',
      world => {
        world.site.faults.crashing.set(MISSING, 'Error: unknown flag: --gone')
        world.machine('cp-2').programs.add(MISSING)
        setConfig(world.site, world.machine('cp-2'), withImageOf(world.machine('cp-2').config, 'kube-scheduler', MISSING))
      },
      /^StaticPodNotReady: kube-scheduler on cp-2 is not Ready: CrashLoopBackOff, back-off .*\. Mend it first: `talosctl -n \S+ logs -k kube-system\/kube-scheduler-cp-2:kube-scheduler` shows what it wrote\.$/,
    ],
  ])('%s is told in the words of its kubelet', async (_, arrange, expected) => {
    const story = createStory({ seed: 3, kubernetes: 'v1.35.4' })
    story.start()
    await story.pass(MINUTE)
    arrange(story.world)
    await story.pass(5 * MINUTE)
    story.create({ name: 'op', spec: { kind: 'kubernetes', kubernetes: { version: 'v1.36.2' } } })
    await story.until('it has settled', () => story.operation('op')?.status.phase === 'Paused')
    expect(refusalsOf(story)).toContainEqual(expect.stringMatching(expected))
  })
})
