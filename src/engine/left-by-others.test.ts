// An operation that had begun loses the lock to another of another kind, which leaves a machine half done.
import { describe, expect, it } from 'vitest'
import { ANNOTATION, leaseName } from '../api/names.ts'
import type { Kind } from '../core/kind.ts'
import { restartKind } from '../storm/restart-kind.ts'
import type { RestartStory } from '../storm/restart-story.ts'
import { MINUTE, holderOf, restartStory } from '../storm/restart-story.ts'
import { CLUSTER, NAMESPACE } from '../storm/story.ts'
import { RESOURCE } from '../world/objects.ts'

const other: Kind = { ...restartKind, name: 'other', block: 'other' }

const storyOfTwo = (): Promise<RestartStory> => restartStory({ kinds: [restartKind, other], workers: 2 })
const retry = (story: RestartStory, name: string): void => story.edit(name, { annotations: { [ANNOTATION.retry]: 'true' } })
const restarted = (story: RestartStory): readonly string[] => story.world.journal.of('reboot-requested').map(e => e.machine)

/** The other operation reboots wk-2, which never comes back. */
const leaveHalfDone = async (story: RestartStory): Promise<void> => {
  story.world.fault('wk-2', { rebootNeverEnds: true })
  story.create({ name: 'b', spec: { kind: 'other', other: {} } })
  await story.until('b left wk-2 half done', () => story.target('b', 'wk-2')?.phase === 'Failed')
  expect(story.target('b', 'wk-2')?.committed).toBeDefined()
}

/** A person mends wk-2 and lets b finish. */
const finishOther = async (story: RestartStory): Promise<void> => {
  story.world.fault('wk-2', { rebootNeverEnds: false })
  story.world.powerOff('wk-2')
  story.world.powerOn('wk-2')
  await story.pass(10 * MINUTE)
  retry(story, 'b')
  await story.untilDone('b')
}

/** It cannot get the image for wk-1 until it is told otherwise. */
const withoutImage = async (story: RestartStory): Promise<{ readonly there: () => void }> => {
  let isThere = false
  const address = story.world.machine('wk-1').addresses[0]
  story.world.calls.intercept(call =>
    call.name === 'pull' && call.target === address && !isThere
      ? { do: 'fail', when: 'before', fault: { kind: 'notFound', message: 'no such image' } }
      : undefined,
  )
  story.restart('a')
  await story.until('a failed', () => story.status('a').failureReason === 'ImageNotFound')
  return { there: () => (isThere = true) }
}

describe('a machine that another operation left half done', () => {
  it('keeps one that is retried from going on over the cluster, and says so', async () => {
    const story = await storyOfTwo()
    const image = await withoutImage(story)
    image.there()
    await leaveHalfDone(story)
    const before = restarted(story)
    retry(story, 'a')
    await story.until('a stopped again', () => story.status('a').failureReason === 'UnfinishedOperation')
    expect(story.status('a').message).toMatch(
      /^wk-2 is half done by the other operation b \(reboot\)\. Let that one finish first: .* Then resume this one\.$/,
    )
    await story.pass(30 * MINUTE)
    expect(story.holder()).not.toBe(holderOf('a'))
    expect(story.open('a')).toEqual([])
    expect(restarted(story)).toEqual(before)
    await finishOther(story)
    retry(story, 'a')
    await story.untilDone('a')
  })

  it('keeps one that a person had paused, and whose Lease was deleted, from going on', async () => {
    const story = await storyOfTwo()
    story.restart('a')
    await story.until('the first machine is done', () => story.target('a', 'cp-1')?.phase === 'Completed')
    story.edit('a', { spec: { paused: true } })
    await story.until('it is paused', () => story.status('a').phase === 'Paused' && story.open('a').length === 0)
    story.world.store.remove(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    await leaveHalfDone(story)
    story.edit('a', { spec: { paused: false } })
    await story.until('a stopped', () => story.status('a').failureReason === 'UnfinishedOperation')
    await story.pass(30 * MINUTE)
    expect(story.open('a')).toEqual([])
    await finishOther(story)
    retry(story, 'a')
    await story.untilDone('a')
  })

  it('keeps one that waited in the queue from going on', async () => {
    const story = await storyOfTwo()
    const image = await withoutImage(story)
    story.world.fault('wk-2', { rebootNeverEnds: true })
    image.there()
    story.create({ name: 'b', spec: { kind: 'other', other: {} } })
    await story.until('b is at work', () => story.open('b').length > 0)
    retry(story, 'a')
    await story.until('a waits', () => story.status('a').failureReason === 'ClusterLockHeld')
    await story.until('a stopped', () => story.status('a').failureReason === 'UnfinishedOperation')
    expect(story.holder()).toBe(holderOf('b'))
    expect(story.open('a')).toEqual([])
    await finishOther(story)
    retry(story, 'a')
    await story.untilDone('a')
  })
})
