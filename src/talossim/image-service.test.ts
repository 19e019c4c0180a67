import { create } from '@bufbuild/protobuf'
import { type Client, Metadata, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ContainerdNamespace, ContainerDriver } from '../../proto/gen/common/common_pb.ts'
import { ImageService, ImageServiceImportRequestSchema } from '../../proto/gen/machine/image_pb.ts'
import { grpcMethod } from '../../proto/grpc.ts'
import { callStream, callUnary, type Machines, startMachines } from '../../test/machines-on-the-wire.ts'

const methods = ImageService.method
const containerd = { driver: ContainerDriver.CRI, namespace: ContainerdNamespace.NS_SYSTEM }
const imageRef = 'ghcr.io/siderolabs/installer:v1.13.9'

let machines: Machines
let client: Client
beforeAll(async () => {
  machines = await startMachines({ seed: 3, controlPlanes: 1, workers: 0, talos: 'v1.13.5', speed: 100 })
  client = await machines.client(0)
})
afterAll(() => machines.close())

const refusal = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: { code: number; details: string }) => `${status[error.code]} ${error.details}`,
  )
const names = async (): Promise<string[]> => {
  const listed = callStream(client, methods.list, { containerd })
  expect(await listed.ended).toBeUndefined()
  return listed.messages.map(image => image.name)
}

test('what was pulled is listed, until it is removed', async () => {
  const own = ['ghcr.io/siderolabs/kubelet:v1.36.2', 'registry.k8s.io/etcd:v3.6.12']
  expect(await names()).toEqual(own)
  expect(await callStream(client, methods.pull, { containerd, imageRef }).ended).toBeUndefined()
  expect(await names()).toEqual([imageRef, ...own].toSorted())
  await callUnary(client, methods.remove, { containerd, imageRef })
  expect(await names()).toEqual(own)
  expect(await refusal(callUnary(client, methods.remove, { containerd, imageRef }))).toMatch(/^NOT_FOUND /)
})

test('a wrong containerd is refused', async () => {
  const of = (driver: ContainerDriver, namespace: ContainerdNamespace) =>
    refusal(callUnary(client, methods.remove, { containerd: { driver, namespace }, imageRef }))
  expect(await of(ContainerDriver.CONTAINERD, ContainerdNamespace.NS_CRI)).toBe(
    'INVALID_ARGUMENT cannot use CRI namespace with containerd driver',
  )
  expect(await of(ContainerDriver.CRI, ContainerdNamespace.NS_UNKNOWN)).toMatch(/^INVALID_ARGUMENT invalid containerd namespace/)
})

test('nothing is imported or verified', async () => {
  const imported = new Promise((resolve, reject) => {
    const { path, requestSerialize, responseDeserialize } = grpcMethod(methods.import)
    const call = client.makeClientStreamRequest(path, requestSerialize, responseDeserialize, new Metadata(), (error, value) =>
      error ? reject(error) : resolve(value),
    )
    call.write(create(ImageServiceImportRequestSchema, { request: { case: 'containerd', value: containerd } }))
    call.write(create(ImageServiceImportRequestSchema, { request: { case: 'imageChunk', value: { bytes: new Uint8Array(10) } } }))
    call.end()
  })
  expect(await refusal(imported)).toBe('UNIMPLEMENTED the simulation imports no images')
  expect(await refusal(callUnary(client, methods.verify, { imageRef }))).toBe('UNIMPLEMENTED the simulation verifies no images')
})
