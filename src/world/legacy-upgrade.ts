import type { RebootMode } from '../ports/talos.ts'
import type { Answer } from './answer.ts'
import { answer, refuse } from './answer.ts'
import { restart } from './boot.ts'
import { runInstaller } from './install.ts'
import { withoutDigest } from './images.ts'
import type { Machine } from './machine.ts'
import { setStage, versionOf } from './machine.ts'
import { plain, restartPhase, stopAllPods, stopEverything, stopServices } from './reboot.ts'
import { isAtLeast } from './releases.ts'
import type { Phase } from './sequencer.ts'
import { startSequence } from './sequencer.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import { openStream } from './stream.ts'
import { META_FALLBACK, revert } from './slots.ts'

export type LegacyUpgrade = { readonly image: string; readonly preserve: boolean; readonly force: boolean; readonly rebootMode: RebootMode }

/** Drains the machine's own node as Talos does; calls back when it gave up or was done. */
export type ServerDrain = (machine: Machine, end: (error?: string) => void) => void

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

/** A sequence that failed: the boot slot goes back if the way back is noted, and the machine reboots after a pause. */
const emergency = (site: Site, machine: Machine): void => {
  if (machine.disk.meta.has(META_FALLBACK)) revert(machine.disk)
  setStage(site, machine, 'rebooting')
  later(site, machine, site.durations.fixed(40_000), () => restart(site, machine, 'sequence failed'))
}

/**
 * `MachineService.Upgrade`. Validates image and etcd before it answers, which takes a while; then drains, installs and reboots in the background.
 */
export const requestUpgrade = (
  site: Site,
  machine: Machine,
  request: LegacyUpgrade,
  drain: ServerDrain,
  end: (result: Answer<{ readonly actorID: string }>) => void,
): void => {
  if (machine.platform === 'container') return end(refuse('FailedPrecondition', 'method is not supported in container mode'))
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
        name: 'upgrade',
        phases: [
          ...(isAtLeast(versionOf(machine), 1, 14) ? [plain('denyNewServices', 'denyNewServices')] : []),
          { name: 'drain', tasks: ['cordonAndDrainNode'], run: over => drain(machine, over) },
          stopAllPods(site, machine),
          plain('dbus', 'stopDBus'),
          stopServices(site, machine),
          plain('unmount', 'unmountPodMounts'),
          plain('unmountBind', 'unmountSystemDiskBindMounts'),
          plain('unmountSystem', 'unmountEphemeralPartition'),
          plain('volumeFinalize', 'teardownLifecycle'),
          upgradePhase(site, machine, image),
          plain('meta', 'reloadMeta'),
          ...(kexec ? [plain('kexec', 'kexecPrepare')] : []),
          stopEverything(site, machine),
          restartPhase(site, machine, actorID, 'upgrade', kexec),
        ],
        ended: error => {
          if (error !== undefined) emergency(site, machine)
        },
      },
      actorID,
    )
    stream.end(answer({ actorID }))
  })
}
