import { waitForCertificate } from './certificates.ts'
import type { Machine } from './machine.ts'
import { setStage, versionOf } from './machine.ts'
import { isAtLeast } from './releases.ts'
import type { Phase } from './sequencer.ts'
import { startSequence } from './sequencer.ts'
import { earlyServices, startService } from './services.ts'
import type { Site } from './site.ts'
import { moment } from './phases.ts'

/** Up to 1.12 a service of its own answers in maintenance, and apid comes with the configuration. */
const apidComesLate = (machine: Machine): boolean => machine.config === '' && !isAtLeast(versionOf(machine), 1, 13)

const startEarly = (site: Site, machine: Machine): void => {
  for (const id of earlyServices(machine)) {
    if (id !== 'apid') startService(site, machine, id)
    else if (!machine.apid) waitForCertificate(site, machine)
    else if (!apidComesLate(machine)) startService(site, machine, id)
  }
}

/** Without a configuration the machine waits here for one, in maintenance mode. */
const loadConfig = (site: Site, machine: Machine): Phase => ({
  name: 'config',
  tasks: ['loadConfig'],
  run: end => {
    if (machine.config !== '') return end()
    const comesLate = apidComesLate(machine)
    const tell = (action: 'START' | 'STOP'): void =>
      machine.events.publish(site.schedule.now(), '', { type: 'TaskEvent', task: 'runningMaintenance', action })
    tell('START')
    machine.configured = () => {
      machine.configured = undefined
      tell('STOP')
      setStage(site, machine, 'booting')
      if (comesLate) startService(site, machine, 'apid')
      end()
    }
    setStage(site, machine, 'maintenance')
  },
})

/** The first sequence of every boot. It takes next to no time where there is a configuration. */
export const initialize = (site: Site, machine: Machine, next: () => void): void => {
  const early = (name: string, ...tasks: string[]): Phase => ({
    name,
    tasks,
    run: end => {
      startEarly(site, machine)
      end()
    },
  })
  const version = versionOf(machine)
  // Before 1.13 apid came with all other services, at the end of a boot.
  const apid = isAtLeast(version, 1, 13) ? ['startApid'] : []
  const udevd = isAtLeast(version, 1, 14) ? 'waitForUdevd' : 'startUdevd'
  const phases =
    machine.platform === 'container'
      ? [early('machined', 'startMachined', ...apid, 'startContainerd')]
      : [
          moment('systemRequirements', 'enforceKSPPRequirements'),
          early('earlyServices', udevd, 'startMachined', ...apid, 'startAuditd', 'startSyslogd', 'startContainerd'),
          moment('usb', 'waitForUSB'),
          moment('meta', 'reloadMeta'),
          moment('dashboard', 'startDashboard'),
        ]
  startSequence(site, machine, { name: 'initialize', phases: [...phases, loadConfig(site, machine)], ended: next }, '')
}
