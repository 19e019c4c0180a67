import { expect, it } from 'vitest'
import { createStory } from '../storm/story.ts'
import { unknownOption } from './unknown-options.ts'

const program = (extraArgs: Readonly<Record<string, string>>, version = 'v1.36.2') => ({
  ...{ image: `registry.k8s.io/kube-apiserver:${version}`, extraArgs, rendered: '', denied: undefined },
})

it.each<[string, Readonly<Record<string, string>>, string | undefined]>([
  ['none', {}, undefined],
  ['flags of each', { 'audit-log-maxage': '7', 'concurrent-gc-syncs': '20', 'leader-elect': 'true', v: '4' }, undefined],
  ['gates', { 'feature-gates': 'AllAlpha=false, InPlacePodVerticalScaling=true' }, undefined],
  ['a flag that there is not', { v: '2', 'no-such-flag': 'x' }, 'Error: unknown flag: --no-such-flag'],
  [
    'a gate that there is not',
    { 'feature-gates': 'AllAlpha=false,NoSuch=true' },
    'Error: invalid argument "AllAlpha=false,NoSuch=true" for "--feature-gates" flag: unrecognized feature gate: NoSuch',
  ],
])('%s', (_, extraArgs, words) => {
  expect(unknownOption(program(extraArgs))).toBe(words)
  expect(unknownOption(program(extraArgs, 'v1.38.0')), 'of a version that is not known here').toBeUndefined()
})

it('a scheduler with a flag that there is not ends again and again: the rollout stops at the first control plane, and goes on once it is mended', async () => {
  const story = createStory({ seed: 3 })
  story.start()
  await story.pass(60_000)
  const rollOut = (name: string, inline: string): void => {
    story.create({ name, spec: { kind: 'config', config: { mode: 'no-reboot', patches: [{ inline }] } } })
  }
  rollOut('wrong', 'cluster:\n  scheduler:\n    extraArgs: {no-such-flag: "x"}\n')
  await story.until('it has stopped', () => story.operation('wrong')?.status.phase === 'Paused')
  expect(story.operation('wrong')?.status.failureReason).toBe('StaticPodTimeout')
  story.edit('wrong', { spec: { cancelled: true } })
  await story.until('it is cancelled', () => story.operation('wrong')?.status.phase === 'Cancelled')
  const broken = story.world.machines.filter(m => m.role === 'controlplane' && m.config.includes('no-such-flag'))
  expect(broken).toHaveLength(1)
  expect(broken[0]?.pods.get('kube-scheduler')).toMatchObject({ isRunning: false, waiting: { reason: 'CrashLoopBackOff' } })
})
