import type { RebootMode } from '../ports/talos.ts'
import type { Answer } from './answer.ts'
import { answer, refuse } from './answer.ts'
import { failSequence } from './boot.ts'
import { runInstaller } from './install.ts'
import { pullAndInstall } from './install-sequence.ts'
import { withoutDigest } from './images.ts'
import type { Machine } from './machine.ts'
import { isInMaintenance, versionOf } from './machine.ts'
import { moment, plain, stopAll, stopAllPods, stopEverything, stopServices } from './phases.ts'
import { restartPhase } from './reboot.ts'
import { notInContainer } from './refusals.ts'
import { isAtLeast } from './releases.ts'
import type { Phase, Sequence } from './sequencer.ts'
import { startSequence } from './sequencer.ts'
import type { ServerDrain } from './server-drain.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import { openStream } from './stream.ts'
import { META_STAGED_IMAGE, META_STAGED_OPTIONS, isInstalled } from './slots.ts'

export type LegacyUpgrade = {
  readonly image: string
  readonly preserve: boolean
  readonly force: boolean
  /** Not now, but with the next boot, which is at once. */
  readonly stage?: boolean
  readonly rebootMode: RebootMode
}

/** What the server checks of etcd before it agrees; undefined where nothing is wrong. */
const etcdObjection = (site: Site, machine: Machine, request: LegacyUpgrade): Answer<never> | undefined => {
  const skips = request.force || (request.preserve && isAtLeast(versionOf(machine), 1, 13))
  if (machine.role !== 'controlplane' || skips || isInMaintenance(machine)) return undefined
  if (!site.etcd.hasQuorum()) return refuse('DeadlineExceeded', 'failed to acquire upgrade mutex: context deadline exceeded')
  const members = site.etcd.members()
  const invalid = (text: string): Answer<never> => refuse('Unknown', `error validating etcd for upgrade: ${text}`)
  if (members.length === 2) return invalid('etcd member count(2) is insufficient to maintain quorum if upgrade commences')
  for (const member of members) {
    if (member.name === '') return invalid(`etcd member ${member.id} is not started, all members must be running to perform an upgrade`)
    if (!site.etcd.isConnected(member) || member.sick)
      return invalid(
        `etcd member ${member.id} is not healthy; all members must be healthy to perform an upgrade: context deadline exceeded`,
      )
  }
  return undefined
}

const upgradePhase = (site: Site, machine: Machine, image: string): Phase => ({
  name: 'upgrade',
  tasks: ['upgrade'],
  run: end => {
    runInstaller(site, machine, image, {
      line: () => {},
      end: exitCode => end(exitCode === 0 ? undefined : `task "upgrade" failed: exit code ${exitCode}`),
    })
  },
})

const installing = (site: Site, machine: Machine, image: string, drain: ServerDrain, kexec: boolean, actorID: string): readonly Phase[] => {
  const isNew = isAtLeast(versionOf(machine), 1, 14)
  return [
    ...(isNew ? [plain('denyNewServices', 'denyNewServices')] : []),
    { name: 'drain', tasks: ['cordonAndDrainNode'], run: over => drain(machine, over) },
    stopAllPods(site, machine),
    plain('dbus', 'stopDBus'),
    stopServices(site, machine),
    plain('unmount', 'unmountPodMounts'),
    plain('unmountBind', 'unmountSystemDiskBindMounts'),
    ...(isNew ? [moment('unmountPromotable', 'unmountPromotableSystemPartitions')] : []),
    plain('unmountSystem', 'unmountEphemeralPartition'),
    plain('volumeFinalize', 'teardownLifecycle'),
    upgradePhase(site, machine, image),
    plain('meta', 'reloadMeta'),
    ...(kexec ? [plain('kexec', 'kexecPrepare')] : []),
    stopEverything(site, machine),
    restartPhase(site, machine, actorID, 'upgrade', kexec),
  ]
}

/** Notes what the next boot has to install, and reboots. */
const staging = (site: Site, machine: Machine, { image, force }: LegacyUpgrade, kexec: boolean, actorID: string): readonly Phase[] => {
  machine.disk.meta.set(META_STAGED_IMAGE, image)
  machine.disk.meta.set(META_STAGED_OPTIONS, JSON.stringify({ upgrade: true, force }))
  site.tell(machine, 'meta')
  return [
    stopAllPods(site, machine),
    plain('dbus', 'stopDBus'),
    ...stopAll(site, machine, kexec),
    restartPhase(site, machine, actorID, 'upgrade staged', kexec),
  ]
}

/** Of a machine in maintenance: it has nothing to end first. Before 1.13 nobody looked at the image before. */
const inMaintenance = (site: Site, machine: Machine, image: string, kexec: boolean, actorID: string): readonly Phase[] => [
  {
    name: 'upgrade',
    tasks: ['upgrade'],
    run: end => pullAndInstall(site, machine, image, error => end(error === undefined ? undefined : `task "upgrade" failed: ${error}`)),
  },
  plain('meta', 'reloadMeta'),
  ...(kexec ? [plain('kexec', 'kexecPrepare')] : []),
  stopEverything(site, machine),
  restartPhase(site, machine, actorID, 'upgrade', kexec),
]

const begin = (site: Site, machine: Machine, request: LegacyUpgrade, drain: ServerDrain): Answer<{ readonly actorID: string }> => {
  const { image, stage } = request
  const actorID = site.schedule.random.uuid()
  const kexec = request.rebootMode === 'default'
  site.journal.write(machine.name, 'upgrade-requested', image)
  const sequence = ((): Pick<Sequence, 'name' | 'phases'> => {
    if (isInMaintenance(machine)) return { name: 'maintenanceUpgrade', phases: inMaintenance(site, machine, image, kexec, actorID) }
    return stage
      ? { name: 'stageUpgrade', phases: staging(site, machine, request, kexec, actorID) }
      : { name: 'upgrade', phases: installing(site, machine, image, drain, kexec, actorID) }
  })()
  const ended = (error: string | undefined): void => {
    if (error !== undefined) failSequence(site, machine)
  }
  startSequence(site, machine, { ...sequence, ended }, actorID)
  return answer({ actorID })
}

/**
 * `MachineService.Upgrade`. Validates image and etcd before it answers, which takes a while; then drains, installs and reboots in the background. A staged one
 * reboots first, and installs in that boot.
 */
export const requestUpgrade = (
  site: Site,
  machine: Machine,
  request: LegacyUpgrade,
  drain: ServerDrain,
  end: (result: Answer<{ readonly actorID: string }>) => void,
): void => {
  if (machine.platform === 'container') return end(notInContainer)
  const isOld = !isAtLeast(versionOf(machine), 1, 13)
  if (!isInstalled(machine.disk) && (!isOld || isInMaintenance(machine))) return end(refuse('FailedPrecondition', 'Talos is not installed'))
  const { image } = request
  if (isOld && isInMaintenance(machine)) {
    if (!request.preserve && !request.stage && !request.force) return end(begin(site, machine, request, drain))
    return end(refuse('Unimplemented', 'upgrade --preserve, --stage, and --force are not supported in maintenance mode'))
  }
  const stream = openStream<{ readonly actorID: string }>(site, machine, { line: () => {}, end })
  later(site, machine, site.durations.draw('validateInstaller'), () => {
    const installer = site.registry.find(image)
    if (!installer) {
      site.journal.write(machine.name, 'pull-failed', image)
      return stream.end(
        refuse('Unknown', `error validating installer image "${image}": failed to resolve reference "${image}": ${image}: not found`),
      )
    }
    const objection = etcdObjection(site, machine, request)
    if (objection) return stream.end(objection)
    machine.images.set(withoutDigest(image), installer)
    stream.end(begin(site, machine, request, drain))
  })
}
