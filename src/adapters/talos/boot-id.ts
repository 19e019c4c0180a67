import { failed, ok, type Result } from '../../ports/fault.ts'
import type { Calls } from './calls.ts'
import { getResource } from './cosi.ts'
import { readShortFile } from './read-file.ts'
import { resourceTypes } from './resource-types.ts'

const bootIDFile = '/proc/sys/kernel/random/boot_id'

/**
 * The id of the machine's current boot: the only proof of a reboot, so where it cannot be read the answer is a Fault, never an empty text.
 * `hasResource` says where to look first: Talos 1.14 has a resource for it, except in a container; older machines have the kernel's file,
 * which only os:admin may read.
 */
export async function readBootID(calls: Calls, address: string, hasResource: boolean): Promise<Result<string>> {
  if (hasResource) {
    const resource = await getResource(calls, address, resourceTypes.bootID, 'boot-id')
    if (!resource.ok) return resource
    if (resource.value?.spec.bootId) return ok(resource.value.spec.bootId)
  }
  return readFile(calls, address)
}

async function readFile(calls: Calls, address: string): Promise<Result<string>> {
  const read = await readShortFile(calls, address, bootIDFile)
  if (!read.ok) {
    const { kind, message } = read.fault
    return kind === 'forbidden'
      ? failed(kind, `${message}; without the boot id no reboot can be proved: the credential needs the role os:admin`)
      : read
  }
  const bootID = read.value.trim()
  return /^[0-9a-f-]{36}$/i.test(bootID)
    ? ok(bootID)
    : failed('unknown', `${address}: MachineService.Read ${bootIDFile}: the content is no boot id`)
}
