import { Disk_DiskType, StorageService } from '../../proto/gen/storage/storage_pb.ts'
import { answer, refuse } from '../world/answer.ts'
import { isInMaintenance } from '../world/machine.ts'
import { isInstalled } from '../world/slots.ts'
import type { UnaryHandler } from './call.ts'
import { unary } from './dispatch.ts'

const methods = StorageService.method

const disks: UnaryHandler<typeof methods.disks> = ({ machine }) => {
  const described = machine.disks.map(({ path, bytes, readonly, system }) => ({
    deviceName: path,
    name: path.slice('/dev/'.length),
    model: 'Simulated disk',
    size: BigInt(bytes),
    type: path.startsWith('/dev/sr') ? Disk_DiskType.CD : Disk_DiskType.SSD,
    systemDisk: system && isInstalled(machine.disk),
    readonly,
    subsystem: '/sys/class/block',
  }))
  return answer({ messages: [{ disks: described }] })
}

/** What is in use is not wiped; nothing is on the others. */
const blockDeviceWipe: UnaryHandler<typeof methods.blockDeviceWipe> = ({ site, machine, roles }, request) => {
  if (!roles.has('os:admin') && !isInMaintenance(machine)) return refuse('PermissionDenied', 'not authorized')
  for (const { device } of request.devices) {
    const found = machine.disks.find(({ path }) => path === `/dev/${device}`)
    if (!found) return refuse('NotFound', `blockdevice ${JSON.stringify(device)} not found`)
    if (found.readonly) return refuse('FailedPrecondition', `blockdevice ${JSON.stringify(device)} is read-only`)
    if (found.system && isInstalled(machine.disk) && !isInMaintenance(machine))
      return refuse('FailedPrecondition', `blockdevice ${JSON.stringify(device)} is in use`)
    site.journal.write(machine.name, 'wiped', device)
  }
  return answer({ messages: [{}] })
}

export const storageMethods = { disks: unary(methods.disks, disks), blockDeviceWipe: unary(methods.blockDeviceWipe, blockDeviceWipe) }
