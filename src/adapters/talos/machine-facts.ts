import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { MachineType } from '../../../proto/gen/resource/config/config_pb.ts'
import { RuntimeMachineStage } from '../../../proto/gen/talos/resource/definitions/enums/enums_pb.ts'
import type { Clock } from '../../ports/clock.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import type { MachineFacts, MachineStage } from '../../ports/talos.ts'
import { onlyMessage } from './answer.ts'
import { readBootID } from './boot-id.ts'
import type { Calls } from './calls.ts'
import { readMachineConfig } from './config.ts'
import { getResource } from './cosi.ts'
import { readExtensions } from './extensions.ts'
import { resourceTypes } from './resource-types.ts'
import { isAtLeast } from './talos-version.ts'

/** Cannot change while a machine runs on from one boot. */
type BootFacts = Pick<
  MachineFacts,
  | 'role'
  | 'uuid'
  | 'nodeID'
  | 'clusterID'
  | 'clusterName'
  | 'version'
  | 'platform'
  | 'arch'
  | 'secureBoot'
  | 'schematic'
  | 'factory'
  | 'extensions'
>
/** Changes when the configuration does. */
type ConfiguredFacts = Pick<MachineFacts, 'hostname' | 'nodename' | 'installImage' | 'etcdQuotaBytes'>
/** Changes by itself. */
type MomentFacts = Pick<MachineFacts, 'stage' | 'ready' | 'unmet' | 'fallbackArmed'>

type Kept = { readonly bootID: string; readonly boot: BootFacts; readonly configured: ConfiguredFacts; readonly configuredUntil: number }

export type MachineReader = {
  readonly read: (address: string) => Promise<Result<MachineFacts>>
  /** What depends on the configuration of this machine is to be read again: we have just changed it. */
  readonly forgetConfiguration: (address: string) => void
}

/** How long what depends on the configuration is believed. It is the largest answer of all, and full of secrets. */
const configuredMs = 30_000
/** META key of the upgrade: the name of the boot entry to fall back to. */
const upgradeMetaKey = '0x06'

/**
 * Reads machines. What cannot change during a boot is kept per address and boot id, and what the configuration decides for 30 s; so a poll of a
 * running machine is three calls (boot id, MachineStatus, META key 6), every 30 s six, and after a boot fourteen.
 *
 * The boot id is read before the rest, and after a full reading once more: facts of the boot before must never come with the id of this one.
 */
export function machineReader(calls: Calls, clock: Clock): MachineReader {
  const kept = new Map<string, Kept>()

  async function poll(address: string, known: Kept): Promise<Result<MachineFacts> | 'another boot'> {
    const bootID = await readBootID(calls, address, hasBootIDResource(known.boot.version))
    if (!bootID.ok) return bootID
    if (bootID.value !== known.bootID) return 'another boot'
    const isFresh = clock.monotonic() < known.configuredUntil
    const [moment, configured] = await Promise.all([
      readMoment(calls, address),
      isFresh ? ok(known.configured) : readConfigured(calls, address, known.boot.role),
    ])
    if (!moment.ok) return moment
    if (!configured.ok) return configured
    if (configured.value === undefined) return withoutConfiguration(address, moment.value.stage)
    // Not where the configuration was changed meanwhile.
    if (!isFresh && kept.get(address) === known)
      kept.set(address, { ...known, configured: configured.value, configuredUntil: clock.monotonic() + configuredMs })
    return ok({ address, bootID: bootID.value, ...known.boot, ...configured.value, ...moment.value })
  }

  async function readAll(address: string): Promise<Result<MachineFacts>> {
    const running = await readVersion(calls, address)
    if (!running.ok) return running
    const hasResource = hasBootIDResource(running.value.version)
    const before = await readBootID(calls, address, hasResource)
    if (!before.ok) return before
    const [moment, boot] = await Promise.all([readMoment(calls, address), readBootFacts(calls, address)])
    if (!moment.ok) return moment
    if (!boot.ok) return boot
    const configured = await readConfigured(calls, address, boot.value?.role)
    if (!configured.ok) return configured
    if (boot.value === undefined || configured.value === undefined) return withoutConfiguration(address, moment.value.stage)
    const after = await readBootID(calls, address, hasResource)
    if (!after.ok) return after
    if (after.value !== before.value) return failed('busy', `${address}: the machine rebooted while it was read`)
    const facts: BootFacts = { ...boot.value, ...running.value }
    // While it boots, resources are still coming.
    if (moment.value.stage === 'running' && facts.nodeID !== '') {
      kept.set(address, {
        bootID: after.value,
        boot: facts,
        configured: configured.value,
        configuredUntil: clock.monotonic() + configuredMs,
      })
    }
    return ok({ address, bootID: after.value, ...facts, ...configured.value, ...moment.value })
  }

  return {
    read: async address => {
      const known = kept.get(address)
      const polled = known ? await poll(address, known) : 'another boot'
      if (polled !== 'another boot') return polled
      kept.delete(address)
      return readAll(address)
    },
    forgetConfiguration: address => {
      const known = kept.get(address)
      if (known) kept.set(address, { ...known, configuredUntil: -Infinity })
    },
  }
}

function hasBootIDResource(version: string): boolean {
  return isAtLeast(version, 1, 14)
}

function withoutConfiguration(address: string, stage: MachineStage): Result<never> {
  return stage === 'booting'
    ? failed('busy', `${address}: the machine is booting and has not loaded its configuration yet`)
    : failed('precondition', `${address}: the machine has no configuration: it is in maintenance mode (stage ${stage}) and waits for one`)
}

async function readVersion(calls: Calls, address: string): Promise<Result<Pick<MachineFacts, 'version' | 'platform' | 'arch'>>> {
  const answer = await calls.unary(address, MachineService.method.version, {})
  if (!answer.ok) return answer
  const message = onlyMessage(address, 'MachineService.Version', answer.value.messages)
  if (!message.ok) return message
  const { version, platform } = message.value
  if (!version?.tag) return failed('unknown', `${address}: MachineService.Version: the answer names no version`)
  return ok({ version: version.tag.startsWith('v') ? version.tag : `v${version.tag}`, platform: platform?.name ?? '', arch: version.arch })
}

/** Undefined where the machine does not know its type: nobody told it yet. */
async function readBootFacts(calls: Calls, address: string): Promise<Result<Omit<BootFacts, 'version' | 'platform' | 'arch'> | undefined>> {
  const [type, information, identity, info, security, extensions] = await Promise.all([
    getResource(calls, address, resourceTypes.machineType, 'machine-type'),
    getResource(calls, address, resourceTypes.systemInformation, 'systeminformation'),
    getResource(calls, address, resourceTypes.identity, 'local'),
    getResource(calls, address, resourceTypes.info, 'current'),
    getResource(calls, address, resourceTypes.securityState, 'securitystate'),
    readExtensions(calls, address),
  ])
  if (!type.ok) return type
  if (!information.ok) return information
  if (!identity.ok) return identity
  if (!info.ok) return info
  if (!security.ok) return security
  if (!extensions.ok) return extensions
  const role = roles[type.value?.spec.machineType ?? MachineType.UNKNOWN]
  if (!role) return ok(undefined)
  return ok({
    role,
    uuid: information.value?.spec.uuid ?? '',
    nodeID: identity.value?.spec.nodeId ?? '',
    clusterID: info.value?.spec.clusterId ?? '',
    clusterName: info.value?.spec.clusterName ?? '',
    secureBoot: security.value?.spec.secureBoot ?? false,
    ...extensions.value,
  })
}

const roles: Readonly<Partial<Record<MachineType, MachineFacts['role']>>> = {
  [MachineType.INIT]: 'controlplane',
  [MachineType.CONTROL_PLANE]: 'controlplane',
  [MachineType.WORKER]: 'worker',
}

/** Undefined where the machine has no configuration. */
async function readConfigured(
  calls: Calls,
  address: string,
  role: MachineFacts['role'] | undefined,
): Promise<Result<ConfiguredFacts | undefined>> {
  const [config, hostname, nodename] = await Promise.all([
    readMachineConfig(calls, address),
    getResource(calls, address, resourceTypes.hostnameStatus, 'hostname'),
    getResource(calls, address, resourceTypes.nodename, 'nodename'),
  ])
  if (!config.ok) return config
  if (!hostname.ok) return hostname
  if (!nodename.ok) return nodename
  if (config.value === undefined) return ok(undefined)
  const node = nodename.value?.spec
  return ok({
    hostname: hostname.value?.spec.hostname ?? '',
    nodename: node && !node.skipNodeRegistration ? node.nodename : '',
    installImage: config.value.installImage,
    etcdQuotaBytes: role === 'controlplane' ? config.value.etcdQuotaBytes : 0,
  })
}

async function readMoment(calls: Calls, address: string): Promise<Result<MomentFacts>> {
  const [status, fallback] = await Promise.all([
    getResource(calls, address, resourceTypes.machineStatus, 'machine'),
    getResource(calls, address, resourceTypes.metaKey, upgradeMetaKey),
  ])
  if (!status.ok) return status
  if (!fallback.ok) return fallback
  const spec = status.value?.spec
  return ok({
    stage: stages[spec?.stage ?? RuntimeMachineStage.MACHINE_STAGE_UNKNOWN] ?? 'unknown',
    ready: spec?.status?.ready ?? false,
    unmet: (spec?.status?.unmetConditions ?? []).map(({ name, reason }) => `${name}: ${reason}`),
    fallbackArmed: (fallback.value?.spec.value ?? '') !== '',
  })
}

const stages: Readonly<Partial<Record<RuntimeMachineStage, MachineStage>>> = {
  [RuntimeMachineStage.MACHINE_STAGE_BOOTING]: 'booting',
  [RuntimeMachineStage.MACHINE_STAGE_INSTALLING]: 'installing',
  [RuntimeMachineStage.MACHINE_STAGE_MAINTENANCE]: 'maintenance',
  [RuntimeMachineStage.MACHINE_STAGE_RUNNING]: 'running',
  [RuntimeMachineStage.MACHINE_STAGE_REBOOTING]: 'rebooting',
  [RuntimeMachineStage.MACHINE_STAGE_SHUTTING_DOWN]: 'shutting down',
  [RuntimeMachineStage.MACHINE_STAGE_RESETTING]: 'resetting',
  [RuntimeMachineStage.MACHINE_STAGE_UPGRADING]: 'upgrading',
}
