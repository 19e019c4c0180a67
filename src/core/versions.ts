import semver from 'semver'

/**
 * A version as it was read, with the three numbers apart. `prerelease` holds only what truly makes it older than its release (`rc.1`); a
 * vendor's tail (`v1.33.4-acme-5f2c`) is not one.
 */
export type Version = {
  readonly text: string
  readonly major: number
  readonly minor: number
  readonly patch: number
  /** `alpha.2`, `beta.0`, `rc.1`; empty for a final version. */
  readonly prerelease: string
  /** Built between two tags (`git describe`), or from a tree with changes. */
  readonly development: boolean
}

const SHAPE = /^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?$/
const PRERELEASE = /^(alpha|beta|rc|pre|dev)(\.[0-9]+)*/
const DESCRIBED = /(^|-)\d+-g[0-9a-f]{7,40}(-dirty)?$/
const DIRTY = /(^|-)dirty$/

/** Reads a version that something runs, with or without `v`, also pre-releases, development builds and vendors' tails. */
export const parseVersion = (text: string): Version | undefined => {
  const found = SHAPE.exec(text.trim())
  if (found === null) return undefined
  const tail = found[4] ?? ''
  return {
    text: text.trim(),
    major: Number(found[1]),
    minor: Number(found[2]),
    patch: Number(found[3]),
    prerelease: PRERELEASE.exec(tail)?.[0] ?? '',
    development: DESCRIBED.test(tail) || DIRTY.test(tail),
  }
}

/** What a schema has let through: `v` and three numbers, nothing else. */
export const versionAsked = (text: string): Version => {
  const [major = 0, minor = 0, patch = 0] = text.slice(1).split('.').map(Number)
  return { text, major, minor, patch, prerelease: '', development: false }
}

/** The three numbers, without `v` and without any tail: as Talos compares a version with its own bounds. */
export const finalOf = (version: Version): string => `${version.major}.${version.minor}.${version.patch}`

/** For semver ranges: as `finalOf`, but a true pre-release keeps its mark. */
export const semverOf = (version: Version): string =>
  version.prerelease === '' ? finalOf(version) : `${finalOf(version)}-${version.prerelease}`

/** `v1.36.2` or `v1.36.0-rc.1` of what something tells of itself, without the tail of a vendor; undefined where that is no version. */
export const versionText = (text: string): string | undefined => {
  const version = parseVersion(text)
  return version && `v${semverOf(version)}`
}

/** Negative where `a` is older. Vendors' tails are ignored, pre-releases are older than their release. */
export const compareVersions = (a: Version, b: Version): number =>
  Math.sign(
    a.major - b.major ||
      a.minor - b.minor ||
      a.patch - b.patch ||
      (a.prerelease === b.prerelease ? 0 : semver.compare(semverOf(a), semverOf(b))),
  )

/** The same of two texts; undefined where one of them is no version. */
export const versionOrder = (a: string, b: string): number | undefined => {
  const [x, y] = [parseVersion(a), parseVersion(b)]
  return x && y ? compareVersions(x, y) : undefined
}

/** What cannot be read is taken for old. */
export const isBelow = (text: string, first: string): boolean => {
  const order = versionOrder(text, first)
  return order === undefined || order < 0
}

/** `1.13` */
export const minorOf = (version: Version): string => `${version.major}.${version.minor}`

/** How many minors `to` is ahead of `from`; negative when it is behind, undefined across majors. */
export const minorSteps = (from: Version, to: Version): number | undefined => (from.major === to.major ? to.minor - from.minor : undefined)

/** The lowest and the highest of what was found; undefined where no text is a version. */
export const versionSpan = (texts: readonly string[]): { readonly lowest: string; readonly highest: string } | undefined => {
  const sorted = texts
    .map(parseVersion)
    .filter(v => v !== undefined)
    .sort(compareVersions)
  const [first, last] = [sorted[0], sorted.at(-1)]
  return first === undefined || last === undefined ? undefined : { lowest: first.text, highest: last.text }
}
