// What happens to single machines, as a client on the wire sees it.
import { Client, credentials } from '@grpc/grpc-js'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { MachineService } from '../../proto/gen/machine/machine_pb.ts'
import { TimeService } from '../../proto/gen/time/time_pb.ts'
import { callUnary, type Machines, startMachines } from '../../test/machines-on-the-wire.ts'
import { createTalosClient, talosPemToNode, validFor } from '../adapters/pki/talos-pki.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let machines: Machines | undefined
const opened: Client[] = []
afterEach(async () => {
  for (const client of opened.splice(0)) client.close()
  await machines?.close()
  machines = undefined
})
const start = async (speed = 1): Promise<Machines> => (machines = await startMachines({ seed: 9, controlPlanes: 3, workers: 1, speed }))

/** A client of an address, new each time: its handshake is now. */
const at = async (address: string): Promise<Client> => {
  if (!machines) throw new Error('no machines')
  const { crt, key } = await createTalosClient({
    ca: machines.ca,
    roles: ['os:admin'],
    validity: validFor(new Date(Date.now() - HOUR), 48),
  })
  const client = new Client(
    `${address}:50000`,
    credentials.createSsl(Buffer.from(machines.ca.crt), Buffer.from(talosPemToNode(key)), Buffer.from(crt)),
  )
  opened.push(client)
  return client
}
const nameAt = async (address: string, node?: string): Promise<string> => {
  try {
    const metadata: Record<string, string> = node === undefined ? {} : { node }
    const { messages } = await callUnary(await at(address), MachineService.method.hostname, {}, { metadata, deadlineMs: 8000 })
    return messages[0]?.hostname ?? ''
  } catch (error) {
    return (error as Error).message
  }
}
const soon = (look: () => Promise<string>, expected: string | RegExp) =>
  vi.waitFor(async () => expect(await look()).toMatch(expected), { timeout: 20_000, interval: 50 })

describe('addresses', () => {
  test('a machine answers on a second one as soon as it has it, and no longer on one that it lost', async () => {
    const { world, address } = await start()
    const second = address(100)
    expect(await nameAt(second)).toMatch(/ECONNREFUSED/)
    world.readdress('cp-1', [address(0), second])
    await soon(() => nameAt(second), 'cp-1')
    expect(await nameAt(address(0))).toBe('cp-1')
    // Others find it there, too.
    expect(await nameAt(address(1), second)).toBe('cp-1')
    world.readdress('cp-1', [second])
    await soon(() => nameAt(address(0)), /ECONNREFUSED/)
    expect(await nameAt(second)).toBe('cp-1')
  })

  test('may pass to another machine, whose certificate is for it then', async () => {
    const { world, address } = await start()
    world.readdress('wk-1', [address(100)])
    await soon(() => nameAt(address(3)), /ECONNREFUSED/)
    world.readdress('cp-3', [address(2), address(3)])
    await soon(() => nameAt(address(3)), 'cp-3')
  })
})

describe('time', () => {
  test('a clock an hour ahead: clients refuse the certificate, and so do other machines; set right, all is well', async () => {
    const { world, address } = await start()
    world.setClock('cp-2', HOUR)
    await soon(() => nameAt(address(1)), /certificate is not yet valid/)
    expect(await nameAt(address(0), address(1))).toMatch(/x509: certificate has expired or is not yet valid/)
    world.setClock('cp-2', 0)
    await soon(() => nameAt(address(1)), 'cp-2')
  })

  test('the clock of a worker does not show in its certificate, but it tells the time', async () => {
    const { world, address } = await start()
    world.setClock('wk-1', HOUR)
    const { messages } = await callUnary(await at(address(3)), TimeService.method.time, {})
    const [{ localtime, remotetime } = {}] = messages
    expect(Number(localtime?.seconds) - Number(remotetime?.seconds)).toBe(3600)
    world.fault('wk-1', { timeNeverSyncs: true })
    await expect(callUnary(await at(address(3)), TimeService.method.time, {})).rejects.toThrow(
      /error querying NTP server "time.cloudflare.com"/,
    )
  })

  test('a worker whose clock is days ahead, or behind, turns clients away, and only those that come to it', async () => {
    const { world, address } = await start()
    const turnedAway = /UNAVAILABLE.*remote error: tls: expired certificate/
    for (const hours of [72, -72]) {
      world.setClock('wk-1', hours * HOUR)
      await soon(() => nameAt(address(3)), turnedAway)
    }
    expect(await nameAt(address(0))).toBe('cp-1')
    world.setClock('wk-1', 0)
    await soon(() => nameAt(address(3)), 'wk-1')
  })

  test('certificates are renewed while the machines serve, however fast their time passes', async () => {
    const { world, address } = await start(0)
    const serial = () => world.machine('wk-1').certificate?.serial ?? 0
    const before = serial()
    for (let day = 0; day < 4; day++) {
      world.schedule.advanceTo(world.schedule.now() + 24 * HOUR)
      await soon(() => nameAt(address(3)), 'wk-1')
    }
    expect(serial()).toBeGreaterThanOrEqual(before + 8)
  })

  test('a worker whose control planes are gone is refused a day later, and taken again when they are back', async () => {
    const { world, address } = await start(0)
    for (const name of ['cp-1', 'cp-2', 'cp-3']) world.powerOff(name)
    world.schedule.advanceTo(world.schedule.now() + 25 * HOUR)
    await soon(() => nameAt(address(3)), /certificate has expired/)
    for (const name of ['cp-1', 'cp-2', 'cp-3']) world.powerOn(name)
    world.schedule.advanceTo(world.schedule.now() + 10 * MINUTE)
    await soon(() => nameAt(address(3)), 'wk-1')
  })
})

describe('a slow machine', () => {
  test('answers late by as much of the world’s time, and others do not', async () => {
    const { world, address } = await start(10)
    world.fault('wk-1', { slowMs: 5000 })
    const client = await at(address(3))
    const begun = world.schedule.now()
    await callUnary(client, MachineService.method.hostname, {})
    expect(world.schedule.now() - begun).toBeGreaterThanOrEqual(5000)
    expect(await nameAt(address(0))).toBe('cp-1')
    world.fault('wk-1', { slowMs: 0 })
    expect(await nameAt(address(3))).toBe('wk-1')
  })
})
