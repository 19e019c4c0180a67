// What the simulated machines make of a snapshot that is not one, as the real ones do: who restores has to know what he sent.
import { gzipSync } from 'node:zlib'
import { create } from '@bufbuild/protobuf'
import { type Client, Metadata } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { DataSchema } from '../../proto/gen/common/common_pb.ts'
import { MachineService } from '../../proto/gen/machine/machine_pb.ts'
import { grpcMethod } from '../../proto/grpc.ts'
import { snapshotFile } from '../../src/talossim/machine/snapshot-file.ts'
import { callUnary, type Machines, startMachines } from '../machines-on-the-wire.ts'

const { method } = MachineService
const snapshot = Buffer.concat([...snapshotFile({ bytes: 4096 * 64, revision: 9n, term: 2, storageVersion: '3.6.0' })])

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let machines: Machines
let client: Client
beforeAll(async () => {
  machines = await startMachines({ seed: 3, controlPlanes: 1, workers: 0, talos: 'v1.13.9', speed: 0 })
  client = await machines.client(0)
  machines.world.loseEtcdData(0)
  pass(240_000)
})
afterAll(() => machines.close())

const pass = (ms: number): void => machines.world.schedule.advanceTo(machines.world.schedule.now() + ms)
const etcd = () => machines.world.machine(0).services.get('etcd')
const bootstrap = () => callUnary(client, method.bootstrap, { recoverEtcd: true }, { waitForReady: true })

/** `breaksAfter` bytes the connection is cut. Answers whether the machine took it. */
const upload = (bytes: Buffer, breaksAfter = Infinity): Promise<boolean> =>
  new Promise(resolve => {
    const { path, requestSerialize, responseDeserialize } = grpcMethod(method.etcdRecover)
    const metadata = new Metadata({ waitForReady: true })
    const call = client.makeClientStreamRequest(path, requestSerialize, responseDeserialize, metadata, error => resolve(error === null))
    for (let at = 0; at < bytes.length; at += 1024) {
      if (at >= breaksAfter) return call.cancel()
      call.write(create(DataSchema, { bytes: bytes.subarray(at, at + 1024) }))
    }
    return call.end()
  })

describe('a snapshot in a gzip [B085 rancher-archives/rke#1501]', () => {
  test('is taken, and is no database: etcd fails and says so, and nobody is told that it was restored', async () => {
    expect(await upload(gzipSync(snapshot))).toBe(true)
    await bootstrap()
    expect(etcd()).toMatchObject({ state: 'Failed' })
    expect(etcd()?.events.at(-1)?.message).toContain('snapshot missing hash')
    expect(machines.world.etcd.hasQuorum()).toBe(false)
  })
})

describe('an upload that breaks in the middle, twice [B095 siderolabs/talos#5129, gardener/etcd-backup-restore#48]', () => {
  test('leaves nothing to go on from: only one that begins at the first byte is restored', async () => {
    for (const breaksAfter of [100_000, 100_000]) expect(await upload(snapshot, breaksAfter)).toBe(false)
    expect(await upload(snapshot.subarray(100_352))).toBe(true)
    await bootstrap()
    expect(etcd()).toMatchObject({ state: 'Failed' })
    expect(machines.world.etcd.hasQuorum()).toBe(false)

    expect(await upload(snapshot)).toBe(true)
    await bootstrap()
    pass(600_000)
    expect(etcd()).toMatchObject({ state: 'Running' })
    expect(machines.world.etcd.hasQuorum()).toBe(true)
  })
})
