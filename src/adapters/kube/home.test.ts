import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { livenessChecks, readinessChecks } from '../../app/controller/health.ts'
import { type FakeClock, fakeClock, realClock } from '../../../test/kube/clocks.ts'
import { type Asked, json, startScripted, status } from '../../../test/kube/scripted-server.ts'
import { kubeClient } from './client.ts'
import { openHome } from './home.ts'
import { microTime } from './objects.ts'
import { openTransport } from './transport.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
const stage = async (answer: (asked: Asked, response: ServerResponse) => void) => {
  const server = await startScripted(answer)
  const transport = openTransport({ config: server.config(), clock: realClock, userAgent: 'test' })
  const clock: FakeClock = fakeClock()
  const home = openHome({ client: kubeClient(transport), clock, random: () => 0.5 })
  closing.push(server.stop, transport.close, home.close)
  return { server, clock, home }
}
const machine = (name: string, cluster = 'home') => ({
  metadata: { namespace: 'ichor', name, uid: `uid-${name}`, resourceVersion: '5' },
  spec: { clusterRef: { name: cluster }, address: '10.0.0.1', role: 'worker' },
})

describe('a list', () => {
  const answers = (state: { isWatched: boolean; names: string[] }) => (asked: Asked, response: ServerResponse) => {
    if (!asked.url.searchParams.get('watch'))
      return json(response, { metadata: { resourceVersion: '9' }, items: state.names.map(name => machine(name)) })
    if (!state.isWatched) return status(response, 500, '', 'no')
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
  }
  const names = async (home: Awaited<ReturnType<typeof stage>>['home']) => {
    const machines = await home.machines({ namespace: 'ichor', name: 'home' })
    return machines.ok ? machines.value.map(({ metadata }) => metadata.name) : machines.fault.kind
  }

  it('costs no request while its watch is open', async () => {
    const { server, home } = await stage(answers({ isWatched: true, names: ['a', 'b'] }))
    await home.machines({ namespace: 'ichor', name: 'home' })
    await vi.waitFor(() => expect(server.asked.some(({ url }) => url.searchParams.get('watch'))).toBe(true))
    const settle = async () => {
      const before = server.asked.length
      expect(await names(home)).toEqual(['a', 'b'])
      return server.asked.length - before
    }
    await vi.waitFor(async () => expect(await settle()).toBe(0))
    expect(await home.machines({ namespace: 'ichor', name: 'other' })).toEqual({ ok: true, value: [] })
    expect(await home.machines({ namespace: 'elsewhere', name: 'home' })).toEqual({ ok: true, value: [] })
    expect(home.stalenessMs()).toBe(0)
  })

  it('comes from the server while the watch is broken', async () => {
    const state = { isWatched: false, names: ['a'] }
    const { home } = await stage(answers(state))
    expect(await names(home)).toEqual(['a'])
    state.names = ['a', 'b']
    expect(await names(home)).toEqual(['a', 'b'])
  })
})

it('is stale for as long as no watch tells anything and no list is answered, which turns the probes red, and fresh again afterwards', async () => {
  let isAway = false
  const { server, home, clock } = await stage((asked, response) => {
    if (isAway) return status(response, 503, '', 'away')
    if (!asked.url.searchParams.get('watch')) return json(response, { metadata: { resourceVersion: '9' }, items: [] })
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
  })
  const red = (checksOf: typeof readinessChecks): readonly string[] =>
    checksOf({ isLeading: true, stalenessMs: home.stalenessMs(), queue: { depth: 0, oldestMs: 0 }, silenceMs: 0 })
      .filter(({ problem }) => problem !== undefined)
      .map(({ name }) => name)
  await home.machines({ namespace: 'ichor', name: 'home' })
  await vi.waitFor(() => expect(server.asked.some(({ url }) => url.searchParams.get('watch'))).toBe(true))
  await vi.waitFor(() => expect(home.stalenessMs()).toBe(0))
  // The watch stays open and says nothing; whoever asks anew is turned away.
  isAway = true
  clock.advance(4 * 60_000)
  expect([red(readinessChecks), red(livenessChecks)]).toEqual([['watches'], []])
  clock.advance(6 * 60_000)
  expect([red(readinessChecks), red(livenessChecks)]).toEqual([['watches'], ['watches']])
  isAway = false
  await vi.waitFor(() => {
    clock.advance(60_000)
    expect([red(readinessChecks), red(livenessChecks)]).toEqual([[], []])
  })
})

it('a request for a Lease that hangs is given up in half the time that a leader has, and the next one has a connection of its own', async () => {
  let isStuck = true
  const server = await startScripted((_, response) => {
    const metadata = { name: 'ichor-controller', namespace: 'ichor', uid: 'u', resourceVersion: '1' }
    if (!isStuck) json(response, { metadata, spec: { holderIdentity: 'a' } })
  })
  const clock = fakeClock()
  const transport = openTransport({ config: server.config(), clock, userAgent: 'test' })
  const home = openHome({ client: kubeClient(transport), clock, random: () => 0.5 })
  closing.push(server.stop, transport.close, home.close)
  const key = { namespace: 'ichor', name: 'ichor-controller' }
  const write = { holder: 'a', durationSeconds: 15, acquireTime: '', renewTime: '', transitions: 0, annotations: {} }
  const seen = { ...key, ...write, uid: 'u', resourceVersion: '1', labels: {} }
  for (const ask of [() => home.lease(key), () => home.createLease(key, write), () => home.replaceLease(seen, write)]) {
    isStuck = true
    const before = server.asked.length
    const asked = ask()
    await vi.waitFor(() => expect(server.asked.length).toBe(before + 1))
    clock.advance(5_000)
    expect(await asked).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
    isStuck = false
    const next = await home.lease(key)
    expect(next).toMatchObject({ ok: true, value: { holder: 'a' } })
  }
})

describe('an Event', () => {
  const event = {
    regarding: { kind: 'TalosOperation', namespace: 'ichor', name: 'up', uid: 'u' },
    type: 'Normal',
    reason: 'Started',
    message: 'begun with Bearer abcdef123456',
  } as const
  const events = async (missing = false) => {
    const s = await stage((asked, response) =>
      missing && asked.method === 'PATCH' ? status(response, 404, 'NotFound', 'events "x" not found') : json(response, {}),
    )
    return { ...s, done: () => s.server.asked.map(({ method, body }) => `${method} ${(body as { count: number }).count}`) }
  }

  it('that repeats raises a count, for ten minutes', async () => {
    const { home, clock, done, server } = await events()
    for (let i = 0; i < 3; i++) await home.event(event)
    expect(done()).toEqual(['POST 1', 'PATCH 2', 'PATCH 3'])
    clock.advance(600_000)
    await home.event(event)
    await home.event({ ...event, message: 'another' })
    expect(done().slice(3)).toEqual(['POST 1', 'POST 1'])
    expect(JSON.stringify(server.asked)).not.toContain('abcdef123456')
  })

  it('is written anew when the first is gone', async () => {
    const { home, done } = await events(true)
    for (let i = 0; i < 2; i++) await home.event(event)
    expect(done()).toEqual(['POST 1', 'PATCH 2', 'POST 1'])
  })

  it('does not come in floods, and another object may speak meanwhile', async () => {
    const { home, clock, server } = await events()
    for (let i = 0; i < 80; i++) await home.event({ ...event, message: `${i}` })
    expect(server.asked).toHaveLength(50)
    await home.event({ ...event, regarding: { ...event.regarding, uid: 'other' } })
    clock.advance(20_000)
    for (let i = 0; i < 5; i++) await home.event({ ...event, message: `later ${i}` })
    expect(server.asked).toHaveLength(52)
  })

  it('that cannot be written is no trouble', async () => {
    const { home, server } = await events()
    await server.stop()
    await expect(home.event(event)).resolves.toBeUndefined()
  })
})

it.each([
  ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.000000Z'],
  ['2026-01-02T03:04:05.678Z', '2026-01-02T03:04:05.678000Z'],
  ['2026-01-02T03:04:05.123456789+01:00', '2026-01-02T03:04:05.123456+01:00'],
])('a Lease has six digits of a second: %s', (time, micro) => expect(microTime(time)).toBe(micro))
