import { describe, expect, test } from 'vitest'
import { createWorld } from './cluster.ts'
import { bootstrapEtcd, defragmentEtcd, keepUpload, leaveEtcd, removeEtcdMember } from './etcd-membership.ts'

const world = () => createWorld({ seed: 7, controlPlanes: 3, workers: 1 })
type World = ReturnType<typeof world>
const MINUTE = 60_000
const pass = (w: World, ms: number): void => w.schedule.advanceTo(w.schedule.now() + ms)
const names = (w: World): string[] => w.etcd.members().map(m => m.name)
const service = (w: World, index: number) => w.machine(index).services.get('etcd')!

describe('a member', () => {
  test('leaves: it is none, its service has ended, its data are gone, and the machine joins again after a reboot', () => {
    const w = world()
    expect(leaveEtcd(w.site, w.machine(1))).toEqual({ ok: true, value: undefined })
    expect(names(w)).toEqual(['cp-1', 'cp-3'])
    expect(service(w, 1)).toMatchObject({ state: 'Finished', health: 'unhealthy', healthMessage: 'service not running' })
    expect(w.etcd.hasData(w.machine(1))).toBe(false)
    expect(w.machine(1).stage).toBe('running')
    expect(w.unmet(w.machine(1))).toEqual(['services: etcd not running'])
    expect(leaveEtcd(w.site, w.machine(1))).toBeUndefined()
    w.powerOff(1)
    w.powerOn(1)
    pass(w, 5 * MINUTE)
    expect(names(w)).toEqual(['cp-1', 'cp-3', 'cp-2'])
    expect(w.isUp(w.machine(1))).toBe(true)
  })

  test('is removed by its id, with its data: it never is one again', () => {
    const w = world()
    expect(removeEtcdMember(w.site, '1234567890abcdef')).toEqual({
      ...{ ok: false, code: 'NotFound', message: 'failed to remove member 1311768467294899695: etcdserver: member not found' },
    })
    expect(removeEtcdMember(w.site, w.member(2).id).ok).toBe(true)
    expect(names(w)).toEqual(['cp-1', 'cp-2'])
    w.powerOff(2)
    w.powerOn(2)
    pass(w, 10 * MINUTE)
    expect(names(w)).toEqual(['cp-1', 'cp-2'])
    expect(service(w, 2).state).toBe('Waiting')
    expect(service(w, 2).events.at(-1)?.message).toContain('going to restart forever')
  })

  test('is not removed where too few of the others run, or none can decide', () => {
    const w = world()
    w.etcd.stop(w.machine(2))
    expect(removeEtcdMember(w.site, w.member(0).id)).toMatchObject({
      message: expect.stringContaining('re-configuration failed due to not enough started members') as string,
    })
    w.etcd.stop(w.machine(1))
    expect(removeEtcdMember(w.site, w.member(1).id)).toMatchObject({
      message: expect.stringContaining('etcdserver: request timed out') as string,
    })
    expect(names(w)).toHaveLength(3)
  })

  test('is smaller after its defragmentation', () => {
    const w = world()
    const { dbSizeInUse } = w.member(0)
    expect(w.member(0).dbSize).toBeGreaterThan(dbSizeInUse)
    let hasEnded = false
    defragmentEtcd(w.site, w.machine(0), () => (hasEnded = true))
    expect(hasEnded).toBe(false)
    pass(w, MINUTE)
    expect(hasEnded).toBe(true)
    expect(w.member(0).dbSize).toBe(dbSizeInUse)
  })
})

test('one without data joins as a learner, is unhealthy as such, and votes a while later', () => {
  const w = createWorld({ seed: 7, controlPlanes: 3, workers: 0, durations: { powerOn: [1000, 1000], etcdStart: [1000, 1000] } })
  leaveEtcd(w.site, w.machine(2))
  w.powerOff(2)
  w.powerOn(2)
  const seen: string[] = []
  for (let second = 0; second < 150; second++) {
    pass(w, 1000)
    const member = w.etcd.memberOf(w.machine(2))
    const { state, health } = w.machine(2).services.get('etcd') ?? { state: '-', health: '-' }
    const now = `${member ? (member.isLearner ? 'learner' : 'voter') : 'none'} ${state} ${health}`
    if (seen.at(-1) !== now) seen.push(now)
  }
  expect(seen).toEqual([
    'none - -',
    'none Preparing unknown',
    'learner Running unknown',
    'learner Running unhealthy',
    'voter Running unhealthy',
    'voter Running healthy',
  ])
})

describe('bootstrap', () => {
  test('is refused where there is an etcd, and on a worker', () => {
    const w = world()
    expect(bootstrapEtcd(w.site, w.machine(0))).toMatchObject({ code: 'AlreadyExists', message: 'etcd data directory is not empty' })
    expect(bootstrapEtcd(w.site, w.machine(3))).toMatchObject({ code: 'FailedPrecondition' })
  })

  test('from a snapshot, when all data are lost: the others join one by one, with new ids', () => {
    const w = world()
    const before = w.etcd.members().map(m => m.id)
    for (const index of [0, 1, 2]) w.loseEtcdData(index)
    pass(w, 4 * MINUTE)
    expect(w.etcd.hasQuorum()).toBe(false)
    for (const index of [0, 1, 2]) {
      expect(service(w, index)).toMatchObject({ state: 'Preparing', health: 'unknown' })
      expect(w.machine(index).stage).toBe('booting')
    }
    expect(bootstrapEtcd(w.site, w.machine(0), { skipsHashCheck: false })).toEqual({ ok: true, value: undefined })
    expect(service(w, 0).state).toBe('Failed')
    keepUpload(w.machine(0), { hashProblem: 'error verifying snapshot: hash mismatch' })
    bootstrapEtcd(w.site, w.machine(0), { skipsHashCheck: false })
    expect(service(w, 0).events.at(-1)).toMatchObject({ state: 'Failed', message: expect.stringContaining('hash mismatch') as string })
    keepUpload(w.machine(0), {})
    expect(bootstrapEtcd(w.site, w.machine(0), { skipsHashCheck: false }).ok).toBe(true)
    // A hasty person: the second only joins.
    expect(bootstrapEtcd(w.site, w.machine(1)).ok).toBe(true)
    let most = 0
    for (let second = 0; second < 600; second++) {
      pass(w, 1000)
      most = Math.max(most, w.etcd.members().filter(m => m.isLearner).length)
    }
    expect(most).toBe(1)
    expect(names(w).toSorted()).toEqual(['cp-1', 'cp-2', 'cp-3'])
    expect(w.etcd.members().some(m => before.includes(m.id))).toBe(false)
    for (const index of [0, 1, 2]) expect(w.isUp(w.machine(index))).toBe(true)
    expect(w.api.available()).toBe(true)
  })
})
