import type { ServerResponse } from 'node:http'
import { afterEach, expect, it, vi } from 'vitest'
import { type FakeClock, fakeClock, realClock } from '../../../test/kube/clocks.ts'
import { json, type ScriptedServer, startScripted, status } from '../../../test/kube/scripted-server.ts'
import { kubeClient } from './client.ts'
import { at, text } from './json.ts'
import { type Change, type Reflector, RELIST_MS, STALL_MS, startReflector } from './reflector.ts'
import { RESOURCE } from './resource.ts'
import { openTransport } from './transport.ts'

type Thing = { readonly name: string; readonly uid: string; readonly labels: { size?: string } }

const raw = (name: string, version: number, more: { uid?: string; size?: string } = {}) => ({
  metadata: {
    namespace: 'ichor',
    name,
    uid: more.uid ?? `uid-${name}`,
    resourceVersion: String(version),
    labels: { size: more.size ?? 's' },
  },
})

/** A server whose list is what the test holds, and whose watches the test speaks into. */
const stage = async (options: { random?: () => number } = {}) => {
  const state = {
    items: [] as ReturnType<typeof raw>[],
    version: 100,
    refuseList: undefined as undefined | ((r: ServerResponse) => void),
    refuseWatch: undefined as undefined | ((r: ServerResponse) => void),
  }
  const watches: { readonly from: string; readonly response: ServerResponse }[] = []
  let lists = 0
  const server: ScriptedServer = await startScripted(({ url }, response) => {
    if (url.searchParams.get('watch') === null) {
      lists += 1
      return state.refuseList
        ? state.refuseList(response)
        : json(response, { metadata: { resourceVersion: String(state.version) }, items: state.items })
    }
    if (state.refuseWatch) return state.refuseWatch(response)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    watches.push({ from: url.searchParams.get('resourceVersion') ?? '', response })
  })
  const clock: FakeClock = fakeClock()
  const transport = openTransport({ config: server.config(), clock: realClock, userAgent: 'test' })
  const client = kubeClient(transport)
  const changes: string[] = []
  const problems: string[] = []
  let listed = 0
  let handler: (change: Change<Thing>) => void = () => {}
  const reflector: Reflector<Thing> = startReflector({
    source: {
      list: signal => client.list(RESOURCE.talosOperation, { signal }),
      watch: (watch, on) => client.watch(RESOURCE.talosOperation, watch, on),
    },
    parse: object => {
      const size = text(at(object, 'metadata', 'labels', 'size'))
      if (size === 'broken') throw new Error('cannot be read')
      return { name: text(at(object, 'metadata', 'name')), uid: text(at(object, 'metadata', 'uid')), labels: { size } }
    },
    clock,
    random: options.random ?? (() => 0.5),
    changed: change => {
      changes.push(`${change.type} ${change.key} ${change.object.uid} ${change.object.labels.size}`)
      handler(change)
    },
    listed: () => {
      listed += 1
    },
    problem: ({ doing, message }) => problems.push(`${doing}: ${message}`),
  })
  closing.push(server.stop, transport.close, reflector.stop)
  return {
    server,
    state,
    clock,
    reflector,
    changes,
    problems,
    watches,
    lists: () => lists,
    listed: () => listed,
    onChange: (run: (change: Change<Thing>) => void) => (handler = run),
    /** Speaks into the watch that was opened last. */
    say: (type: string, object: unknown) => watches.at(-1)?.response.write(`${JSON.stringify({ type, object })}\n`),
    /** The watch number `count` is open, here as well as there. */
    watching: (count: number) => eventually(() => expect([watches.length, reflector.isHealthy()]).toEqual([count, true])),
    /** It has backed off: a timer of that length is there and the watch is not. Puts the time forward. */
    passBackOff: async (between: readonly [number, number], meanwhile: () => void = () => {}) => {
      const wait = () => clock.waits()[0] ?? 0
      await eventually(() => expect([reflector.isHealthy(), clock.waits().length]).toEqual([false, 1]))
      expect(wait()).toBeGreaterThanOrEqual(between[0])
      expect(wait()).toBeLessThanOrEqual(between[1])
      const waited = wait()
      meanwhile()
      clock.advance(waited)
      return waited
    },
  }
}
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 3000, interval: 2 })
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

it('lists, then watches from there, with bookmarks and a time limit of its own', async () => {
  const s = await stage()
  s.state.items = [raw('a', 5)]
  await s.watching(1)
  expect(s.changes).toEqual(['added ichor/a uid-a s'])
  const asked = s.server.asked.at(-1)?.url.searchParams
  expect(Object.fromEntries(asked ?? [])).toMatchObject({ resourceVersion: '100', allowWatchBookmarks: 'true', timeoutSeconds: '450' })

  s.say('ADDED', raw('b', 101))
  s.say('MODIFIED', raw('a', 102, { size: 'm' }))
  s.say('DELETED', raw('b', 103))
  await eventually(() =>
    expect(s.changes).toEqual(['added ichor/a uid-a s', 'added ichor/b uid-b s', 'changed ichor/a uid-a m', 'deleted ichor/b uid-b s']),
  )
  expect(s.reflector.get('ichor/a')).toEqual({ name: 'a', uid: 'uid-a', labels: { size: 'm' } })
  expect(s.reflector.all()).toHaveLength(1)
})

it('gives frozen objects', async () => {
  const s = await stage()
  s.state.items = [raw('a', 5)]
  await s.watching(1)
  const thing = s.reflector.get('ichor/a') as { labels: { size: string } }
  expect(() => (thing.labels.size = 'xl')).toThrow(TypeError)
})

it('goes on at once from the last version, a bookmark included, when the server ends the watch', async () => {
  const s = await stage()
  await s.watching(1)
  s.say('ADDED', raw('a', 101))
  s.say('BOOKMARK', { metadata: { resourceVersion: '150' } })
  await eventually(() => expect(s.changes).toHaveLength(1))
  s.watches[0]?.response.end()
  await s.watching(2)
  expect(s.watches[1]?.from).toBe('150')
  expect([s.lists(), s.problems]).toEqual([1, []])
})

it('does not run hot when the server ends every watch at once', async () => {
  const s = await stage()
  s.state.refuseWatch = response => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end()
  }
  expect(await s.passBackOff([800, 800])).toBe(800)
  await s.passBackOff([800, 1600])
  await s.passBackOff([1600, 3200])
  expect(s.server.asked.length).toBeLessThanOrEqual(5)
})

it.each(['status', 'event'] as const)('lists anew after 410 (%s), and tells only what is different', async how => {
  const s = await stage()
  s.state.items = [raw('same', 1), raw('changes', 2), raw('goes', 3)]
  await s.watching(1)
  s.changes.length = 0
  s.state.items = [raw('same', 1), raw('changes', 110, { size: 'l' }), raw('new', 111)]
  s.state.version = 120
  if (how === 'event') s.say('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' })
  else {
    let isFirst = true
    s.state.refuseWatch = response => {
      s.state.refuseWatch = undefined
      if (isFirst) status(response, 410, 'Expired', 'too old resource version')
      isFirst = false
    }
    s.watches[0]?.response.end(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '105' } } })}\n`)
  }
  await s.watching(2)
  expect(s.watches[1]?.from).toBe('120')
  expect(s.changes).toEqual(['deleted ichor/goes uid-goes s', 'changed ichor/changes uid-changes l', 'added ichor/new uid-new s'])
  expect([s.lists(), s.listed()]).toEqual([2, 2])
})

it('tells an object that was deleted and made again while away as both', async () => {
  const s = await stage()
  s.state.items = [raw('a', 1, { uid: 'old' })]
  await s.watching(1)
  s.changes.length = 0
  s.state.items = [raw('a', 200, { uid: 'new' })]
  s.say('ERROR', { code: 410, reason: 'Expired', message: 'gone' })
  await s.watching(2)
  expect(s.changes).toEqual(['deleted ichor/a old s', 'added ichor/a new s'])
  s.say('MODIFIED', raw('a', 201, { uid: 'newest' }))
  await eventually(() => expect(s.changes.slice(2)).toEqual(['deleted ichor/a new s', 'added ichor/a newest s']))
})

it('survives a server that dies and comes back: longer and longer pauses, then on from where it was', async () => {
  const s = await stage()
  s.say('BOOKMARK', {})
  await s.watching(1)
  s.state.refuseWatch = response => response.socket?.destroy()
  s.server.cut()
  const waits: number[] = []
  for (const full of [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
    waits.push(await s.passBackOff([Math.max(800, full / 2), full]))
  expect(waits.at(-1)).toBe(22_500)
  await s.passBackOff([15_000, 30_000], () => (s.state.refuseWatch = undefined))
  await s.watching(2)
  expect(s.watches[1]?.from).toBe('100')
  expect(s.lists()).toBe(1)
  expect(s.problems[0]).toContain('cut before the answer')
})

it('begins again with short pauses after two minutes of health', async () => {
  const s = await stage()
  await s.watching(1)
  const fail = async () => {
    s.state.refuseWatch = response => status(response, 500, 'InternalError', 'etcd is slow')
    s.server.cut()
    const any = [800, 30_000] as const
    return [await s.passBackOff(any), await s.passBackOff(any), await s.passBackOff(any, () => (s.state.refuseWatch = undefined))]
  }
  expect(await fail()).toEqual([800, 1200, 2400])
  await s.watching(2)
  s.clock.advance(10_000)
  expect((await fail())[0]).toBeGreaterThan(2400)
  await s.watching(3)
  s.clock.advance(120_000)
  expect((await fail())[0]).toBe(800)
})

it('stays away as long as the server asks', async () => {
  const s = await stage()
  await s.watching(1)
  s.state.refuseWatch = response => status(response, 429, 'TooManyRequests', 'too many requests', {}, { 'retry-after': '17' })
  s.server.cut()
  await s.passBackOff([800, 800])
  expect(await s.passBackOff([17_000, 17_000])).toBe(17_000)
})

it('says with its first answer that the list fails, goes on trying, and then is ready', async () => {
  const s = await stage()
  s.state.refuseList = response => status(response, 404, '', '404 page not found')
  expect(await s.reflector.ready()).toMatchObject({ ok: false, fault: { kind: 'unsupported' } })
  expect([s.reflector.isHealthy(), s.reflector.lastSyncAgeMs()]).toEqual([false, Number.POSITIVE_INFINITY])
  s.state.refuseList = undefined
  const ready = s.reflector.ready()
  await s.passBackOff([800, 800])
  expect(await ready).toEqual({ ok: true, value: undefined })
})

it('ends a watch by itself in which nothing is heard any more, and reads everything anew', async () => {
  const s = await stage()
  await s.watching(1)
  s.clock.advance(STALL_MS - 1000)
  s.say('BOOKMARK', { metadata: { resourceVersion: '130' } })
  await eventually(() => expect(s.reflector.lastSyncAgeMs()).toBe(0))
  s.clock.advance(STALL_MS - 1000)
  expect(s.reflector.lastSyncAgeMs()).toBe(STALL_MS - 1000)
  expect(s.watches).toHaveLength(1)
  s.clock.advance(1000)
  await s.watching(2)
  expect(s.lists()).toBe(2)
  expect(s.problems).toEqual([expect.stringContaining('not even a bookmark')])
})

it('ends a watch that the server does not end in its time, however much is heard', async () => {
  const s = await stage()
  await s.watching(1)
  for (let minute = 1; minute <= 8; minute++) {
    s.clock.advance(60_000)
    if (minute === 8) break
    s.say('BOOKMARK', { metadata: { resourceVersion: String(130 + minute) } })
    await eventually(() => expect(s.reflector.lastSyncAgeMs()).toBe(0))
  }
  await s.watching(2)
  expect(s.watches[1]?.from).toBe('137')
  expect(s.lists()).toBe(1)
})

it('reads everything anew every half hour', async () => {
  const s = await stage()
  await s.watching(1)
  let version = 200
  for (let passed = 0; passed < RELIST_MS * 1.06; passed += 60_000) {
    s.clock.advance(60_000)
    await eventually(() => expect(s.reflector.isHealthy()).toBe(true))
    if (s.lists() > 1) break
    s.say('BOOKMARK', { metadata: { resourceVersion: String(version++) } })
    await eventually(() => expect(s.reflector.lastSyncAgeMs()).toBe(0))
  }
  expect(s.lists()).toBe(2)
})

it('lists anew when versions run backwards, as after a restore of etcd', async () => {
  const s = await stage()
  s.state.items = [raw('later', 90)]
  await s.watching(1)
  s.state.items = []
  s.state.version = 40
  s.say('BOOKMARK', { metadata: { resourceVersion: '41' } })
  await s.watching(2)
  expect(s.watches[1]?.from).toBe('40')
  expect(s.reflector.all()).toEqual([])
})

it('lists anew when the server does not know the version yet', async () => {
  const s = await stage()
  await s.watching(1)
  s.state.refuseWatch = response => {
    s.state.refuseWatch = undefined
    status(response, 504, 'Timeout', 'Too large resource version: 100, current: 3', {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    })
  }
  s.state.version = 3
  s.say('BOOKMARK', { metadata: { resourceVersion: '101' } })
  s.watches[0]?.response.end()
  await s.watching(2)
  expect(s.watches[1]?.from).toBe('3')
})

it('is not killed by a handler that throws, nor by an object that cannot be read', async () => {
  const s = await stage()
  await s.watching(1)
  s.onChange(() => {
    throw new Error('the handler broke')
  })
  s.say('ADDED', raw('a', 101))
  s.say('ADDED', raw('odd', 102, { size: 'broken' }))
  s.say('ADDED', raw('b', 103))
  await eventually(() => expect(s.reflector.all().map(({ name }) => name)).toEqual(['a', 'b']))
  expect(s.problems).toEqual(['handler: the handler broke', 'parse: ichor/odd: cannot be read', 'handler: the handler broke'])
  expect(s.reflector.isHealthy()).toBe(true)
})

it('takes a stream that breaks in the middle of an event for a broken one', async () => {
  const s = await stage()
  await s.watching(1)
  s.watches[0]?.response.end('{"type":"ADDED","object":{"metad')
  await s.passBackOff([800, 800])
  await s.watching(2)
  expect(s.watches[1]?.from).toBe('100')
})

it('leaves nothing behind when it stops, whatever it does', async () => {
  const watching = await stage()
  await watching.watching(1)
  watching.reflector.stop()
  await eventually(() => expect(watching.clock.waits()).toEqual([]))
  expect(watching.problems).toEqual([])

  const waiting = await stage()
  waiting.state.refuseList = response => status(response, 500, 'InternalError', 'no')
  await waiting.reflector.ready()
  await eventually(() => expect(waiting.clock.waits()).toHaveLength(1))
  waiting.reflector.stop()
  expect(waiting.clock.waits()).toEqual([])
  expect(await waiting.reflector.ready()).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
})
