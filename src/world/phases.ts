import { closeApi, stopKubelet, stopStaticPods } from './down.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { isAtLeast } from './releases.ts'
import type { Phase } from './sequencer.ts'
import { stopService } from './services.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'

export const plain = (name: string, task: string): Phase => ({ name, tasks: [task] })

/** A phase that takes no time. */
export const moment = (name: string, task: string): Phase => ({ name, tasks: [task], run: end => end() })

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

/** What 1.13 and newer still do when a sequence has failed, before the machine reboots. */
export const lastUnmounts: readonly Phase[] = [
  moment('umount', 'unmountPodMounts'),
  moment('unmountBind', 'unmountSystemDiskBindMounts'),
  moment('unmountSystem', 'unmountEphemeralPartition'),
  moment('volumeFinalize', 'teardownLifecycle'),
]

/** With apid: the machine is silent from here on. */
export const stopEverything = (site: Site, machine: Machine): Phase => ({
  name: 'stopEverything',
  tasks: ['stopAllServices'],
  run: end => {
    closeApi(machine)
    later(site, machine, site.durations.draw('stopServices'), () => end())
  },
})

/** Everything that runs ends, in the order of the machine's version; with `kexec` the next kernel is loaded meanwhile. */
export const stopAll = (site: Site, machine: Machine, kexec: boolean): readonly Phase[] => {
  const isNew = isAtLeast(versionOf(machine), 1, 14)
  return [
    ...(isNew ? [plain('denyNewServices', 'denyNewServices')] : []),
    stopServices(site, machine),
    plain('umount', 'unmountPodMounts'),
    plain('unmountBind', 'unmountSystemDiskBindMounts'),
    ...(isNew ? [moment('unmountPromotable', 'unmountPromotableSystemPartitions')] : []),
    plain('unmountSystem', 'unmountEphemeralPartition'),
    plain('volumeFinalize', 'teardownLifecycle'),
    ...(kexec && !isNew ? [plain('kexec', 'kexecPrepare')] : []),
    stopEverything(site, machine),
    ...(kexec && isNew ? [plain('kexec', 'kexecPrepare')] : []),
  ]
}
