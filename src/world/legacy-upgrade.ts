import type { RebootMode } from '../ports/talos.ts'
import type { Answer } from './answer.ts'
import { answer, refuse } from './answer.ts'
import { failSequence } from './boot.ts'
import { runInstaller } from './install.ts'
import { withoutDigest } from './images.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { moment, plain, stopAll, stopAllPods, stopEverything, stopServices } from './phases.ts'
import { restartPhase } from './reboot.ts'
import { notInContainer } from './refusals.ts'
import { isAtLeast } from './releases.ts'
import type { Phase } from './sequencer.ts'
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
  const skips = request.force || (request.preserve && isAtLeast(versionOf(machine), 1, 14))
  if (machine.role !== 'controlplane' || skips) return undefined
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
  if (!isInstalled(machine.disk) && isAtLeast(versionOf(machine), 1, 13)) return end(refuse('FailedPrecondition', 'Talos is not installed'))
  const { image } = request
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
    const actorID = site.schedule.random.uuid()
    const kexec = request.rebootMode === 'default'
    site.journal.write(machine.name, 'upgrade-requested', image)
    startSequence(
      site,
      machine,
      {
        name: request.stage ? 'stageUpgrade' : 'upgrade',
        phases: request.stage ? staging(site, machine, request, kexec, actorID) : installing(site, machine, image, drain, kexec, actorID),
        ended: error => {
          if (error !== undefined) failSequence(site, machine)
        },
      },
      actorID,
    )
    stream.end(answer({ actorID }))
  })
}
