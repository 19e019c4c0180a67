import { isAtLeast } from '../world/releases.ts'

/** Services and methods that came with a minor of Talos 1. What is not named has been there since 1.9. */
const SINCE: Readonly<Record<string, number>> = {
  'machine.DebugService': 13,
  'machine.ImageService': 13,
  'machine.LifecycleService': 13,
  'machine.LVMService': 14,
  'machine.MDService': 14,
  'machine.MachineService/EtcdDowngradeValidate': 11,
  'machine.MachineService/EtcdDowngradeEnable': 11,
  'machine.MachineService/EtcdDowngradeCancel': 11,
  'cosi.resource.State/Teardown': 14,
  'cosi.resource.State/TeardownAndDestroy': 14,
}

/** What a machine of that version, which does not know the method yet, says of it; undefined where it knows it. */
export const notYetIn = (version: string, path: string): string | undefined => {
  const [, service = '', method = ''] = path.split('/')
  if (!isAtLeast(version, 1, SINCE[service] ?? 0)) return `unknown service ${service}`
  return isAtLeast(version, 1, SINCE[`${service}/${method}`] ?? 0) ? undefined : `unknown method ${method} for service ${service}`
}
