import { status } from '@grpc/grpc-js'
import { expect, onTestFinished, test } from 'vitest'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import {
  newTalosCa,
  realClock,
  Refusal,
  type ScriptedTalos,
  serve,
  startPassage,
  startTalos,
  talosconfigFor,
} from '../../../test/scripted-talos.ts'
import { talosConnection } from './connection.ts'

const ca = await newTalosCa()
const answer = { messages: [{ version: { tag: 'v1.13.9' } }] }

/** A control plane that passes calls on to whom it knows, and counts them. */
async function controlPlane(knows: readonly string[]): Promise<ScriptedTalos & { readonly passedOn: () => number }> {
  let passedOn = 0
  const machine = await startTalos({
    ca,
    services: [
      serve(MachineService, {
        version: (_, node) => {
          if (node === undefined) return answer
          passedOn += 1
          if (knows.includes(node)) return answer
          throw new Refusal(
            status.UNAVAILABLE,
            `connection error: desc = "transport: Error while dialing: dial tcp ${node}:50000: i/o timeout"`,
          )
        },
      }),
    ],
  })
  onTestFinished(machine.stop)
  return { ...machine, passedOn: () => passedOn }
}

async function connect(endpoints: readonly string[], monotonic = () => performance.now()) {
  const opened = talosConnection({ talosconfig: await talosconfigFor(ca, { endpoints }), clock: { ...realClock, monotonic } })
  if (!opened.ok) throw new Error(opened.fault.message)
  onTestFinished(opened.value.destroy)
  return opened.value
}

/** Nobody listens there. */
const gone = '127.0.0.9:1'

test('a machine that only a control plane reaches is not said to be off [B067 home-operations/tuppr#235]', async () => {
  const via = await controlPlane(['127.0.0.9'])
  const talos = await connect([via.address])
  const read = await talos.machine(gone)
  expect(read).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
  expect(!read.ok && read.fault.message).toMatch(
    new RegExp(`^${gone}: .*; it answers through ${via.address}, so it runs, and what is cut is the way from here to it$`),
  )
})

test('a machine that no control plane reaches either', async () => {
  const via = await controlPlane([])
  const read = await (await connect([via.address])).machine(gone)
  expect(!read.ok && read.fault.message).toMatch(new RegExp(`; nor does it answer through ${via.address}$`))
})

test('where there is no other way, nothing is said of one', async () => {
  const passage = await startPassage(1)
  passage.stop()
  const read = await (await connect([passage.address])).machine(gone)
  expect(!read.ok && read.fault.message).not.toContain('through')
})

test('the other way is tried once in a while, however often it is asked', async () => {
  const via = await controlPlane([])
  let later = 0
  const talos = await connect([via.address], () => performance.now() + later)
  await Promise.all([talos.machine(gone), talos.machine(gone)])
  await talos.machine(gone)
  expect(via.passedOn()).toBe(1)
  later = 30_001
  await talos.machine(gone)
  expect(via.passedOn()).toBe(2)
})

test('what a machine itself says is not looked into', async () => {
  const via = await controlPlane(['127.0.0.1'])
  const machine = await startTalos({ ca, services: [] })
  onTestFinished(machine.stop)
  const read = await (await connect([via.address])).machine(machine.address)
  expect(read).toMatchObject({ ok: false, fault: { kind: 'unsupported' } })
  expect(via.passedOn()).toBe(0)
})
