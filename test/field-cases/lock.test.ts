import { describe, expect, it } from 'vitest'
import { ANNOTATION, FINALIZER, leaseName } from '../../src/api/names.ts'
import { CLUSTER, NAMESPACE } from '../../src/storm/story.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { play, playWithDeaths, type Run } from './play.ts'

const spec = { talos: { version: 'v1.13.9' } }
const holderOf = (name: string): string => `ichor-controller/op/${NAMESPACE}/${name}`
const lease = (run: Run, holderIdentity: string, uid: string): void =>
  void run.world.store.create(RESOURCE.leases, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    // As short as a Lease can be, and long over: time alone frees nobody's lock.
    metadata: { name: leaseName(CLUSTER), namespace: NAMESPACE, annotations: { [ANNOTATION.holderUid]: uid } },
    spec: { holderIdentity, leaseDurationSeconds: 1, leaseTransitions: 1, renewTime: '2020-01-01T00:00:00.000000Z' },
  })
const ended = (run: Run, name: string) => (): boolean => {
  const { phase, failureReason } = run.operation(name)?.status ?? {}
  return phase === 'Completed' || (phase === 'Paused' && failureReason !== 'ClusterLockHeld')
}

describe('two operations of different kinds in one second [B126 home-operations/tuppr#72, rancher/system-upgrade-controller#225]', () => {
  it('only one is at work at any time, the others name it, and each one’s checks run anew under the lock', async () => {
    const working: string[] = []
    const { run } = await play({
      spec,
      allowed: { attempts: 2 },
      arrange: run => void run.start('ichor-standby'),
      drive: async run => {
        run.create({ name: 'defrag', spec: { kind: 'node', node: { action: 'restart-service', machine: 'wk-1', service: 'kubelet' } } })
        run.create({ name: 'again', spec: { kind: 'talos', ...spec } })
        const names = ['up', 'defrag', 'again']
        run.world.calls.intercept(() => {
          const open = names.filter(n => run.operation(n)?.status.machines?.some(m => m.phase === 'Running'))
          if (open.length > 1) working.push(open.join(' and '))
          return undefined
        })
        await run.until(
          'all but one wait',
          () => names.filter(n => run.operation(n)?.status.failureReason === 'ClusterLockHeld').length === 2,
        )
        const holder = run.holder()
        for (const name of names.filter(n => holderOf(n) !== holder))
          expect(run.operation(name)?.status.message).toMatch(/^Waits for the cluster lock.*ichor-controller\/op\/ichor-system\//)
        await run.until('all have ended', () => names.every(n => ended(run, n)()))
        for (const name of names) expect(run.operation(name)?.status.preflight?.underLock, name).toBe(true)
      },
    })
    expect(working).toEqual([])
    // The second upgrade finds nothing left to do.
    expect(run.operation('again')?.status.phase).toBe('Completed')
    expect(
      run.world.journal
        .of('reboot-requested')
        .map(e => e.machine)
        .toSorted(),
    ).toEqual(['cp-1', 'cp-2', 'cp-3', 'wk-1', 'wk-2'])
  })

  it('when one fails the next does not start blindly: its checks see what was left', async () => {
    await play({
      spec,
      allowed: { keepsCordon: ['wk-1'], away: ['wk-1'], attempts: 1 },
      arrange: ({ world }) => world.fault('wk-1', { rebootNeverEnds: true }),
      drive: async run => {
        await run.until('the first is at work', () => run.world.journal.of('install-began').length === 1)
        run.create({ name: 'next', spec: { kind: 'talos', ...spec } })
        await run.until('the first has failed', () => run.status().failureReason === 'RebootTimeout')
        await run.until('the next is judged', ended(run, 'next'))
        expect(run.operation('next')?.status).toMatchObject({ phase: 'Paused', failureReason: 'PreflightRefused' })
        expect(run.world.journal.of('reboot-requested', 'wk-2')).toEqual([])
      },
    })
  })
})

describe('a lock held by something that is no longer there [B156 kubereboot/kured#822, kubereboot/kured#847, kubereboot/kured#137]', () => {
  it.each([
    ['an operation that is gone', (run: Run) => lease(run, holderOf('old-op'), 'u1')],
    [
      'a namesake with another UID',
      (run: Run) => {
        run.create({ name: 'old-op', spec: { kind: 'talos', ...spec, paused: true } })
        lease(run, holderOf('old-op'), 'u1')
      },
    ],
    [
      'an operation that has ended',
      (run: Run) => {
        run.create({ name: 'old-op', spec: { kind: 'talos', ...spec, cancelled: true } })
        lease(run, holderOf('old-op'), run.operation('old-op')?.metadata.uid ?? '')
      },
    ],
  ])('%s: it is taken over or given back, and the upgrade runs', async (_, arrange) => {
    const { end } = await playWithDeaths({ spec, arrange }, 2)
    expect(end.phase).toBe('Completed')
  })

  it('says in an Event from whom', async () => {
    const { run } = await play({ spec, arrange: run => lease(run, holderOf('old-op'), 'u1') })
    expect(run.events('up').join('\n')).toContain(`LockTakenOver: Took the cluster lock over from ${holderOf('old-op')}.`)
  })

  it('never robs one that runs, however slow its controller is', async () => {
    await play({
      spec,
      allowed: { deaths: 1 },
      drive: async run => {
        await run.until('it is at work', () => run.world.journal.of('install-began').length === 1)
        run.process().kill()
        run.create({ name: 'other', spec: { kind: 'talos', ...spec } })
        await run.pass(8 * 60_000)
        run.restart()
        await run.until('the other waits', () => run.operation('other')?.status.failureReason === 'ClusterLockHeld')
        expect(run.holder()).toBe(holderOf('up'))
        await run.settled()
        expect(run.status().phase).toBe('Completed')
      },
    })
  })
})

describe('a namespace is deleted while nobody is there to look after its finalizers [B158 opensearch-project/opensearch-k8s-operator#976]', () => {
  it('what has ended and what never began goes at once; what was open goes as soon as a controller is back', async () => {
    await play({
      spec,
      allowed: { deaths: 1 },
      drive: async run => {
        run.create({ name: 'done', spec: { kind: 'talos', talos: { version: 'v1.13.5' } } })
        run.create({ name: 'cancelled', spec: { kind: 'talos', ...spec, cancelled: true } })
        run.create({ name: 'waiting', spec: { kind: 'talos', ...spec, paused: true } })
        await run.until('a machine is open', () => run.world.journal.of('install-began').length === 1)
        await run.until('the cancelled one is', () => run.operation('cancelled')?.status.phase === 'Cancelled')
        run.process().kill()
        await run.pass(60_000)
        const { store } = run.world
        for (const name of run.names()) store.remove(ICHOR.operations, NAMESPACE, name)
        expect(run.names()).toEqual(['up'])
        expect(run.operation('up')?.metadata.finalizers).toEqual([FINALIZER])
        store.remove(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
        run.restart()
        await run.until('it is gone', () => run.operation('up') === undefined, 20 * 60_000)
        // At a safe point: the machine that was open is all done, and no other was begun.
        expect(run.world.journal.of('reboot-requested')).toHaveLength(1)
        expect(run.world.journal.of('uncordon')).toHaveLength(1)
      },
    })
  })
})
