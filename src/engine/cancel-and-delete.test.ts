import { describe, expect, it } from 'vitest'
import type { RestartStory } from '../storm/restart-story.ts'
import { MINUTE, holderOf, restartStory } from '../storm/restart-story.ts'
import { conditionOf } from '../world/objects.ts'

const isUnschedulable = (story: RestartStory, node: string): boolean =>
  (story.world.store.get('nodes', '', node)?.['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable === true
const isReady = (story: RestartStory, node: string): boolean =>
  conditionOf(story.world.store.get('nodes', '', node), 'Ready')?.status === 'True'

const moments: readonly (readonly [string, (story: RestartStory) => boolean, committed: boolean])[] = [
  ['before its checks', () => true, false],
  ['once a machine is open', s => s.open('a').length > 0, false],
  ['while it pulls', s => s.target('a', 'cp-1')?.step === 'fetch', false],
  ['in the middle of the install', s => s.world.journal.of('install-began').length === 1, true],
  ['after the cordon', s => s.world.journal.of('cordon').length === 1, true],
  ['in the middle of the reboot', s => s.world.journal.of('down').length === 1, true],
  ['when the machine is back', s => s.target('a', 'cp-1')?.step === 'back', true],
]

const ends: readonly (readonly [string, (story: RestartStory) => void])[] = [
  ['cancelled', story => story.edit('a', { spec: { cancelled: true } })],
  ['deleted', story => story.remove('a')],
]

describe.each(ends)('an operation that is %s', (word, end) => {
  it.each(moments)('%s', async (_, moment, committed) => {
    const story = await restartStory()
    story.restart('a')
    await story.until('the moment has come', () => moment(story))
    end(story)
    await story.until('it has ended', () =>
      story.operation('a') === undefined ? true : story.status('a').phase === 'Cancelled' && story.finalizers('a').length === 0,
    )
    await story.until('the lock is free', () => story.holder() === '', MINUTE)
    for (const machine of story.world.machines) {
      expect(isUnschedulable(story, machine.name)).toBe(false)
      expect(isReady(story, machine.name)).toBe(true)
    }
    // What was half done is all done, and nothing else was begun.
    expect(story.world.journal.of('reboot-requested').map(e => e.machine)).toEqual(committed ? ['cp-1'] : [])
    await story.pass(30 * MINUTE)
    expect(story.world.journal.of('install-began').length).toBe(committed ? 1 : 0)
    if (word === 'cancelled') expect(story.conditions('a')).toBe('Finished')
    else expect(story.operation('a')).toBeUndefined()
  })

  it('in the queue never starts, and holds up nobody', async () => {
    const story = await restartStory()
    story.restart('first')
    await story.until('it is at work', () => story.open('first').length > 0)
    story.restart('a')
    await story.until('a waits', () => story.status('a').failureReason === 'ClusterLockHeld')
    await story.pass(1100)
    story.restart('last')
    end(story)
    await story.untilDone('first', 'last')
    expect(story.status('a').machines).toBeUndefined()
  })

  it('after a failure ends where it stands', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', { installer: { exitCode: 1, lines: ['no'], times: 1 } })
    story.restart('a')
    await story.until('it failed', () => story.status('a').failureReason === 'InstallFailed')
    end(story)
    await story.until(
      'it has ended',
      () => (story.operation('a')?.status.phase ?? 'Cancelled') === 'Cancelled' && story.finalizers('a').length === 0,
      MINUTE,
    )
    await story.until('the lock is free', () => story.holder() === '', MINUTE)
    await story.pass(30 * MINUTE)
    expect(story.world.journal.of('install-began').length).toBe(1)
  })
})

describe('the finalizer', () => {
  it('is there only while a machine is open', async () => {
    const story = await restartStory()
    let acts = 0
    story.world.calls.intercept(call => {
      if (call.port !== 'talos' || !call.changes) return undefined
      acts++
      expect(story.finalizers('a').length).toBe(1)
      return undefined
    })
    story.restart('a')
    await story.untilDone('a')
    expect(acts).toBe(6)
    await story.until('it is gone', () => story.finalizers('a').length === 0, MINUTE)
  })

  it('taken away by hand from an operation that is deleted leaves nothing running and the lock free', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('the installer runs', () => story.world.journal.of('install-began').length === 1)
    story.remove('a')
    const object = story.world.store.get('talosoperations.ichor.maesh.dev', 'ichor-system', 'a')
    if (object) story.world.store.update('talosoperations.ichor.maesh.dev', { ...object, metadata: { ...object.metadata, finalizers: [] } })
    expect(story.operation('a')).toBeUndefined()
    await story.until('the lock is free', () => story.holder() === '', MINUTE)
    await story.pass(30 * MINUTE)
    expect(story.world.journal.of('reboot-requested')).toEqual([])
  })

  it('leaves the lock free also where nobody led when it was deleted', async () => {
    const story = await restartStory({ unled: true })
    const first = story.start('ichor-0')
    await story.until('machines are discovered', () => story.world.store.list('talosmachines.ichor.maesh.dev').items.length === 2)
    story.restart('a')
    await story.until('the first machine is done', () => story.target('a', 'cp-1')?.phase === 'Completed')
    story.edit('a', { spec: { paused: true } })
    await story.until('it rests', () => story.status('a').phase === 'Paused' && story.open('a').length === 0)
    expect(story.holder()).toBe(holderOf('a'))
    first.kill()
    story.remove('a')
    expect(story.operation('a')).toBeUndefined()
    story.start('ichor-1')
    await story.until('the lock is free', () => story.holder() === '', 5 * MINUTE)
  })
})
