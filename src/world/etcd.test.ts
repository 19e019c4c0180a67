import { describe, expect, it } from 'vitest'
import type { WorldOptions } from './cluster.ts'
import { createWorld } from './cluster.ts'

const MINUTE = 60_000
const world = (options: Partial<WorldOptions> = {}) => createWorld({ seed: 11, controlPlanes: 3, workers: 0, ...options })
type World = ReturnType<typeof world>
const pass = (w: World, ms: number) => w.schedule.advanceTo(w.schedule.now() + ms)
const viewOf = (w: World, name: string) => {
  const view = w.etcd.view(w.machine(name))
  if (!view.ok) throw new Error(view.message)
  return view.value
}
const leaderName = (w: World) => w.etcd.members().find(m => m.id === w.etcd.leader())?.machine?.name

describe('etcd', () => {
  it('starts with a leader that all agree upon, and its log grows', () => {
    const w = world()
    const before = w.machines.map(m => viewOf(w, m.name).status)
    expect(new Set(before.map(s => s.leader)).size).toBe(1)
    expect(before[0]?.leader).toMatch(/^[0-9a-f]{16}$/)
    pass(w, 10_000)
    expect(viewOf(w, 'cp-1').status.raftIndex).toBeGreaterThan(before[0]?.raftIndex ?? 0n)
    expect(w.machines.every(m => viewOf(w, m.name).service.healthy)).toBe(true)
  })

  it.each([
    [1, 1, false],
    [2, 1, false],
    [3, 1, true],
    [3, 2, false],
    [4, 1, true],
    [4, 2, false],
    [5, 2, true],
    [5, 3, false],
  ])('of %i members, %i away: quorum %s', (members, away, has) => {
    const w = world({ controlPlanes: members })
    for (let i = 0; i < away; i++) w.powerOff(i)
    expect(w.etcd.hasQuorum()).toBe(has)
  })

  it('elects another leader a moment after the leader is gone, with a higher term, and keeps the member', () => {
    const w = world()
    const first = leaderName(w) ?? ''
    const term = w.etcd.term()
    w.powerOff(first)
    expect(w.etcd.leader()).toBe('')
    pass(w, 3000)
    expect(leaderName(w)).not.toBe(first)
    expect(w.etcd.leader()).not.toBe('')
    expect(w.etcd.term()).toBeGreaterThan(term)
    expect(w.etcd.members()).toHaveLength(3)
  })

  it('without a quorum: no leader, unhealthy within a probe, and the Kubernetes API goes away', () => {
    const w = world()
    expect(w.api.available()).toBe(true)
    w.powerOff('cp-1')
    w.powerOff('cp-2')
    expect(w.api.available()).toBe(false)
    pass(w, MINUTE)
    const view = viewOf(w, 'cp-3')
    expect(view.status.leader).toBe('')
    expect(view.status.errors).toContain('etcdserver: no leader')
    expect(view.service.healthy).toBe(false)
    expect(w.machine('cp-3').staticPods).toBe(false)
    w.powerOn('cp-1')
    pass(w, 10 * MINUTE)
    expect(viewOf(w, 'cp-3').service.healthy).toBe(true)
    expect(w.api.available()).toBe(true)
  })

  it('forfeits to the first other member, does nothing on a follower, and refuses alone', () => {
    const w = world()
    const leader = leaderName(w) ?? ''
    const others = w.etcd.members().filter(m => m.machine?.name !== leader)
    const results: unknown[] = []
    w.etcd.forfeit(w.machine(others[1]?.machine?.name ?? ''), r => results.push(r))
    w.etcd.forfeit(w.machine(leader), r => results.push(r))
    pass(w, 2000)
    expect(results).toEqual([
      { ok: true, value: '' },
      { ok: true, value: others[0]?.name },
    ])
    expect(leaderName(w)).toBe(others[0]?.machine?.name)

    const single = world({ controlPlanes: 1 })
    single.etcd.forfeit(single.machine(0), r => results.push(r))
    expect(results[2]).toMatchObject({ ok: false, code: 'Unknown', message: expect.stringContaining('only one member') })
  })

  it('shows alarms, learners, orphans and a sick member', () => {
    const w = world()
    w.etcd.raiseAlarm(w.member('cp-2').id, 'NOSPACE')
    w.etcd.addMember('cp-old', 'https://10.5.0.99:2380', undefined)
    w.member('cp-3').isLearner = true
    w.sicken('cp-1', true)
    pass(w, MINUTE)
    const view = viewOf(w, 'cp-1')
    expect(view.alarms).toEqual([{ memberID: w.member('cp-2').id, alarm: 'NOSPACE' }])
    expect(view.members.map(m => [m.name, m.isLearner])).toEqual([
      ['cp-1', false],
      ['cp-2', false],
      ['cp-3', true],
      ['cp-old', false],
    ])
    expect(view.service.healthy).toBe(false)
  })

  it('a member that was cut off is behind until it has caught up', () => {
    const w = world()
    w.blackHole('cp-3', true)
    pass(w, MINUTE)
    const behind = viewOf(w, 'cp-3').status
    expect(behind.leader).toBe('')
    expect(viewOf(w, 'cp-1').status.raftIndex - behind.raftAppliedIndex).toBeGreaterThan(500n)
    w.blackHole('cp-3', false)
    pass(w, MINUTE)
    expect(viewOf(w, 'cp-3').status.raftAppliedIndex).toBe(viewOf(w, 'cp-1').status.raftIndex)
  })
})
