import { ContainerdNamespace } from '../../../proto/gen/common/common_pb.ts'
import type { RebootRequest } from '../../../proto/gen/machine/machine_pb.ts'
import { MachineService, RebootRequest_Mode, UpgradeRequest_RebootMode } from '../../../proto/gen/machine/machine_pb.ts'
import type { RebootMode } from '../../ports/talos.ts'
import type { Answer } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import { pullImage } from '../../world/install.ts'
import { requestUpgrade } from '../../world/legacy-upgrade.ts'
import { requestReboot } from '../../world/reboot.ts'
import type { UnaryHandler } from '../call.ts'
import { unary } from '../dispatch.ts'

const methods = MachineService.method

const rebootMode = (mode: RebootRequest['mode']): RebootMode => {
  if (mode === RebootRequest_Mode.FORCE) return 'force'
  return mode === RebootRequest_Mode.POWERCYCLE ? 'powercycle' : 'default'
}

const reboot: UnaryHandler<typeof methods.reboot> = ({ site, machine }, request) => {
  const queued = requestReboot(site, machine, rebootMode(request.mode))
  return queued.ok ? answer({ messages: [{ actorId: queued.value.actorID }] }) : queued
}

const upgrade: UnaryHandler<typeof methods.upgrade> = async ({ site, machine, drain }, request) => {
  const { image, preserve, force, stage } = request
  const mode = request.rebootMode === UpgradeRequest_RebootMode.POWERCYCLE ? 'powercycle' : 'default'
  const queued = await new Promise<Answer<{ readonly actorID: string }>>(resolve =>
    requestUpgrade(site, machine, { image, preserve, force, stage, rebootMode: mode }, drain, resolve),
  )
  return queued.ok ? answer({ messages: [{ ack: 'Upgrade request received', actorId: queued.value.actorID }] }) : queued
}

const imagePull: UnaryHandler<typeof methods.imagePull> = async ({ site, machine, over }, request) => {
  if (request.namespace === ContainerdNamespace.NS_UNKNOWN) return refuse('InvalidArgument', 'unsupported namespace "NS_UNKNOWN"')
  const pulled = await new Promise<Answer<string>>(resolve => {
    const hangUp = pullImage(site, machine, request.reference, { line: () => {}, end: resolve })
    over.addEventListener('abort', hangUp, { once: true })
  })
  return pulled.ok ? answer({ messages: [{}] }) : refuse(pulled.code, `error pulling image: 1 error(s) occurred:\n\t${pulled.message}`)
}

/** OK means queued: what comes of it, events and the boot id tell. */
export const actionMethods = {
  reboot: unary(methods.reboot, reboot),
  upgrade: unary(methods.upgrade, upgrade),
  imagePull: unary(methods.imagePull, imagePull),
}
