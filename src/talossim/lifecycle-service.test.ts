// LifecycleService on the wire, of a machine on which nothing is installed: who may call it, and what comes of it.
import { type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { ContainerDriver, ContainerdNamespace } from '../../proto/gen/common/common_pb.ts'
import { ImageService } from '../../proto/gen/machine/image_pb.ts'
import { LifecycleService } from '../../proto/gen/machine/lifecycle_pb.ts'
import { MachineService } from '../../proto/gen/machine/machine_pb.ts'
import { callStream, callUnary, type Machines, startMachines } from '../../test/machines-on-the-wire.ts'

const image = 'ghcr.io/siderolabs/installer:v1.13.9'
const containerd = { driver: ContainerDriver.CRI, namespace: ContainerdNamespace.NS_SYSTEM }
const VERSIONS = ['v1.13.9', 'v1.13.9', 'v1.12.1']

let machines: Machines
beforeAll(async () => {
  machines = await startMachines({ seed: 2, controlPlanes: 1, workers: 0, spares: 2, talos: index => VERSIONS[index]!, speed: 200 })
  await vi.waitFor(() => expect(machines.world.machine(2).stage).toBe('maintenance'), { timeout: 20_000 })
})
afterAll(() => machines.close())

const said = (error: ServiceError | undefined): string => (error ? `${status[error.code]} ${error.details}` : 'OK')
const installOn = (index: number, disk: string) => {
  const request = { containerd, source: { imageName: image }, destination: { disk } }
  return callStream(machines.anonymous(index), LifecycleService.method.install, request)
}

test('over the network it is closed, and unknown before 1.13', async () => {
  expect(said(await installOn(1, '/dev/sda').ended)).toBe('PERMISSION_DENIED not authorized')
  expect(said(await installOn(2, '/dev/sda').ended)).toBe('UNIMPLEMENTED unknown service machine.LifecycleService')
})

test('over SideroLink it installs, line by line, and the machine boots from its disk afterwards', { timeout: 30_000 }, async () => {
  const machine = machines.world.machine(1)
  machine.siderolink = true
  const client = machines.anonymous(1)
  expect(said(await installOn(1, '').ended)).toBe('INVALID_ARGUMENT destination disk is required')
  expect(said(await installOn(1, '/dev/sda').ended)).toContain(`INTERNAL installation failed: installer image "${image}" not found`)
  expect(said(await callStream(client, ImageService.method.pull, { containerd, imageRef: image }).ended)).toBe('OK')

  const stream = installOn(1, '/dev/sda')
  expect(said(await stream.ended)).toBe('OK')
  const progress = stream.messages.map(message => message.progress?.response)
  expect(progress.slice(0, -1).map(one => one?.case)).toEqual(progress.slice(0, -1).map(() => 'message'))
  expect(progress.length).toBeGreaterThan(2)
  expect(progress.at(-1)).toEqual({ case: 'exitCode', value: 0 })
  expect(said(await installOn(1, '/dev/sda').ended)).toBe('ALREADY_EXISTS machine is already installed')

  const { bootID } = machine
  await callUnary(client, MachineService.method.reboot, {})
  await vi.waitFor(() => expect([machine.bootID === bootID, machine.stage]).toEqual([false, 'maintenance']), { timeout: 20_000 })
  expect([machine.disk.slotless, machine.disk.slots.A?.version]).toEqual([undefined, 'v1.13.9'])
})

test('a machine that runs is installed', async () => {
  const client = await machines.client(0)
  const request = { containerd, source: { imageName: image }, destination: { disk: '/dev/sda' } }
  expect(said(await callStream(client, LifecycleService.method.install, request).ended)).toBe('ALREADY_EXISTS machine is already installed')
  const reader = await machines.client(0, ['os:operator'])
  expect(said(await callStream(reader, LifecycleService.method.install, request).ended)).toBe('PERMISSION_DENIED not authorized')
})
