import type { InstallOutcome } from '../ports/talos.ts'
import type { Refusal } from './answer.ts'
import { answer, refuse } from './answer.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import type { Installer } from './images.ts'
import { withoutDigest } from './images.ts'
import { notInContainer } from './refusals.ts'
import { isAtLeast, kubernetesObjection, parseVersion } from './releases.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import { beginInstall, finishInstall, isInstalled } from './slots.ts'
import type { Ends } from './stream.ts'
import { openStream } from './stream.ts'
import type { Cancel } from './time.ts'

/** As the kernel says it. */
const NO_SPACE = 'no space left on device'

/** The name under which an image lies in the machine's containerd. */
const stored = (image: string): string => withoutDigest(image)

/**
 * `ImageService.Pull` (or ImagePull on older machines): takes a while; the answer is the reference pinned by digest where the machine gives one.
 * Answers with a function that hangs up.
 */
export const pullImage = (site: Site, machine: Machine, image: string, ends: Ends<string>): Cancel => {
  const stream = openStream(site, machine, ends)
  const total = site.durations.draw('pull')
  stream.line(`pulling ${image}`)
  const cancelHalf = later(site, machine, total / 2, () => stream.line(`pulling ${image}: 50%`))
  const cancel = later(site, machine, total, () => {
    const installer = site.registry.find(image)
    if (!installer && !site.registry.hasProgram(image)) {
      site.journal.write(machine.name, 'pull-failed', image)
      stream.end(refuse('NotFound', `failed to pull image "${image}": failed to resolve reference "${image}": ${image}: not found`))
      return
    }
    if (site.faults.of(machine).diskFull && !machine.images.has(stored(image))) {
      site.journal.write(machine.name, 'pull-failed', `${image}: no space left on device`)
      stream.end(refuse('Unknown', `failed to pull image "${image}": failed to copy: failed to send write: ${NO_SPACE}`))
      return
    }
    if (installer) machine.images.set(stored(image), installer)
    else machine.programs.add(stored(image))
    site.journal.write(machine.name, 'pulled', image)
    stream.end(answer(isAtLeast(versionOf(machine), 1, 13) ? site.registry.pinned(image) : image))
  })
  return () => {
    cancel()
    cancelHalf()
    stream.hungUp()
  }
}

/** The installer asks the machine what it runs, and refuses what it does not know how to come from. */
const preflight = (site: Site, machine: Machine, installer: Installer): string | undefined => {
  const host = parseVersion(versionOf(machine))
  const target = parseVersion(installer.version)
  if (!host || !target) return undefined
  const [from, to] = [versionOf(machine).slice(1), installer.version.slice(1)]
  if (host[1] < target[1] - 2) return `host version ${from} is too old to upgrade to Talos ${to}`
  if (host[1] >= target[1] + 2) return `host version ${from} is too new to downgrade to Talos ${to}`
  return kubernetesObjection(installer.version, site.kubernetes())
}

/** Runs the installer container on the system disk: lines, then an exit code. Zero is the only one that changed what boots next. */
export const runInstaller = (
  site: Site,
  machine: Machine,
  image: string,
  ends: { readonly line: (text: string) => void; readonly end: (exitCode: number) => void },
): Cancel => {
  const installer = machine.images.get(stored(image))
  if (!installer) throw new Error(`${image} was not pulled`)
  const version = installer.version
  const total = site.durations.draw('install')
  const cancels: Cancel[] = []
  const at = (part: number, run: () => void): void => void cancels.push(later(site, machine, total * part, run))
  machine.installing = true
  site.journal.write(machine.name, 'install-began', stored(image))
  const over = (exitCode: number, lines: readonly string[]): void => {
    for (const line of lines) ends.line(line)
    machine.installing = false
    for (const cancel of cancels) cancel()
    site.journal.write(
      machine.name,
      exitCode === 0 ? 'installed' : 'install-failed',
      exitCode === 0 ? stored(image) : `exit ${exitCode}: ${lines.at(-1) ?? ''}`,
    )
    ends.end(exitCode)
  }

  ends.line(`running Talos installer ${version}`)
  at(0.1, () => {
    // Whoever installs anew comes from nowhere.
    const refused = isInstalled(machine.disk) ? preflight(site, machine, installer) : undefined
    if (refused !== undefined) return over(isAtLeast(version, 1, 14) ? 4 : 1, [`pre-flight checks failed: ${refused}`])
    ends.line('all pre-flight checks successful')
    beginInstall(machine.disk)
  })
  at(0.3, () => ends.line('updating EFI bootloader'))
  at(0.6, () => {
    const { installer: fault, bootPartitionFull } = site.faults.of(machine)
    if (bootPartitionFull)
      return over(isAtLeast(version, 1, 14) ? 6 : 1, [`failed to install: write /boot/EFI/Linux/Talos-${version}.efi: ${NO_SPACE}`])
    if (!fault || fault.times <= 0) return ends.line(`writing ${version} to the boot partition`)
    fault.times--
    over(fault.exitCode, fault.lines)
  })
  at(1, () => {
    const { factory, schematic, secureBoot } = installer
    finishInstall(machine.disk, { version, factory, schematic, secureBoot, extensions: site.registry.extensions(schematic) })
    machine.armed = true
    site.tell(machine, 'installed')
    over(0, [`installation of ${version} complete`])
  })
  return () => {
    if (!machine.installing) return
    machine.installing = false
    for (const cancel of cancels) cancel()
    site.journal.write(machine.name, 'install-cut', stored(image))
  }
}

/** Runs the installer for a caller, who learns what it says. When he hangs up, it may be killed or may go on to its end; nobody can tell which. */
const installFor = (site: Site, machine: Machine, image: string, ends: Ends<InstallOutcome>): Cancel => {
  const stream = openStream(site, machine, ends)
  const lines: string[] = []
  const stop = runInstaller(site, machine, image, {
    line: text => {
      lines.push(text)
      stream.line(text)
    },
    end: exitCode => stream.end(answer({ exitCode, lines: lines.slice(-8) })),
  })
  return () => {
    if (!stream.open()) return
    stream.hungUp()
    if (site.schedule.random.chance(0.5)) stop()
  }
}

const objection = (machine: Machine): Refusal | undefined => {
  if (!isAtLeast(versionOf(machine), 1, 13)) return refuse('Unimplemented', 'unknown service machine.LifecycleService')
  if (machine.platform === 'container') return notInContainer
  return machine.installing ? refuse('FailedPrecondition', 'another installation/upgrade is already in progress') : undefined
}

const notPulled = (what: string, image: string): Refusal =>
  refuse('Internal', `${what} failed: installer image "${image}" not found in containerd store: image "${image}": not found`)

/** `LifecycleService.Install`, Talos 1.13 and newer: the first installation, on a disk of the caller's choice. The machine goes on from where it booted. */
export const installAnew = (
  site: Site,
  machine: Machine,
  { image, disk }: { readonly image: string; readonly disk: string },
  ends: Ends<InstallOutcome>,
): Cancel => {
  const refused = ((): Refusal | undefined => {
    const early = objection(machine)
    if (early) return early
    if (isInstalled(machine.disk)) return refuse('AlreadyExists', 'machine is already installed')
    if (image === '') return refuse('InvalidArgument', 'installer image name is required')
    if (disk === '') return refuse('InvalidArgument', 'destination disk is required')
    if (!machine.disks.some(({ path }) => path === disk))
      return refuse('InvalidArgument', `invalid disk path: lstat ${disk}: no such file or directory`)
    return machine.images.has(stored(image)) ? undefined : notPulled('installation', image)
  })()
  if (refused) {
    ends.end(refused)
    return () => {}
  }
  machine.disks = machine.disks.map(one => ({ ...one, system: one.path === disk }))
  return installFor(site, machine, image, ends)
}

/**
 * `LifecycleService.Upgrade`, Talos 1.13 and newer: runs the installer and nothing else. No look at etcd, no drain, no reboot, no event.
 */
export const install = (site: Site, machine: Machine, image: string, ends: Ends<InstallOutcome>): Cancel => {
  const refused = ((): Refusal | undefined => {
    const early = objection(machine)
    if (early) return early
    if (!isInstalled(machine.disk)) return refuse('FailedPrecondition', 'machine is not installed')
    if (image === '') return refuse('InvalidArgument', 'installer image name is required')
    return machine.images.has(stored(image)) ? undefined : notPulled('upgrade', image)
  })()
  if (refused) {
    ends.end(refused)
    return () => {}
  }
  return installFor(site, machine, image, ends)
}
