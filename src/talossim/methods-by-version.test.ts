// Every method of every service, asked of one machine of each minor: whether it is there, and for whom.
import type { DescMethod, DescMethodServerStreaming, DescMethodUnary } from '@bufbuild/protobuf'
import { type Client, type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MachineService } from '../../proto/gen/machine/machine_pb.ts'
import { StorageService } from '../../proto/gen/storage/storage_pb.ts'
import { grpcPath } from '../../proto/grpc.ts'
import { callStream, callUnary, type Machines, startMachines } from '../../test/machines-on-the-wire.ts'
import { mayCall } from './roles.ts'
import { SERVICES } from './services.ts'

const METHODS: readonly DescMethod[] = SERVICES.flatMap(service => service.methods)
const VERSIONS = ['v1.10.9', 'v1.11.6', 'v1.12.1', 'v1.13.9', 'v1.14.0-rc.1']
const ROLES = ['os:admin', 'os:operator', 'os:reader', 'os:etcd:backup', 'os:image:verifier', 'os:meta:writer', 'os:nosuch']

/** What each minor is the first to have, written as machines before it say. */
const NEW: readonly (readonly [minor: number, path: RegExp, says: string])[] = [
  [11, /EtcdDowngrade(Validate|Enable|Cancel)$/, 'unknown method # for service machine.MachineService'],
  [13, /ImageService/, 'unknown service machine.ImageService'],
  [13, /LifecycleService/, 'unknown service machine.LifecycleService'],
  [13, /DebugService/, 'unknown service machine.DebugService'],
  [14, /LVMService/, 'unknown service machine.LVMService'],
  [14, /MDService/, 'unknown service machine.MDService'],
  [14, /State\/Teardown(AndDestroy)?$/, 'unknown method # for service cosi.resource.State'],
]

let machines: Machines
beforeAll(async () => {
  machines = await startMachines({ seed: 1, controlPlanes: 5, workers: 0, talos: index => VERSIONS[index]!, speed: 0 })
})
afterAll(() => machines.close())

/** The status as text; of calls that get past the rules, nothing is known here. */
async function statusOf(client: Client, method: DescMethod): Promise<string> {
  const ended = (error: ServiceError | undefined): string => (error ? `${status[error.code]} ${error.details}` : 'OK')
  if (method.methodKind === 'unary')
    return callUnary(client, method as DescMethodUnary, {}).then(
      () => 'OK',
      (error: ServiceError) => ended(error),
    )
  return ended(await callStream(client, method as unknown as DescMethodServerStreaming, {}).ended)
}

describe.each(VERSIONS.map((version, index) => [version, index] as const))('%s', (version, index) => {
  const minor = 10 + index
  const missing = (path: string): string | undefined => NEW.find(([since, pattern]) => pattern.test(path) && minor < since)?.[2]

  test('what it does not have yet, nobody may know', { timeout: 30_000 }, async () => {
    const absent = METHODS.filter(method => missing(grpcPath(method)) !== undefined)
    expect(absent.length).toBe([17, 14, 14, 6, 0][index])
    for (const role of ROLES) {
      const client = await machines.client(index, [role])
      for (const method of absent)
        expect(`${role} ${await statusOf(client, method)}`).toBe(
          `${role} UNIMPLEMENTED ${missing(grpcPath(method))!.replace('#', method.name)}`,
        )
    }
  })

  test('what it has is denied to every role that has no right to it', { timeout: 60_000 }, async () => {
    const present = METHODS.filter(method => missing(grpcPath(method)) === undefined)
    let denied = 0
    for (const role of ROLES) {
      const client = await machines.client(index, [role])
      const closed = present.filter(method => !mayCall(new Set([role]), grpcPath(method), version))
      denied += closed.length
      for (const method of closed)
        expect(`${role} ${method.name} ${await statusOf(client, method)}`).toBe(`${role} ${method.name} PERMISSION_DENIED not authorized`)
    }
    expect(denied).toBeGreaterThan(290)
  })

  test('configurations and disks are the administrator’s alone outside maintenance', async () => {
    const client = await machines.client(index, ['os:reader'])
    for (const method of [MachineService.method.applyConfiguration, StorageService.method.blockDeviceWipe])
      expect(await statusOf(client, method)).toBe('PERMISSION_DENIED not authorized')
  })
})
