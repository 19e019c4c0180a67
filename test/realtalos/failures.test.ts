// Our client and real machines that do not answer: dead ones, ones cut off, ones that reboot.
import { writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type TalosConnection, talosConnection } from '../../src/adapters/talos/connection.ts'
import type { Place } from '../conformance/talos/answers.ts'
import { done } from '../../src/ports/fault.ts'
import { realClock } from '../scripted-talos.ts'
import { addresses, longCall, machine, type MachineName, officialTalosconfig, realPlace, talosctl, valueOf } from './cluster.ts'

let talos: TalosConnection
let place: Place
beforeAll(async () => {
  const connection = talosConnection({ talosconfig: officialTalosconfig(), clock: realClock })
  if (!connection.ok) throw new Error(connection.fault.message)
  talos = connection.value
  place = await realPlace()
})
afterAll(async () => {
  talos.destroy()
  await rm(place.home, { recursive: true, force: true })
})

/** Ten seconds, and what a busy machine adds. */
const withinDeadlineMs = 20_000
const unreachable = { ok: false, fault: { kind: 'unreachable' } }

/** Running and ready, and with a good etcd where there is one. */
async function isWell(name: MachineName): Promise<void> {
  const address = addresses[name]
  expect(valueOf(await talos.machine(address))).toMatchObject({ stage: 'running', ready: true })
  if (name === 'wk-1') return
  const view = valueOf(await talos.etcd(address))
  expect(view).toMatchObject({ service: { healthy: true }, status: { isLearner: false, errors: [] } })
  expect(view.members.map(member => member.isLearner)).toEqual([false, false, false])
}

test('nobody is there', async () => {
  const begin = performance.now()
  expect(await talos.machine(addresses.nobody)).toMatchObject(unreachable)
  expect(performance.now() - begin).toBeLessThan(withinDeadlineMs)
})

test('a machine whose cable is pulled is unreachable within the deadline, and answers again when it is back', async () => {
  const before = valueOf(await talos.machine(addresses['wk-1']))
  await machine('cut', 'wk-1')
  try {
    const begin = performance.now()
    expect(await talos.machine(addresses['wk-1'])).toMatchObject(unreachable)
    expect(performance.now() - begin).toBeLessThan(withinDeadlineMs)
    expect(valueOf(await talos.machine(addresses['cp-1'])).stage).toBe('running')
  } finally {
    await machine('heal', 'wk-1')
  }
  await vi.waitFor(async () => expect(valueOf(await talos.machine(addresses['wk-1'])).bootID).toBe(before.bootID), 40_000)
  await vi.waitFor(() => isWell('wk-1'), { timeout: 60_000, interval: 500 })
}, 120_000)

test('the leader dies: another leads, its members stay listed, and started again it has a new boot id', async () => {
  const { members, status } = valueOf(await talos.etcd(addresses['cp-1']))
  const leader = members.find(({ id }) => id === status.leader)!.name as MachineName
  const survivors = (['cp-1', 'cp-2', 'cp-3'] as const).filter(name => name !== leader)
  const before = valueOf(await talos.machine(addresses[leader]))

  await machine('kill', leader)
  try {
    expect(await talos.machine(addresses[leader])).toMatchObject(unreachable)
    for (const name of survivors) {
      await vi.waitFor(
        async () => {
          const view = valueOf(await talos.etcd(addresses[name]))
          expect(view.status.leader).not.toBe('')
          expect(view.status.leader).not.toBe(status.leader)
        },
        { timeout: 20_000, interval: 200 },
      )
      const view = valueOf(await talos.etcd(addresses[name]))
      expect(new Set(view.members)).toEqual(new Set(members))
      // Nothing that such a machine says of itself shows that one is dead.
      expect(valueOf(await talos.machine(addresses[name]))).toMatchObject({ stage: 'running', ready: true, unmet: [] })
    }
    const known = valueOf(await talos.members(addresses[survivors[0]!]))
    expect(known.map(({ hostname }) => hostname)).toContain(leader)
  } finally {
    await machine('start', leader)
  }
  await vi.waitFor(() => isWell(leader), { timeout: 120_000, interval: 500 })
  const after = valueOf(await talos.machine(addresses[leader]))
  expect(after).toEqual({ ...before, bootID: after.bootID })
  expect(after.bootID).not.toBe(before.bootID)
}, 240_000)

test('a snapshot whose machine dies meanwhile is a fault within the time of a probe, never a short file', async () => {
  const { members, status } = valueOf(await talos.etcd(addresses['cp-1']))
  const name = members.find(({ id }) => id !== status.leader)!.name as MachineName
  let got = 0
  const begin = performance.now()
  try {
    const answer = await talos.snapshot(
      addresses[name],
      async bytes => {
        if (got === 0) await machine('kill', name)
        got += bytes.length
        return done
      },
      longCall,
    )
    expect(answer).toMatchObject(unreachable)
    expect(got).toBeGreaterThan(0)
    expect(performance.now() - begin).toBeLessThan(60_000)
  } finally {
    await machine('start', name)
  }
  await vi.waitFor(() => isWell(name), { timeout: 120_000, interval: 500 })
}, 240_000)

test('without a quorum etcd is no fact, and comes back by itself when the machines do', async () => {
  const [survivor, ...others] = ['cp-1', 'cp-2', 'cp-3'] as const
  const before = valueOf(await talos.etcd(addresses[survivor]))
  for (const name of others) await machine('kill', name)
  try {
    await vi.waitFor(async () => expect(await talos.etcd(addresses[survivor])).toMatchObject({ ok: false }), {
      timeout: 60_000,
      interval: 500,
    })
    const begin = performance.now()
    expect(await talos.etcd(addresses[survivor])).toMatchObject({
      ok: false,
      fault: { kind: expect.stringMatching(/unreachable|busy|unknown/) as string },
    })
    expect(performance.now() - begin).toBeLessThan(withinDeadlineMs)
    expect(await talos.forfeitLeadership(addresses[survivor])).toMatchObject({ ok: false })
    // The machine itself answers, and what it says of its members is from before.
    expect(valueOf(await talos.machine(addresses[survivor]))).toMatchObject({ stage: 'running' })
  } finally {
    for (const name of others) await machine('start', name)
  }
  for (const name of [survivor, ...others]) await vi.waitFor(() => isWell(name), { timeout: 150_000, interval: 500 })
  const after = valueOf(await talos.etcd(addresses[survivor]))
  expect(new Set(after.members)).toEqual(new Set(before.members))
}, 360_000)

test('a reboot shows in the boot id, and is over when the machine runs and is ready', async () => {
  const address = addresses['wk-1']
  const before = valueOf(await talos.machine(address))
  const file = join(place.home, 'wk-1.yaml')
  writeFileSync(file, await talosctl(place, '-n', address, 'get', 'machineconfig', 'v1alpha1', '-o', 'jsonpath={.spec}'))
  await talosctl(place, '-n', address, 'apply-config', '-f', file, '--mode', 'reboot')

  const stages = new Set<string>()
  await vi.waitFor(
    async () => {
      const seen = valueOf(await talos.machine(address))
      stages.add(seen.bootID === before.bootID ? 'before' : seen.stage)
      expect(seen.bootID).not.toBe(before.bootID)
      expect(seen).toMatchObject({ stage: 'running', ready: true })
    },
    { timeout: 90_000, interval: 200 },
  )
  expect(stages).toContain('running')
}, 120_000)
