import type { MachineFacts } from '../ports/talos.ts'
import type { ImageReference, InstallerImage } from './talos-image.ts'
import {
  classicImage,
  EMPTY_SCHEMATIC,
  factoryImage,
  isSchematicId,
  parseImage,
  PUBLIC_FACTORY,
  readInstaller,
  sameSchematic,
} from './talos-image.ts'
import { finalOf, parseVersion } from './versions.ts'

export type InstallImageRequest = {
  readonly machine: MachineFacts
  /** The target, with `v`. */
  readonly version: string
  /** `spec.talos.schematic`: asked for by name, and so the consent to another set of extensions. */
  readonly schematic?: string
  /** `spec.talos.image`: the whole reference. */
  readonly image?: string
  /** `spec.installImage` of the TalosMachine: a repository without tag, a standing choice of the operator for this machine. */
  readonly machineImage?: string
  /** `spec.imageFactory` of the TalosCluster: the factory's host. */
  readonly clusterFactory?: string
}

export type InstallImageRule = 'SchematicMismatch' | 'ImageInvalid' | 'ImageVersionMismatch' | 'SecureBootMismatch' | 'PlatformMismatch'

export type InstallImageChoice =
  | {
      readonly ok: true
      readonly image: string
      /**
       * What the machine will report afterwards; empty where the image was made by no factory, undefined where neither its name nor anybody else tells.
       * Compare with `carriesSchematic`.
       */
      readonly schematic: string | undefined
    }
  | { readonly ok: false; readonly rule: InstallImageRule; readonly message: string }

const no = (rule: InstallImageRule, message: string): InstallImageChoice => ({ ok: false, rule, message })

/**
 * The installer image for one machine. What the machine *runs* is the truth, never `machine.install.image` of its configuration, which nobody
 * updates on an upgrade: an image built from it would drop the extensions that storage and network hang on.
 */
export const chooseInstallImage = (request: InstallImageRequest): InstallImageChoice => {
  if (request.image !== undefined) return namedImage(request, request.image, 'spec.talos.image', false)
  if (request.machineImage !== undefined && request.machineImage !== '') return machineImage(request, request.machineImage)
  return builtImage(request)
}

/** Whether a machine that runs this schematic has what the image would bring, as far as that can be told. */
export const carriesSchematic = (choice: Extract<InstallImageChoice, { readonly ok: true }>, running: string): boolean =>
  choice.schematic === undefined || sameSchematic(choice.schematic, running)

const builtImage = (request: InstallImageRequest): InstallImageChoice => {
  const { machine, version } = request
  if (request.schematic === undefined && machine.schematic === '' && machine.extensions.length > 0) {
    return no(
      'SchematicMismatch',
      `${nameOf(machine)} runs the extensions ${machine.extensions.join(', ')} but names no Image Factory schematic, so an image that keeps them cannot be built. ` +
        'Set spec.talos.schematic (and spec.imageFactory of the TalosCluster) to a schematic with them, or spec.talos.image to an installer that carries them.',
    )
  }
  if (request.schematic === undefined && machine.schematic !== '' && !isSchematicId(machine.schematic)) {
    return no(
      'SchematicMismatch',
      `${nameOf(machine)} reports a schematic that is none (${JSON.stringify(machine.schematic.slice(0, 80))}). Set spec.talos.schematic to the one it should run.`,
    )
  }
  const schematic = request.schematic ?? (machine.schematic === '' ? EMPTY_SCHEMATIC : machine.schematic)
  const known = request.clusterFactory || machine.factory
  const bare = schematic === EMPTY_SCHEMATIC && !machine.secureBoot
  if (known === '' && bare) {
    // The empty schematic is the same in every factory, and the same as no schematic. The bare installer's image is no longer published from 1.14 on; Talos itself then installs from the public factory.
    if (classicIsPublished(version)) return { ok: true, image: classicImage(version), schematic: '' }
    return platformOf(machine, platform => fromFactory(PUBLIC_FACTORY, platform, machine, schematic, version))
  }
  if (known === '') {
    const what = machine.secureBoot ? 'boots with Secure Boot' : `shall run the schematic ${short(schematic)}`
    return no(
      'SchematicMismatch',
      `${nameOf(machine)} ${what} but does not name the Image Factory that makes its images. Set spec.imageFactory of the TalosCluster to its host, for example ${PUBLIC_FACTORY}, or spec.talos.image to the whole reference.`,
    )
  }
  return platformOf(machine, platform => fromFactory(known, platform, machine, schematic, version))
}

const fromFactory = (factory: string, platform: string, machine: MachineFacts, schematic: string, version: string): InstallImageChoice => {
  const image = factoryImage({ factory, platform, secureBoot: machine.secureBoot, schematic, version })
  const parsed = parseImage(image)
  if (!parsed.ok)
    return no(
      'ImageInvalid',
      `The image for ${nameOf(machine)} cannot be built: ${parsed.problem} spec.imageFactory of the TalosCluster has to be a host, like ${PUBLIC_FACTORY}.`,
    )
  return { ok: true, image, schematic }
}

const platformOf = (machine: MachineFacts, then: (platform: string) => InstallImageChoice): InstallImageChoice =>
  machine.platform === '' || machine.platform === 'container'
    ? no(
        'PlatformMismatch',
        `${nameOf(machine)} runs on ${machine.platform === '' ? 'a platform that it does not name' : 'the platform container'}, for which there is no installer.`,
      )
    : then(machine.platform)

const machineImage = (request: InstallImageRequest, repository: string): InstallImageChoice => {
  const what = `spec.installImage of the TalosMachine ${nameOf(request.machine)}`
  if (/[@]|:[^/]*$/.test(repository))
    return no(
      'ImageInvalid',
      `${what} is ${JSON.stringify(repository)}; name the repository without tag or digest, the version is added by each upgrade.`,
    )
  return namedImage(request, `${repository}:${request.version}`, what, true)
}

/** An image that a person wrote. `standing`: written on the machine itself, where naming a schematic is the consent to it. */
const namedImage = (request: InstallImageRequest, text: string, what: string, standing: boolean): InstallImageChoice => {
  const parsed = parseImage(text)
  if (!parsed.ok) return no('ImageInvalid', `${what}: ${parsed.problem}`)
  const installer = readInstaller(parsed.image)
  return (
    wrongVersion(request, parsed.image, what) ??
    unpublished(request, parsed.image, installer, what) ??
    wrongMake(request.machine, installer, what) ??
    wrongSchematic(request, installer, what, standing) ?? {
      ok: true,
      image: text,
      schematic: installer.form === 'factory' ? installer.schematic : installer.form === 'custom' ? request.schematic : '',
    }
  )
}

const wrongVersion = (request: InstallImageRequest, image: ImageReference, what: string): InstallImageChoice | undefined => {
  if (image.tag === undefined) return undefined
  const [tag, target] = [parseVersion(image.tag), parseVersion(request.version)]
  if (image.tag === 'latest')
    return no('ImageVersionMismatch', `${what} has the tag latest, which may be any version; name ${request.version}.`)
  if (tag === undefined || target === undefined || (finalOf(tag) === finalOf(target) && tag.prerelease === '')) return undefined
  return no(
    'ImageVersionMismatch',
    `${what} is an installer of ${image.tag}, but the target version is ${request.version}; make them the same.`,
  )
}

const unpublished = (
  request: InstallImageRequest,
  image: ImageReference,
  installer: InstallerImage,
  what: string,
): InstallImageChoice | undefined =>
  installer.form === 'classic' && image.registry === 'ghcr.io' && !classicIsPublished(request.version)
    ? no(
        'ImageInvalid',
        `${what} is ghcr.io/siderolabs/installer, which is not published for Talos 1.14 and newer; use ${PUBLIC_FACTORY}/${request.machine.platform}-installer/${EMPTY_SCHEMATIC}:${request.version}.`,
      )
    : undefined

/** Neither Secure Boot nor the platform can be changed by an upgrade: the machine would not boot, or boot without its network. */
const wrongMake = (machine: MachineFacts, installer: InstallerImage, what: string): InstallImageChoice | undefined => {
  if (installer.form === 'custom') return undefined
  const secureBoot = installer.form === 'factory' && installer.secureBoot
  if (secureBoot !== machine.secureBoot) {
    const [is, needs] = machine.secureBoot ? ['boots with', '-installer-secureboot'] : ['does not boot with', '-installer']
    return no(
      'SecureBootMismatch',
      `${what}: ${nameOf(machine)} ${is} Secure Boot, which an upgrade cannot change; it needs an image ${machine.platform}${needs}.`,
    )
  }
  if (installer.form === 'factory' && machine.platform !== '' && installer.platform !== machine.platform) {
    return no(
      'PlatformMismatch',
      `${what} is made for the platform ${installer.platform}, but ${nameOf(machine)} runs on ${machine.platform}; it needs an image ${machine.platform}-installer.`,
    )
  }
  return undefined
}

const wrongSchematic = (
  request: InstallImageRequest,
  installer: InstallerImage,
  what: string,
  standing: boolean,
): InstallImageChoice | undefined => {
  const { machine, schematic: asked } = request
  const running = machine.schematic === '' ? (machine.extensions.length > 0 ? undefined : EMPTY_SCHEMATIC) : machine.schematic
  const carried = machine.extensions.length > 0 ? ` with the extensions ${machine.extensions.join(', ')}` : ''
  if (installer.form === 'custom') {
    // Its name does not tell. Where a factory made what runs, extensions may get lost unseen; where none did, there is no other way to name one.
    if (asked !== undefined || standing || running === undefined || running === EMPTY_SCHEMATIC) return undefined
    return no(
      'SchematicMismatch',
      `${what} does not tell which schematic it carries, and ${nameOf(machine)} runs ${short(running)}${carried}. Set spec.talos.schematic to the one that the image carries, or leave the image out.`,
    )
  }
  const named = installer.form === 'classic' ? EMPTY_SCHEMATIC : installer.schematic
  if (asked !== undefined) {
    if (asked === named) return undefined
    return no(
      'SchematicMismatch',
      `${what} carries the schematic ${short(named)}, but spec.talos.schematic asks for ${short(asked)}; make them the same.`,
    )
  }
  if (named === running || (standing && installer.form === 'factory')) return undefined
  const runs = running === undefined ? `the extensions ${machine.extensions.join(', ')} without a schematic` : `${short(running)}${carried}`
  const way = `spec.talos.schematic to ${named} as well`
  return no(
    'SchematicMismatch',
    `${what} carries the schematic ${named === EMPTY_SCHEMATIC ? 'without any extension' : short(named)}, but ${nameOf(machine)} runs ${runs}. If that is wanted, set ${way}; else leave the image out.`,
  )
}

const classicIsPublished = (version: string): boolean => {
  const parsed = parseVersion(version)
  return parsed !== undefined && (parsed.major < 1 || (parsed.major === 1 && parsed.minor <= 13))
}

const nameOf = (machine: MachineFacts): string => machine.hostname || machine.nodename || machine.address
const short = (schematic: string): string => (schematic === EMPTY_SCHEMATIC ? 'the empty one' : `${schematic.slice(0, 12)}…`)
