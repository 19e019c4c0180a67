import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createWorld } from '../world/cluster.ts'
import { openPorts } from '../world/ports/open.ts'
import { createLeader } from './leader.ts'

const key = { namespace: 'ichor-system', name: 'ichor-controller' }

/** Candidates at one Lease, in virtual time. */
const bench = () => {
  const world = createWorld({ seed: 3, controlPlanes: 0, workers: 1, homeOutside: true })
  const { schedule } = world
  const start = schedule.now()
  const told: string[] = []
  const candidate = (identity: string) => {
    const ports = openPorts(world, { name: identity })
    const leader = createLeader({
      ...ports,
      random: schedule.random.next,
      key,
      identity,
      started: () => told.push(`${identity} started`),
      ended: () => told.push(`${identity} ended`),
    })
    return { ...leader, kill: ports.kill }
  }
  const pass = async (ms: number): Promise<void> => {
    const end = schedule.now() + ms
    await setImmediate()
    for (let next = schedule.next(); next !== undefined && next <= end; next = schedule.next()) {
      schedule.advanceTo(next)
      await setImmediate()
    }
    schedule.advanceTo(end)
  }
  return { world, candidate, pass, told, seconds: () => (schedule.now() - start) / 1000 }
}

describe('leader election', () => {
  it('has one leader of several', async () => {
    const { candidate, pass, told } = bench()
    const all = ['a', 'b', 'c'].map(candidate)
    await pass(60_000)
    expect(all.filter(one => one.isLeading()).length).toBe(1)
    expect(told).toEqual(['a started'])
  })

  it('renews with one request each time', async () => {
    const { world, candidate, pass } = bench()
    candidate('a')
    await pass(10_000)
    const [gets, writes] = ['home.lease', 'home.replaceLease'].map(name => world.calls.counts().get(name) ?? 0)
    await pass(60_000)
    expect(world.calls.counts().get('home.lease')).toBe(gets)
    expect((world.calls.counts().get('home.replaceLease') ?? 0) - (writes ?? 0)).toBeLessThanOrEqual(30)
  })

  it('passes on when the leader dies, not before its lease is over', async () => {
    const { candidate, pass, told, seconds } = bench()
    const a = candidate('a')
    await pass(10_000)
    const b = candidate('b')
    await pass(5000)
    a.kill()
    const died = seconds()
    await pass(12_000)
    expect(b.isLeading()).toBe(false)
    while (!b.isLeading() && seconds() < died + 60) await pass(500)
    expect(seconds() - died).toBeLessThan(20)
    expect(told).toEqual(['a started', 'b started'])
  })

  it('is over by the leader’s own clock before anybody else may begin, when it cannot renew', async () => {
    const { world, candidate, pass, told } = bench()
    const a = candidate('a')
    await pass(5000)
    const b = candidate('b')
    await pass(5000)
    let overlap = false
    world.calls.intercept(call => {
      overlap ||= a.isLeading() && b.isLeading()
      return call.client === 'a' ? { do: 'fail', when: 'before', fault: { kind: 'unreachable', message: 'cut off' } } : undefined
    })
    await pass(60_000)
    expect(told).toEqual(['a started', 'a ended', 'b started'])
    expect(overlap).toBe(false)
  })

  it('is over when an answer never comes', async () => {
    const { world, candidate, pass, told } = bench()
    const a = candidate('a')
    await pass(5000)
    world.calls.intercept(call => (call.client === 'a' ? { do: 'silence', when: 'before' } : undefined))
    await pass(13_000)
    expect(a.isLeading()).toBe(false)
    expect(told).toEqual(['a started', 'a ended'])
  })

  it('does not believe an answer that comes too late', async () => {
    const { world, candidate, pass, told } = bench()
    world.calls.next({ name: 'createLease' }, { do: 'delay', ms: 60_000 })
    const a = candidate('a')
    await pass(61_000)
    expect(told).toEqual([])
    await pass(5000)
    expect(a.isLeading()).toBe(true)
  })

  it('measures another’s lease by its own clock: times in it that are wrong do not matter', async () => {
    const { world, candidate, pass, seconds } = bench()
    const spec = { holderIdentity: 'gone', leaseDurationSeconds: 15, renewTime: '2099-01-01T00:00:00.000000Z', leaseTransitions: 1 }
    world.store.create('leases.coordination.k8s.io', { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...key }, spec })
    const a = candidate('a')
    await pass(14_000)
    expect(a.isLeading()).toBe(false)
    while (!a.isLeading() && seconds() < 60) await pass(500)
    expect(seconds()).toBeLessThan(20)
  })

  it('gives the Lease back when it is stopped', async () => {
    const { candidate, pass, told } = bench()
    const a = candidate('a')
    await pass(5000)
    const b = candidate('b')
    await pass(3000)
    void a.stop()
    await pass(100)
    expect(b.isLeading()).toBe(true)
    expect(told).toEqual(['a started', 'a ended', 'b started'])
  })

  it('looks once or twice a heartbeat while another leads', async () => {
    const { world, candidate, pass } = bench()
    candidate('a')
    await pass(5000)
    candidate('b')
    await pass(5000)
    const before = world.calls.counts().get('home.lease') ?? 0
    await pass(60_000)
    expect((world.calls.counts().get('home.lease') ?? 0) - before).toBeLessThanOrEqual(45)
  })

  it('has one leader at any time although a look at the Lease took long, and its leader is cut off right after', async () => {
    const { world, candidate, pass, seconds } = bench()
    const a = candidate('a')
    await pass(5000)
    let b: ReturnType<typeof candidate> | undefined
    let [both, isHeld, isCut] = [0, false, false]
    world.calls.intercept(call => {
      if (a.isLeading() && b?.isLeading()) both++
      if (call.client === 'a' && isCut) return { do: 'fail', when: 'before', fault: { kind: 'unreachable', message: 'cut off' } }
      if (call.client !== 'b' || call.name !== 'lease' || isHeld) return undefined
      isHeld = true
      // The server reads it at the end of that time.
      world.schedule.after(13_000, () => (isCut = true))
      return { do: 'delay', ms: 13_000 }
    })
    b = candidate('b')
    while (!b.isLeading() && seconds() < 90) await pass(500)
    await pass(10_000)
    expect(b.isLeading()).toBe(true)
    expect(both).toBe(0)
  })

  it.each(['a', 'b'])('has one leader at any time although the Lease is deleted by hand, and %s is slow to learn of it', async slow => {
    const { world, candidate, pass } = bench()
    const all = ['a', 'b'].map(candidate)
    await pass(5000)
    let both = 0
    world.calls.intercept(call => {
      if (all.every(one => one.isLeading())) both++
      return call.client === slow ? { do: 'delay', ms: 1500 } : undefined
    })
    world.store.remove('leases.coordination.k8s.io', key.namespace, key.name)
    await pass(60_000)
    expect(all.filter(one => one.isLeading()).length).toBe(1)
    expect(both).toBe(0)
  })
})
