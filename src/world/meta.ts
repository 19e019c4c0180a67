import type { Answer } from './answer.ts'
import { answer, refuse } from './answer.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { notInContainer } from './refusals.ts'
import { parseVersion } from './releases.ts'
import type { Site } from './site.ts'

/** Those that Talos leaves to its users. */
const USERS_KEYS: readonly number[] = [0x0c, 0x0d, 0x0e]
/** The partition's, shared by all keys; each key costs its tag and length too. */
const META_BYTES = 256 * 1024
const KEY_BYTES = 8

/** From 1.13.10 and 1.14.0 on only users' keys may be written through the API (siderolabs/talos#14192). */
const guardsItsKeys = (version: string): boolean => {
  const [major = 0, minor = 0, patch = 0] = parseVersion(version) ?? []
  return major > 1 || minor > 13 || (minor === 13 && patch >= 10)
}

const objection = (machine: Machine, key: number): Answer<never> | undefined => {
  if (machine.platform === 'container') return notInContainer
  if (key > 255) return refuse('InvalidArgument', 'key must be a uint8')
  if (guardsItsKeys(versionOf(machine)) && !USERS_KEYS.includes(key))
    return refuse('PermissionDenied', `meta key 0x${key.toString(16).padStart(2, '0')} is owned by Talos`)
  return undefined
}

/** `MachineService.MetaWrite`. Survives every reboot and upgrade, and a reset of other partitions. */
export const writeMeta = (site: Site, machine: Machine, key: number, value: string): Answer<void> => {
  const refused = objection(machine, key)
  if (refused) return refused
  const { meta } = machine.disk
  const used = [...meta].filter(([other]) => other !== key).reduce((sum, [, text]) => sum + text.length + KEY_BYTES, 0)
  if (used + value.length + KEY_BYTES > META_BYTES) return refuse('ResourceExhausted', 'meta write failed')
  meta.set(key, value)
  site.journal.write(machine.name, 'meta-written', `0x${key.toString(16).padStart(2, '0')}`)
  site.tell(machine, 'meta')
  return answer(undefined)
}

export const deleteMeta = (site: Site, machine: Machine, key: number): Answer<void> => {
  const refused = objection(machine, key)
  if (refused) return refused
  if (!machine.disk.meta.delete(key)) return refuse('NotFound', 'meta key not found')
  site.journal.write(machine.name, 'meta-deleted', `0x${key.toString(16).padStart(2, '0')}`)
  site.tell(machine, 'meta')
  return answer(undefined)
}
