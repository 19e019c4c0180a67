import { parseVersion, semverOf } from './versions.ts'
import type { Version } from './versions.ts'

/** `repository:vX.Y.Z-suffix@sha256:…`, as the images of Kubernetes' programs are named. */
type Parts = { readonly repository: string; readonly version: Version; readonly suffix: string; readonly digest: string }

const SHAPE = /^([^@]+):([^:/@]+)(@sha256:[0-9a-f]{64})?$/
/** A variant of an image, not a part of its version: `-fat`, `-slim`. */
const SUFFIX = /^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/

const partsOf = (image: string): Parts | undefined => {
  const [, repository, tag = '', digest = ''] = SHAPE.exec(image) ?? []
  const version = parseVersion(tag)
  return repository === undefined || version === undefined
    ? undefined
    : { repository, version, suffix: SUFFIX.exec(tag)?.[1] ?? '', digest }
}

/** The version of a program by its image, `v1.36.2` or `v1.36.0-rc.1`; undefined where its tag is none. */
export const imageVersion = (image: string): string | undefined => {
  const parts = partsOf(image)
  return parts && `v${semverOf(parts.version)}`
}

/** Its version, for people; the whole image where its tag tells none. */
export const imageTitle = (image: string): string => imageVersion(image) ?? image

/**
 * The same image of another version: repository and suffix stay, a digest goes, since it is that of the old one. One that has the version already stays
 * as it is. Undefined where the tag of the image tells no version.
 */
export const withVersion = (image: string, version: string): string | undefined => {
  if (imageVersion(image) === version) return image
  const parts = partsOf(image)
  return parts && `${parts.repository}:${version}${parts.version.prerelease === '' ? parts.suffix : ''}`
}

/** It is pinned by a digest, which another version cannot keep. */
export const isPinned = (image: string): boolean => Boolean(partsOf(image)?.digest)
