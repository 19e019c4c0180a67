import type { ConfigurationCalls, DryRun } from '../../ports/configuration.ts'
import { pendingText } from '../../ports/configuration.ts'
import { failed, ok } from '../../ports/fault.ts'
import { needsReboot } from '../config-reboot.ts'
import { configOnDisk, takeConfig, tellsDisk, toldPendingOf } from '../configuration.ts'
import type { Machine } from '../machine.ts'
import { versionOf } from '../machine.ts'
import type { Site } from '../site.ts'
import { readYaml } from '../yaml-tree.ts'
import type { Caller } from './caller.ts'

/** The document of the first kind, as far as a comparison goes. */
const mainOf = (text: string): object => {
  const main = readYaml(text).find(tree => typeof tree === 'object' && !('kind' in tree))
  return typeof main === 'object' ? main : {}
}

const judge = (site: Site, machine: Machine, text: string, isAtOnce: boolean): DryRun => {
  const { refusesConfig } = site.faults.of(machine)
  if (refusesConfig !== undefined) return { takes: false, needsReboot: false, why: refusesConfig }
  const waits = isAtOnce && needsReboot(versionOf(machine), { ...mainOf(machine.config) }, { ...mainOf(text) })
  return waits ? { takes: false, needsReboot: true, why: "this config change can't be applied in immediate mode" } : { takes: true }
}

/** The machine configuration, through the world's Talos port. */
export const configurationCalls = (site: Site, { call, applied }: Caller): ConfigurationCalls => ({
  configuration: address =>
    call(address, 'configuration', 'os:admin', false, machine => {
      const { config: running } = machine
      const pending = toldPendingOf(machine)
      return ok({
        running,
        ...(tellsDisk(machine) ? { onDisk: configOnDisk(machine) } : { onDisk: running, isDiskUntold: true as const }),
        ...(pending ? { pending } : {}),
      })
    }),
  dryRun: (address, text, mode) =>
    call(address, 'dryRun', 'os:admin', false, machine => {
      if (mode !== 'try') machine.endTrial?.()
      return ok(judge(site, machine, text, mode !== 'staged'))
    }),
  applyConfiguration: (address, { from, to, mode, tryMs }) =>
    call(address, 'applyConfiguration', 'os:admin', true, async machine => {
      const name = `${address}: applyConfiguration`
      const isStill = (): boolean => (mode === 'staged' && tellsDisk(machine) ? configOnDisk(machine) : machine.config) === from
      if (!isStill()) return failed('conflict', `${name}: its configuration is another one by now`)
      if (mode === 'staged' && toldPendingOf(machine) === 'trial') return failed('conflict', `${name}: ${pendingText('trial')}`)
      const said = judge(site, machine, to, mode !== 'staged')
      if (!said.takes) return failed('invalid', `${name}: InvalidArgument: ${said.why}`)
      // Talos has no lock: who writes meanwhile is overwritten.
      return applied(machine, address, 'applyConfiguration', () => takeConfig(site, machine, mode, to, tryMs))
    }),
})
