import { EMPTY_SCHEMATIC, withoutDigest } from './images.ts'
import { runInstaller } from './install.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { INSTALL_IMAGE, readScalar } from './machine-config.ts'
import { moment, plain, stopEverything } from './phases.ts'
import { isAtLeast } from './releases.ts'
import type { Phase } from './sequencer.ts'
import { startSequence } from './sequencer.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import { META_STAGED_IMAGE, META_STAGED_OPTIONS, isInstalled, runningSlot } from './slots.ts'

/** Pulls an installer and runs it; `end` is told what went wrong, if anything did. */
export const pullAndInstall = (site: Site, machine: Machine, image: string, end: (error?: string) => void): void => {
  later(site, machine, site.durations.draw('pull'), () => {
    const installer = site.registry.find(image)
    if (!installer) {
      site.journal.write(machine.name, 'pull-failed', image)
      return end(`failed to pull image "${image}": failed to resolve reference "${image}": ${image}: not found`)
    }
    machine.images.set(withoutDigest(image), installer)
    runInstaller(site, machine, image, {
      line: () => {},
      end: exitCode => end(exitCode === 0 ? undefined : `exit code ${exitCode}`),
    })
  })
}

const installPhase = (site: Site, machine: Machine, image: string): Phase => ({
  name: 'install',
  tasks: ['install'],
  run: end => {
    // Forgotten first: what fails once is not tried again at every boot.
    machine.disk.meta.delete(META_STAGED_IMAGE)
    machine.disk.meta.delete(META_STAGED_OPTIONS)
    pullAndInstall(site, machine, image, error => end(error === undefined ? undefined : `task "install" failed: ${error}`))
  },
})

/** What Talos installs itself from where nobody says anything. */
export const defaultInstaller = (version: string): string =>
  isAtLeast(version, 1, 14) ? `factory.talos.dev/metal-installer/${EMPTY_SCHEMATIC}:${version}` : `ghcr.io/siderolabs/installer:${version}`

/** Since 1.14 only the old place in the configuration makes this sequence install; the new one does it later, and so may a caller of the API. */
const installsHere = ({ config, disk }: Machine): boolean =>
  !isAtLeast(runningSlot(disk).version, 1, 14) || readScalar(config, ['machine', 'install']) !== undefined

type Next = { readonly done: () => void; readonly restart: (why: string) => void; readonly failed: () => void }

/**
 * The second sequence of every boot. It has phases only where nothing is installed or an upgrade is staged: then it installs and restarts the
 * machine.
 */
export const installIfNeeded = (site: Site, machine: Machine, { done, restart, failed }: Next): void => {
  const staged = machine.disk.meta.get(META_STAGED_IMAGE)
  const isNeeded = machine.platform !== 'container' && (staged !== undefined || (!isInstalled(machine.disk) && installsHere(machine)))
  const image = staged ?? readScalar(machine.config, INSTALL_IMAGE) ?? defaultInstaller(versionOf(machine))
  const phases: readonly Phase[] = isNeeded
    ? [
        plain('env', 'setUserEnvVars'),
        installPhase(site, machine, image),
        plain('meta', 'reloadMeta'),
        plain('saveMeta', 'flushMeta'),
        ...(isAtLeast(versionOf(machine), 1, 14) ? [moment('denyNewServices', 'denyNewServices')] : []),
        plain('volumeFinalize', 'teardownLifecycle'),
        stopEverything(site, machine),
        plain('kexec', 'kexecPrepare'),
        { name: 'reboot', tasks: ['reboot'], run: () => restart('install') },
      ]
    : []
  startSequence(site, machine, { name: 'install', phases, ended: error => (error === undefined ? done() : failed()) }, '')
}
