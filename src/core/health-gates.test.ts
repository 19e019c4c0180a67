import { describe, expect, it } from 'vitest'
import type { HealthGate } from '../api/talos-cluster.ts'
import type { OperationStatus } from '../api/talos-operation.ts'
import type { Fault } from '../ports/fault.ts'
import { gateNotes, gateRefusals, gatesNow } from './health-gates.ts'
import { iso } from './ledger.ts'
import { metadata, world as sample } from './samples.ts'
import { NO_FACTS, objectKey, type World } from './world.ts'

const NOW = Date.UTC(2026, 8, 1, 8)
const SECOND = 1000
const MINUTE = 60 * SECOND

const storage: HealthGate = {
  name: 'storage',
  objectRef: { apiVersion: 'storage.example/v1', kind: 'StorageCluster', namespace: 'storage', name: 'main' },
  expr: 'object.status.health == "OK"',
  stableFor: '1m',
}
const health = (value: unknown) => ({ ok: true as const, value: { status: { health: value } } })
const fault = (kind: Fault['kind'], message = 'no') => ({ ok: false as const, fault: { kind, message } })

type Given = {
  readonly seen?: World['facts']['objects'][string]
  readonly at?: number
  readonly gates?: readonly HealthGate[]
} & Partial<World>
const world = ({ seen = health('OK'), at = 0, gates = [storage], ...more }: Given = {}): World =>
  sample({
    now: NOW + at,
    watchedMs: Infinity,
    cluster: {
      metadata: metadata({ name: 'home', generation: 4 }),
      spec: { talosconfigSecretRef: { name: 't', key: 't' }, healthGates: [...gates] },
      status: {},
    },
    facts: { ...NO_FACTS, objects: Object.fromEntries(gates.map(gate => [objectKey(gate.objectRef), seen])) },
    ...more,
  })

/** Looks at it at these seconds, as the engine does: each look with what the one before it left in status. */
const looks = (
  seen: readonly (readonly [at: number, value: World['facts']['objects'][string]])[],
  gate = storage,
  status: OperationStatus = {},
) => {
  let gates = status.gates
  return seen.map(([at, value]) => {
    const now = gatesNow({ ...status, gates }, world({ at: at * SECOND, seen: value, gates: [gate] }))
    gates = now.are === 'closed' ? [...now.states] : undefined
    return now.are
  })
}
const every = (step: number, from: number, to: number, value: World['facts']['objects'][string]) =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => [from + i * step, value] as const)

describe('a gate opens', () => {
  it('at once where there is none', () => {
    expect(gatesNow({}, world({ gates: [] }))).toEqual({ are: 'open' })
  })

  it('when it has held for its whole time, and not before', () => {
    const seen = looks(every(2, 0, 62, health('OK')))
    expect(seen.indexOf('open')).toBe(30)
  })

  it('at once where it need not have held for any time', () => {
    expect(looks([[0, health('OK')]], { ...storage, stableFor: '0s' })).toEqual(['open'])
  })

  it('not on a flap: its time begins anew', () => {
    const seen = looks([...every(2, 0, 40, health('OK')), [42, health('WARN')], ...every(2, 44, 104, health('OK'))])
    expect(seen.indexOf('open')).toBe(seen.length - 1)
  })

  it.each([
    ['a read that failed', fault('unreachable')],
    ['an object that was gone', fault('notFound')],
    ['a field that was missing', { ok: true as const, value: {} }],
    ['a field of another type', health(5)],
  ])('not on %s in between', (_what, gap) => {
    const seen = looks([...every(2, 0, 50, health('OK')), [52, gap], ...every(2, 54, 112, health('OK'))])
    expect(seen).not.toContain('open')
  })

  it('not where nobody looked for a while in between', () => {
    expect(
      looks([
        [0, health('OK')],
        [2, health('OK')],
        [90, health('OK')],
      ]),
    ).toEqual(['closed', 'closed', 'closed'])
  })

  it('not before this process has watched for that time itself', () => {
    const held = { name: 'storage', generation: 4, seen: 'OK', holdsSince: iso(NOW - 10 * MINUTE), seenAt: iso(NOW - 2 * SECOND) }
    expect(gatesNow({ gates: [held] }, world()).are).toBe('open')
    expect(gatesNow({ gates: [held] }, world({ watchedMs: 59 * SECOND }))).toMatchObject({
      are: 'closed',
      states: [{ holdsSince: iso(NOW - 59 * SECOND) }],
    })
  })

  it('not by what another version of it had seen', () => {
    const held = { name: 'storage', generation: 3, seen: 'OK', holdsSince: iso(NOW - 10 * MINUTE), seenAt: iso(NOW - 2 * SECOND) }
    expect(gatesNow({ gates: [held] }, world()).are).toBe('closed')
  })

  it.each([iso(NOW + MINUTE), 'yesterday', ''])('not by a time that nobody can have written: %j', time => {
    const held = { name: 'storage', generation: 4, seen: 'OK', holdsSince: time, seenAt: iso(NOW), waitingSince: time }
    expect(gatesNow({ gates: [held] }, world())).toMatchObject({
      are: 'closed',
      states: [{ holdsSince: iso(NOW), waitingSince: iso(NOW) }],
    })
    const seenThen = { ...held, holdsSince: iso(NOW - 10 * MINUTE), seenAt: time }
    expect(gatesNow({ gates: [seenThen] }, world()).are).toBe('closed')
  })

  it('only when all do', () => {
    const other = { ...storage, name: 'database', expr: 'object.status.health == "FINE"', stableFor: '0s' }
    expect(gatesNow({}, world({ gates: [{ ...storage, stableFor: '0s' }, other] }))).toMatchObject({
      are: 'closed',
      what: 'gate database (OK)',
    })
  })
})

describe('what is said of a gate that does not hold', () => {
  it.each([
    ['what was seen', health('WARN'), 'gate storage (WARN)'],
    ['a missing field', { ok: true as const, value: {} }, 'gate storage (it has no field status)'],
    ['a missing object', fault('notFound'), 'gate storage (StorageCluster storage/main does not exist)'],
    ['a failed read', fault('busy', '503'), 'gate storage (StorageCluster storage/main cannot be read: 503)'],
    ['another type', health(5), 'gate storage (5)'],
  ])('%s', (_what, seen, what) => {
    expect(gatesNow({}, world({ seen }))).toMatchObject({ are: 'closed', what })
  })

  it('and of one that has to hold on', () => {
    expect(gatesNow({}, world())).toMatchObject({ are: 'closed', what: 'gate storage to hold for 1m', forMs: 2 * SECOND })
  })

  it('while it holds, a look is written every ten seconds, and not each time', () => {
    const times: string[] = []
    let gates: OperationStatus['gates']
    for (let at = 0; at < 40; at += 2) {
      const now = gatesNow({ gates }, world({ at: at * SECOND }))
      if (now.are !== 'closed') throw new Error('open')
      gates = [...now.states]
      times.push(now.states[0]?.seenAt ?? '')
    }
    expect(new Set(times).size).toBe(4)
  })
})

describe('a timeout', () => {
  const impatient = { ...storage, timeout: '10m' }
  const waiting = { name: 'storage', generation: 4, seen: 'WARN', waitingSince: iso(NOW - 10 * MINUTE), seenAt: iso(NOW) }

  it('ends the wait, and says for what', () => {
    expect(gatesNow({ gates: [waiting] }, world({ at: -1, seen: health('WARN'), gates: [impatient] }))).toMatchObject({
      are: 'closed',
      until: NOW,
    })
    expect(gatesNow({ gates: [waiting] }, world({ seen: health('WARN'), gates: [impatient] }))).toEqual({
      are: 'late',
      message: 'gate storage does not hold (WARN) after 10m',
    })
  })

  it('does not end it while the gate holds and its time runs', () => {
    expect(gatesNow({ gates: [waiting] }, world({ gates: [impatient] }))).toMatchObject({
      are: 'closed',
      what: 'gate storage to hold for 1m',
    })
  })

  it('does not run while another machine is at work', () => {
    const machines: OperationStatus['machines'] = [{ name: 'wk-1', role: 'worker', phase: 'Running' }]
    const now = gatesNow({ gates: [waiting], machines }, world({ at: MINUTE, seen: health('WARN'), gates: [impatient] }))
    expect(now).toMatchObject({ are: 'closed', until: undefined })
    expect(now.are === 'closed' && now.states[0]).not.toHaveProperty('waitingSince')
  })
})

describe('what refuses an operation before it begins', () => {
  it.each([
    [
      'an expression with an error',
      { ...storage, expr: 'object.status.health = "OK"' },
      health('OK'),
      'HealthGateInvalid',
      'Health gate storage of TalosCluster home: its expression cannot be read: line 1, column 22',
    ],
    [
      'an expression that gives a text',
      { ...storage, expr: 'object.status.health' },
      health('OK'),
      'HealthGateInvalid',
      'gives a text, which is neither true nor false',
    ],
    [
      'a type that does not exist',
      storage,
      fault('unsupported', 'the API server knows no StorageCluster in storage.example/v1'),
      'HealthGateInvalid',
      'knows no StorageCluster',
    ],
    [
      'a namespace too few',
      storage,
      fault('invalid', 'a StorageCluster is in a namespace, and none is named'),
      'HealthGateInvalid',
      'none is named',
    ],
    [
      'a right that is missing',
      storage,
      fault('forbidden', 'cannot get resource "storageclusters"'),
      'HealthGateUnreadable',
      'cannot get resource "storageclusters"',
    ],
  ])('%s', (_what, gate, seen, rule, message) => {
    const given = world({ gates: [gate], seen })
    expect(gateRefusals(given)).toEqual([{ rule, message: expect.stringContaining(message) as string, overridable: false }])
    expect(gateNotes(given)).toEqual([])
  })

  it.each([
    ['does not hold', health('WARN'), 'Health gate storage does not hold now (WARN); the next machine waits until it does.'],
    ['has no object', fault('notFound'), 'does not exist'],
    ['cannot be read now', fault('unreachable'), 'cannot be read'],
  ])('one that %s is only told', (_what, seen, note) => {
    expect(gateRefusals(world({ seen }))).toEqual([])
    expect(gateNotes(world({ seen }))).toEqual([expect.stringContaining(note)])
  })

  it('nothing where all hold', () => {
    expect([gateRefusals(world()), gateNotes(world())]).toEqual([[], []])
  })
})
