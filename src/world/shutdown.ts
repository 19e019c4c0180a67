import type { Answer } from './answer.ts'
import { answer } from './answer.ts'
import { powerOff } from './boot.ts'
import type { Machine } from './machine.ts'
import { plain, stopAll, stopAllPods } from './phases.ts'
import { notInContainer } from './refusals.ts'
import type { Phase } from './sequencer.ts'
import { startSequence } from './sequencer.ts'
import type { ServerDrain } from './server-drain.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'

const POWER_OFF_COMMAND = 0x4321fedc

/** The last phase of a sequence after which the machine is off. */
export const powerOffPhase = (site: Site, machine: Machine, actorID: string): Phase => ({
  name: 'shutdown',
  tasks: ['shutdown'],
  run: () => {
    machine.events.publish(site.schedule.now(), actorID, { type: 'RestartEvent', cmd: POWER_OFF_COMMAND })
    powerOff(site, machine)
  },
})

/**
 * `MachineService.Shutdown`: OK means queued. Takes over from any other sequence. Drains first unless forced; one that fails at it ends with the power
 * off all the same, in a less orderly way.
 */
export const requestShutdown = (site: Site, machine: Machine, force: boolean, drain: ServerDrain): Answer<{ readonly actorID: string }> => {
  if (machine.platform === 'container') return notInContainer
  const actorID = site.schedule.random.uuid()
  site.journal.write(machine.name, 'shutdown-requested', force ? 'force' : '')
  startSequence(
    site,
    machine,
    {
      name: 'shutdown',
      takesOver: true,
      forced: true,
      phases: [
        plain('storeShutdown', 'storeShutdownEmergency'),
        ...(force ? [] : [{ name: 'drain', tasks: ['cordonAndDrainNode'], run: (end: (error?: string) => void) => drain(machine, end) }]),
        stopAllPods(site, machine),
        plain('dbus', 'stopDBus'),
        ...stopAll(site, machine, false),
        powerOffPhase(site, machine, actorID),
      ],
      ended: error => {
        if (error !== undefined) later(site, machine, site.durations.fixed(40_000), () => powerOff(site, machine))
      },
    },
    actorID,
  )
  return answer({ actorID })
}
