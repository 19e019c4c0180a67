import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { type Check, livenessChecks, readinessChecks, type Vitals } from './health.ts'
import { serveStatus, type StatusServer } from './serve-status.ts'

const well: Vitals = { isLeading: true, stalenessMs: 40_000, queue: { depth: 3, oldestMs: 900 }, silenceMs: 1_500 }
const MINUTE = 60_000

const red = (checks: readonly Check[]) => checks.filter(({ problem }) => problem !== undefined).map(({ name }) => name)

describe('the probes', () => {
  it.each<{ readonly when: string; readonly vitals: Vitals | undefined; readonly notReady: string[]; readonly notAlive: string[] }>([
    { when: 'all is well', vitals: well, notReady: [], notAlive: [] },
    { when: 'it waits for the resource types', vitals: undefined, notReady: ['started'], notAlive: [] },
    { when: 'the first lists have not come', vitals: { ...well, stalenessMs: Infinity }, notReady: ['lists'], notAlive: [] },
    { when: 'a standby watches nothing', vitals: { ...well, isLeading: false, stalenessMs: 0 }, notReady: [], notAlive: [] },
    { when: 'watches are stale', vitals: { ...well, stalenessMs: 4 * MINUTE }, notReady: ['watches'], notAlive: [] },
    { when: 'they are so for long', vitals: { ...well, stalenessMs: 10 * MINUTE }, notReady: ['watches'], notAlive: ['watches'] },
    { when: 'a pass hangs', vitals: { ...well, queue: { depth: 1, oldestMs: 6 * MINUTE } }, notReady: ['queue'], notAlive: [] },
    {
      when: 'it hangs for long',
      vitals: { ...well, queue: { depth: 1, oldestMs: 16 * MINUTE } },
      notReady: ['queue'],
      notAlive: ['queue'],
    },
    { when: 'the API is away', vitals: { ...well, silenceMs: 2 * MINUTE }, notReady: ['api'], notAlive: [] },
  ])('when $when', ({ vitals, notReady, notAlive }) => {
    expect(red(readinessChecks(vitals))).toEqual(notReady)
    expect(red(livenessChecks(vitals))).toEqual(notAlive)
  })
})

describe('the answers to probes', () => {
  let server: StatusServer | undefined
  afterEach(() => server?.close())
  const get = async (vitals: Vitals | undefined, path: string, method = 'GET') => {
    await server?.close()
    server = await serveStatus(
      { host: '127.0.0.1', port: 0 },
      { registry: new Registry(), liveness: () => livenessChecks(vitals), readiness: () => readinessChecks(vitals) },
    )
    const response = await fetch(`${server.address}${path}`, { method })
    return [response.status, await response.text()]
  }

  it('are one word where all is well, and name every check to who asks', async () => {
    expect(await get(well, '/healthz')).toEqual([200, 'ok'])
    expect(await get(well, '/readyz')).toEqual([200, 'ok'])
    expect(await get(well, '/readyz?verbose')).toEqual([
      200,
      '[+]started ok\n[+]api ok\n[+]lists ok\n[+]watches ok\n[+]queue ok\nreadyz check passed\n',
    ])
  })

  it('say which check is red, and why', async () => {
    expect(await get({ ...well, stalenessMs: 250_000 }, '/readyz')).toEqual([
      503,
      '[+]started ok\n[+]api ok\n[+]lists ok\n[-]watches failed: what is watched was last known to be current 250 s ago\n[+]queue ok\nreadyz check failed\n',
    ])
    expect(await get({ ...well, stalenessMs: 250_000 }, '/readyz/watches')).toEqual([503, expect.stringContaining('[-]watches failed')])
    expect(await get({ ...well, stalenessMs: 250_000 }, '/readyz/queue')).toEqual([200, 'ok'])
  })

  it('know nothing else', async () => {
    for (const path of ['/', '/readyz/nothing', '/readyz/queue/more', '/metricsx']) expect((await get(well, path))[0], path).toBe(404)
    expect((await get(well, '/metrics', 'POST'))[0]).toBe(405)
    expect((await get(well, '/metrics'))[0]).toBe(200)
  })
})
