import { status } from '@grpc/grpc-js'
import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { EventType, State, type WatchRequest } from '../../../proto/gen/cosi/resource/state_pb.ts'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { RuntimeMachineStage } from '../../../proto/gen/talos/resource/definitions/enums/enums_pb.ts'
import { newTalosCa, realClock, Refusal, serve, startPassage, startTalos, talosconfigFor } from '../../../test/scripted-talos.ts'
import type { Clock } from '../../ports/clock.ts'
import { failed, type Fault, type Result } from '../../ports/fault.ts'
import { type Calls, talosCalls } from './calls.ts'
import { resourceTypes } from './resource-types.ts'
import { parseTalosconfig } from './talosconfig.ts'
import { type Contents, watchResources, type WatchOptions } from './watch.ts'

vi.setConfig({ testTimeout: 20_000 })

const of = resourceTypes.machineStatus
const { BOOTING, RUNNING } = { BOOTING: RuntimeMachineStage.MACHINE_STAGE_BOOTING, RUNNING: RuntimeMachineStage.MACHINE_STAGE_RUNNING }
const { CREATED, UPDATED, DESTROYED, BOOTSTRAPPED, ERRORED, NOOP } = EventType
const ca = await newTalosCa()
const admin = await talosconfigFor(ca)

const mark = (text: string) => new TextEncoder().encode(text)
const event = (eventType: EventType, id: string, stage: RuntimeMachineStage, bookmark?: string) => ({
  eventType,
  resource: {
    metadata: { namespace: of.namespace, type: of.type, id, version: '1', phase: 'running' },
    spec: { protoSpec: toBinary(of.schema, create(of.schema, { stage })) },
  },
  ...(bookmark === undefined ? {} : { bookmark: mark(bookmark) }),
})
const begun = { event: [] }
const all = (bookmark?: string) => ({ event: [event(BOOTSTRAPPED, '', 0, bookmark)] })

type Answer = (request: WatchRequest) => AsyncIterable<object>
/** Something to wait for and to let go. */
const gate = () => Promise.withResolvers<void>()
const forever = new Promise<never>(() => {})

/** A machine that answers each watch by the next script; after the last one it stays silent. */
async function scripted(...scripts: Answer[]) {
  const requests: WatchRequest[] = []
  const talos = await startTalos({
    ca,
    services: [
      serve(State, {
        watch: (request: WatchRequest) => {
          requests.push(request)
          return (scripts[requests.length - 1] ?? silent)(request)
        },
      }),
      serve(MachineService, { version: () => ({ messages: [{}] }) }),
    ],
  })
  onTestFinished(talos.stop)
  return { ...talos, requests, begins: () => requests.map(({ options }) => beginning(options?.startFromBookmark)) }
}
const beginning = (bookmark: Uint8Array | undefined) => (bookmark ? new TextDecoder().decode(bookmark) : 'list')
async function* silent() {
  yield begun
  await forever
}

function callsTo(probeMs?: number): Calls {
  const parsed = parseTalosconfig(admin, { now: new Date() })
  if (!parsed.ok) throw new Error(parsed.problem)
  const { notBefore, notAfter } = parsed.value
  const calls = talosCalls({
    ...{ credential: parsed.value, credentialBegins: notBefore, credentialExpires: notAfter, clock: realClock },
    ...(probeMs === undefined ? {} : { probeMs }),
  })
  onTestFinished(calls.destroy)
  return calls
}

/** Between two attempts time runs ten times as fast. */
const hasty: Clock = { ...realClock, after: (ms, run) => realClock.after(ms / 10, run) }

function watching(address: string, options: Partial<WatchOptions<typeof of.schema>> = {}) {
  const told: string[] = []
  const faults: Fault[] = []
  const over = new AbortController()
  onTestFinished(() => over.abort())
  let isSettled = false
  const settled = watchResources({
    ...{ calls: options.calls ?? callsTo(), clock: hasty, random: () => 0, address, of, signal: over.signal },
    told: contents => void told.push(textOf(contents)),
    onFault: fault => faults.push(fault),
    ...options,
  }).then(() => {
    isSettled = true
  })
  return { told, faults, stop: () => over.abort(), settled, isSettled: () => isSettled }
}
const textOf = (contents: Contents<typeof of.schema>) => [...contents].map(([id, { spec }]) => `${id}=${spec.stage}`).join(' ')
const soon = { timeout: 10_000 }

describe('a watch', () => {
  test('begins with all there is, told at once, and goes on with each change', async () => {
    const machine = await scripted(async function* () {
      yield begun
      yield { event: [event(CREATED, 'a', BOOTING)] }
      yield { event: [event(CREATED, 'b', BOOTING)] }
      yield all('1')
      yield { event: [event(UPDATED, 'a', RUNNING, '2'), event(CREATED, 'c', BOOTING, '3')] }
      yield { event: [event(NOOP, '', 0, '4')] }
      yield { event: [event(DESTROYED, 'b', BOOTING, '5')] }
      await forever
    })
    const watch = watching(machine.address)
    await vi.waitFor(() => expect(watch.told).toHaveLength(3), soon)
    expect(watch.told).toEqual([`a=${BOOTING} b=${BOOTING}`, `a=${RUNNING} b=${BOOTING} c=${BOOTING}`, `a=${RUNNING} c=${BOOTING}`])
    expect(machine.requests[0]).toMatchObject({
      namespace: of.namespace,
      type: of.type,
      apiVersion: 1,
      options: { bootstrapContents: true },
    })
  })

  test('goes on from its last bookmark after a cut, and tells nothing twice', async () => {
    const machine = await scripted(
      async function* () {
        yield begun
        yield { event: [event(CREATED, 'a', BOOTING)] }
        yield all('1')
        yield { event: [event(UPDATED, 'a', RUNNING, '2')] }
        throw new Refusal(status.UNAVAILABLE, 'transport is closing')
      },
      async function* () {
        yield begun
        yield { event: [event(CREATED, 'b', BOOTING, '3')] }
      },
      async function* () {
        yield begun
        yield { event: [event(DESTROYED, 'a', RUNNING, '4')] }
        await forever
      },
    )
    const watch = watching(machine.address)
    await vi.waitFor(() => expect(watch.told.at(-1)).toBe(`b=${BOOTING}`), soon)
    expect(machine.begins()).toEqual(['list', '2', '3'])
    expect(watch.told).toEqual([`a=${BOOTING}`, `a=${RUNNING}`, `a=${RUNNING} b=${BOOTING}`, `b=${BOOTING}`])
    expect(watch.faults.map(({ kind }) => kind)).toEqual(['unreachable', 'unreachable'])
  })

  test('lists anew, at once, where the machine does not know its bookmark', async () => {
    const machine = await scripted(
      async function* () {
        yield begun
        yield { event: [event(CREATED, 'a', RUNNING)] }
        yield all('old boot/1')
      },
      // oxlint-disable-next-line require-yield -- it is refused
      async function* () {
        throw new Refusal(status.FAILED_PRECONDITION, 'invalid bookmark')
      },
      async function* () {
        yield begun
        yield { event: [event(CREATED, 'b', BOOTING)] }
        yield all('new boot/1')
        await forever
      },
    )
    const watch = watching(machine.address)
    await vi.waitFor(() => expect(watch.told).toEqual([`a=${RUNNING}`, `b=${BOOTING}`]), soon)
    expect(machine.begins()).toEqual(['list', 'old boot/1', 'list'])
  })

  test('lists anew after the machine says that it lost track', async () => {
    const machine = await scripted(
      async function* () {
        yield begun
        yield { event: [event(CREATED, 'a', RUNNING)] }
        yield all('1')
        yield { event: [{ eventType: ERRORED, error: 'buffer overrun: namespace "runtime"' }] }
        await forever
      },
      async function* () {
        yield begun
        yield all('9')
        await forever
      },
    )
    const watch = watching(machine.address)
    await vi.waitFor(() => expect(watch.told).toEqual([`a=${RUNNING}`, '']), soon)
    expect(machine.begins()).toEqual(['list', 'list'])
    expect(watch.faults).toEqual([
      { kind: 'busy', message: `${machine.address}: State.Watch ${of.type}: the machine ended it: buffer overrun: namespace "runtime"` },
    ])
  })

  test('of a machine without bookmarks lists anew after each cut, also where it had them before', async () => {
    const machine = await scripted(
      async function* () {
        yield begun
        yield all()
        yield { event: [event(CREATED, 'a', BOOTING)] }
      },
      async function* () {
        yield begun
        yield { event: [event(CREATED, 'a', RUNNING)] }
        yield all('1')
      },
      async function* () {
        yield begun
        yield { event: [event(UPDATED, 'a', BOOTING)] }
        await forever
      },
      async function* () {
        yield begun
        yield { event: [event(CREATED, 'b', RUNNING)] }
        yield all()
        await forever
      },
    )
    const watch = watching(machine.address)
    await vi.waitFor(() => expect(watch.told.at(-1)).toBe(`b=${RUNNING}`), soon)
    expect(machine.begins()).toEqual(['list', 'list', '1', 'list'])
  })

  test('never tells half of what there is', async () => {
    const machine = await scripted(
      async function* () {
        yield begun
        yield { event: [event(CREATED, 'a', BOOTING, '1')] }
      },
      async function* () {
        yield begun
        yield { event: [event(CREATED, 'a', BOOTING, '1')] }
        yield { event: [event(CREATED, 'b', BOOTING, '1')] }
        yield all('1')
        await forever
      },
    )
    const watch = watching(machine.address)
    await vi.waitFor(() => expect(watch.told).toEqual([`a=${BOOTING} b=${BOOTING}`]), soon)
    expect(machine.begins()).toEqual(['list', 'list'])
  })

  test('is begun anew after an event without a resource, or one that is something else', async () => {
    const machine = await scripted(
      async function* () {
        yield begun
        yield { event: [{ eventType: CREATED, bookmark: mark('1') }] }
        await forever
      },
      async function* () {
        yield begun
        yield { event: [{ eventType: CREATED, resource: { metadata: { id: 'a' }, spec: { protoSpec: mark('token: hunter2') } } }] }
        await forever
      },
      async function* () {
        yield begun
        yield all('1')
        await forever
      },
    )
    const watch = watching(machine.address)
    await vi.waitFor(() => expect(watch.told).toEqual(['']), soon)
    expect(watch.faults.map(({ message }) => message)).toEqual([
      `${machine.address}: State.Watch ${of.type}: the answer has no resource in it`,
      `${machine.address}: State.Watch ${of.type}: its content is not a ${of.schema.typeName}`,
    ])
  })

  test('does not pile up for a slow reader what a busy machine sends', async () => {
    const count = 5_000
    const machine = await scripted(async function* () {
      yield begun
      yield all('0')
      for (let i = 1; i <= count; i++) {
        yield { event: [event(UPDATED, `id-${i % 10}`, i === count ? RUNNING : BOOTING, String(i))] }
        if (i % 100 === 0) await new Promise(setImmediate)
      }
      throw new Refusal(status.UNAVAILABLE, 'transport is closing')
    })
    const slow = gate()
    const told: string[] = []
    const watch = watching(machine.address, {
      told: async contents => {
        told.push(textOf(contents))
        if (told.length === 1) await slow.promise
      },
    })
    await vi.waitFor(() => expect(machine.begins()).toEqual(['list', String(count)]), soon)
    expect(told).toEqual([''])
    slow.resolve()
    await vi.waitFor(() => expect(told).toHaveLength(2), soon)
    expect(told[1]).toContain(`id-0=${RUNNING}`)
    expect(told[1]?.split(' ')).toHaveLength(10)
    expect(watch.faults).toHaveLength(1)
  })

  test('ends with its signal, on the machine too', async () => {
    const left = gate()
    const machine = await scripted(async function* () {
      try {
        yield begun
        yield all('1')
        for (;;) {
          await new Promise(setImmediate)
          yield { event: [event(NOOP, '', 0, '1')] }
        }
      } finally {
        left.resolve()
      }
    })
    const watch = watching(machine.address)
    await vi.waitFor(() => expect(watch.told).toEqual(['']), soon)
    watch.stop()
    await Promise.all([watch.settled, left.promise])
    expect(machine.begins()).toEqual(['list'])
    expect(watch.faults).toEqual([])
  })

  test('ends where its calls are closed, as for a new credential', async () => {
    const machine = await scripted()
    const calls = callsTo()
    const watch = watching(machine.address, { calls })
    await vi.waitFor(() => expect(machine.requests).toHaveLength(1), soon)
    calls.close()
    await watch.settled
    expect(watch.faults).toEqual([])
  })

  test('shares the one connection, and does not keep it when other calls get no answer on it', async () => {
    const machine = await scripted(
      async function* () {
        yield begun
        yield all('1')
        await forever
      },
      async function* () {
        yield begun
        yield { event: [event(CREATED, 'a', RUNNING, '2')] }
        await forever
      },
    )
    const passage = await startPassage(machine.port)
    onTestFinished(passage.stop)
    const calls = callsTo()
    const watch = watching(passage.address, { calls })
    const version = (deadlineMs: number) => calls.unary(passage.address, MachineService.method.version, {}, { deadlineMs })
    await vi.waitFor(() => expect(watch.told).toEqual(['']), soon)
    expect((await version(5_000)).ok).toBe(true)
    expect(passage.open()).toBe(1)

    passage.freeze()
    expect((await version(300)).ok).toBe(false)
    passage.thaw()
    await vi.waitFor(() => expect(watch.told).toEqual(['', `a=${RUNNING}`]), soon)
    expect(machine.begins()).toEqual(['list', '1'])
    expect(passage.open()).toBe(1)
  })

  test('finds out by itself that its connection is dead', async () => {
    const machine = await scripted(async function* () {
      yield begun
      yield all('1')
      await forever
    })
    const passage = await startPassage(machine.port)
    onTestFinished(passage.stop)
    const watch = watching(passage.address, { calls: callsTo(200) })
    await vi.waitFor(() => expect(watch.told).toEqual(['']), soon)
    passage.freeze()
    await vi.waitFor(() => expect(watch.faults.length).toBeGreaterThan(0), soon)
    passage.thaw()
    await vi.waitFor(() => expect(machine.begins()).toEqual(['list', '1']), soon)
  })
})

/** Time that passes only for who waits. */
function jumping() {
  let now = 0
  const waits: number[] = []
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    after: (ms, run) => {
      let isCancelled = false
      setImmediate(() => {
        if (isCancelled) return
        now += ms
        waits.push(ms)
        run()
      })
      return () => {
        isCancelled = true
      }
    },
  }
  return { clock, waits }
}

/** Calls whose streams all end the same way. */
const ending = (stream: (cancelled: Promise<void>) => Promise<Result<void>>): Calls => ({
  ...callsTo(),
  stream: (_address, _method, _request, _each, options) =>
    stream(new Promise(resolve => void options?.cancellation?.onCancel(() => resolve()))),
})

describe('between two attempts', () => {
  test.each([
    ['least', 0, [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]],
    ['most', 1 - 1e-9, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]],
  ])('passes longer each time, at the %s', async (_, random, expected) => {
    const { clock, waits } = jumping()
    const over = new AbortController()
    const settled = watchResources({
      ...{ clock, random: () => random, address: '10.0.0.1', of, signal: over.signal, told: () => {} },
      calls: ending(async () => failed('unreachable', 'no route to host')),
      onFault: () => {
        if (waits.length === expected.length) over.abort()
      },
    })
    await settled
    expect(waits.map(Math.round)).toEqual(expected)
  })

  test('a machine that takes the watch and says nothing is left after 30 s', async () => {
    const { clock, waits } = jumping()
    const over = new AbortController()
    const faults: Fault[] = []
    await watchResources({
      ...{ clock, random: () => 0, address: '10.0.0.1', of, signal: over.signal, told: () => {} },
      calls: ending(async cancelled => {
        await cancelled
        return failed('cancelled', 'stopped by us')
      }),
      onFault: fault => {
        faults.push(fault)
        if (faults.length === 2) over.abort()
      },
    })
    expect(waits).toEqual([30_000, 500, 30_000])
    expect(faults[0]).toEqual({
      kind: 'unreachable',
      message: `10.0.0.1: State.Watch ${of.type}: the machine did not begin it within 30 s`,
    })
  })
})
