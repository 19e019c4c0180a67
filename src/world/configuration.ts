import type { ApplyMode } from '../ports/configuration.ts'
import { cutByConfig } from './cut.ts'
import { readKubernetesConfig } from './kubernetes-config.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { INSTALL_IMAGE, readScalar } from './machine-config.ts'
import { isAtLeast } from './releases.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'

/** The configuration on the disk, which the next boot takes. */
export const configOnDisk = (machine: Machine): string => machine.onDisk ?? machine.config

/** Why another one is on the disk; undefined where it is the one that runs. */
export const pendingOf = ({ onDisk, config, isStaged }: Machine): 'staged' | 'trial' | undefined =>
  onDisk === undefined || onDisk === config ? undefined : isStaged ? 'staged' : 'trial'

/** Whether the machine tells what is on its disk: Talos does since 1.10, once it was given a configuration since its boot that is no trial. */
export const tellsDisk = (machine: Machine): boolean => machine.hasPersistent && isAtLeast(versionOf(machine), 1, 10)

/** As far as anybody can see from outside. */
export const toldPendingOf = (machine: Machine): 'staged' | 'trial' | undefined => (tellsDisk(machine) ? pendingOf(machine) : undefined)

/** The images of Kubernetes' programs. */
const imagesIn = (site: Site, text: string): ReadonlyMap<string, string> => {
  const { kubelet, components, kubeProxy } = readKubernetesConfig(text, site.kubernetes())
  return new Map([
    ...[...components].map(([name, { image }]) => [name, image] as const),
    ...(kubeProxy === undefined ? [] : [['kube-proxy', kubeProxy] as const]),
    ['kubelet', kubelet.image],
  ])
}

const told = (site: Site, machine: Machine, before: string): void => {
  const image = readScalar(machine.config, INSTALL_IMAGE)
  if (image !== readScalar(before, INSTALL_IMAGE)) site.journal.write(machine.name, 'install-image', image ?? '')
  const known = before === '' ? undefined : imagesIn(site, before)
  for (const [component, named] of imagesIn(site, machine.config))
    if (known && named !== known.get(component)) site.journal.write(machine.name, 'component-image', `${component} ${named}`)
  site.tell(machine, 'config')
  cutByConfig(site, machine)
}

/** Takes effect at once, and is what the next boot takes. Drops one that was staged, and ends a trial. */
export const setConfig = (site: Site, machine: Machine, text: string): void => {
  const before = machine.config
  machine.endTrial?.()
  machine.config = text
  machine.onDisk = undefined
  machine.hasPersistent = true
  told(site, machine, before)
}

/** Takes effect with the next boot. Ends a trial: what is tried then stays until that boot. */
export const stageConfig = (site: Site, machine: Machine, text: string): void => {
  machine.endTrial?.()
  machine.onDisk = text
  machine.isStaged = true
  machine.hasPersistent = true
  site.tell(machine, 'config')
}

/** Takes effect for a while; then what ran before is put back, unless another configuration came meanwhile. Nothing is written to the disk. */
export const tryConfig = (site: Site, machine: Machine, text: string, forMs: number): void => {
  const before = machine.config
  machine.endTrial?.()
  machine.onDisk = configOnDisk(machine)
  machine.isStaged = false
  machine.config = text
  const cancel = later(site, machine, forMs, () => {
    const tried = machine.config
    machine.endTrial = undefined
    machine.config = before
    if (machine.onDisk === before) machine.onDisk = undefined
    site.journal.write(machine.name, 'config-rolled-back')
    told(site, machine, tried)
  })
  machine.endTrial = () => {
    cancel()
    machine.endTrial = undefined
  }
  told(site, machine, before)
}

const DEFAULT_TRY_MS = 60_000

/**
 * What a machine does with a configuration that it was given for good, for its next boot, or for a while. How long that is, is told by who gives it, in
 * time that is not scaled; else it is as long as Talos itself would have it.
 */
export const takeConfig = (site: Site, machine: Machine, mode: ApplyMode, text: string, forMs?: number): void => {
  if (mode === 'no-reboot') setConfig(site, machine, text)
  else if (mode === 'try') tryConfig(site, machine, text, forMs ?? site.durations.fixed(DEFAULT_TRY_MS))
  else stageConfig(site, machine, text)
  site.journal.write(machine.name, 'config-applied', { 'no-reboot': '', staged: 'staged', try: 'tried' }[mode])
}
