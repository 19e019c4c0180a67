import { createHash } from 'node:crypto'
import { create } from '@bufbuild/protobuf'
import { type Client, Metadata, status } from '@grpc/grpc-js'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { DataSchema } from '../../../proto/gen/common/common_pb.ts'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { grpcMethod } from '../../../proto/grpc.ts'
import { callStream, callUnary, type Machines, startMachines } from '../../../test/machines-on-the-wire.ts'
import { snapshotFile } from './snapshot-file.ts'

const machine = MachineService.method
let machines: Machines
afterEach(() => machines?.close())
const start = async (talos = 'v1.13.9'): Promise<Machines> =>
  (machines = await startMachines({ seed: 3, controlPlanes: 3, workers: 1, talos, speed: 0 }))
const pass = (ms: number): void => machines.world.schedule.advanceTo(machines.world.schedule.now() + ms)
const refusal = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: { code: number; details: string }) => `${status[error.code]} ${error.details}`,
  )

const download = async (client: Client): Promise<Buffer[]> => {
  const stream = callStream(client, machine.etcdSnapshot, {})
  expect(await stream.ended).toBeUndefined()
  return stream.messages.map(({ bytes }) => Buffer.from(bytes))
}

const upload = (client: Client, chunks: readonly Uint8Array[], metadata = new Metadata({ waitForReady: true })) =>
  new Promise((resolve, reject) => {
    const { path, requestSerialize, responseDeserialize } = grpcMethod(machine.etcdRecover)
    const call = client.makeClientStreamRequest(path, requestSerialize, responseDeserialize, metadata, (error, value) =>
      error ? reject(error) : resolve(value),
    )
    for (const bytes of chunks) call.write(create(DataSchema, { bytes }))
    call.end()
  })

describe('a snapshot', () => {
  test.each([0, 1, 4096 * 7, 3_000_000])('of %i bytes has that size, and its own hash at its end', async size => {
    await start()
    Object.assign(machines.world.member(0), { dbSize: size })
    const messages = await download(await machines.client(0))
    expect(new Set(messages.slice(0, -1).map(m => m.length))).toEqual(new Set([1024]))
    const total = messages.reduce((sum, m) => sum + m.length, 0)
    expect(total).toBe(Math.max(5, Math.ceil(size / 4096)) * 4096 + 32)
    const hash = createHash('sha256')
    for (const message of messages.slice(0, -1)) hash.update(message)
    expect(messages.at(-1)).toEqual(hash.digest())
  })

  test('has so many free pages that their number needs a place of its own', () => {
    const [first, , , free, ...rest] = snapshotFile({ bytes: 4096 * 70_000, revision: 9n, term: 2, storageVersion: '3.6.0' })
    expect(first?.readBigUInt64LE(16 + 40)).toBe(70_000n)
    expect(free?.readUInt16LE(10)).toBe(0xffff)
    const own = 1 + free!.readUInt32LE(12)
    expect(free?.readBigUInt64LE(16)).toBe(BigInt(70_000 - 3 - own))
    expect(free?.readBigUInt64LE(24)).toBe(BigInt(3 + own))
    expect(rest).toHaveLength(70_000 - 4 + 1)
  })

  test('carries a cluster over the loss of all its data', async () => {
    await start()
    Object.assign(machines.world.member(0), { dbSize: 100_000 })
    const file = Buffer.concat(await download(await machines.client(0)))
    for (const index of [0, 1, 2]) machines.world.loseEtcdData(index)
    pass(240_000)
    const client = await machines.client(0)
    const service = () => machines.world.machine(0).services.get('etcd')!
    const bootstrap = () => callUnary(client, machine.bootstrap, { recoverEtcd: true }, { waitForReady: true })

    file[5000]! ^= 1
    await upload(client, [file.subarray(0, 70_000), file.subarray(70_000)])
    await bootstrap()
    expect(service()).toMatchObject({ state: 'Failed' })
    expect(service().events.at(-1)?.message).toContain('expected sha256')

    file[5000]! ^= 1
    const node = new Metadata({ waitForReady: true })
    node.add('nodes', machines.address(0))
    expect(await upload(await machines.client(1), [file], node)).toMatchObject({
      messages: [{ metadata: { hostname: machines.address(0) } }],
    })
    await bootstrap()
    pass(600_000)
    expect(machines.world.etcd.members().map(m => m.isLearner)).toEqual([false, false, false])
    expect(await refusal(bootstrap())).toBe('ALREADY_EXISTS etcd data directory is not empty')
    expect(await refusal(upload(await machines.client(3), [file]))).toBe(
      'UNIMPLEMENTED etcd recover is only available on control plane nodes',
    )
  })
})

test('a downgrade is validated, enabled and cancelled', async () => {
  await start()
  const client = await machines.client(0)
  const validate = (version: string) => callUnary(client, machine.etcdDowngradeValidate, { version })
  const version = { messages: [{ clusterDowngrade: { clusterVersion: '3.6' } }] }
  const texts: Record<string, string> = {
    '': 'version is required for etcd downgrade',
    '3': 'version should be in MAJOR.MINOR format',
    '3.5.1': 'version should be in MAJOR.MINOR format',
    'a.5': 'major version should be a number',
    '3.b': 'minor version should be a number',
    '3.4': 'etcd downgrade is only supported to 3.5 and later versions',
  }
  for (const [wrong, text] of Object.entries(texts)) expect(await refusal(validate(wrong))).toBe(`INVALID_ARGUMENT ${text}`)
  expect(await refusal(validate('3.6'))).toContain('invalid downgrade target version')
  expect(await validate('3.5')).toMatchObject(version)
  expect(await refusal(callUnary(client, machine.etcdDowngradeCancel, {}))).toContain('no inflight downgrade job')
  expect(await callUnary(client, machine.etcdDowngradeEnable, { version: '3.5' })).toMatchObject(version)
  expect(await refusal(callUnary(client, machine.etcdDowngradeEnable, { version: '3.5' }))).toContain('has a downgrade job in progress')
  expect(await callUnary(client, machine.etcdDowngradeCancel, {})).toMatchObject(version)
})

test('before Talos 1.11 there is no downgrade', async () => {
  await start('v1.10.9')
  expect(await refusal(callUnary(await machines.client(0), machine.etcdDowngradeCancel, {}))).toBe(
    'UNIMPLEMENTED unknown method EtcdDowngradeCancel for service machine.MachineService',
  )
})

test('what needs a quorum times out without one, what does not goes on', async () => {
  await start()
  const { world } = machines
  const client = await machines.client(0)
  for (const index of [1, 2]) world.powerOff(index)
  expect((await callUnary(client, machine.etcdStatus, {})).messages[0]?.memberStatus?.errors).toContain('etcdserver: no leader')
  const other = BigInt(`0x${world.member(1).id}`)
  expect(await refusal(callUnary(client, machine.etcdRemoveMemberByID, { memberId: other }))).toBe(
    `UNKNOWN failed to remove member ${other}: etcdserver: request timed out`,
  )
  expect(await refusal(callUnary(client, machine.etcdAlarmDisarm, {}))).toContain('etcdserver: request timed out')
  const shrinking = callUnary(client, machine.etcdDefragment, {})
  await vi.waitFor(() => {
    pass(1000)
    expect(world.member(0).dbSize).toBe(world.member(0).dbSizeInUse)
  })
  expect((await shrinking).messages).toHaveLength(1)
})

test('a learner leaves once it votes, and then has no etcd to ask', async () => {
  await start()
  const { world } = machines
  const client = await machines.client(2)
  await callUnary(client, machine.etcdLeaveCluster, {})
  expect(world.etcd.members()).toHaveLength(2)
  expect(await refusal(callUnary(client, machine.etcdStatus, {}, { deadlineMs: 300 }))).toContain('DEADLINE_EXCEEDED')
  world.powerOff(2)
  world.powerOn(2)
  for (let second = 0; second < 300 && !world.etcd.memberOf(world.machine(2))?.running; second++) pass(1000)
  expect(world.member(2).isLearner).toBe(true)
  let hasLeft = false
  // The connection of before ended with the machine.
  const back = await machines.client(2)
  const leaving = callUnary(back, machine.etcdLeaveCluster, {}, { waitForReady: true }).then(() => (hasLeft = true))
  await callUnary(back, machine.hostname, {}, { waitForReady: true })
  expect(hasLeft).toBe(false)
  pass(120_000)
  await leaving
  expect(world.etcd.members()).toHaveLength(2)
})
