import type { Answer } from './answer.ts'
import { answer, refuse } from './answer.ts'
import type { Machine } from './machine.ts'
import { phasesOfReboot } from './reboot.ts'
import { notInContainer } from './refusals.ts'
import { startSequence } from './sequencer.ts'
import type { Site } from './site.ts'
import { isInstalled, switchBack } from './slots.ts'

/** `MachineService.Rollback`: the boot loader takes the other slot, and the machine reboots whatever else it does. */
export const requestRollback = (site: Site, machine: Machine): Answer<void> => {
  if (machine.platform === 'container') return notInContainer
  if (!isInstalled(machine.disk)) return refuse('FailedPrecondition', 'system disk not found')
  if (!switchBack(machine.disk)) return refuse('Unknown', 'previous UKI not found')
  const actorID = site.schedule.random.uuid()
  site.journal.write(machine.name, 'rollback-requested')
  const phases = phasesOfReboot(site, machine, 'default', actorID)
  startSequence(site, machine, { name: 'reboot', phases, takesOver: true, forced: true }, actorID)
  return answer(undefined)
}
