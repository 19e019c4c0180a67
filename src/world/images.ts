import { RELEASE_NAMES } from './releases.ts'

/** The schematic without any extension. */
export const EMPTY_SCHEMATIC = '376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'

/** What is in an installer image, as far as its name tells. */
export type Installer = {
  /** With `v`. */
  readonly version: string
  /** Empty for the official installer. */
  readonly schematic: string
  /** Host of the Image Factory, with a port or a path where it has one; empty for the official installer. */
  readonly factory: string
  readonly secureBoot: boolean
}

/**
 * The container registries of the world: which installer images exist, and what each schematic holds. The official installer exists up to 1.13,
 * as in the real world; factories build every release for every platform and every schematic they know.
 */
export type Registry = {
  /** Undefined where no registry has it. Accepts a reference that ends with a digest. */
  readonly find: (image: string) => Installer | undefined
  /** Whether some registry has a program of Kubernetes: whatever is named like a release of it, unless removed. */
  readonly hasProgram: (image: string) => boolean
  /** `repository:tag@sha256:…`, the same for the same image. */
  readonly pinned: (image: string) => string
  readonly extensions: (schematic: string) => readonly string[]
  /** From now on the registries lack it (a whole reference, or the end of one: `:v1.13.9`). */
  readonly remove: (image: string) => void
  readonly restore: (image: string) => void
  readonly addRelease: (version: string) => void
  /** Makes a schematic known to every factory of the world. */
  readonly addSchematic: (id: string, extensions: readonly string[]) => void
  /** A mirror has every release with this schematic in a repository whose name does not tell; empty: without any. */
  readonly addRepository: (repository: string, schematic: string) => void
}

const FACTORY = /^(.+)\/(?:[a-z0-9-]+-)?installer(-secureboot)?\/([0-9a-f]{64}):([^:@/]+)$/
const OFFICIAL = /^ghcr\.io\/siderolabs\/installer:([^:@/]+)$/

const PROGRAM = /^[^/]+\/(?:[^:@]+\/)?(?:kube-apiserver|kube-controller-manager|kube-scheduler|kube-proxy|kubelet):v1\.\d+\.\d+/

/** Not SHA-256, which a pure room lacks: only a digest's shape, the same for the same text. */
export const digest = (text: string): string => {
  let out = ''
  for (let block = 0; block < 8; block++) {
    let h = 0x811c9dc5 ^ (block * 0x01000193)
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
    out += (h >>> 0).toString(16).padStart(8, '0')
  }
  return `sha256:${out}`
}

export const withoutDigest = (image: string): string => image.replace(/@sha256:[0-9a-f]{64}$/, '')

export const createRegistry = (options: { readonly factories: readonly string[] }): Registry => {
  const releases = new Set(RELEASE_NAMES)
  const schematics = new Map<string, readonly string[]>([[EMPTY_SCHEMATIC, []]])
  const repositories = new Map<string, string>()
  const removed = new Set<string>()

  const find = (image: string): Installer | undefined => {
    const name = withoutDigest(image)
    for (const lacking of removed) if (name.endsWith(lacking)) return undefined
    const factory = FACTORY.exec(name)
    if (factory) {
      const [, host = '', secure, schematic = '', version = ''] = factory
      if (!options.factories.includes(host) || !schematics.has(schematic) || !releases.has(version)) return undefined
      return { version, schematic, factory: host, secureBoot: secure !== undefined }
    }
    const [, repository = '', tag = ''] = /^(.+):([^:@/]+)$/.exec(name) ?? []
    const mirrored = repositories.get(repository)
    if (mirrored !== undefined && releases.has(tag))
      return { version: tag, schematic: mirrored, factory: mirrored === '' ? '' : (options.factories[0] ?? ''), secureBoot: false }
    const version = OFFICIAL.exec(name)?.[1]
    if (!version || !releases.has(version) || /^v1\.(1[4-9]|[2-9]\d)\./.test(version)) return undefined
    return { version, schematic: '', factory: '', secureBoot: false }
  }
  return {
    find,
    hasProgram: image => {
      const name = withoutDigest(image)
      return PROGRAM.test(name) && ![...removed].some(lacking => name.endsWith(lacking))
    },
    pinned: image => (image.includes('@') ? image : `${image}@${digest(image)}`),
    extensions: schematic => schematics.get(schematic) ?? [],
    remove: image => void removed.add(image),
    restore: image => void removed.delete(image),
    addRelease: version => void releases.add(version),
    addSchematic: (id, extensions) => void schematics.set(id, extensions),
    addRepository: (repository, schematic) => void repositories.set(repository, schematic),
  }
}
