import { durationMs } from '@bufbuild/protobuf/wkt'
import type { ApplyConfigurationRequest } from '../../../proto/gen/machine/machine_pb.ts'
import { ApplyConfigurationRequest_Mode as Mode, MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Answer, Refusal } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import { setConfig, stageConfig, takeConfig } from '../../world/configuration.ts'
import type { Machine } from '../../world/machine.ts'
import { isInMaintenance, versionOf } from '../../world/machine.ts'
import { roleIn } from '../../world/machine-config.ts'
import { rebootForConfig } from '../../world/reboot.ts'
import { isAtLeast, parseVersion } from '../../world/releases.ts'
import type { Site } from '../../world/site.ts'
import { later } from '../../world/site.ts'
import type { Call, UnaryHandler } from '../call.ts'
import { unary } from '../dispatch.ts'
import type { Configuration } from './config-documents.ts'
import { readConfiguration } from './config-documents.ts'
import { needsReboot } from '../../world/config-reboot.ts'
import { runtimeError, validationError, warningsOf } from './config-validation.ts'
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

/** A word of the mode as talosctl spells it. */
const spelled = (mode: Mode): string => {
  const [name = String(mode)] = Object.entries(Mode).find(([, value]) => value === mode) ?? []
  return name.toLowerCase().replaceAll('_', '-')
}

const incorrect = (version: string, mode: Mode): Refusal =>
  refuse(isAtLeast(version, 1, 14) ? 'InvalidArgument' : 'Unknown', `incorrect mode '${mode}' specified for the apply config call`)

/** The mode as a machine in maintenance understands it. */
const modeInMaintenance = (version: string, mode: Mode): Answer<Mode> => {
  if (isAtLeast(version, 1, 13)) return answer(mode === Mode.REBOOT || mode === Mode.AUTO ? Mode.NO_REBOOT : mode)
  if (mode === Mode.REBOOT || mode === Mode.AUTO || mode === Mode.TRY) return answer(mode)
  return refuse('Unimplemented', `apply configuration --mode='${spelled(mode)}' is not supported in maintenance mode`)
}

/** The mode as any other machine understands it. */
const modeOf = (version: string, mode: Mode, needs: boolean): Answer<Mode> => {
  if (DETAILS[mode] === undefined) return incorrect(version, mode)
  if (mode === Mode.REBOOT && isAtLeast(version, 1, 14))
    return refuse('Unimplemented', 'the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead')
  if (mode === Mode.AUTO) return answer(needs ? Mode.REBOOT : Mode.NO_REBOOT)
  return answer(mode)
}

type Applied = { readonly mode: Mode; readonly modeDetails: string; readonly warnings: readonly string[] }

const objectionTo = (machine: Machine, configuration: Configuration): Refusal | undefined => {
  const invalid = validationError(machine, configuration)
  const unfit = invalid === undefined ? runtimeError(machine, configuration) : undefined
  if (invalid === undefined && unfit === undefined) return undefined
  if (!isInMaintenance(machine) || isAtLeast(versionOf(machine), 1, 13)) return refuse('InvalidArgument', invalid ?? unfit ?? '')
  return refuse(
    'InvalidArgument',
    invalid === undefined ? `runtime configuration validation failed: ${unfit}` : `configuration validation failed: ${invalid}`,
  )
}

/** Its first configuration: the machine installs itself, if it has to, and boots. Documents of other kinds alone do not let it. */
const begin = (site: Site, machine: Machine, text: string, { main }: Configuration): void => {
  if (!main) {
    site.journal.write(machine.name, 'config-applied', 'not enough to boot')
    machine.partial = text
    return
  }
  machine.partial = ''
  machine.role = roleIn(text)
  setConfig(site, machine, text)
  later(site, machine, site.durations.fixed(LEAVES_MAINTENANCE_MS), () => machine.configured?.())
}

const applyDuration = (site: Site, machine: Machine): Promise<void> =>
  new Promise(resolve => void later(site, machine, site.durations.draw('applyConfig'), resolve))

/** To a machine in maintenance. */
const applyFirst = async ({ site, machine }: Call, request: ApplyConfigurationRequest): Promise<Answer<Applied>> => {
  const version = versionOf(machine)
  const isNew = isAtLeast(version, 1, 13)
  const mode = modeInMaintenance(version, request.mode)
  if (!mode.ok) return mode
  const text = new TextDecoder().decode(request.data)
  const read = readConfiguration(text, version)
  if (!read.ok) return isNew ? read : refuse('Unknown', `failed to parse config: ${read.message}`)
  const objection = objectionTo(machine, read.value)
  if (objection) return objection
  if (isNew && DETAILS[mode.value] === undefined) return incorrect(version, mode.value)
  const warnings = warningsOf(read.value)
  const details = DETAILS[mode.value] ?? ''
  if (request.dryRun) {
    // The service that answered before 1.13 names no mode, which is to say the first.
    if (!isNew)
      return answer({
        mode: Mode.REBOOT,
        modeDetails: 'Dry run summary:\nNode is running in maintenance mode and does not have a config yet.',
        warnings,
      })
    return answer({ mode: mode.value, modeDetails: dryRunSummary(details, machine.partial, text), warnings: [] })
  }
  await applyDuration(site, machine)
  if (mode.value === Mode.STAGED) take(site, machine, text, mode.value)
  else begin(site, machine, text, read.value)
  return answer(isNew ? { mode: mode.value, modeDetails: details, warnings } : { mode: Mode.REBOOT, modeDetails: '', warnings })
}

const take = (site: Site, machine: Machine, text: string, mode: Mode, forMs?: number): void => {
  if (mode === Mode.NO_REBOOT) takeConfig(site, machine, 'no-reboot', text)
  else if (mode === Mode.TRY) takeConfig(site, machine, 'try', text, forMs)
  else if (mode === Mode.STAGED) takeConfig(site, machine, 'staged', text)
  else {
    stageConfig(site, machine, text)
    site.journal.write(machine.name, 'config-applied', 'with a reboot')
    rebootForConfig(site, machine)
  }
}

const dryRunSummary = (details: string, before: string, after: string): string =>
  `Dry run summary:\n${details} (skipped in dry-run).\nConfig diff:\n\n${unifiedDiff(before, after) || 'No changes.'}`

/** To one that has a configuration. */
const apply = async ({ site, machine }: Call, request: ApplyConfigurationRequest): Promise<Answer<Applied>> => {
  const version = versionOf(machine)
  // Whatever comes of the request.
  if (request.mode !== Mode.TRY) machine.endTrial?.()
  const text = new TextDecoder().decode(request.data)
  const read = readConfiguration(text, version)
  if (!read.ok) return read
  if (!read.value.main)
    return refuse(
      'InvalidArgument',
      "the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?",
    )
  const objection = objectionTo(machine, read.value)
  if (objection) return objection
  const current = readConfiguration(machine.config, version)
  const needs = current.ok && needsReboot(version, current.value.main ?? {}, read.value.main)
  const notNow = needs ? `this config change can't be applied in immediate mode\ndiff:\n${unifiedDiff(machine.config, text)}` : ''
  const mode = modeOf(version, request.mode, needs)
  if (!mode.ok) return mode
  if ((mode.value === Mode.NO_REBOOT || mode.value === Mode.TRY) && needs) return refuse('InvalidArgument', notNow)

  const details = DETAILS[mode.value] ?? ''
  if (request.dryRun) return answer({ mode: mode.value, modeDetails: dryRunSummary(details, machine.config, text), warnings: [] })
  await applyDuration(site, machine)
  const forMs = request.tryModeTimeout && durationMs(request.tryModeTimeout)
  take(site, machine, text, mode.value, forMs)
  const more: Readonly<Record<number, string>> = {
    [Mode.TRY]: `\nThe config is applied in 'try' mode and will be automatically reverted back in ${goDuration(forMs ?? DEFAULT_TRY_MS)}`,
    [Mode.REBOOT]: request.mode === Mode.AUTO ? `: ${notNow}` : '',
  }
  return answer({ mode: mode.value, modeDetails: details + (more[mode.value] ?? ''), warnings: warningsOf(read.value) })
}

const applyConfiguration: UnaryHandler<typeof methods.applyConfiguration> = async (call, request) => {
  const { machine, roles } = call
  if (machine.applying !== undefined && guardsAgainstOthers(versionOf(machine)))
    return refuse(
      'FailedPrecondition',
      machine.applying === 'one'
        ? 'another apply configuration is already in progress'
        : 'configuration was already applied and node is rebooting, cannot apply more configuration changes until next reboot',
    )
  if (!roles.has('os:admin') && !isInMaintenance(machine)) return refuse('PermissionDenied', 'not authorized')
  const { life } = machine
  machine.applying = 'one'
  const isFirst = isInMaintenance(machine)
  const applied = await (isFirst ? applyFirst : apply)(call, request)
  if (machine.life === life)
    machine.applying = applied.ok && !isFirst && !request.dryRun && applied.value.mode === Mode.REBOOT ? 'reboots' : undefined
  return applied.ok ? answer({ messages: [{ ...applied.value, warnings: [...applied.value.warnings] }] }) : applied
}

export const configurationMethods = { applyConfiguration: unary(methods.applyConfiguration, applyConfiguration) }
