import { createHash, randomBytes } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect, onTestFinished, test, vi } from 'vitest'
import { DataSchema } from '../../../proto/gen/common/common_pb.ts'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { done, failed } from '../../ports/fault.ts'
import type { SnapshotSink } from '../../ports/talos.ts'
import { framed, startHttp2 } from '../../../test/bad-peers.ts'
import { newTalosCa, realClock, Refusal, serve, startTalos, talosconfigFor } from '../../../test/scripted-talos.ts'
import { talosConnection } from './connection.ts'

const ca = await newTalosCa()
const admin = await talosconfigFor(ca)

function connect(probeMs = 10_000) {
  const opened = talosConnection({ talosconfig: admin, clock: realClock, probeMs })
  if (!opened.ok) throw new Error(opened.fault.message)
  onTestFinished(opened.value.destroy)
  return opened.value
}

/** As etcd gives it: pages, and their SHA-256 after them. */
function snapshotOf(pages: number): Buffer {
  const database = randomBytes(pages * 512)
  return Buffer.concat([database, createHash('sha256').update(database).digest()])
}

/** Sends it in messages, no faster than it is read. `sent` tells how far. */
async function serving(snapshot: Buffer, options: { readonly messageBytes?: number; readonly cutAfter?: number } = {}) {
  const { messageBytes = 1_024, cutAfter = Infinity } = options
  let sent = 0
  let probes = 0
  const peer = await startHttp2(ca, (stream, headers) => {
    if (headers[':path'] !== '/machine.MachineService/EtcdSnapshot') {
      probes += 1
      return stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12' }, { endStream: true })
    }
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    let at = 0
    const more = () => {
      while (at < snapshot.length) {
        if (at >= cutAfter) return stream.session?.destroy()
        const bytes = snapshot.subarray(at, at + messageBytes)
        at += bytes.length
        sent = at
        if (!stream.write(framed(toBinary(DataSchema, create(DataSchema, { bytes }))))) return undefined
      }
      return stream.end()
    }
    stream.on('drain', more)
    return more()
  })
  onTestFinished(peer.stop)
  return { address: peer.address, sent: () => sent, probes: () => probes }
}

const never = { cancelled: false, onCancel: () => () => {} }
const quiet = { cancellation: never, progress: () => {} }

function collecting() {
  const parts: Buffer[] = []
  const sink: SnapshotSink = async bytes => {
    parts.push(Buffer.from(bytes))
    return done
  }
  return { sink, content: () => Buffer.concat(parts) }
}

test.each([
  [1_024, 5_000],
  [700_000, 3_000],
  [7, 40],
  [32, 1],
  [1_024, 0],
])('messages of %i bytes, %i pages: all of it, with its digest', async (messageBytes, pages) => {
  const snapshot = snapshotOf(pages)
  const { address } = await serving(snapshot, { messageBytes })
  const { sink, content } = collecting()
  expect(await connect().snapshot(address, sink, quiet)).toEqual({
    ok: true,
    value: { bytes: snapshot.length, sha256: createHash('sha256').update(snapshot).digest('hex') },
  })
  expect(content().equals(snapshot)).toBe(true)
})

test('a slow sink holds the machine back, and is not taken for a dead connection', async () => {
  const snapshot = snapshotOf(96 * 1024)
  const { address, sent, probes } = await serving(snapshot)
  let taken = 0
  let open = () => {}
  const gate = new Promise<void>(resolve => {
    open = resolve
  })
  const downloaded = connect(150).snapshot(
    address,
    async bytes => {
      taken += bytes.length
      await gate
      return done
    },
    quiet,
  )
  await vi.waitFor(() => expect(taken).toBeGreaterThan(0))
  // The connection is full, and yet the machine answers other calls on it.
  await vi.waitFor(() => expect(probes()).toBeGreaterThan(5), { timeout: 8_000 })
  let last = -1
  await vi.waitFor(
    () => {
      const before = last
      last = sent()
      expect(last).toBe(before)
    },
    { interval: 250 },
  )
  // What is under way is bounded by the window of the stream and what both sides' sockets hold.
  expect(last).toBeLessThan(20 * 1024 ** 2)
  open()
  expect(await downloaded).toMatchObject({ ok: true, value: { bytes: snapshot.length } })
  expect(taken).toBe(snapshot.length)
}, 20_000)

test('a connection that breaks, and a second try from the first byte', async () => {
  const snapshot = snapshotOf(4_000)
  const half = await serving(snapshot, { cutAfter: 1_000_000 })
  const talos = connect()
  expect(await talos.snapshot(half.address, collecting().sink, quiet)).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
  const whole = await serving(snapshot)
  const { sink, content } = collecting()
  expect(await talos.snapshot(whole.address, sink, quiet)).toMatchObject({ ok: true })
  expect(content().equals(snapshot)).toBe(true)
})

test.each([
  ['cut short, and ended as if it were whole', (s: Buffer) => s.subarray(0, 500_000), 'unreachable', /came only in part: 500000 bytes/],
  ['cut at the end of a page', (s: Buffer) => s.subarray(0, 512_000 + 32), 'unknown', /damaged: its checksum/],
  ['with a byte changed', (s: Buffer) => s.fill((s[1_000] ?? 0) + 1, 1_000, 1_001), 'unknown', /damaged: its checksum/],
  ['empty', (s: Buffer) => s.subarray(0, 0), 'unreachable', /came only in part: 0 bytes/],
])('%s: no snapshot', async (_, spoilt, kind, words) => {
  const { address } = await serving(spoilt(snapshotOf(2_000)))
  const answer = await connect().snapshot(address, collecting().sink, quiet)
  expect(answer).toMatchObject({ ok: false, fault: { kind, message: expect.stringMatching(words) } })
})

test('a sink that fails ends the download with its own fault', async () => {
  const snapshot = snapshotOf(200 * 1024)
  const { address, sent } = await serving(snapshot)
  let calls = 0
  const full: SnapshotSink = async () => (++calls === 3 ? failed('busy', 's3.example.org: no space') : done)
  expect(await connect().snapshot(address, full, quiet)).toEqual(failed('busy', 's3.example.org: no space'))
  expect(calls).toBe(3)
  expect(sent()).toBeLessThan(snapshot.length)
})

test('a sink that throws, and a download that is cancelled', async () => {
  const { address } = await serving(snapshotOf(20_000))
  const talos = connect()
  const short = await serving(snapshotOf(1))
  const throws: SnapshotSink = () => Promise.reject(new Error('disk full'))
  expect(await talos.snapshot(short.address, throws, quiet)).toMatchObject({ ok: false, fault: { kind: 'unknown' } })
  const broken = await talos.snapshot(address, throws, quiet)
  expect(broken).toMatchObject({ ok: false, fault: { kind: 'unknown', message: expect.stringContaining('disk full') } })
  let cancel = () => {}
  const cancellation = { cancelled: false, onCancel: (run: () => void) => ((cancel = run), () => {}) }
  const cancelled = await talos.snapshot(address, async () => (cancel(), done), { ...quiet, cancellation })
  expect(cancelled).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
})

test('a worker has none, and a machine may say why it cannot', async () => {
  const machine = await startTalos({
    ca,
    services: [
      serve(MachineService, {
        async *etcdSnapshot() {
          yield* await Promise.reject<never[]>(new Refusal(12, 'etcd snapshot is only available on control plane nodes'))
        },
      }),
    ],
  })
  onTestFinished(machine.stop)
  expect(await connect().snapshot(machine.address, collecting().sink, quiet)).toMatchObject({ ok: false, fault: { kind: 'unsupported' } })
  const other = await startTalos({
    ca,
    services: [
      serve(MachineService, {
        async *etcdSnapshot() {
          yield { metadata: { error: 'etcd is stopping' } }
        },
      }),
    ],
  })
  onTestFinished(other.stop)
  const answer = await connect().snapshot(other.address, collecting().sink, quiet)
  expect(answer).toMatchObject({ ok: false, fault: { kind: 'unknown', message: expect.stringContaining('etcd is stopping') } })
})
