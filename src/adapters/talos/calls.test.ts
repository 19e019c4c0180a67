import { status } from '@grpc/grpc-js'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { LifecycleService } from '../../../proto/gen/machine/lifecycle_pb.ts'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import {
  newTalosCa,
  realClock,
  type Passage,
  Refusal,
  type Served,
  serve,
  startPassage,
  startTalos,
  talosconfigFor,
} from '../../../test/scripted-talos.ts'
import { type CallReport, type Calls, talosCalls } from './calls.ts'
import { parseTalosconfig } from './talosconfig.ts'

const ca = await newTalosCa()
const otherCa = await newTalosCa()
const { method } = MachineService

async function callsWith(
  talosconfig: string,
  options: { readonly probeMs?: number; readonly reports?: CallReport[]; readonly monotonic?: () => number } = {},
): Promise<Calls> {
  // An expired certificate is refused when it is read; here it is to expire afterwards.
  const parsed = parseTalosconfig(talosconfig, { now: new Date(0) })
  if (!parsed.ok) throw new Error(parsed.problem)
  const calls = talosCalls({
    credential: parsed.value,
    credentialExpires: parsed.value.notAfter,
    credentialBegins: parsed.value.notBefore,
    clock: { ...realClock, monotonic: options.monotonic ?? realClock.monotonic },
    onCall: report => options.reports?.push(report),
    ...(options.probeMs === undefined ? {} : { probeMs: options.probeMs }),
  })
  onTestFinished(calls.destroy)
  return calls
}

async function machineWith(services: readonly Served[], options: Partial<Parameters<typeof startTalos>[0]> = {}) {
  const machine = await startTalos({ ca, services, ...options })
  onTestFinished(machine.stop)
  return machine
}

const talks = serve(MachineService, { version: () => ({ messages: [{ version: { tag: 'v1.13.5' } }] }) })
const admin = await talosconfigFor(ca)

test('a call over mutual TLS, counted', async () => {
  const reports: CallReport[] = []
  const machine = await machineWith([talks])
  const calls = await callsWith(admin, { reports })
  const answer = await calls.unary(machine.address, method.version, {})
  expect(answer).toMatchObject({ ok: true, value: { messages: [{ version: { tag: 'v1.13.5' } }] } })
  expect(reports).toMatchObject([{ address: machine.address, method: 'machine.MachineService/Version', code: 0 }])
})

test('an address that is none is refused before anything is dialled [B037 siderolabs/talos#7253]', async () => {
  const calls = await callsWith(admin)
  for (const address of ['', 'http://10.0.0.1', '10.0.0.1:70000', '[10.0.0.1]:1']) {
    const answer = await calls.unary(address, method.version, {})
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'invalid' } })
  }
})

describe('who is there', () => {
  test('a machine of another authority', async () => {
    const machine = await machineWith([talks], { ca: otherCa, clientCa: ca })
    const answer = await (await callsWith(admin)).unary(machine.address, method.version, {})
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'wrongPeer' } })
    expect(!answer.ok && answer.fault.message).toContain(`${machine.address}: MachineService.Version: `)
  })

  test('a certificate for another address', async () => {
    const machine = await machineWith([talks], { hosts: ['10.9.9.9', 'machine.ichor.invalid'] })
    const answer = await (await callsWith(admin)).unary(machine.address, method.version, {})
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'wrongPeer' } })
    expect(!answer.ok && answer.fault.message).toMatch(/altnames|127\.0\.0\.1/)
  })

  // Node's server says no TLS alert; a machine's does, and classify.test.ts has its words.
  test('a machine that does not know our authority, and just hangs up', async () => {
    const machine = await machineWith([talks], { clientCa: otherCa })
    const answer = await (await callsWith(admin)).unary(machine.address, method.version, {})
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
    expect(!answer.ok && answer.fault.message).toContain('may not accept the client certificate')
  })

  test('a client certificate that ran out, whatever the machine says to it', async () => {
    const machine = await machineWith([talks])
    const expired = await talosconfigFor(ca, { hours: -1 })
    const answer = await (await callsWith(expired)).unary(machine.address, method.version, {})
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'unauthenticated' } })
    expect(!answer.ok && answer.fault.message).toMatch(/expired on \d{4}-\d\d-\d\d/)
  })

  test('a role that may not', async () => {
    const machine = await machineWith([
      serve(MachineService, {
        reboot: () => {
          throw new Refusal(status.PERMISSION_DENIED, 'not authorized')
        },
      }),
    ])
    const answer = await (await callsWith(await talosconfigFor(ca, { roles: ['os:reader'] }))).unary(machine.address, method.reboot, {})
    expect(answer).toEqual({
      ok: false,
      fault: { kind: 'forbidden', message: `${machine.address}: MachineService.Reboot: not authorized` },
    })
  })

  test('nobody', async () => {
    const passage = await startPassage(1)
    passage.stop()
    const answer = await (await callsWith(admin)).unary(passage.address, method.version, {})
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
  })
})

describe('an end in time', () => {
  test('a peer that accepts and says nothing [B167 grpc/grpc-node#924]', async () => {
    const machine = await machineWith([talks])
    const passage = await startPassage(machine.port)
    onTestFinished(passage.stop)
    passage.freeze()
    const calls = await callsWith(admin)
    const from = performance.now()
    const answer = await calls.unary(passage.address, method.version, {}, { deadlineMs: 300 })
    expect(performance.now() - from).toBeLessThan(1_000)
    expect(answer).toEqual({
      ok: false,
      fault: { kind: 'unreachable', message: `${passage.address}: MachineService.Version: no answer within 0.3 s` },
    })

    // Nothing of the dead connection stays, and the machine is found again as soon as it is back.
    await vi.waitFor(() => expect(passage.open()).toBe(0), { timeout: 2_000 })
    passage.thaw()
    await vi.waitFor(
      async () => expect(await calls.unary(passage.address, method.version, {}, { deadlineMs: 1_000 })).toMatchObject({ ok: true }),
      { timeout: 8_000 },
    )
  }, 15_000)

  test('a connection that worked and fell silent is not kept for the next call', async () => {
    const machine = await machineWith([talks])
    const passage = await startPassage(machine.port)
    onTestFinished(passage.stop)
    const calls = await callsWith(admin)
    expect(await calls.unary(passage.address, method.version, {})).toMatchObject({ ok: true })
    passage.freeze()
    expect(await calls.unary(passage.address, method.version, {}, { deadlineMs: 200 })).toMatchObject({
      ok: false,
      fault: { kind: 'unreachable' },
    })
    passage.thaw()
    await vi.waitFor(
      async () => expect(await calls.unary(passage.address, method.version, {}, { deadlineMs: 1_000 })).toMatchObject({ ok: true }),
      { timeout: 8_000 },
    )
  }, 15_000)

  test('a slow answer of a machine that talks otherwise costs no connection', async () => {
    const machine = await machineWith([
      serve(MachineService, { version: () => ({ messages: [{}] }), etcdStatus: () => new Promise<never>(() => {}) }),
    ])
    const passage = await startPassage(machine.port)
    onTestFinished(passage.stop)
    const calls = await callsWith(admin)
    const slow = calls.unary(passage.address, method.etcdStatus, {}, { deadlineMs: 3_000 })
    expect(await calls.unary(passage.address, method.version, {})).toMatchObject({ ok: true })
    expect(await slow).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
    expect(passage.open()).toBe(1)
  })

  test('a call that has just begun when another one has passed its time gets its answer', async () => {
    let answer = () => {}
    const asked = new Promise<void>(resolve => (answer = resolve))
    const machine = await machineWith([
      serve(MachineService, {
        version: async () => {
          await asked
          return { messages: [{}] }
        },
        etcdStatus: () => new Promise<never>(() => {}),
      }),
    ])
    const calls = await callsWith(admin)
    const slow = calls.unary(machine.address, method.etcdStatus, {}, { deadlineMs: 500 })
    const young = calls.unary(machine.address, method.version, {}, { deadlineMs: 10_000 })
    expect(await slow).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
    answer()
    expect(await young).toMatchObject({ ok: true })
  }, 15_000)

  test('a long stream beside which the machine stops answering', async () => {
    const machine = await machineWith([
      talks,
      serve(LifecycleService, {
        async *upgrade() {
          yield { progress: { response: { case: 'message', value: 'begun' } } }
          await new Promise<never>(() => {})
        },
      }),
    ])
    const passage = await startPassage(machine.port)
    onTestFinished(passage.stop)
    const calls = await callsWith(admin, { probeMs: 80 })
    const answer = await calls.stream(passage.address, LifecycleService.method.upgrade, {}, () => passage.freeze(), { deadlineMs: 600_000 })
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
    expect(!answer.ok && answer.fault.message).toContain('3 probes in a row')
    await vi.waitFor(() => expect(passage.open()).toBe(0), { timeout: 2_000 })
  })

  test('a long quiet stream beside which the machine answers', async () => {
    let finish = () => {}
    const finished = new Promise<void>(resolve => {
      finish = resolve
    })
    const machine = await machineWith([
      talks,
      serve(LifecycleService, {
        async *upgrade() {
          await finished
          yield { progress: { response: { case: 'exitCode', value: 0 } } }
        },
      }),
    ])
    const reports: CallReport[] = []
    const calls = await callsWith(admin, { probeMs: 250, reports })
    const running = calls.stream(machine.address, LifecycleService.method.upgrade, {}, () => {}, { deadlineMs: 600_000 })
    await vi.waitFor(() => expect(reports.filter(({ code }) => code === 0).length).toBeGreaterThan(4), { timeout: 15_000 })
    finish()
    expect(await running).toMatchObject({ ok: true })
  }, 20_000)
})

test('a cancellation ends the call, and one that came before starts none', async () => {
  const machine = await machineWith([serve(MachineService, { etcdStatus: () => new Promise<never>(() => {}) })])
  const calls = await callsWith(admin)
  const listeners = new Set<() => void>()
  const cancellation = {
    cancelled: false,
    onCancel: (run: () => void) => {
      listeners.add(run)
      return () => listeners.delete(run)
    },
  }
  const running = calls.unary(machine.address, method.etcdStatus, {}, { cancellation })
  for (const run of listeners) run()
  expect(await running).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
  const before = { cancelled: true, onCancel: (run: () => void) => (run(), () => {}) }
  expect(await calls.unary(machine.address, method.etcdStatus, {}, { cancellation: before })).toMatchObject({
    ok: false,
    fault: { kind: 'cancelled' },
  })
  await vi.waitFor(() => expect(listeners.size).toBe(0))
})

test('a machine has one connection, however much is asked of it at once', async () => {
  const machine = await machineWith([talks])
  const passage = await startPassage(machine.port)
  onTestFinished(passage.stop)
  const calls = await callsWith(admin)
  let most = 0
  const asked = Array.from({ length: 200 }, async () => {
    const answer = await calls.unary(passage.address, method.version, {})
    most = Math.max(most, passage.open())
    return answer.ok
  })
  expect(new Set(await Promise.all(asked))).toEqual(new Set([true]))
  expect(most).toBe(1)
})

test('an address that was not asked for in half an hour is let go when another one comes', async () => {
  const [one, two] = [await machineWith([talks]), await machineWith([talks])]
  const [left, other] = [await startPassage(one.port), await startPassage(two.port)]
  onTestFinished(left.stop)
  onTestFinished(other.stop)
  let later = 0
  const calls = await callsWith(admin, { monotonic: () => performance.now() + later })
  const isThere = async ({ address }: Passage) => (await calls.unary(address, method.version, {})).ok
  expect([await isThere(left), await isThere(other)]).toEqual([true, true])
  later = 1_800_001
  expect(await isThere(other)).toBe(true)
  const third = await startPassage(one.port)
  onTestFinished(third.stop)
  expect(await isThere(third)).toBe(true)
  await vi.waitFor(() => expect([left.open(), other.open()]).toEqual([0, 1]))
  expect(await isThere(left)).toBe(true)
})

test('a message of more than 32 MiB', async () => {
  const machine = await machineWith([
    serve(MachineService, {
      async *read(request) {
        yield { bytes: new Uint8Array(Number(request.path) * 1024 * 1024) }
      },
    }),
  ])
  const calls = await callsWith(admin)
  let size = 0
  const read = (mebibytes: number) =>
    calls.stream(machine.address, method.read, { path: String(mebibytes) }, ({ bytes }) => void (size += bytes.length))
  expect(await read(31)).toMatchObject({ ok: true })
  expect(size).toBe(31 * 1024 * 1024)
  const answer = await read(33)
  expect(answer).toMatchObject({ ok: false, fault: { kind: 'unknown' } })
  expect(!answer.ok && answer.fault.message).toContain('larger than max')
}, 20_000)

test('closing lets a running call end, and takes no new one', async () => {
  let finish = () => {}
  const finished = new Promise<void>(resolve => {
    finish = resolve
  })
  const machine = await machineWith([
    serve(MachineService, {
      etcdStatus: async () => {
        await finished
        return { messages: [{}] }
      },
    }),
  ])
  const passage = await startPassage(machine.port)
  onTestFinished(passage.stop)
  const calls = await callsWith(admin)
  const running = calls.unary(passage.address, method.etcdStatus, {})
  await vi.waitFor(() => expect(passage.open()).toBe(1))
  calls.close()
  expect(await calls.unary(passage.address, method.etcdStatus, {})).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
  finish()
  expect(await running).toMatchObject({ ok: true })
  await vi.waitFor(() => expect(passage.open()).toBe(0))
})
