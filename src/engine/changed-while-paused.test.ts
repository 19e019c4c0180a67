import { describe, expect, it } from 'vitest'
import { ANNOTATION, leaseName } from '../api/names.ts'
import type { RestartStory } from '../storm/restart-story.ts'
import { MINUTE, holderOf, restartStory } from '../storm/restart-story.ts'
import { CLUSTER, NAMESPACE } from '../storm/story.ts'
import { RESOURCE } from '../world/objects.ts'
import { ICHOR } from '../world/ports/home.ts'
import { requestReboot } from '../world/reboot.ts'
import { runningSlot } from '../world/slots.ts'

const retry = (story: RestartStory): void => story.edit('a', { annotations: { [ANNOTATION.retry]: 'true' } })
const reboots = (story: RestartStory): readonly string[] => story.world.journal.of('reboot-requested').map(e => e.machine)

/** Paused by its operator after its first machine. */
const pausedInTheMiddle = async (options: Parameters<typeof restartStory>[0] = {}): Promise<RestartStory> => {
  const story = await restartStory(options)
  story.restart('a')
  await story.until('the first machine is at work', () => story.world.journal.of('install-began').length === 1)
  story.edit('a', { spec: { paused: true } })
  await story.until('it is paused', () => story.status('a').phase === 'Paused')
  return story
}
const resume = (story: RestartStory): void => story.edit('a', { spec: { paused: false } })

describe('a cluster that changes while an operation is paused', () => {
  it('a machine that was upgraded by hand is skipped', async () => {
    const story = await pausedInTheMiddle()
    const worker = story.world.machine('wk-1')
    worker.disk.slots[worker.disk.booted] = { ...runningSlot(worker.disk), version: 'v1.13.9' }
    resume(story)
    await story.untilDone('a')
    expect(reboots(story)).toEqual(['cp-1'])
    expect(story.target('a', 'wk-1')).toMatchObject({ phase: 'Skipped', message: 'already there' })
  })

  it('a machine that was rebooted by hand is taken as it is now', async () => {
    const story = await pausedInTheMiddle()
    const worker = story.world.machine('wk-1')
    const before = story.world.store.get(ICHOR.machines, NAMESPACE, story.target('a', 'wk-1')?.name ?? '')
    requestReboot(story.world.site, worker, 'default')
    await story.pass(10 * MINUTE)
    resume(story)
    await story.untilDone('a')
    const boot = (before?.['status'] as { bootID?: string } | undefined)?.bootID
    expect(boot).toBeDefined()
    expect(story.target('a', 'wk-1')?.before?.bootID).not.toBe(boot)
    // Once by hand, once by the operation.
    expect(reboots(story).filter(name => name === 'wk-1')).toHaveLength(2)
  })

  it('a machine that is gone stops it with its name, and one step later a person decides', async () => {
    const story = await pausedInTheMiddle()
    story.world.powerOff('wk-1')
    resume(story)
    await story.until('it failed', () => story.status('a').failureReason === 'MachineUnreachable')
    expect(story.status('a').message).toContain('wk-1')
    expect(reboots(story)).toEqual(['cp-1'])
    story.world.powerOn('wk-1')
    await story.pass(5 * MINUTE)
    retry(story)
    await story.untilDone('a')
    expect(reboots(story)).toEqual(['cp-1', 'wk-1'])
  })

  it.each([
    ['deleted', (story: RestartStory) => void story.world.store.remove(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))],
    [
      'given to a stranger',
      (story: RestartStory) => {
        const lease = story.world.store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
        if (lease) story.world.store.update(RESOURCE.leases, { ...lease, spec: { holderIdentity: 'a-person' } })
      },
    ],
  ])('its Lease %s: it acts only when it holds the lock again', async (what, take) => {
    const story = await pausedInTheMiddle()
    take(story)
    const without: string[] = []
    story.world.calls.intercept(({ port, name, changes }) => {
      if (port !== 'home' && changes && story.holder() !== holderOf('a')) without.push(name)
      return undefined
    })
    resume(story)
    if (what !== 'deleted') {
      await story.until('it waits', () => story.status('a').failureReason === 'ClusterLockHeld')
      await story.pass(30 * MINUTE)
      expect(reboots(story)).toEqual(['cp-1'])
      story.world.store.remove(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    }
    await story.untilDone('a')
    expect(without).toEqual([])
  })
})

describe('requests that come close together', () => {
  it('two retries within one second are one', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', { installer: { exitCode: 1, lines: ['no'], times: 2 } })
    story.restart('a')
    await story.until('it failed', () => story.status('a').phase === 'Paused')
    retry(story)
    story.world.schedule.after(400, () => retry(story))
    await story.until('it failed again', () => story.world.journal.of('install-began').length === 2 && story.status('a').phase === 'Paused')
    await story.pass(20 * MINUTE)
    expect(story.world.journal.of('install-began')).toHaveLength(2)
    expect(story.operation('a')?.metadata.annotations[ANNOTATION.retry]).toBeUndefined()
  })

  it('kubectl apply without the server is an apply as well: honoured once', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', { installer: { exitCode: 1, lines: ['no'], times: 9 } })
    const fieldsV1 = { 'f:metadata': { 'f:annotations': { [`f:${ANNOTATION.retry}`]: {} } } }
    story.restart('a')
    for (let i = 0; i < 4; i++) {
      await story.until('it stands failed', () => story.status('a').phase === 'Paused' && story.open('a').length === 0)
      const managedFields = [{ manager: 'kubectl-client-side-apply', operation: 'Update', fieldsV1 }]
      story.edit('a', { annotations: { [ANNOTATION.retry]: 'true' }, managedFields })
      await story.until('it is taken away', () => story.operation('a')?.metadata.annotations[ANNOTATION.retry] === undefined)
      await story.pass(5 * MINUTE)
    }
    expect(story.world.journal.of('install-began')).toHaveLength(2)
    expect(story.events('a').filter(e => e.startsWith('RetryIgnored'))).toHaveLength(1)
  })
})

describe('an operation that is created again under its name', () => {
  it.each(['Completed', 'Cancelled'])('after it was %s is a new one', async phase => {
    const story = await restartStory()
    story.restart('a', phase === 'Cancelled' ? { cancelled: true } : {})
    await story.until('it has ended', () => story.status('a').phase === phase && story.holder() === '')
    const uid = story.operation('a')?.metadata.uid
    story.remove('a')
    story.restart('a')
    await story.untilDone('a')
    expect(story.operation('a')?.metadata.uid).not.toBe(uid)
    expect(reboots(story)).toEqual(['cp-1', 'wk-1'])
    if (phase === 'Completed') expect(story.status('a').machines?.map(m => m.phase)).toEqual(['Skipped', 'Skipped'])
  })
})
