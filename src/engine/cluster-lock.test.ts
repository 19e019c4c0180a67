import { describe, expect, it } from 'vitest'
import { ANNOTATION, leaseName } from '../api/names.ts'
import type { RestartStory } from '../storm/restart-story.ts'
import { MINUTE, holderOf, restartStory } from '../storm/restart-story.ts'
import { CLUSTER, NAMESPACE } from '../storm/story.ts'
import { RESOURCE } from '../world/objects.ts'
import { ICHOR } from '../world/ports/home.ts'

/** The open machines of all operations, looked at whenever anything happens in the world. */
const mostOpenAtOnce = (story: RestartStory, names: readonly string[]): { readonly most: () => number } => {
  let most = 0
  story.world.journal.onEntry(() => {
    most = Math.max(most, names.filter(name => story.open(name).length > 0).length)
  })
  return { most: () => most }
}

describe('the cluster lock', () => {
  it('lets one of two act; the other waits, names the holder, and starts by itself', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('a holds the lock', () => story.holder() === holderOf('a'))
    story.restart('b')
    await story.until('b waits', () => story.status('b').failureReason === 'ClusterLockHeld')
    const waiting = story.operation('b')
    expect(waiting?.status.phase).toBe('Paused')
    expect(waiting?.status.message).toContain(holderOf('a'))
    expect(waiting?.status.lock).toMatchObject({ lease: leaseName(CLUSTER), holder: holderOf('a') })
    expect(waiting?.status.conditions?.map(({ type, status }) => `${type}=${status}`)).toEqual([
      'Ready=False',
      'Reconciling=True',
      'Stalled=False',
      'Finished=False',
    ])
    const watched = mostOpenAtOnce(story, ['a', 'b'])
    await story.until('both are done', () => story.status('a').phase === 'Completed' && story.status('b').phase === 'Completed')
    expect(watched.most()).toBe(1)
    expect(story.holder()).toBe('')
  })

  it('lets ten go one at a time, the oldest first', async () => {
    const story = await restartStory({ workers: 0 })
    const names = Array.from({ length: 10 }, (_, i) => `op-${(i * 7) % 10}`)
    for (const name of names) {
      story.restart(name)
      await story.pass(1100)
    }
    const watched = mostOpenAtOnce(story, names)
    await story.until('all are done', () => names.every(name => story.status(name).phase === 'Completed'))
    expect(watched.most()).toBeLessThanOrEqual(1)
    const completed = names.map(name => story.operation(name)?.status.completedAt ?? '')
    expect(completed).toEqual(completed.toSorted())
  })

  it.each([
    ['was deleted', async (story: RestartStory) => story.remove('a')],
    ['was cancelled', async (story: RestartStory) => story.edit('a', { spec: { cancelled: true } })],
  ])('passes on from a holder that %s', async (_, end) => {
    const story = await restartStory()
    story.restart('a')
    await story.until('a is at work', () => story.open('a').length > 0)
    story.restart('b')
    await story.until('b waits', () => story.status('b').failureReason === 'ClusterLockHeld')
    await end(story)
    await story.until('b is done', () => story.status('b').phase === 'Completed')
    expect(story.operation('a')?.status.phase ?? 'gone').toMatch(/gone|Cancelled/)
  })

  it('is taken over from a holder that failed, which sees that it lost it and queues when it is retried', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', { installer: { exitCode: 1, lines: ['no space left on device'], times: 1 } })
    story.restart('a')
    await story.until('a has failed', () => story.status('a').failureReason === 'InstallFailed')
    expect(story.holder()).toBe(holderOf('a'))
    story.restart('b')
    await story.until('b holds the lock', () => story.holder() === holderOf('b'))
    expect(story.events('b').join('\n')).toContain(`LockTakenOver: Took the cluster lock over from ${holderOf('a')}.`)
    await story.until('a knows', () => story.operation('a')?.status.lock === undefined, MINUTE)
    story.edit('a', { annotations: { [ANNOTATION.retry]: 'true' } })
    await story.until('a queues', () => story.status('a').failureReason === 'ClusterLockHeld', MINUTE)
    await story.until('both are done', () => story.status('a').phase === 'Completed' && story.status('b').phase === 'Completed')
  })

  it('is not taken from a holder that runs, nor from one that its operator paused, be it failed or not', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', { installer: { exitCode: 1, lines: ['no'], times: 1 } })
    story.restart('a')
    await story.until('the installer runs', () => story.world.journal.of('install-began').length === 1)
    story.restart('b')
    await story.until('b waits', () => story.status('b').failureReason === 'ClusterLockHeld')
    story.edit('a', { spec: { paused: true } })
    await story.until('a failed, and is paused', () => story.status('a').failureReason === 'InstallFailed')
    await story.pass(30 * MINUTE)
    expect(story.status('b').failureReason).toBe('ClusterLockHeld')
    expect(story.operation('b')?.status.message).toContain('its operator paused it')
    story.edit('a', { spec: { paused: false }, annotations: { [ANNOTATION.retry]: 'true' } })
    const watched = mostOpenAtOnce(story, ['a', 'b'])
    await story.until('both are done', () => story.status('a').phase === 'Completed' && story.status('b').phase === 'Completed')
    expect(watched.most()).toBe(1)
    expect((story.operation('a')?.status.completedAt ?? '') < (story.operation('b')?.status.startedAt ?? '')).toBe(true)
  })

  it('is not a namesake’s: the same name with another UID is a deleted holder', async () => {
    const story = await restartStory()
    const lease = { holderIdentity: holderOf('a'), leaseDurationSeconds: 1, leaseTransitions: 3 }
    const metadata = { name: leaseName(CLUSTER), namespace: NAMESPACE, annotations: { [ANNOTATION.holderUid]: 'another-uid' } }
    story.world.store.create(RESOURCE.leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: lease })
    story.restart('a')
    await story.until('a is done', () => story.status('a').phase === 'Completed')
    expect(story.events('a').join('\n')).toContain('LockTakenOver')
  })

  const lock = (story: RestartStory) => {
    const found = story.world.store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    if (!found) throw new Error('no Lease')
    return found
  }
  const held = (story: RestartStory, holderIdentity: string, uid: string) =>
    story.world.store.create(RESOURCE.leases, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: leaseName(CLUSTER), namespace: NAMESPACE, annotations: { [ANNOTATION.holderUid]: uid } },
      spec: { holderIdentity, leaseDurationSeconds: 1, leaseTransitions: 3 },
    })

  it.each([
    ['a control plane that joins', ICHOR.machines, 'machine', 'that control plane joins or is removed'],
    ['the Job of the CNI', ICHOR.clusters, 'cni', 'the Job of the CNI is at work'],
  ])('is honoured in the hands of %s, until it gives it back', async (_, resource, sort, words) => {
    const story = await restartStory()
    const object = story.world.store.list(resource, NAMESPACE).items[0]
    const holder = `ichor-controller/${sort}/${NAMESPACE}/${object?.metadata.name}`
    held(story, holder, object?.metadata.uid ?? '')
    story.restart('a')
    await story.pass(60 * MINUTE)
    expect(story.status('a')).toMatchObject({ failureReason: 'ClusterLockHeld', lock: { holder } })
    expect(story.status('a').message).toContain(`${holder}: ${words}`)
    const lease = lock(story)
    story.world.store.update(RESOURCE.leases, { ...lease, spec: { ...(lease['spec'] as object), holderIdentity: '' } })
    await story.untilDone('a')
  })

  it('is taken over from a control plane that was deleted while it joined', async () => {
    const story = await restartStory()
    const holder = `ichor-controller/machine/${NAMESPACE}/cp-9`
    held(story, holder, 'uid-of-cp-9')
    story.restart('a')
    await story.untilDone('a')
    expect(story.events('a').join('\n')).toContain(`LockTakenOver: Took the cluster lock over from ${holder}.`)
  })

  it.each([
    ['paused', (story: RestartStory) => story.edit('a', { spec: { paused: true } }), 'Paused'],
    ['cancelled', (story: RestartStory) => story.edit('a', { spec: { cancelled: true } }), 'Cancelled'],
  ])('is taken again to finish a machine when the Lease is deleted by hand and the operation is %s', async (_, stop, phase) => {
    const story = await restartStory()
    story.restart('a')
    await story.until('the installer runs', () => story.world.journal.of('install-began').length === 1)
    stop(story)
    await story.pass(1000)
    story.world.store.remove(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    await story.until('it has stopped', () => story.status('a').phase === phase, 20 * MINUTE)
    expect(story.target('a', 'cp-1')?.phase).toBe('Completed')
    expect(story.world.journal.of('reboot-requested').map(e => e.machine)).toEqual(['cp-1'])
    await story.pass(MINUTE)
    expect(story.holder()).toBe(phase === 'Paused' ? holderOf('a') : '')
  })

  it('is not taken from a holder at work when a hand has taken its UID off the Lease', async () => {
    const story = await restartStory()
    story.restart('a', { minReadySeconds: 600 })
    await story.until('a soaks', () => story.target('a', 'cp-1')?.step === 'soak')
    story.restart('b')
    await story.until('b waits', () => story.status('b').failureReason === 'ClusterLockHeld')
    const lease = lock(story)
    story.world.store.update(RESOURCE.leases, { ...lease, metadata: { ...lease.metadata, annotations: {} } })
    const watched = mostOpenAtOnce(story, ['a', 'b'])
    await story.untilDone('a', 'b')
    expect(watched.most()).toBe(1)
    expect(story.events('b').filter(e => e.startsWith('LockTakenOver'))).toEqual([])
  })

  it('goes with its namespace: nothing acts any more, and what is created there afterwards starts anew', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('the installer runs', () => story.world.journal.of('install-began').length === 1)
    const { store } = story.world
    const all = [ICHOR.operations, ICHOR.machines, RESOURCE.leases].flatMap(r => store.list(r, NAMESPACE).items.map(o => [r, o] as const))
    const [cluster] = store.list(ICHOR.clusters, NAMESPACE).items
    if (!cluster) throw new Error('no TalosCluster')
    for (const [resource, object] of [...all, [ICHOR.clusters, cluster] as const]) {
      store.remove(resource, NAMESPACE, object.metadata.name)
      // As an administrator does whose namespace does not go away.
      const left = store.get(resource, NAMESPACE, object.metadata.name)
      if (left) store.update(resource, { ...left, metadata: { ...left.metadata, finalizers: [] } })
    }
    await story.pass(30 * MINUTE)
    expect(story.world.journal.of('reboot-requested')).toEqual([])
    const { name, namespace } = cluster.metadata
    store.create(ICHOR.clusters, { ...cluster, metadata: { name, namespace: namespace ?? '' } })
    await story.until('machines are discovered', () => store.list(ICHOR.machines, NAMESPACE).items.filter(m => m['status']).length === 2)
    story.restart('a')
    await story.untilDone('a')
    expect(story.world.journal.of('reboot-requested').map(e => e.machine)).toEqual(['cp-1', 'wk-1'])
  })

  it('is left alone in foreign hands, however old', async () => {
    const story = await restartStory()
    const metadata = { name: leaseName(CLUSTER), namespace: NAMESPACE }
    const spec = { holderIdentity: 'somebody-else', leaseDurationSeconds: 1, renewTime: '2020-01-01T00:00:00.000000Z' }
    story.world.store.create(RESOURCE.leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec })
    story.restart('a')
    await story.pass(60 * MINUTE)
    expect(story.status('a').failureReason).toBe('ClusterLockHeld')
    expect(story.operation('a')?.status.message).toContain('somebody-else: it is none of ours, so it is left alone')
    story.world.store.remove(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    await story.until('a is done', () => story.status('a').phase === 'Completed')
  })

  it('is taken again by its holder when the Lease was deleted by hand, though an older one waits', async () => {
    const story = await restartStory()
    story.restart('old', { paused: true })
    await story.pass(2000)
    story.restart('a')
    await story.until('a is at work', () => story.open('a').length > 0)
    story.edit('old', { spec: { paused: false } })
    await story.until('the older one waits', () => story.status('old').failureReason === 'ClusterLockHeld')
    const watched = mostOpenAtOnce(story, ['a', 'old'])
    story.world.store.remove(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    await story.until('both are done', () => story.status('a').phase === 'Completed' && story.status('old').phase === 'Completed')
    expect(watched.most()).toBe(1)
    expect(story.world.journal.of('installed').length).toBe(2)
  })

  it('ends what runs of a holder from whom it was taken by hand', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('the installer runs', () => story.world.journal.of('install-began').length === 1)
    const lease = lock(story)
    story.world.store.update(RESOURCE.leases, {
      ...lease,
      metadata: { ...lease.metadata, annotations: {} },
      spec: { holderIdentity: 'a-person' },
    })
    await story.until('a waits', () => story.status('a').failureReason === 'ClusterLockHeld', MINUTE)
    await story.pass(60 * MINUTE)
    expect(story.world.journal.of('reboot-requested')).toEqual([])
    expect(story.status('a').failureReason).toBe('ClusterLockHeld')
  })

  it('is said to be lost by a paused holder from whom somebody released it, and to be held anew since it was taken again', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('a is at work', () => story.open('a').length > 0)
    story.edit('a', { spec: { paused: true } })
    await story.until('a is paused', () => story.status('a').phase === 'Paused')
    const { since } = story.status('a').lock ?? {}
    expect(story.status('a').message).toContain('The cluster lock is kept.')
    const lease = lock(story)
    const released = { ...lease, metadata: { ...lease.metadata, annotations: {} }, spec: { holderIdentity: '' } }
    story.world.store.update(RESOURCE.leases, released)
    await story.until('a says so', () => story.status('a').message?.includes('It does not hold the cluster lock.') === true, MINUTE)
    expect(story.status('a').lock).toBeUndefined()
    story.edit('a', { spec: { paused: false } })
    await story.until('a holds it again', () => story.status('a').lock !== undefined)
    expect(story.status('a').lock?.since).not.toBe(since)
    await story.until('a is done', () => story.status('a').phase === 'Completed')
  })

  it('queues nobody that its operator paused before the start', async () => {
    const story = await restartStory()
    story.restart('a', { paused: true })
    await story.pass(5 * MINUTE)
    expect(story.operation('a')?.status).toMatchObject({ phase: 'Paused', message: 'Paused by the operator before it started.' })
    expect(story.operation('a')?.status.failureReason).toBeUndefined()
    expect(story.holder()).toBe('')
    story.restart('b')
    await story.until('b is done', () => story.status('b').phase === 'Completed')
  })
})
