import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../api/names.ts'
import { MINUTE, holderOf, restartStory } from '../storm/restart-story.ts'
import { NAMESPACE } from '../storm/story.ts'
import { ICHOR } from '../world/ports/home.ts'

const brokenOnce = () => ({ installer: { exitCode: 1, lines: ['no space left on device'], times: 1 } })
const retry = { annotations: { [ANNOTATION.retry]: 'true' } }

describe('spec.paused', () => {
  it('before the install closes the machine, gives its cordon back, and keeps the lock', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('a machine is open', () => story.open('a').length > 0)
    story.edit('a', { spec: { paused: true } })
    await story.until('it is paused', () => story.status('a').phase === 'Paused')
    expect(story.status('a').failureReason).toBeUndefined()
    expect(story.target('a', 'cp-1')).toMatchObject({ phase: 'Pending' })
    expect(story.finalizers('a')).toEqual([])
    expect(story.holder()).toBe(holderOf('a'))
    await story.pass(60 * MINUTE)
    expect(story.world.journal.of('reboot-requested')).toEqual([])
    story.edit('a', { spec: { paused: false } })
    await story.untilDone('a')
    expect(story.world.journal.of('reboot-requested').length).toBe(2)
  })

  it('during an install carries that machine to its end, and says so', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('the installer runs', () => story.world.journal.of('install-began').length === 1)
    story.edit('a', { spec: { paused: true } })
    await story.until('it says so', () => story.status('a').message?.startsWith('pausing, finishing cp-1') === true, MINUTE)
    expect(story.status('a').phase).toBe('Running')
    await story.until('it is paused', () => story.status('a').phase === 'Paused')
    expect(story.target('a', 'cp-1')?.phase).toBe('Completed')
    expect(story.target('a', 'wk-1')?.phase).toBe('Pending')
    expect(story.status('a').message).toBe('Paused by the operator; 1 of 2 machines were done. The cluster lock is kept.')
    story.edit('a', { spec: { paused: false } })
    await story.untilDone('a')
    expect(story.world.journal.of('install-began').map(e => e.machine)).toEqual(['cp-1', 'wk-1'])
  })

  it('between two machines takes effect before the next one', async () => {
    const story = await restartStory({ workers: 2 })
    story.restart('a', { minReadySeconds: 120 })
    await story.until('the first is soaking', () => story.target('a', 'cp-1')?.step === 'soak')
    story.edit('a', { spec: { paused: true } })
    await story.until('it is paused', () => story.status('a').phase === 'Paused')
    expect(story.world.journal.of('install-began').length).toBe(1)
    story.edit('a', { spec: { paused: false } })
    await story.untilDone('a')
  })
})

describe('a failure', () => {
  it('pauses with a reason, tells it once, and gives the cordon back', async () => {
    const story = await restartStory()
    story.world.fault('wk-1', { rebootNeverEnds: true })
    story.restart('a')
    await story.until('it failed', () => story.status('a').phase === 'Paused')
    expect(story.status('a')).toMatchObject({ failureReason: 'RebootTimeout', lastFailure: { reason: 'RebootTimeout', step: 'reboot' } })
    expect(story.events('a').filter(e => e.startsWith('RebootTimeout')).length).toBe(1)
    // The machine is dark: the cordon stays, with a word.
    await story.until('it says so', () => story.target('a', 'wk-1')?.message?.includes('its cordon stays') === true, MINUTE)
    expect(story.world.journal.of('uncordon', 'wk-1')).toEqual([])
    expect(story.finalizers('a').length).toBe(1)
    // It comes back by itself: now it is lifted, although nobody asked.
    story.world.fault('wk-1', { rebootNeverEnds: false })
    story.world.powerOff('wk-1')
    story.world.powerOn('wk-1')
    await story.until('the cordon is lifted', () => story.world.journal.of('uncordon', 'wk-1').length === 1, 30 * MINUTE)
    expect(story.status('a').phase).toBe('Paused')
    story.edit('a', retry)
    await story.untilDone('a')
    expect(story.world.journal.of('reboot-requested', 'wk-1').length).toBe(1)
  })

  it('counts a retry once, and takes the annotation away', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', { installer: { exitCode: 1, lines: ['no'], times: 2 } })
    story.restart('a')
    await story.until('it failed', () => story.status('a').failureReason === 'InstallFailed')
    expect(story.status('a').lastRetry).toBeUndefined()
    story.edit('a', retry)
    await story.until(
      'it failed again',
      () => story.world.journal.of('install-began').length === 2 && story.status('a').failureReason === 'InstallFailed',
    )
    expect(story.operation('a')?.metadata.annotations[ANNOTATION.retry]).toBeUndefined()
    const first = story.status('a').lastRetry
    expect(first).toBeDefined()
    await story.pass(30 * MINUTE)
    expect(story.world.journal.of('install-began').length).toBe(2)
    story.edit('a', retry)
    await story.untilDone('a')
    expect(story.status('a').lastRetry).not.toBe(first)
    expect(story.status('a').lastFailure?.reason).toBe('InstallFailed')
  })

  it.each(['1', 'TRUE', 'yes', ''])('is not retried by the value %j', async value => {
    const story = await restartStory()
    story.world.fault('cp-1', brokenOnce())
    story.restart('a')
    await story.until('it failed', () => story.status('a').phase === 'Paused')
    story.edit('a', { annotations: { [ANNOTATION.retry]: value } })
    await story.pass(10 * MINUTE)
    expect(story.status('a')).toMatchObject({ phase: 'Paused', failureReason: 'InstallFailed' })
    expect(story.operation('a')?.metadata.annotations[ANNOTATION.retry]).toBe(value)
  })

  it('counts a retry once also where the annotation cannot be taken away, and a hand makes the operation fail anew', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', brokenOnce())
    story.restart('a')
    await story.until('it failed', () => story.status('a').phase === 'Paused')
    let isStuck = true
    story.world.calls.intercept(({ name }) =>
      isStuck && name === 'changeOperation' ? { do: 'fail', when: 'before', fault: { kind: 'conflict', message: 'not now' } } : undefined,
    )
    const asked = () => story.status('a').history?.filter(({ message }) => message === 'retry asked for').length
    story.edit('a', retry)
    await story.until('it is honoured', () => asked() === 1)
    const status = story.status('a')
    const object = story.world.store.get(ICHOR.operations, NAMESPACE, 'a')!
    story.world.store.update(ICHOR.operations, {
      ...object,
      status: { ...status, machines: status.machines?.map(t => (t.phase === 'Running' ? { ...t, step: 'warp' } : t)) },
    })
    await story.until('it has failed anew', () => story.status('a').failureReason === 'InternalError')
    await story.pass(5 * MINUTE)
    expect(asked()).toBe(1)
    expect(story.status('a').failureReason).toBe('InternalError')
    isStuck = false
    await story.until('it is taken away', () => story.operation('a')?.metadata.annotations[ANNOTATION.retry] === undefined)
    story.edit('a', retry)
    await story.until('it counts once more', () => asked() === 2)
  })

  it('keeps a retry until the operator’s own pause is lifted', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', brokenOnce())
    story.restart('a')
    await story.until('it failed', () => story.status('a').phase === 'Paused')
    story.edit('a', { spec: { paused: true }, ...retry })
    await story.pass(10 * MINUTE)
    expect(story.status('a').failureReason).toBe('InstallFailed')
    expect(story.operation('a')?.metadata.annotations[ANNOTATION.retry]).toBe('true')
    story.edit('a', { spec: { paused: false } })
    await story.untilDone('a')
  })

  it('takes a retry of a running operation away without effect', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('it runs', () => story.open('a').length > 0)
    story.edit('a', retry)
    await story.until('it is gone', () => story.operation('a')?.metadata.annotations[ANNOTATION.retry] === undefined, MINUTE)
    expect(story.status('a').lastRetry).toBeUndefined()
    await story.untilDone('a')
    story.edit('a', retry)
    await story.until('it is gone', () => story.operation('a')?.metadata.annotations[ANNOTATION.retry] === undefined, MINUTE)
    expect(story.status('a').phase).toBe('Completed')
  })

  it('of a part of the outside is no failure: a busy installer is asked again, with its words on show', async () => {
    const story = await restartStory()
    story.world.calls.next(
      { name: 'pull', times: 3 },
      { do: 'fail', when: 'before', fault: { kind: 'busy', message: 'the registry says 503' } },
    )
    story.restart('a')
    await story.until('it says so', () => story.status('a').message?.includes('the registry says 503') === true, MINUTE)
    await story.untilDone('a')
    expect(story.world.journal.of('install-began').length).toBe(2)
  })

  it('honours a retry that is applied once, and no re-apply of it; one Event says so; a person’s own still counts', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', { installer: { exitCode: 1, lines: ['no'], times: 3 } })
    const fieldsV1 = { 'f:metadata': { 'f:annotations': { [`f:${ANNOTATION.retry}`]: {} } } }
    const apply = () => story.edit('a', { ...retry, managedFields: [{ manager: 'argocd', operation: 'Apply', fieldsV1 }] })
    const installs = () => story.world.journal.of('install-began').length
    const failed = (n: number) =>
      story.until(`it failed ${n} times`, () => installs() === n && story.status('a').failureReason === 'InstallFailed')
    story.restart('a')
    await failed(1)
    apply()
    await failed(2)
    for (let i = 0; i < 3; i++) {
      apply()
      await story.until('it is taken away', () => story.operation('a')?.metadata.annotations[ANNOTATION.retry] === undefined, MINUTE)
      await story.pass(5 * MINUTE)
    }
    expect(installs()).toBe(2)
    expect(story.status('a').appliedRetry?.ignored).toBe(3)
    expect(story.events('a').filter(e => e.startsWith('RetryIgnored')).length).toBe(1)
    story.edit('a', { ...retry, managedFields: [{ manager: 'kubectl-annotate', operation: 'Update', fieldsV1 }] })
    await failed(3)
  })
})
