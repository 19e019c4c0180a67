import type { RebootMode } from '../ports/talos.ts'
import type { Answer } from './answer.ts'
import { answer } from './answer.ts'
import { restart } from './boot.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { isAtLeast } from './releases.ts'
import { plain, stopAll, stopAllPods, stopEverything } from './phases.ts'
import { notInContainer } from './refusals.ts'
import type { Phase } from './sequencer.ts'
import { startSequence } from './sequencer.ts'
import type { Site } from './site.ts'

const RESTART_COMMAND = 0x01234567
const KEXEC_COMMAND = 0x45584543

export const restartPhase = (site: Site, machine: Machine, actorID: string, why: string, kexec: boolean): Phase => ({
  name: 'reboot',
  tasks: ['reboot'],
  run: () => {
    machine.events.publish(site.schedule.now(), actorID, { type: 'RestartEvent', cmd: kexec ? KEXEC_COMMAND : RESTART_COMMAND })
    restart(site, machine, why)
  },
})

export const kexecs = (machine: Machine, mode: RebootMode): boolean =>
  mode === 'default' && !machine.disk.slots[machine.disk.booted]?.secureBoot

export const phasesOfReboot = (site: Site, machine: Machine, mode: RebootMode, actorID: string): readonly Phase[] => {
  const why = `reboot ${mode}`
  if (mode === 'force') return [restartPhase(site, machine, actorID, why, false)]
  const kexec = kexecs(machine, mode)
  const inContainer = machine.platform === 'container'
  return [
    stopAllPods(site, machine),
    plain('dbus', 'stopDBus'),
    ...(inContainer ? [stopEverything(site, machine)] : stopAll(site, machine, kexec)),
    restartPhase(site, machine, actorID, why, kexec),
  ]
}

/**
 * `MachineService.Reboot`: OK means queued. Without a drain, without a look at etcd. Where another sequence holds the lock nothing happens, and only
 * an event says so.
 */
export const requestReboot = (site: Site, machine: Machine, mode: RebootMode): Answer<{ readonly actorID: string }> => {
  if (machine.platform === 'container') return notInContainer
  const actorID = site.schedule.random.uuid()
  // Older machines take the mode that they do not know for the default.
  const known = mode === 'force' && !isAtLeast(versionOf(machine), 1, 12) ? 'default' : mode
  site.journal.write(machine.name, 'reboot-requested', known)
  startSequence(
    site,
    machine,
    { name: 'reboot', phases: phasesOfReboot(site, machine, known, actorID), forced: known === 'force' },
    actorID,
  )
  return answer({ actorID })
}

/** A reboot that the machine's owner asked for by way of its configuration: whatever else it does, in a container too, and with no actor. */
export const rebootForConfig = (site: Site, machine: Machine): void => {
  site.journal.write(machine.name, 'reboot-requested', 'configuration')
  const phases = phasesOfReboot(site, machine, 'default', '')
  startSequence(site, machine, { name: 'reboot', phases, takesOver: true, forced: true }, '')
}
