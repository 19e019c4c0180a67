import type { RebootMode } from '../ports/talos.ts'
import type { Answer } from './answer.ts'
import { answer, refuse } from './answer.ts'
import { closeApi, restart, stopKubelet, stopStaticPods } from './boot.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { isAtLeast } from './releases.ts'
import type { Phase } from './sequencer.ts'
import { startSequence } from './sequencer.ts'
import { stopService } from './services.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'

const RESTART_COMMAND = 0x01234567
const KEXEC_COMMAND = 0x45584543

/** Waits for pods to end; this is where machines hang. */
export const stopAllPods = (site: Site, machine: Machine): Phase => ({
  name: 'cleanup',
  tasks: ['stopAllPods'],
  run: end => {
    stopKubelet(site, machine)
    stopService(site, machine, 'kubelet')
    const asked = site.faults.of(machine).stopPodsMs
    if (asked === Infinity) {
      if (machine.sequence) machine.sequence.stuck = true
      site.journal.write(machine.name, 'stuck', 'stopping pods')
      return
    }
    later(site, machine, asked === undefined ? site.durations.draw('stopPods') : site.durations.fixed(asked), () => end())
  },
})

/** Services that live on the ephemeral partition, etcd among them. */
export const stopServices = (site: Site, machine: Machine): Phase => ({
  name: 'stopServices',
  tasks: ['stopServicesForUpgrade'],
  run: end => {
    stopStaticPods(site, machine)
    for (const id of ['etcd', 'trustd', 'cri']) stopService(site, machine, id)
    site.etcd.stop(machine)
    later(site, machine, site.durations.draw('stopServices'), () => end())
  },
})

/** With apid: the machine is silent from here on. */
export const stopEverything = (site: Site, machine: Machine): Phase => ({
  name: 'stopEverything',
  tasks: ['stopAllServices'],
  run: end => {
    closeApi(machine)
    later(site, machine, site.durations.draw('stopServices'), () => end())
  },
})

export const restartPhase = (site: Site, machine: Machine, actorID: string, why: string, kexec: boolean): Phase => ({
  name: 'reboot',
  tasks: ['reboot'],
  run: () => {
    machine.events.publish(site.schedule.now(), actorID, { type: 'RestartEvent', cmd: kexec ? KEXEC_COMMAND : RESTART_COMMAND })
    restart(site, machine, why)
  },
})

export const plain = (name: string, task: string): Phase => ({ name, tasks: [task] })

const kexecs = (machine: Machine, mode: RebootMode): boolean => mode === 'default' && !machine.disk.slots[machine.disk.booted]?.secureBoot

const phases = (site: Site, machine: Machine, mode: RebootMode, actorID: string): readonly Phase[] => {
  const why = `reboot ${mode}`
  if (mode === 'force') return [restartPhase(site, machine, actorID, why, false)]
  const kexec = kexecs(machine, mode)
  const isNew = isAtLeast(versionOf(machine), 1, 14)
  return [
    stopAllPods(site, machine),
    plain('dbus', 'stopDBus'),
    ...(isNew ? [plain('denyNewServices', 'denyNewServices')] : []),
    stopServices(site, machine),
    plain('umount', 'unmountPodMounts'),
    plain('unmountBind', 'unmountSystemDiskBindMounts'),
    plain('unmountSystem', 'unmountEphemeralPartition'),
    plain('volumeFinalize', 'teardownLifecycle'),
    ...(kexec && !isNew ? [plain('kexec', 'kexecPrepare')] : []),
    stopEverything(site, machine),
    ...(kexec && isNew ? [plain('kexec', 'kexecPrepare')] : []),
    restartPhase(site, machine, actorID, why, kexec),
  ]
}

/**
 * `MachineService.Reboot`: OK means queued. Without a drain, without a look at etcd. Where another sequence holds the lock nothing happens, and only
 * an event says so.
 */
export const requestReboot = (site: Site, machine: Machine, mode: RebootMode): Answer<{ readonly actorID: string }> => {
  if (machine.platform === 'container') return refuse('FailedPrecondition', 'method is not supported in container mode')
  const actorID = site.schedule.random.uuid()
  site.journal.write(machine.name, 'reboot-requested', mode)
  startSequence(site, machine, { name: 'reboot', phases: phases(site, machine, mode, actorID), forced: mode === 'force' }, actorID)
  return answer({ actorID })
}
