import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { ServerHttp2Stream } from 'node:http2'
import { PerformanceObserver } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { toBinary, create } from '@bufbuild/protobuf'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ListResponseSchema } from '../../../proto/gen/cosi/resource/state_pb.ts'
import { MachineService, VersionResponseSchema } from '../../../proto/gen/machine/machine_pb.ts'
import type { Fault } from '../../ports/fault.ts'
import { type BadPeer, framed, startBlackHole, startHttp2, startPlain, startTls } from '../../../test/bad-peers.ts'
import { newTalosCa, realClock, talosconfigFor } from '../../../test/scripted-talos.ts'
import { type Calls, talosCalls } from './calls.ts'
import { listResources } from './cosi.ts'
import { resourceTypes } from './resource-types.ts'
import { parseTalosconfig } from './talosconfig.ts'

const ca = await newTalosCa()
const admin = await talosconfigFor(ca)
const { method } = MachineService
const year = 365 * 24

function callsWith(talosconfig = admin, now = () => Date.now()): Calls {
  const parsed = parseTalosconfig(talosconfig, { now: new Date(0) })
  if (!parsed.ok) throw new Error(parsed.problem)
  const { notBefore, notAfter } = parsed.value
  const calls = talosCalls({
    credential: parsed.value,
    credentialBegins: notBefore,
    credentialExpires: notAfter,
    clock: { ...realClock, now },
  })
  onTestFinished(calls.destroy)
  return calls
}

async function met(peer: Promise<BadPeer>): Promise<BadPeer> {
  const started = await peer
  onTestFinished(started.stop)
  return started
}

const deadlineMs = 1_000

/** Asks for the version; what comes must be one Fault in time, one line long, and tell nothing of the credential. */
async function faultOf({ address }: BadPeer, calls = callsWith()): Promise<Fault> {
  const from = performance.now()
  const answer = await calls.unary(address, method.version, {}, { deadlineMs })
  expect(performance.now() - from).toBeLessThan(deadlineMs + 1_500)
  if (answer.ok) throw new Error('it answered')
  return told(answer.fault, address)
}

function told(fault: Fault, address: string): Fault {
  expect(fault.message.startsWith(`${address}: MachineService.`)).toBe(true)
  expect(fault.message).not.toMatch(/\n|-----BEGIN|undefined|\[object|hunter2/)
  expect(fault.message.length).toBeLessThan(700)
  return fault
}

const expected = (kind: Fault['kind'], words: RegExp) => ({ kind, message: expect.stringMatching(words) })

describe('clocks that are years off', () => {
  test.each([
    ['of ten years ago', -10 * year, /certificate has expired/],
    ['of ten years from now', 10 * year, /certificate is not yet valid/],
  ])('a certificate %s', async (_, hours, words) => {
    const peer = await met(startTls(ca, () => {}, { from: new Date(Date.now() + hours * 3_600_000), hours: 24 }))
    // Not "another cluster": the same machine, once a clock is set.
    const fault = await faultOf(peer)
    expect(fault).toEqual(expected('unreachable', words))
    expect(fault.message).toContain('check the clock')
  })

  test('our own clock is before our own certificate', async () => {
    const peer = await met(startTls(ca, socket => socket.end()))
    const fault = await faultOf(
      peer,
      callsWith(admin, () => Date.now() - 10 * year * 3_600_000),
    )
    expect(fault).toEqual(expected('unauthenticated', /valid only from \d{4}-\d\d-\d\dT\S+ on, .*check the clock/))
  })
})

test('our own clock is ten years after our own certificate', async () => {
  const peer = await met(startTls(ca, socket => socket.end()))
  const fault = await faultOf(
    peer,
    callsWith(admin, () => Date.now() + 10 * year * 3_600_000),
  )
  expect(fault).toEqual(expected('unauthenticated', /the client certificate expired on \d{4}-\d\d-\d\dT/))
})

describe('who does not speak the Talos API', () => {
  test.each<[string, (socket: { write: (text: string) => unknown }) => void]>([
    ['SSH', socket => socket.write('SSH-2.0-OpenSSH_9.6\r\n')],
    ['gRPC without TLS', socket => socket.write(settings.toString('latin1'))],
    ['plain HTTP', socket => socket.write('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\npassword=hunter2')],
  ])('%s', async (_, greet) => {
    const peer = await met(startPlain(socket => void socket.once('data', () => greet(socket))))
    expect(await faultOf(peer)).toEqual(expected('wrongPeer', /does not speak TLS.*check address and port/))
  })

  test('HTTP/1.1 behind TLS', async () => {
    const peer = await met(startTls(ca, socket => void socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')))
    expect(await faultOf(peer)).toEqual(expected('unreachable', /./))
  })

  test.each([
    [404, 'a proxy that knows no such page'],
    [502, 'a proxy without a machine behind it'],
    [403, 'a proxy that forbids it'],
    [200, 'a web page'],
  ])('HTTP status %i: %s', async status => {
    const peer = await met(
      startHttp2(ca, stream => {
        stream.respond({ ':status': status, 'content-type': 'text/html' })
        stream.end('<html>token=hunter2</html>')
      }),
    )
    // Never "the machine does not have this", which would be taken for a fact.
    expect((await faultOf(peer)).kind).toMatch(/^(unreachable|unknown)$/)
  })
})

describe('connections that lead nowhere', () => {
  test('an address from which no packet comes', async () => {
    const peer = await met(startBlackHole())
    const calls = callsWith()
    const asked = faultOf(peer, calls)
    await vi.waitFor(async () => expect(await connecting(peer)).toBe(2))
    expect(await asked).toEqual(expected('unreachable', /no answer within 1 s$/))
    // The kernel alone would go on trying for two minutes.
    await vi.waitFor(async () => expect(await connecting(peer)).toBe(1))
  })

  test('a machine at an IP address is found without DNS [B169]', async () => {
    const looked: string[] = []
    const observer = new PerformanceObserver(list => looked.push(...list.getEntries().map(({ name }) => name)))
    observer.observe({ entryTypes: ['dns'] })
    onTestFinished(() => observer.disconnect())
    const peer = await met(startTls(ca, socket => socket.end()))
    await callsWith().unary(peer.address.replace('127.0.0.1', 'localhost'), method.version, {}, { deadlineMs })
    await vi.waitFor(() => expect(looked.length).toBeGreaterThan(0))
    const byName = looked.length
    await faultOf(peer)
    expect(looked.length).toBe(byName)
    expect(new Set(looked)).toEqual(new Set(['lookup']))
  })

  test('an address of IPv6 with brackets, and one without a port [B031]', async () => {
    const peer = await met(
      startHttp2(
        ca,
        stream => {
          stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
          stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
          stream.end(
            framed(toBinary(VersionResponseSchema, create(VersionResponseSchema, { messages: [{ version: { tag: 'v1.13.9' } }] }))),
          )
        },
        '::1',
      ),
    )
    expect(peer.address).toMatch(/^\[::1\]:\d+$/)
    expect(await callsWith().unary(peer.address, method.version, {})).toMatchObject({ ok: true })
    const nobody = await callsWith().unary('::1', method.version, {}, { deadlineMs: 500 })
    expect(nobody).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
  })

  test.each<[string, Parameters<typeof startTls>[1]]>([
    ['TLS and then silence', () => {}],
    ['TLS and then its end', socket => socket.end()],
    ['an end as soon as it is asked', socket => void socket.once('data', () => socket.end())],
    ['a cut as soon as it is asked', socket => void socket.once('data', () => socket.destroy())],
    ['HTTP/2 that begins and falls silent', socket => void socket.write(settings)],
    ['HTTP/2 that begins and ends its half', socket => void socket.end(settings)],
  ])('%s', async (_, talk) => {
    const peer = await met(startTls(ca, talk))
    const calls = callsWith()
    expect(await faultOf(peer, calls)).toEqual(expected('unreachable', /./))
    calls.destroy()
    await vi.waitFor(() => expect(peer.open()).toBe(0), { timeout: 3_000 })
  })
})

/** An empty SETTINGS frame. */
const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])

describe('garbage', () => {
  test.each<[string, Buffer]>([
    ['bytes where frames are due', randomBytes(4_096)],
    ['frames of no kind', Buffer.concat([settings, Buffer.from([0, 0, 4, 0x77, 0xff, 0, 0, 0, 1, 1, 2, 3, 4])])],
    ['data on a stream that nobody opened', Buffer.concat([settings, Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 99, 1])])],
    ['a frame larger than allowed', Buffer.concat([settings, Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1])])],
  ])('%s', async (_, bytes) => {
    const peer = await met(startTls(ca, socket => void socket.write(bytes)))
    expect(await faultOf(peer)).toEqual(expected('unreachable', /./))
  })

  test.each<[string, Buffer, Fault['kind']]>([
    ['a message that is none', framed(Buffer.from('ff'.repeat(40), 'hex')), 'unknown'],
    ['a message longer than it says', Buffer.concat([framed(Buffer.alloc(3)), Buffer.alloc(100, 0xaa)]), 'unknown'],
    ['a message that ends too soon', framed(Buffer.alloc(3), { length: 500 }), 'unreachable'],
    ['a message compressed in no way', framed(Buffer.alloc(3), { compressed: 1 }), 'unreachable'],
    ['a message of 4 GiB, it says', framed(Buffer.alloc(3), { length: 0xff_ff_ff_ff }), 'unknown'],
    ['no message', Buffer.alloc(0), 'unreachable'],
  ])('%s', async (_, bytes, kind) => {
    const peer = await met(
      startHttp2(ca, stream => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
        stream.end(bytes)
      }),
    )
    expect(await faultOf(peer)).toEqual(expected(kind, /./))
  })

  test.each<[string, Record<string, string> | undefined]>([
    ['trailers without a status', { 'x-note': 'fine' }],
    ['no trailers', undefined],
    ['a status that is no number', { 'grpc-status': 'fine' }],
  ])('%s: whether the call had its effect is not known', async (_, trailers) => {
    const peer = await met(
      startHttp2(ca, stream => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: trailers !== undefined })
        if (trailers) stream.on('wantTrailers', () => stream.sendTrailers(trailers))
        stream.end(framed(Buffer.alloc(0)))
      }),
    )
    expect((await faultOf(peer)).kind).toBe('unreachable')
  })

  test('a stream whose trailers have no status: it is not taken for a whole one', async () => {
    const peer = await met(
      startHttp2(ca, stream => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
        stream.on('wantTrailers', () => stream.sendTrailers({ 'x-note': 'fine' }))
        stream.end(framed(Buffer.alloc(0)))
      }),
    )
    let messages = 0
    const answer = await callsWith().stream(peer.address, method.etcdSnapshot, {}, () => void (messages += 1), { deadlineMs })
    expect(messages).toBe(1)
    expect(!answer.ok && told(answer.fault, peer.address)).toEqual(expected('unreachable', /./))
  })

  test('a status with a secret in its text, and 60 KiB of it [B117]', async () => {
    const peer = await met(
      startHttp2(ca, stream => {
        const message = encodeURI(`token: hunter2 -----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n ${'a.'.repeat(20_000)}`)
        stream.respond(
          { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '2', 'grpc-message': message },
          { endStream: true },
        )
      }),
    )
    const fault = await faultOf(peer)
    expect(fault.message).not.toContain('MHcCAQEE')
  })
})

/** The same message for ever, as fast as it is read. */
const endless = (message: Buffer) => (stream: ServerHttp2Stream) => {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
  const more = () => {
    while (!stream.destroyed && stream.write(message));
  }
  stream.on('drain', more)
  more()
}

describe('without growth of memory', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = () => {
    collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return (heapUsed + arrayBuffers) / 1024 ** 2
  }

  test('a stream without an end', async () => {
    const message = framed(Buffer.from([0x12, 0x80, 0x08, ...Buffer.alloc(1_024)]))
    const peer = await met(startHttp2(ca, endless(message)))
    let messages = 0
    const before = used()
    const answer = await callsWith().stream(peer.address, method.etcdSnapshot, {}, () => void (messages += 1), { deadlineMs })
    expect(messages).toBeGreaterThan(1_000)
    expect(!answer.ok && told(answer.fault, peer.address)).toEqual(expected('unreachable', /no answer within 1 s/))
    await vi.waitFor(() => expect(used() - before).toBeLessThan(16), { timeout: 4_000 })
  })

  test('a list without an end', async () => {
    const metadata = { namespace: 'cluster', type: 'Members.cluster.talos.dev', id: 'x', version: '1', phase: 'running' }
    const one = framed(
      toBinary(ListResponseSchema, create(ListResponseSchema, { resource: { metadata, spec: { protoSpec: Buffer.alloc(2_048) } } })),
    )
    const peer = await met(startHttp2(ca, endless(one)))
    const before = used()
    const listed = await listResources(callsWith(), peer.address, resourceTypes.member)
    expect(listed).toMatchObject({ ok: false, fault: { kind: 'unknown', message: expect.stringContaining('the list does not end') } })
    await vi.waitFor(() => expect(used() - before).toBeLessThan(16), { timeout: 4_000 })
  })

  test.each<[string, Buffer]>([
    ['PING', Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8])],
    ['SETTINGS', settings],
    // Of a header block that is never finished.
    ['CONTINUATION', Buffer.from([0, 0, 4, 9, 0, 0, 0, 0, 1, 0x40, 1, 0x61, 0])],
  ])('frames of %s without an end', async (_, frame) => {
    const many = Buffer.concat(Array.from({ length: 1_000 }, () => frame))
    const peer = await met(
      startTls(ca, socket => {
        socket.write(Buffer.concat([settings, Buffer.from([0, 0, 1, 1, 0, 0, 0, 0, 1, 0x88])]))
        const more = (): void => {
          while (!socket.destroyed && socket.write(many));
        }
        socket.on('drain', more)
        more()
      }),
    )
    const calls = callsWith()
    const before = used()
    expect(await faultOf(peer, calls)).toEqual(expected('unreachable', /./))
    calls.destroy()
    await vi.waitFor(() => expect(used() - before).toBeLessThan(16), { timeout: 4_000 })
  })

  test('an answer that comes byte by byte', async () => {
    const peer = await met(
      startHttp2(ca, stream => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
        stream.write(framed(Buffer.alloc(1), { length: 1_000_000 }))
        const drip = setInterval(() => stream.write(Buffer.alloc(1)), 5)
        stream.once('close', () => clearInterval(drip))
      }),
    )
    expect(await faultOf(peer)).toEqual(expected('unreachable', /no answer within 1 s/))
  })

  test('33 MiB, again and again', async () => {
    const body = framed(Buffer.alloc(33 * 1024 ** 2))
    const peer = await met(
      startHttp2(ca, stream => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
        stream.end(body)
      }),
    )
    const calls = callsWith()
    expect(await faultOf(peer, calls)).toEqual(expected('unknown', /larger than max/))
    const before = used()
    for (let round = 0; round < 20; round++) expect(await faultOf(peer, calls)).toEqual(expected('unknown', /larger than max/))
    await vi.waitFor(() => expect(used() - before).toBeLessThan(16), { timeout: 4_000 })
  })
})

/** Connections of this process that are still being made to a peer: ours, and the one that found it full. */
async function connecting({ address }: BadPeer): Promise<number> {
  const port = Number(address.split(':')[1]).toString(16).toUpperCase().padStart(4, '0')
  const synSent = '02'
  return (await readFile('/proc/self/net/tcp', 'utf8')).split('\n').filter(line => {
    const [, , remote, state] = line.trim().split(/\s+/)
    return remote?.endsWith(`:${port}`) && state === synSent
  }).length
}
