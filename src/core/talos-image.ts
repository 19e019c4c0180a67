/** Installer images as references: what they name, how they are spelled, and what is wrong with one that a person wrote. */

/** SHA-256 of the schematic without extensions or kernel arguments: every factory gives it the same id. */
export const EMPTY_SCHEMATIC = '376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'

/** The factory whose images Talos installs by default from 1.14 on. */
export const PUBLIC_FACTORY = 'factory.talos.dev'

const CLASSIC = 'ghcr.io/siderolabs/installer'

export const isSchematicId = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

/** The host of a factory, perhaps with a path, as it stands in references: without the scheme that people copy along, and without a slash at its end. */
export const factoryHost = (text: string): string =>
  text
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
    .replace(/\/+$/, '')

/** A machine that no factory made anything for runs what the empty schematic stands for. */
export const sameSchematic = (a: string, b: string): boolean => (a === '' ? EMPTY_SCHEMATIC : a) === (b === '' ? EMPTY_SCHEMATIC : b)

export type ImageReference = {
  /** Host and port; empty where the reference names none. */
  readonly registry: string
  /** Without registry, tag and digest. */
  readonly path: string
  readonly tag: string | undefined
  readonly digest: string | undefined
}

export type ParsedImage = { readonly ok: true; readonly image: ImageReference } | { readonly ok: false; readonly problem: string }

// Talos names one of its platforms with a capital letter, and the factory's paths follow.
const COMPONENT = /^([a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*|equinixMetal-installer(-secureboot)?)$/
const REGISTRY = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:\d{1,5})?$/
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/
const DIGEST = /^sha256:[0-9a-f]{64}$/

/**
 * Reads `repo:tag` or `repo@digest`. Both together are refused: Talos' own tools read the tag and pull the digest, so that what is checked is
 * not what is installed.
 */
export const parseImage = (text: string): ParsedImage => {
  const quoted = JSON.stringify(text.slice(0, 200))
  const no = (problem: string): ParsedImage => ({ ok: false, problem: `${quoted} ${problem}` })
  if (text.trim() !== text || /\s/.test(text) || text === '') return no('is not an image reference: it is empty or has blanks.')
  if (/^[a-z]+:\/\//i.test(text))
    return no('is a URL; write the image without its scheme, like factory.talos.dev/metal-installer/<schematic>:v1.13.9.')
  const [name = '', digest, ...more] = text.split('@')
  if (more.length > 0) return no('is not an image reference: it has more than one @.')
  const colon = name.lastIndexOf(':')
  const tagged = colon > name.lastIndexOf('/')
  const tag = tagged ? name.slice(colon + 1) : undefined
  const parts = (tagged ? name.slice(0, colon) : name).split('/')
  const [first = ''] = parts
  if (tag !== undefined && digest !== undefined)
    return no(`has both a tag and a digest; name one of them: ${parts.join('/')}:${tag} or ${parts.join('/')}@${digest}.`)
  if (tag === undefined && digest === undefined) return no('has neither a tag nor a digest; end it with the version, like :v1.13.9.')
  if (tag !== undefined && !TAG.test(tag)) return no(`has a tag that no image can have: ${JSON.stringify(tag)}.`)
  if (digest !== undefined && !DIGEST.test(digest)) return no('has a malformed digest; it is sha256: and 64 lower-case hexadecimal digits.')
  const hasRegistry = parts.length > 1 && (/[.:[]/.test(first) || first === 'localhost')
  if (hasRegistry && !REGISTRY.test(first)) return no(`names a registry that is no host: ${JSON.stringify(first)}.`)
  const path = hasRegistry ? parts.slice(1) : parts
  const wrong = path.find(part => !COMPONENT.test(part))
  if (wrong !== undefined)
    return no(
      `is not an image reference: ${JSON.stringify(wrong)} is no part of an image's name (lower-case letters, digits, dots, dashes).`,
    )
  return { ok: true, image: { registry: hasRegistry ? first : '', path: path.join('/'), tag, digest } }
}

/** What an installer image tells by its name. */
export type InstallerImage =
  /** Made by an Image Factory. `factory` is its host, with a path in front of the image where a mirror adds one. */
  | {
      readonly form: 'factory'
      readonly factory: string
      readonly platform: string
      readonly secureBoot: boolean
      readonly schematic: string
    }
  /** The bare installer, without any extension. */
  | { readonly form: 'classic' }
  /** Anything else: its name does not say what is in it. */
  | { readonly form: 'custom' }

export const readInstaller = (image: Pick<ImageReference, 'registry' | 'path'>): InstallerImage => {
  const whole = [image.registry, image.path].filter(part => part !== '').join('/')
  const made = /^(?<factory>.+)\/(?:(?<platform>[A-Za-z0-9-]+)-)?installer(?<secure>-secureboot)?\/(?<schematic>[0-9a-f]{64})$/.exec(
    whole,
  )?.groups
  if (made?.['factory'] !== undefined && made['schematic'] !== undefined) {
    // The older form, without platform, is the one for bare metal.
    return {
      form: 'factory',
      factory: made['factory'],
      platform: made['platform'] ?? 'metal',
      secureBoot: made['secure'] !== undefined,
      schematic: made['schematic'],
    }
  }
  return /(^|\/)siderolabs\/installer$/.test(image.path) ? { form: 'classic' } : { form: 'custom' }
}

/** `<factory>/<platform>-installer[-secureboot]/<schematic>:<version>`; `version` with `v`. */
export const factoryImage = (parts: {
  readonly factory: string
  readonly platform: string
  readonly secureBoot: boolean
  readonly schematic: string
  readonly version: string
}): string => `${parts.factory}/${parts.platform}-installer${parts.secureBoot ? '-secureboot' : ''}/${parts.schematic}:${parts.version}`

/** The bare installer of a release; published up to Talos 1.13. */
export const classicImage = (version: string): string => `${CLASSIC}:${version}`
