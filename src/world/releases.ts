/** What a Talos release carries, from its own constants (`pkg/machinery/constants`). */
export type Release = { readonly kernel: string; readonly etcd: string }

const RELEASES: Readonly<Record<string, readonly [kernel: string, etcd: string]>> = {
  '1.9.0': ['6.12.5', '3.5.17'],
  '1.9.1': ['6.12.6', '3.5.17'],
  '1.9.2': ['6.12.9', '3.5.17'],
  '1.9.3': ['6.12.11', '3.5.18'],
  '1.9.4': ['6.12.13', '3.5.18'],
  '1.9.5': ['6.12.18', '3.5.19'],
  '1.9.6': ['6.12.25', '3.5.21'],
  '1.10.0': ['6.12.25', '3.5.21'],
  '1.10.1': ['6.12.25', '3.5.21'],
  '1.10.2': ['6.12.27', '3.5.21'],
  '1.10.3': ['6.12.28', '3.5.21'],
  '1.10.4': ['6.12.31', '3.5.21'],
  '1.10.5': ['6.12.35', '3.5.21'],
  '1.10.6': ['6.12.40', '3.5.21'],
  '1.10.7': ['6.12.43', '3.5.21'],
  '1.10.8': ['6.12.58', '3.5.21'],
  '1.10.9': ['6.12.63', '3.5.26'],
  '1.11.0': ['6.12.43', '3.6.4'],
  '1.11.1': ['6.12.45', '3.6.4'],
  '1.11.2': ['6.12.48', '3.6.4'],
  '1.11.3': ['6.12.52', '3.6.5'],
  '1.11.4': ['6.12.57', '3.6.5'],
  '1.11.5': ['6.12.57', '3.6.5'],
  '1.11.6': ['6.12.62', '3.6.5'],
  '1.12.0': ['6.18.1', '3.6.7'],
  '1.12.1': ['6.18.2', '3.6.7'],
  '1.12.2': ['6.18.5', '3.6.7'],
  '1.12.3': ['6.18.8', '3.6.7'],
  '1.12.4': ['6.18.9', '3.6.7'],
  '1.12.5': ['6.18.15', '3.6.8'],
  '1.12.6': ['6.18.18', '3.6.8'],
  '1.12.7': ['6.18.24', '3.6.9'],
  '1.12.8': ['6.18.32', '3.6.11'],
  '1.12.9': ['6.18.35', '3.6.11'],
  '1.12.10': ['6.18.38', '3.6.11'],
  '1.12.11': ['6.18.42', '3.6.11'],
  '1.13.0': ['6.18.24', '3.6.9'],
  '1.13.1': ['6.18.29', '3.6.11'],
  '1.13.2': ['6.18.29', '3.6.11'],
  '1.13.3': ['6.18.33', '3.6.11'],
  '1.13.4': ['6.18.34', '3.6.12'],
  '1.13.5': ['6.18.36', '3.6.12'],
  '1.13.6': ['6.18.38', '3.6.12'],
  '1.13.7': ['6.18.39', '3.6.12'],
  '1.13.8': ['6.18.42', '3.6.12'],
  '1.13.9': ['6.18.44', '3.6.12'],
  '1.14.0-beta.0': ['6.18.39', '3.7.0'],
  '1.14.0-beta.1': ['6.18.41', '3.7.1'],
  '1.14.0-rc.1': ['6.18.44', '3.7.1'],
}

/** Every release that an official registry has, with `v`. */
export const RELEASE_NAMES: readonly string[] = Object.keys(RELEASES).map(version => `v${version}`)

/** Major, minor and patch; undefined where the text is no version. */
export const parseVersion = (version: string): readonly [major: number, minor: number, patch: number] | undefined => {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)
  return match ? [Number(match[1]), Number(match[2]), Number(match[3])] : undefined
}

/** Pre-releases count as their minor. */
export const isAtLeast = (version: string, major: number, minor: number): boolean => {
  const parsed = parseVersion(version)
  return parsed !== undefined && (parsed[0] > major || (parsed[0] === major && parsed[1] >= minor))
}

/** What a version carries; for one that the table lacks, what the newest release of its minor carries. */
export const releaseOf = (version: string): Release => {
  const name = version.replace(/^v/, '')
  const minor = name.split('.').slice(0, 2).join('.')
  const near = (): string | undefined => Object.keys(RELEASES).findLast(known => known.startsWith(`${minor}.`))
  const [kernel, etcd] = RELEASES[name] ?? RELEASES[near() ?? ''] ?? ['6.18.44', '3.6.12']
  return { kernel: `${kernel}-talos`, etcd }
}

/** Minors of Kubernetes that Talos 1.x knows: from x+18 to x+23. */
const KUBERNETES_FROM = 18
const KUBERNETES_TO = 23

/** What Talos says of a version of Kubernetes that it does not go with; undefined where it does. Versions with or without `v`. */
export const kubernetesObjection = (talos: string, kubernetes: string): string | undefined => {
  const [[, minor] = [0, 0], [, own] = [0, 0]] = [parseVersion(talos), parseVersion(kubernetes)]
  const age = own < minor + KUBERNETES_FROM ? 'old' : own > minor + KUBERNETES_TO ? 'new' : undefined
  const bare = (version: string): string => version.replace(/^v/, '')
  return age && `version of Kubernetes ${bare(kubernetes)} is too ${age} to be used with Talos ${bare(talos)}`
}
