import { beforeEach, describe, expect, it } from 'vitest'
import { ANNOTATION } from '../../api/names.ts'
import type { Bench } from './test-bench.ts'
import { bench, bootTime, putCluster, putOperation } from './test-bench.ts'

let world: Bench
beforeEach(() => {
  world = bench()
  putCluster(world, 'home')
})

const held = (holderIdentity: string, uid?: string) =>
  world.put('leases', {
    metadata: { name: 'ichor-home', resourceVersion: '7', annotations: { other: 'kept', ...(uid ? { [ANNOTATION.holderUid]: uid } : {}) } },
    spec: { holderIdentity, leaseDurationSeconds: 60, acquireTime: new Date(bootTime - 540_000).toISOString() },
  })
const lease = () => world.objects.get('leases/ichor-system/ichor-home') as { spec: object; metadata: { annotations: object } } | undefined
const events = () => [...world.objects].filter(([at]) => at.startsWith('events/')).map(([, event]) => event)

describe('lock', () => {
  it.each([
    ['kured', 'kured'],
    ['ichor-controller/machine/ichor-system/cp-4', 'control plane ichor-system/cp-4'],
    ['ichor-controller/cni/ichor-system/home', 'the CNI Job of cluster ichor-system/home'],
  ])('names %s', async (identity, text) => {
    held(identity)
    expect(await world.run('lock', 'home')).toBe(0)
    expect(world.out[1]?.split(/ {3,}/)).toEqual(['home', text, '13:51:00 UTC (9m)'])
  })
})

describe('lock release', () => {
  it('needs force, and says who holds it and what is better', async () => {
    putOperation(world, 'up', { status: { phase: 'Running' } })
    held('ichor-controller/op/ichor-system/up', world.objects.get('talosoperations/ichor-system/up')?.metadata.uid)
    expect(await world.run('lock', 'release', 'home')).toBe(2)
    expect(world.err).toEqual([
      'error: a lock is taken from its holder only with --force. Nothing was done.',
      '  The lock of cluster home is held by operation ichor-system/up since 13:51:00 UTC (9m).',
      '  That operation is Running. It takes the lock again while one of its machines is open, and waits for it else.',
      '  To end it well: ichor operation cancel up -n ichor-system',
      '  If it is at work no more: ichor lock release home --force -n ichor-system',
    ])
    expect(world.writes).toEqual([])
  })

  it.each([
    ['nobody is there to be asked', ['--force'], 'Nobody can be asked here: add --confirm home. Nothing was done.'],
    ['the name is another', ['--force', '--confirm', 'hom'], '--confirm "hom" is not home. Nothing was done.'],
  ])('does nothing where %s', async (_, flags, message) => {
    held('kured')
    expect(await world.run('lock', 'release', 'home', ...flags)).toBe(2)
    expect(world.err).toContain(`error: ${message}`)
    expect(world.writes).toEqual([])
  })

  it('does not take another name for an answer where the lock is free, too', async () => {
    expect(await world.run('lock', 'release', 'home', '--force', '--confirm', 'hom')).toBe(2)
    expect(world.err).toContain('error: --confirm "hom" is not home. Nothing was done.')
  })

  it('asks for the name to be typed', async () => {
    held('kured')
    world.canAsk = true
    world.answers = ['edge']
    expect(await world.run('lock', 'release', 'home', '--force')).toBe(2)
    expect(world.writes).toEqual([])
    world.answers = ['home']
    expect(await world.run('lock', 'release', 'home', '--force')).toBe(0)
    expect(world.out.at(-1)).toBe('the lock of cluster home is free')
  })

  it('frees that very Lease, keeps what others wrote on it, and leaves an Event that says who', async () => {
    held('kured', 'uid-of-kured')
    expect(await world.run('lock', 'release', 'home', '--force', '--confirm', 'home')).toBe(0)
    expect(world.writes[0]).toContain('"resourceVersion":"7"')
    expect(lease()?.metadata.annotations).toEqual({ other: 'kept' })
    expect(lease()?.spec).toEqual({
      leaseDurationSeconds: 60,
      acquireTime: '2026-03-01T14:00:00.000000Z',
      renewTime: '2026-03-01T14:00:00.000000Z',
    })
    expect(events()).toMatchObject([
      {
        type: 'Warning',
        reason: 'LockForced',
        message: 'alice@example.org took the cluster lock from kured by force.',
        involvedObject: { kind: 'TalosCluster', name: 'home' },
      },
    ])
    expect(await world.run('lock', 'release', 'home', '--force', '--confirm', 'home')).toBe(0)
    expect(world.out.at(-1)).toBe('the lock of cluster home is free already')
    expect(events()).toHaveLength(1)
  })

  it('takes nothing from a holder that came in between', async () => {
    held('kured')
    world.faults.set('patch leases', { kind: 'conflict', message: 'the object has been modified' })
    expect(await world.run('lock', 'release', 'home', '--force', '--confirm', 'home')).toBe(1)
    expect(world.err).toContain('error: cannot release the lock of cluster home: the object has been modified')
    expect(events()).toEqual([])
  })

  it('frees it although no Event may be written, and says so', async () => {
    held('kured')
    world.faults.set('create events', { kind: 'forbidden', message: 'alice may not create events' })
    expect(await world.run('lock', 'release', 'home', '--force', '--confirm', 'home')).toBe(0)
    expect(world.err.at(-1)).toContain('alice may not create events')
  })

  it('knows a cluster that is not there, and a Lease that is not there', async () => {
    expect(await world.run('lock', 'release', 'nowhere', '--force')).toBe(1)
    expect(world.err[0]).toBe('error: there is no cluster "nowhere" in namespace ichor-system')
    expect(await world.run('lock', 'release', 'home', '--force')).toBe(0)
    expect(world.out.at(-1)).toBe('the lock of cluster home is free already')
  })
})
