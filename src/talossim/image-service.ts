import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import type { ContainerdInstance } from '../../proto/gen/common/common_pb.ts'
import { ContainerdNamespace, ContainerDriver } from '../../proto/gen/common/common_pb.ts'
import { ImageService, ImageServicePullLayerProgress_Status as LayerStatus } from '../../proto/gen/machine/image_pb.ts'
import type { Answer, Refusal } from '../world/answer.ts'
import { answer, refuse } from '../world/answer.ts'
import { withoutDigest } from '../world/images.ts'
import { pullImage } from '../world/install.ts'
import type { StreamHandler, UnaryHandler, UploadHandler } from './call.ts'
import { streaming, unary, uploading } from './dispatch.ts'
import { imagesOf } from './machine/system.ts'

const methods = ImageService.method

/** What an installer weighs, about; an invented layer has it. */
const LAYER_BYTES = 128n * 1024n * 1024n

/** The world has one containerd: the one that the installer runs from, which is the CRI's with the namespace of the system. */
export const refuseInstance = (instance: ContainerdInstance | undefined): Refusal | undefined => {
  const { driver, namespace } = instance ?? { driver: ContainerDriver.CONTAINERD, namespace: ContainerdNamespace.NS_UNKNOWN }
  if (namespace === ContainerdNamespace.NS_UNKNOWN) return refuse('InvalidArgument', 'invalid containerd namespace NS_UNKNOWN')
  if (driver === ContainerDriver.CONTAINERD && namespace === ContainerdNamespace.NS_CRI)
    return refuse('InvalidArgument', 'cannot use CRI namespace with containerd driver')
  const isSimulated = driver === ContainerDriver.CRI && namespace === ContainerdNamespace.NS_SYSTEM
  return isSimulated
    ? undefined
    : refuse('Unimplemented', 'the simulation has only the containerd of the CRI with the namespace of the system')
}

const list: StreamHandler<typeof methods.list> = async ({ site, machine }, { containerd }, send) => {
  const isOfPods = containerd?.driver === ContainerDriver.CRI && containerd.namespace === ContainerdNamespace.NS_CRI
  const refusal = isOfPods ? undefined : refuseInstance(containerd)
  if (refusal) return refusal
  for (const name of imagesOf(site, machine, isOfPods ? 'cri' : 'system')) {
    const digest = site.registry.pinned(name).split('@')[1] ?? ''
    send({ name, digest, size: LAYER_BYTES, createdAt: timestampFromMs(machine.bootedAt) })
  }
  return answer(undefined)
}

const pull: StreamHandler<typeof methods.pull> = async ({ site, machine, over }, request, send) => {
  const refusal = refuseInstance(request.containerd)
  if (refusal) return refusal
  const pinned = site.registry.pinned(request.imageRef)
  const began = site.schedule.now()
  const progress = (status: LayerStatus, offset: bigint): void => {
    const elapsedMs = site.schedule.now() - began
    const elapsed = { seconds: BigInt(Math.floor(elapsedMs / 1000)), nanos: Math.round((elapsedMs % 1000) * 1e6) }
    const layer = { status, elapsed, offset, total: LAYER_BYTES }
    send({ response: { case: 'pullProgress', value: { layerId: pinned.split('@')[1] ?? '', progress: layer } } })
  }
  if (!machine.images.has(withoutDigest(request.imageRef))) {
    let lines = 0n
    const pulled = await new Promise<Answer<string>>(resolve => {
      const line = (): void => progress(LayerStatus.DOWNLOADING, (LAYER_BYTES * lines++) / 2n)
      const hangUp = pullImage(site, machine, request.imageRef, { line, end: resolve })
      over.addEventListener('abort', hangUp, { once: true })
    })
    if (!pulled.ok) return pulled
    progress(LayerStatus.EXTRACT_COMPLETE, LAYER_BYTES)
  }
  send({ response: { case: 'name', value: pinned } })
  return answer(undefined)
}

const remove: UnaryHandler<typeof methods.remove> = ({ machine }, { containerd, imageRef }) => {
  const refusal = refuseInstance(containerd)
  if (refusal) return refusal
  const isGone = machine.images.delete(withoutDigest(imageRef))
  return isGone ? answer({}) : refuse('NotFound', `image ${JSON.stringify(imageRef)}: not found`)
}

/** Images of the world are names: nothing can be brought in, and no signature is looked at. */
const importImage: UploadHandler<typeof methods.import> = async (_, messages) => {
  for await (const { request } of messages) {
    const refusal = request.case === 'containerd' ? refuseInstance(request.value) : undefined
    if (refusal) return refusal
  }
  return refuse('Unimplemented', 'the simulation imports no images')
}

export const imageMethods = {
  list: streaming(methods.list, list),
  pull: streaming(methods.pull, pull),
  import: uploading(methods.import, importImage),
  remove: unary(methods.remove, remove),
  verify: unary(methods.verify, () => refuse('Unimplemented', 'the simulation verifies no images')),
}
