import type { Answer, Refusal } from './answer.ts'
import { answer, refuse } from './answer.ts'
import { failSequence } from './boot.ts'
import { leaveEtcd } from './etcd-membership.ts'
import type { Machine } from './machine.ts'
import { isInMaintenance, versionOf } from './machine.ts'
import { plain, stopAll, stopAllPods, stopEverything } from './phases.ts'
import { restartPhase } from './reboot.ts'
import { isAtLeast } from './releases.ts'
import type { Phase } from './sequencer.ts'
import { startSequence } from './sequencer.ts'
import type { ServerDrain } from './server-drain.ts'
import { powerOffPhase } from './shutdown.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import { isInstalled, wipeDisk } from './slots.ts'

export type ResetRequest = {
  readonly graceful: boolean
  readonly reboot: boolean
  /** Labels of system partitions; none stands for the whole system disk. */
  readonly partitions: readonly string[]
  /** Device paths. */
  readonly userDisks: readonly string[]
  readonly mode: 'all' | 'system-disk' | 'user-disks'
}

const LEAVE_AGAIN_MS = 10_000
const LEAVE_FOR_MS = 300_000

/** Since 1.14 volumes that are folders of a partition can be named too, but not wiped without it. */
const FOLDERS: readonly string[] = ['ETCD', 'CRI', 'KUBELET', 'LOG']

const volumesOf = (machine: Machine): readonly string[] => {
  const version = versionOf(machine)
  if (isAtLeast(version, 1, 14)) return ['META', 'STATE', 'EPHEMERAL', ...FOLDERS]
  // As real machines of 1.12 have it.
  return isAtLeast(version, 1, 12) ? ['META', 'STATE', 'EPHEMERAL', 'ETCD'] : ['META', 'STATE', 'EPHEMERAL']
}

const objectionToDisks = (machine: Machine, { mode, userDisks }: ResetRequest): Refusal | undefined => {
  if (userDisks.length === 0) return undefined
  if (mode === 'system-disk')
    return refuse('Unknown', "reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter")
  for (const name of userDisks) {
    const found = machine.disks.find(d => d.path === name)
    const wrong = !found ? "wasn't found" : found.readonly ? 'is readonly' : found.system ? 'is the system disk' : undefined
    if (wrong !== undefined) return refuse('Unknown', `reset user disk failed: device ${name} ${wrong}`)
  }
  return undefined
}

const objectionToPartitions = (machine: Machine, { mode, partitions }: ResetRequest): Refusal | undefined => {
  if (partitions.length === 0) return undefined
  if (mode === 'user-disks')
    return refuse('Unknown', "reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter")
  for (const label of partitions)
    if (!volumesOf(machine).includes(label))
      return refuse(
        'Unknown',
        `failed to get volume status with label ${JSON.stringify(label)}: resource VolumeStatuses.block.talos.dev(runtime/${label}@undefined) doesn't exist`,
      )
  // The volumes have their statuses there, and no partition.
  if (machine.platform === 'container') return refuse('Unknown', `failed to reset: volume ${JSON.stringify(partitions[0])} is not located`)
  const folder = partitions.find(label => FOLDERS.includes(label))
  if (folder !== undefined && isAtLeast(versionOf(machine), 1, 14) && !partitions.includes('EPHEMERAL'))
    return refuse('Unknown', `failed to reset: volume "${folder}" resides on volume "EPHEMERAL", which has to be wiped as well`)
  return undefined
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const wipeState = (site: Site, machine: Machine): void => {
  machine.config = ''
  machine.partial = ''
  machine.onDisk = undefined
  machine.endTrial?.()
  // Its identity lies there too.
  machine.nodeID = Array.from({ length: 43 }, () => site.schedule.random.pick(BASE62.split(''))).join('')
}

const wipeEphemeral = (site: Site, machine: Machine): void => {
  machine.images.clear()
  site.etcd.forget(machine)
}

const wipe = (site: Site, machine: Machine, { partitions, mode, userDisks }: ResetRequest): void => {
  const isWhole = partitions.length === 0 && mode !== 'user-disks'
  site.journal.write(machine.name, 'wiped', [...(isWhole ? ['the system disk'] : partitions), ...userDisks].join(' '))
  if (isWhole || partitions.includes('STATE')) wipeState(site, machine)
  if (isWhole || partitions.includes('EPHEMERAL')) wipeEphemeral(site, machine)
  if (partitions.includes('META')) machine.disk.meta.clear()
  if (isWhole) wipeDisk(machine.disk)
}

/** Tries for five minutes; one that is no member has left already. */
const leavePhase = (site: Site, machine: Machine): Phase => ({
  name: 'leave',
  tasks: ['leaveEtcd'],
  run: end => {
    const giveUpAt = site.schedule.now() + site.durations.fixed(LEAVE_FOR_MS)
    const attempt = (): void => {
      if (!site.etcd.memberOf(machine)) return end()
      const left = leaveEtcd(site, machine)
      if (left?.ok) return end()
      if (site.schedule.now() >= giveUpAt) return end(`task "leaveEtcd" failed: ${left?.message ?? 'context deadline exceeded'}`)
      later(site, machine, site.durations.fixed(LEAVE_AGAIN_MS), attempt)
    }
    attempt()
  },
})

const phasesOf = (site: Site, machine: Machine, request: ResetRequest, drain: ServerDrain, actorID: string): readonly Phase[] => {
  const { graceful, partitions, userDisks, mode } = request
  const last = request.reboot ? restartPhase(site, machine, actorID, 'reset', false) : powerOffPhase(site, machine, actorID)
  // A container can't wipe its host's disk.
  if (machine.platform === 'container') return [stopEverything(site, machine), last]
  const wiping = (name: string, task: string): Phase => ({
    name,
    tasks: [task],
    run: end =>
      void later(site, machine, site.durations.draw('task'), () => {
        wipe(site, machine, request)
        end()
      }),
  })
  return [
    ...(graceful
      ? [{ name: 'drain', tasks: ['cordonAndDrainNode'], mayFail: true, run: (end: (error?: string) => void) => drain(machine, end) }]
      : []),
    { ...stopAllPods(site, machine), tasks: [graceful ? 'removeAllPods' : 'stopAllPods'], mayFail: true },
    plain('dbus', 'stopDBus'),
    ...(graceful && machine.role === 'controlplane' ? [leavePhase(site, machine)] : []),
    plain('preReset', 'sendResetSignal'),
    ...stopAll(site, machine, partitions.length > 0 && !partitions.includes('BOOT')).map(phase => ({ ...phase, mayFail: true })),
    plain('forceCleanup', 'forceCleanup'),
    ...(mode === 'user-disks'
      ? []
      : [partitions.length > 0 ? wiping('resetSpec', 'resetSystemDiskSpec') : wiping('reset', 'resetSystemDisk')]),
    ...(userDisks.length > 0
      ? [mode === 'user-disks' ? wiping('resetUserDisks', 'resetUserDisks') : plain('resetUserDisks', 'resetUserDisks')]
      : []),
    last,
  ]
}

/** Before 1.13 a machine in maintenance wipes at once, and asks then to be restarted, for which it is not free: only the wiping comes of it. */
const resetInMaintenance = (site: Site, machine: Machine, request: ResetRequest): Answer<{ readonly actorID: string }> => {
  if (request.partitions.length > 0) return refuse('Unknown', 'system partitions to wipe params is not supported in the maintenance mode')
  if (!isInstalled(machine.disk)) return refuse('Unknown', 'reset failed: Talos is not installed')
  const actorID = site.schedule.random.uuid()
  site.journal.write(machine.name, 'reset-requested', 'in maintenance')
  wipe(site, machine, { ...request, mode: 'all' })
  const last = request.reboot ? restartPhase(site, machine, actorID, 'reset', false) : powerOffPhase(site, machine, actorID)
  startSequence(site, machine, { name: request.reboot ? 'reboot' : 'shutdown', phases: [last] }, actorID)
  return answer({ actorID })
}

/**
 * `MachineService.Reset`: OK means queued. Gracefully, it drains and leaves etcd first; where it cannot leave, the machine reboots as it was. What was
 * on the wiped partitions is gone with the last phase but one.
 */
export const requestReset = (
  site: Site,
  machine: Machine,
  request: ResetRequest,
  drain: ServerDrain,
): Answer<{ readonly actorID: string }> => {
  const isOldMaintenance = isInMaintenance(machine) && !isAtLeast(versionOf(machine), 1, 13)
  const objection = objectionToDisks(machine, request) ?? (isOldMaintenance ? undefined : objectionToPartitions(machine, request))
  if (objection) return objection
  if (isOldMaintenance) return resetInMaintenance(site, machine, request)
  const actorID = site.schedule.random.uuid()
  const { graceful, reboot, mode } = request
  site.journal.write(machine.name, 'reset-requested', [graceful ? 'graceful' : '', reboot ? 'reboot' : '', mode].filter(Boolean).join(' '))
  startSequence(
    site,
    machine,
    {
      name: 'reset',
      phases: phasesOf(site, machine, request, drain, actorID),
      ended: error => {
        if (error !== undefined) failSequence(site, machine)
      },
    },
    actorID,
  )
  return answer({ actorID })
}
