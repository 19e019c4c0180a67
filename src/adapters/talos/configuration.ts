import { durationFromMs } from '@bufbuild/protobuf/wkt'
import { ApplyConfigurationRequest_Mode as Mode } from '../../../proto/gen/machine/machine_pb.ts'
import { type ApplyMode, type ConfigurationCalls, type ConfigurationChange, type DryRun, pendingText } from '../../ports/configuration.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import type { Calls } from './calls.ts'
import { apply, readConfiguration } from './config.ts'

const modes: Readonly<Record<ApplyMode, Mode>> = { 'no-reboot': Mode.NO_REBOOT, staged: Mode.STAGED, try: Mode.TRY }

/** Reads, shows and replaces the whole configuration of a machine. */
export function configurationCalls(calls: Calls): ConfigurationCalls {
  return {
    configuration: address => readConfiguration(calls, address),
    dryRun: (address, text, mode) => dryRun(calls, address, text, mode),
    applyConfiguration: (address, change) => applyConfiguration(calls, address, change),
  }
}

async function dryRun(calls: Calls, address: string, text: string, mode: ApplyMode): Promise<Result<DryRun>> {
  const shown = await apply(calls, address, { data: new TextEncoder().encode(text), mode: modes[mode], dryRun: true })
  if (shown.ok) return ok({ takes: true })
  if (shown.fault.kind !== 'invalid') return shown
  const { message } = shown.fault
  return ok({ takes: false, needsReboot: /can't be applied in immediate mode/.test(message), why: message })
}

async function applyConfiguration(calls: Calls, address: string, { from, to, mode, tryMs }: ConfigurationChange): Promise<Result<void>> {
  const now = await readConfiguration(calls, address)
  if (!now.ok) return now
  if ((mode === 'staged' ? now.value.onDisk : now.value.running) !== from)
    return failed('conflict', `${address}: its machine configuration is another one by now`)
  if (mode === 'staged' && now.value.pending === 'trial') return failed('conflict', `${address}: ${pendingText('trial')}`)
  return apply(calls, address, {
    data: new TextEncoder().encode(to),
    mode: modes[mode],
    ...(mode === 'try' && tryMs !== undefined ? { tryModeTimeout: durationFromMs(tryMs) } : {}),
  })
}
