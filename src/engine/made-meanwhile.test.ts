// An operation that is created while another one is at work finds machines away by that one's doing. It waits in the queue, and is checked under the lock.
import { describe, expect, it } from 'vitest'
import type { OperationStatus } from '../api/talos-operation.ts'
import { createStory, type Story } from '../storm/story.ts'

const MINUTE = 60_000
const kubernetes = { kind: 'kubernetes', kubernetes: { version: 'v1.36.2' } }
const config = { kind: 'config', config: { patches: [{ inline: 'machine:\n  sysctls:\n    net.core.somaxconn: "65535"\n' }] } }

const status = (story: Story, name: string): OperationStatus => story.operation(name)?.status ?? {}
const isDone = (story: Story, name: string): boolean => ['Completed', 'Cancelled'].includes(status(story, name).phase ?? '')

/** At work on its first machine, in that step. */
const atWork = async (first: Parameters<Story['create']>[0]['spec'], step: string): Promise<Story> => {
  const story = createStory({ workers: 1 })
  story.start()
  await story.pass(MINUTE)
  story.create({ name: 'first', spec: first })
  await story.until(`it is in ${step}`, () => status(story, 'first').machines?.some(target => target.step === step) ?? false)
  await story.pass(5_000)
  return story
}

describe.each([
  [
    'a machine is half done and away',
    { kind: 'talos', talos: { version: 'v1.13.9' } },
    'verify',
    config,
    'MachineUnreachable|MachineNotReady',
  ],
  ['a configuration is on trial', config, 'trial', { ...config, config: { ...config.config, mode: 'no-reboot' } }, 'ConfigPending'],
  ['a machine is half done', { kind: 'talos', talos: { version: 'v1.13.9' } }, 'rejoin', kubernetes, 'UnfinishedOperation'],
])('while %s', (_, first, step, second, rule) => {
  it('it waits, says what is asked again, and starts by itself', async () => {
    const story = await atWork(first, step)
    story.create({ name: 'second', spec: second })
    await story.until('it waits', () => status(story, 'second').phase !== undefined && status(story, 'second').phase !== 'Pending')
    expect(status(story, 'second')).toMatchObject({ phase: 'Paused', failureReason: 'ClusterLockHeld' })
    expect(status(story, 'second').preflight?.notes?.join(' ')).toMatch(
      new RegExp(`Asked again when ichor-controller/op/ichor-system/first has given the cluster lock back: .*(${rule})`),
    )
    await story.until('both are done', () => isDone(story, 'first') && isDone(story, 'second'))
    expect([status(story, 'first').phase, status(story, 'second').phase]).toEqual(['Completed', 'Completed'])
  })
})

it('what is wrong with itself is told at once', async () => {
  const story = await atWork({ kind: 'talos', talos: { version: 'v1.13.9' } }, 'verify')
  story.create({ name: 'second', spec: { kind: 'config', config: { patches: [{ inline: 'machine:\n  sysctl:\n    a: "1"\n' }] } } })
  await story.until('it is refused', () => status(story, 'second').failureReason === 'PreflightRefused')
  expect(status(story, 'second').preflight?.refusals.map(refusal => refusal.rule)).toEqual(['UnknownField'])
})

it('what stays after the other has ended is held against it then', async () => {
  const story = await atWork({ kind: 'talos', talos: { version: 'v1.13.9' } }, 'verify')
  story.create({ name: 'second', spec: config })
  await story.until('it waits', () => status(story, 'second').failureReason === 'ClusterLockHeld')
  await story.until('the first is done', () => isDone(story, 'first'))
  story.world.powerOff('wk-1')
  await story.until('it is refused or done', () => status(story, 'second').failureReason === 'PreflightRefused' || isDone(story, 'second'))
  expect(status(story, 'second').preflight?.refusals.map(refusal => refusal.rule)).toContain('MachineUnreachable')
})
