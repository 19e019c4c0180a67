import { durationMs } from '@bufbuild/protobuf/wkt'
import type { ApplyConfigurationRequest } from '../../../proto/gen/machine/machine_pb.ts'
import { ApplyConfigurationRequest_Mode as Mode, MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Answer } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import { setConfig, stageConfig, tryConfig } from '../../world/configuration.ts'
import type { Machine } from '../../world/machine.ts'
import { isInMaintenance, versionOf } from '../../world/machine.ts'
import { rebootForConfig } from '../../world/reboot.ts'
import { isAtLeast, parseVersion } from '../../world/releases.ts'
import type { Site } from '../../world/site.ts'
import { later } from '../../world/site.ts'
import type { Call, UnaryHandler } from '../call.ts'
import { unary } from '../dispatch.ts'
import type { Mapping } from './config-documents.ts'
import { mappingOf, needsReboot, v1alpha1Of, validationError } from './config-documents.ts'
import { unifiedDiff } from './text-diff.ts'

const methods = MachineService.method

const DEFAULT_TRY_MS = 60_000
/** From the answer in maintenance until the machine goes on. */
const LEAVES_MAINTENANCE_MS = 500

const WITHOUT_REBOOT = 'Applied configuration without a reboot'
const DETAILS: Readonly<Record<number, string>> = {
  [Mode.REBOOT]: 'Applied configuration with a reboot',
  [Mode.AUTO]: WITHOUT_REBOOT,
  [Mode.NO_REBOOT]: WITHOUT_REBOOT,
  [Mode.STAGED]: 'Staged configuration to be applied after the next reboot',
  [Mode.TRY]: WITHOUT_REBOOT,
}

/** As Go writes a duration: `1m0s`. */
const goDuration = (ms: number): string => {
  const seconds = (ms % 60_000) / 1000
  const minutes = Math.floor(ms / 60_000) % 60
  const hours = Math.floor(ms / 3_600_000)
  if (ms < 1000) return `${ms}ms`
  return `${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds}s`
}

/** One at a time since 1.14, and in late patches of 1.13. */
const guardsAgainstOthers = (version: string): boolean => {
  const [, minor = 0, patch = 0] = parseVersion(version) ?? []
  return isAtLeast(version, 1, 14) || (minor === 13 && patch >= 9)
}

/** The mode as this machine understands it. */
const modeOf = (machine: Machine, mode: Mode, needs: boolean): Answer<Mode> => {
  const version = versionOf(machine)
  if (DETAILS[mode] === undefined) return refuse('InvalidArgument', `incorrect mode '${mode}' specified for the apply config call`)
  if (isInMaintenance(machine)) {
    if (isAtLeast(version, 1, 13)) return answer(mode === Mode.REBOOT || mode === Mode.AUTO ? Mode.NO_REBOOT : mode)
    if (mode === Mode.NO_REBOOT || mode === Mode.STAGED) return refuse('Unimplemented', 'API is not implemented in maintenance mode')
    return answer(mode)
  }
  if (mode === Mode.REBOOT && isAtLeast(version, 1, 14))
    return refuse('Unimplemented', 'the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead')
  if (mode === Mode.AUTO) return answer(needs ? Mode.REBOOT : Mode.NO_REBOOT)
  return answer(mode)
}

const roleIn = (config: Mapping): Machine['role'] => (mappingOf(config['machine'])['type'] === 'controlplane' ? 'controlplane' : 'worker')

/** Its first configuration: the machine installs itself, if it has to, and boots. */
const begin = (site: Site, machine: Machine, text: string, config: Mapping): void => {
  machine.role = roleIn(config)
  setConfig(site, machine, text)
  later(site, machine, site.durations.fixed(LEAVES_MAINTENANCE_MS), () => machine.configured?.())
}

const take = (site: Site, machine: Machine, text: string, mode: Mode, forMs: number): void => {
  if (mode === Mode.NO_REBOOT) setConfig(site, machine, text)
  else if (mode === Mode.TRY) tryConfig(site, machine, text, site.durations.fixed(forMs))
  else stageConfig(site, machine, text)
  const how: Readonly<Record<number, string>> = { [Mode.STAGED]: 'staged', [Mode.TRY]: 'tried', [Mode.REBOOT]: 'with a reboot' }
  site.journal.write(machine.name, 'config-applied', how[mode] ?? '')
  if (mode === Mode.REBOOT) rebootForConfig(site, machine)
}

const apply = async (
  call: Call,
  request: ApplyConfigurationRequest,
): Promise<Answer<{ readonly mode: Mode; readonly modeDetails: string }>> => {
  const { site, machine } = call
  const isFirst = isInMaintenance(machine)
  const text = new TextDecoder().decode(request.data)
  const parsed = v1alpha1Of(text)
  if (!parsed.ok) return parsed
  const config = parsed.value
  if (!config)
    return refuse(
      'InvalidArgument',
      "the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?",
    )
  const current = v1alpha1Of(machine.config)
  const needs = !isFirst && current.ok && needsReboot(versionOf(machine), current.value ?? {}, config)
  const mode = modeOf(machine, request.mode, needs)
  if (!mode.ok) return mode
  const objection = validationError(machine, config)
  if (objection !== undefined) return refuse('InvalidArgument', objection)
  if ((mode.value === Mode.NO_REBOOT || mode.value === Mode.TRY) && needs)
    return refuse(
      'InvalidArgument',
      `this config change can't be applied in immediate mode\ndiff: ${unifiedDiff(machine.config, text)}`.replace(
        'diff: ---',
        'diff:\n---',
      ),
    )

  const details = DETAILS[mode.value] ?? ''
  if (request.dryRun) {
    const diff = unifiedDiff(machine.config, text) || 'No changes.'
    const hasNone = isFirst && !isAtLeast(versionOf(machine), 1, 13)
    const summary = hasNone
      ? 'Node is running in maintenance mode and does not have a config yet.'
      : `${details} (skipped in dry-run).\nConfig diff:\n\n${diff}`
    return answer({ mode: mode.value, modeDetails: `Dry run summary:\n${summary}` })
  }

  await new Promise<void>(resolve => void later(site, machine, site.durations.draw('applyConfig'), resolve))
  if (isFirst && mode.value !== Mode.STAGED) {
    begin(site, machine, text, config)
    // The service that answered in maintenance had nothing to say.
    return answer({ mode: mode.value, modeDetails: isAtLeast(versionOf(machine), 1, 13) ? details : '' })
  }
  const forMs = request.tryModeTimeout ? durationMs(request.tryModeTimeout) : DEFAULT_TRY_MS
  take(site, machine, text, mode.value, forMs)
  const trial = `\nThe config is applied in 'try' mode and will be automatically reverted back in ${goDuration(forMs)}`
  return answer({ mode: mode.value, modeDetails: mode.value === Mode.TRY ? `${details}${trial}` : details })
}

const applyConfiguration: UnaryHandler<typeof methods.applyConfiguration> = async (call, request) => {
  const { machine, roles } = call
  if (machine.applying && guardsAgainstOthers(versionOf(machine)))
    return refuse('FailedPrecondition', 'another apply configuration is already in progress')
  if (!roles.has('os:admin') && !isInMaintenance(machine)) return refuse('PermissionDenied', 'not authorized')
  const { life } = machine
  machine.applying = true
  const applied = await apply(call, request)
  if (machine.life === life) machine.applying = false
  return applied.ok ? answer({ messages: [applied.value] }) : applied
}

export const configurationMethods = { applyConfiguration: unary(methods.applyConfiguration, applyConfiguration) }
