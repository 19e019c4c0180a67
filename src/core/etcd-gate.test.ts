import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { EtcdMember, EtcdView } from '../ports/talos.ts'
import type { Fault } from '../ports/fault.ts'
import { etcdGate, quorumOf, type EtcdGateInput } from './etcd-gate.ts'
import { agreedLeader, leaderName, peerHost, type ControlPlaneView } from './etcd-members.ts'

const id = (i: number) => `000000000000000${i}`
const ip = (i: number) => `10.5.0.${i + 1}`
const member = (i: number, change: Partial<EtcdMember> = {}): EtcdMember => ({
  id: id(i),
  name: `cp-${i}`,
  peerURLs: [`https://${ip(i)}:2380`],
  isLearner: false,
  ...change,
})

const MiB = 1_048_576
const view = (i: number, members: readonly EtcdMember[]): EtcdView => ({
  service: { state: 'Running', healthy: true },
  members,
  status: {
    memberID: id(i),
    leader: id(1),
    raftTerm: 7n,
    raftIndex: 10_000n,
    raftAppliedIndex: 10_000n,
    dbSize: 100 * MiB,
    dbSizeInUse: 60 * MiB,
    errors: [],
    isLearner: false,
    protocolVersion: '3.6.12',
    storageVersion: '3.6.0',
  },
  alarms: [],
})
type Change = Omit<Partial<EtcdView>, 'status'> & { readonly status?: Partial<EtcdView['status']> }
const cp = (i: number, members: readonly EtcdMember[], change: Change = {}): ControlPlaneView => {
  const base = view(i, members)
  return {
    name: `cp-${i}`,
    address: ip(i),
    view: { ok: true, value: { ...base, ...change, status: { ...base.status, ...change.status } } },
  }
}
const silent = (i: number, kind: Fault['kind'] = 'unreachable'): ControlPlaneView => ({
  name: `cp-${i}`,
  address: ip(i),
  view: { ok: false, fault: { kind, message: `${ip(i)}: deadline passed` } },
})

/** `n` healthy control planes, some of them changed. */
const cluster = (
  n: number,
  changes: Readonly<Record<number, Change>> = {},
  members = range(n).map(i => member(i)),
): readonly ControlPlaneView[] => range(n).map(i => cp(i, members, changes[i] ?? {}))
const range = (n: number) => Array.from({ length: n }, (_, k) => k + 1)

const settled = (controlPlanes: readonly ControlPlaneView[], more: Partial<EtcdGateInput> = {}) =>
  etcdGate({
    controlPlanes,
    purpose: 'settled',
    seenControlPlanes: 0,
    quotaBytes: 2048 * MiB,
    acknowledged: [],
    etcdStepAllowed: false,
    ...more,
  })
const restart = (controlPlanes: readonly ControlPlaneView[], target: string, more: Partial<EtcdGateInput> = {}) =>
  settled(controlPlanes, { purpose: 'restart', target, ...more })
const three = range(3).map(i => member(i))
const replaced = (i: number, by: ControlPlaneView) => cluster(3).map((c, k) => (k === i - 1 ? by : c))

describe('a healthy etcd', () => {
  it.each([3, 4, 5])('of %i members lets one be restarted', n => expect(restart(cluster(n), 'cp-2')).toEqual({ pass: true }))
  it.each([1, 2, 3, 5])('of %i members is settled', n => expect(settled(cluster(n))).toEqual({ pass: true }))
  it('passes with members named unlike the machines (siderolabs/cluster-api-control-plane-provider-talos#185)', () => {
    const shouting = [member(1, { name: 'CP-1' }), member(2, { name: 'CP-2.example.com' }), member(3, { name: 'other' })]
    expect(restart(cluster(3, {}, shouting), 'cp-2')).toEqual({ pass: true })
  })
  it('passes where a member is reached at another address than it has peers at', () => {
    const moved = [member(1), member(2, { peerURLs: ['https://192.168.1.2:2380'] }), member(3)]
    expect(restart(cluster(3, {}, moved), 'cp-3')).toEqual({ pass: true })
  })
  it('passes over IPv6 (siderolabs/talos#13403)', () => {
    const six = [member(1, { peerURLs: ['https://[fd00::2]:2380'] })]
    expect(settled([{ ...cp(1, six), address: 'fd00::2' }])).toEqual({ pass: true })
    expect(peerHost('https://[FD00::2]:2380')).toBe('fd00::2')
  })
})

describe('each condition on its own', () => {
  const learner = three.map(m => (m.id === id(3) ? { ...m, isLearner: true } : m))
  const unnamed = three.map(m => (m.id === id(3) ? { ...m, name: '' } : m))
  const stranger = [...three, member(4, { name: 'cp-old', peerURLs: ['https://10.5.0.99:2380'] })]
  const notJoined = three.slice(0, 2)
  it.each<[string, readonly ControlPlaneView[], number, string, string, RegExp]>([
    ['1: no control plane', [], 1, 'hold', 'EtcdUnhealthy', /no control plane is known/],
    ['1: one does not answer', replaced(3, silent(3)), 1, 'hold', 'EtcdUnhealthy', /on cp-3: does not answer .*deadline passed/],
    ['1: the credential is not taken', replaced(3, silent(3, 'unauthenticated')), 1, 'hold', 'CredentialRejected', /cp-3/],
    ['1: the credential may not', replaced(3, silent(3, 'forbidden')), 1, 'hold', 'PermissionDenied', /cp-3/],
    ['1: another machine answers', replaced(3, silent(3, 'wrongPeer')), 1, 'hold', 'MachineAmbiguous', /cp-3/],
    [
      '1: the service is not healthy',
      cluster(3, { 2: { service: { state: 'Running', healthy: false } } }),
      1,
      'hold',
      'EtcdUnhealthy',
      /on cp-2: the etcd service is Running and not healthy/,
    ],
    [
      '1: the service is stopped',
      cluster(3, { 2: { service: { state: 'Finished', healthy: true } } }),
      1,
      'hold',
      'EtcdUnhealthy',
      /Finished/,
    ],
    [
      '2: a stale member list',
      cluster(3, { 3: { members: [member(1), member(3)] } }),
      2,
      'hold',
      'EtcdUnhealthy',
      /cp-1 lists cp-1, cp-2, cp-3; cp-3 lists cp-1, cp-3/,
    ],
    [
      '2: peer URLs that differ',
      cluster(3, { 3: { members: [member(1), member(2, { peerURLs: ['https://10.5.0.9:2380'] }), member(3)] } }),
      2,
      'hold',
      'EtcdUnhealthy',
      /differ/,
    ],
    [
      '3: a member on no machine (etcd-io/etcd#20967)',
      cluster(3, {}, stranger),
      3,
      'orphan',
      'EtcdUnhealthy',
      /cp-old \(0000000000000004, 10\.5\.0\.99\) runs on no known control plane/,
    ],
    ['3: a control plane that is no member', cluster(3, {}, notJoined), 3, 'hold', 'EtcdUnhealthy', /on cp-3: is not a member/],
    [
      '3: two machines with one address',
      replaced(3, { ...cp(2, three), name: 'cp-3' }),
      3,
      'ambiguous',
      'MachineAmbiguous',
      /on cp-3: answers as the etcd member 0000000000000002, as cp-2 does/,
    ],
    ['4: a learner by the list', cluster(3, {}, learner), 4, 'hold', 'EtcdUnhealthy', /on cp-3: the member cp-3 is still a learner/],
    [
      '4: a learner by one list of three',
      replaced(1, cp(1, learner)),
      4,
      'hold',
      'EtcdUnhealthy',
      /on cp-3: the member cp-3 is still a learner/,
    ],
    ['4: a learner by its own word', cluster(3, { 3: { status: { isLearner: true } } }), 4, 'hold', 'EtcdUnhealthy', /learner/],
    ['4: a member that was added and never started', cluster(3, {}, unnamed), 4, 'hold', 'EtcdUnhealthy', /never started/],
    ['5: no leader', cluster(3, { 2: { status: { leader: '' } } }), 5, 'hold', 'EtcdUnhealthy', /on cp-2: sees no leader/],
    [
      '5: two leaders',
      cluster(3, { 2: { status: { leader: id(2) } } }),
      5,
      'hold',
      'EtcdUnhealthy',
      /cp-1 says 0000000000000001, cp-2 says 0000000000000002/,
    ],
    [
      '5: a leader that is no member',
      cluster(3, { 1: { status: { leader: id(9) } }, 2: { status: { leader: id(9) } }, 3: { status: { leader: id(9) } } }),
      5,
      'hold',
      'EtcdUnhealthy',
      /not in every member list/,
    ],
    ['5: two terms', cluster(3, { 2: { status: { raftTerm: 8n } } }), 5, 'hold', 'EtcdUnhealthy', /cp-2 is in 8/],
    [
      '6: an error',
      cluster(3, { 2: { status: { errors: ['etcdserver: something'] } } }),
      6,
      'hold',
      'EtcdUnhealthy',
      /on cp-2: etcd reports "etcdserver: something"/,
    ],
    [
      '6: NOSPACE',
      cluster(3, { 1: { alarms: [{ memberID: id(2), alarm: 'NOSPACE' }] } }),
      6,
      'alarm',
      'EtcdAlarm',
      /on cp-2: etcd has raised the alarm NOSPACE/,
    ],
    ['6: CORRUPT', cluster(3, { 1: { alarms: [{ memberID: id(2), alarm: 'CORRUPT' }] } }), 6, 'alarm', 'EtcdAlarm', /CORRUPT/],
    [
      '6: an alarm that stands among the errors only',
      cluster(3, { 2: { status: { errors: ['memberID:2 alarm:NOSPACE'] } } }),
      6,
      'alarm',
      'EtcdAlarm',
      /NOSPACE/,
    ],
    [
      '7: committed but not applied',
      cluster(3, { 2: { status: { raftAppliedIndex: 8_999n } } }),
      7,
      'hold',
      'EtcdUnhealthy',
      /on cp-2: lags 1001 entries behind; at most 1000/,
    ],
    [
      '7: behind the furthest',
      cluster(3, { 1: { status: { raftIndex: 20_000n, raftAppliedIndex: 20_000n } } }),
      7,
      'hold',
      'EtcdUnhealthy',
      /on cp-2: lags 10000 entries/,
    ],
    [
      '8: nearly full',
      cluster(3, { 2: { status: { dbSize: 1_950 * MiB, dbSizeInUse: 1_900 * MiB } } }),
      8,
      'hold',
      'EtcdUnhealthy',
      /on cp-2: the database has 1950 MiB of a quota of 2048 MiB/,
    ],
    [
      '9: another minor',
      cluster(3, { 2: { status: { protocolVersion: '3.5.26' } } }),
      9,
      'hold',
      'EtcdUnhealthy',
      /on cp-2: runs etcd 3\.5\.26 and cp-1 runs 3\.6\.12/,
    ],
  ])('%s', (_, controlPlanes, condition, kind, reason, message) => {
    const verdict = settled(controlPlanes)
    expect(verdict).toMatchObject({ pass: false, condition, kind, reason })
    if (!verdict.pass) expect(verdict.message).toMatch(message)
  })

  it('1000 entries are no lag yet', () =>
    expect(settled(cluster(3, { 2: { status: { raftAppliedIndex: 9_000n } } }))).toEqual({ pass: true }))
  it('a member is a stranger only when every machine has spoken', () => {
    const controlPlanes = [cp(1, stranger), cp(2, stranger), silent(3)]
    expect(settled(controlPlanes)).toMatchObject({ condition: 1, kind: 'hold' })
  })
  it('an alarm is told before a machine that does not answer', () => {
    expect(settled([cp(1, three, { alarms: [{ memberID: id(1), alarm: 'CORRUPT' }] }), cp(2, three), silent(3)])).toMatchObject({
      kind: 'alarm',
      condition: 6,
    })
  })
  it('a fragmented database is to be defragmented', () => {
    expect(settled(cluster(1, { 1: { status: { dbSize: 2_000 * MiB, dbSizeInUse: 100 * MiB } } }))).toMatchObject({
      remedy: expect.stringContaining('defrag'),
    })
  })
  it('minors may differ by one while the operation changes them, not by two', () => {
    const mixed = (version: string) => settled(cluster(3, { 2: { status: { protocolVersion: version } } }), { etcdStepAllowed: true })
    expect(mixed('3.5.26')).toEqual({ pass: true })
    expect(mixed('3.7.1')).toEqual({ pass: true })
    expect(mixed('3.4.30')).toMatchObject({ condition: 9 })
  })
})

describe('a control plane that is unwell itself', () => {
  const sick = cluster(3, { 2: { service: { state: 'Stopping', healthy: false }, status: { leader: '' } } })
  it('stands against its restart, and not against its repair', () => {
    expect(restart(sick, 'cp-2')).toMatchObject({ condition: 1, machine: 'cp-2' })
    expect(restart(sick, 'cp-2', { purpose: 'repair' })).toEqual({ pass: true })
    expect(restart(replaced(2, silent(2)), 'cp-2', { purpose: 'repair' })).toEqual({ pass: true })
  })
  it('stands against the repair of another', () =>
    expect(restart(sick, 'cp-1', { purpose: 'repair' })).toMatchObject({ condition: 1, machine: 'cp-2' }))
  it('a repair needs quorum among the others as any restart does', () => {
    expect(restart(cluster(2), 'cp-1', { purpose: 'repair' })).toMatchObject({ kind: 'quorum' })
    expect(restart([silent(1)], 'cp-1', { purpose: 'repair', acknowledged: ['api-outage'] })).toEqual({ pass: true })
  })
})

describe('a member that has another address than its machine', () => {
  const members = range(3).map(i => member(i, { peerURLs: [`https://192.168.7.${i}:2380`] }))
  const two = [cp(1, members), cp(3, members)]
  it('is not said to be none: who it is cannot be told before it answers', () => {
    const unknown = restart([...two, silent(2)], 'cp-1')
    expect(unknown).toMatchObject({ condition: 1, machine: 'cp-2' })
    expect(unknown).not.toHaveProperty('remedy')
    expect(settled([...two, silent(2)])).not.toHaveProperty('remedy')
  })
  it('is known by the id that it had when it was heard last', () => {
    const known = { ...silent(2), knownAs: id(2) }
    expect(restart([...two, known], 'cp-2', { purpose: 'repair' })).toEqual({ pass: true })
    expect(leaderName([silent(2), cp(3, members, { status: { leader: id(2) } })])).toBeUndefined()
    expect(leaderName([known, cp(3, members, { status: { leader: id(2) } })])).toBe('cp-2')
  })
  it('is no orphan in the way of the repair of that very machine; two are', () => {
    expect(restart([...two, silent(2)], 'cp-2', { purpose: 'repair' })).toEqual({ pass: true })
    const more = [...members, member(9)]
    expect(restart([cp(1, more), cp(3, more), silent(2)], 'cp-2', { purpose: 'repair' })).toMatchObject({ kind: 'orphan' })
  })
})

describe('the only control plane that is unwell itself', () => {
  const repair = (one: ControlPlaneView) => restart([one], 'cp-1', { purpose: 'repair', acknowledged: ['api-outage'] })
  const change: Change = { service: { state: 'Running', healthy: false }, alarms: [{ memberID: id(1), alarm: 'NOSPACE' }] }
  it('is repaired', () => expect(repair(cp(1, [member(1)], change))).toEqual({ pass: true }))
  it.each<[string, Partial<EtcdMember>, object]>([
    ['an orphan', {}, { condition: 3, kind: 'orphan' }],
    ['a learner', { isLearner: true }, { condition: 3, kind: 'orphan' }],
  ])('is not while it lists %s, which is not its own illness', (_, stranger, expected) =>
    expect(repair(cp(1, [member(1), member(9, stranger)], change))).toMatchObject(expected),
  )
})

describe('a control plane that is to leave for good', () => {
  const removal = (controlPlanes: readonly ControlPlaneView[], more: Partial<EtcdGateInput> = {}) =>
    restart(controlPlanes, 'cp-1', { purpose: 'removal', ...more })
  it.each<[number, 'never' | 'accepted' | 'yes']>([
    [1, 'never'],
    [2, 'accepted'],
    [3, 'accepted'],
    [4, 'yes'],
    [5, 'yes'],
  ])('of %i: %s', (n, may) => {
    const acknowledged = ['no-fault-tolerance', 'api-outage']
    expect(removal(cluster(n)).pass).toBe(may === 'yes')
    expect(removal(cluster(n), { acknowledged }).pass).toBe(may !== 'never')
    if (may !== 'yes') expect(removal(cluster(n))).toMatchObject({ kind: 'quorum', reason: 'QuorumWouldBeLost', condition: 10 })
  })
  it('the accepted outage of a restart is no consent', () =>
    expect(removal(cluster(3), { acknowledged: ['api-outage'] })).toMatchObject({ condition: 10 }))
  it('may be unwell, learner and silent itself; all others have to be well', () => {
    const five = range(5).map(i => member(i, i === 1 ? { isLearner: true } : {}))
    expect(removal(range(5).map(i => (i === 1 ? silent(1) : cp(i, five, { status: { leader: id(2) } }))))).toEqual({ pass: true })
    expect(removal(range(5).map(i => (i === 2 ? silent(2) : cp(i, five))))).toMatchObject({ condition: 1, machine: 'cp-2' })
  })
  it('passes when it has left', () => {
    const left = [member(2), member(3), member(4)]
    expect(removal([silent(1), ...[2, 3, 4].map(i => cp(i, left, { status: { leader: id(2) } }))])).toEqual({ pass: true })
  })
})

describe('a step that makes room', () => {
  const full = cluster(3, {
    1: { alarms: [{ memberID: id(2), alarm: 'NOSPACE' }] },
    2: { status: { dbSize: 2_040 * MiB, errors: ['memberID:2 alarm:NOSPACE'] } },
  })
  it('may be taken although there is none', () => {
    expect(restart(full, 'cp-2')).toMatchObject({ condition: 6 })
    expect(restart(full, 'cp-2', { makesRoom: true })).toEqual({ pass: true })
  })
  it('is no cure for damage', () =>
    expect(restart(cluster(3, { 1: { alarms: [{ memberID: id(2), alarm: 'CORRUPT' }] } }), 'cp-2', { makesRoom: true })).toMatchObject({
      kind: 'alarm',
    }))
})

describe('a TalosMachine that was just deleted', () => {
  const four = range(4).map(i => member(i))
  const known = range(3).map(i => cp(i, four))
  it('is waited for until discovery has looked again', () => {
    expect(settled(known, { seenControlPlanes: 4 })).toMatchObject({ kind: 'hold', condition: 3 })
    expect(settled(known, { seenControlPlanes: 3 })).toMatchObject({ kind: 'orphan', condition: 3 })
  })
})

describe('quorum', () => {
  it.each<[number, number]>([
    [1, 1],
    [2, 2],
    [3, 2],
    [4, 3],
    [5, 3],
  ])('of %i members is %i', (n, quorum) => expect(quorumOf(n)).toBe(quorum))
  it.each([1, 2])('with %i members a restart needs the outage to be accepted', n => {
    expect(restart(cluster(n), 'cp-1')).toMatchObject({
      pass: false,
      kind: 'quorum',
      reason: 'QuorumWouldBeLost',
      condition: 10,
      machine: 'cp-1',
    })
    expect(restart(cluster(n), 'cp-1', { acknowledged: ['api-outage'] })).toEqual({ pass: true })
  })
  it('an accepted outage excuses nothing else', () => {
    expect(restart([cp(1, [member(1), member(2)]), silent(2)], 'cp-1', { acknowledged: ['api-outage'] })).toMatchObject({ condition: 1 })
    expect(restart(replaced(3, silent(3)), 'cp-1', { acknowledged: ['api-outage'] })).toMatchObject({ condition: 1 })
  })
  it('arithmetic that would allow it does not: all others have to be healthy', () => {
    const five = range(5).map(i => member(i))
    expect(
      restart(
        range(5).map(i => (i === 5 ? silent(5) : cp(i, five))),
        'cp-1',
      ),
    ).toMatchObject({ pass: false, kind: 'hold', condition: 1 })
  })
  it('a target that is not among those asked', () => expect(restart(cluster(3), 'cp-9')).toMatchObject({ condition: 10 }))
})

describe('the leader', () => {
  it('is known by its member id', () => {
    expect(
      leaderName(
        cluster(
          3,
          {},
          three.map(m => ({ ...m, name: m.name.toUpperCase() })),
        ),
      ),
    ).toBe('cp-1')
  })
  it('is known by its peer address where it does not answer', () =>
    expect(leaderName([silent(1), cp(2, three), cp(3, three)])).toBe('cp-1'))
  it('is not known without agreement', () => {
    expect(leaderName(cluster(3, { 2: { status: { leader: id(2) } } }))).toBeUndefined()
    expect(
      agreedLeader(cluster(3, { 1: { status: { leader: '' } }, 2: { status: { leader: '' } }, 3: { status: { leader: '' } } })),
    ).toBeUndefined()
    expect(leaderName([silent(1)])).toBeUndefined()
  })
})

describe('whatever is asked', () => {
  const size = fc.integer({ min: 1, max: 7 })
  it('never passes while a control plane is silent or no member, or a member has no machine', () => {
    fc.assert(
      fc.property(
        size,
        fc.nat(6),
        fc.constantFrom('silent', 'not a member', 'stranger', 'unhealthy'),
        fc.boolean(),
        fc.constantFrom<'restart' | 'settled'>('restart', 'settled'),
        (n, which, fault, accepted, purpose) => {
          const i = (which % n) + 1
          const all = range(n).map(k => member(k))
          const members = fault === 'not a member' ? all.filter(m => m.id !== id(i)) : fault === 'stranger' ? [...all, member(8)] : all
          const controlPlanes = range(n).map(k =>
            k === i && fault === 'silent'
              ? silent(k)
              : cp(k, members, k === i && fault === 'unhealthy' ? { service: { state: 'Running', healthy: false } } : {}),
          )
          expect(
            settled(controlPlanes, { purpose, target: 'cp-1', acknowledged: accepted ? ['api-outage'] : [], etcdStepAllowed: true }).pass,
          ).toBe(false)
        },
      ),
    )
  })
  it('a restart that passes without accepted outage leaves quorum', () => {
    fc.assert(
      fc.property(size, fc.nat(6), (n, which) => {
        if (restart(cluster(n), `cp-${(which % n) + 1}`).pass) expect(n - 1).toBeGreaterThanOrEqual(quorumOf(n))
        else expect(n).toBeLessThanOrEqual(2)
      }),
    )
  })
})
