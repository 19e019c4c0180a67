import { defaultInstaller, pullAndInstall } from './install-sequence.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { phasesOfReboot } from './reboot.ts'
import { isAtLeast } from './releases.ts'
import { startSequence } from './sequencer.ts'
import type { Site } from './site.ts'
import { isInstalled } from './slots.ts'
import { readYaml, textAt } from './yaml-tree.ts'

type Wish = { readonly image: string | undefined; readonly reboots: boolean }

/** What the document UnattendedInstallConfig of a configuration asks for; undefined where there is none. */
const wishIn = (config: string): Wish | undefined => {
  const document = readYaml(config).find(tree => textAt(tree, 'kind') === 'UnattendedInstallConfig')
  if (document === undefined) return undefined
  const image = textAt(document, 'installer', 'image')
  const reboot = textAt(document, 'reboot')
  return { image, reboots: reboot === undefined ? image !== undefined : reboot === 'true' }
}

/**
 * Since 1.14 a machine can be told to install itself while it boots, by a document of its own. Then it reboots, or goes on from where it booted, as
 * that says. Whoever names no image gets that of what runs.
 */
export const installUnattended = (site: Site): void => {
  const begun = new Map<Machine, number>()
  site.listen((machine, change) => {
    if (change !== 'stage' || machine.stage !== 'booting' || machine.config === '' || isInstalled(machine.disk)) return
    if (!isAtLeast(versionOf(machine), 1, 14) || begun.get(machine) === machine.life) return
    const wish = wishIn(machine.config)
    if (!wish) return
    begun.set(machine, machine.life)
    pullAndInstall(site, machine, wish.image ?? defaultInstaller(versionOf(machine)), error => {
      if (error !== undefined) site.journal.write(machine.name, 'unattended-install-failed', error)
      if (error !== undefined || !wish.reboots) return
      const phases = phasesOfReboot(site, machine, 'default', '')
      startSequence(site, machine, { name: 'reboot', phases }, '')
    })
  })
}
