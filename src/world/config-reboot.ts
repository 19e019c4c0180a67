import { isAtLeast } from './releases.ts'

/** A document of a configuration, read by whatever reader: scalars may be texts. */
type Mapping = { readonly [key: string]: unknown }
const mappingOf = (value: unknown): Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Mapping) : {}

/** Keys of `machine` that Talos up to 1.13 changes without a reboot, and since which minor. */
const IMMEDIATE: Readonly<Record<string, number>> = {
  ...Object.fromEntries(
    ['time', 'certSANs', 'install', 'network', 'sysfs', 'sysctls', 'logging', 'controlPlane', 'kubelet', 'kernel', 'registries', 'pods']
      .concat('seccompProfiles', 'nodeLabels')
      .map(key => [key, 0] as const),
  ),
  ca: 7,
  acceptedCAs: 7,
  nodeTaints: 7,
  nodeAnnotations: 9,
}
const IMMEDIATE_FEATURES: Readonly<Record<string, number>> = {
  kubernetesTalosAPIAccess: 0,
  kubePrism: 7,
  hostDNS: 7,
  imageCache: 9,
  nodeAddressSortAlgorithm: 9,
}

/** What is empty says no more than what is absent; clients write one for the other. */
const meaning = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.length > 0 ? value.map(meaning) : undefined
  if (typeof value !== 'object' || value === null)
    return value === '' || value === false || value === 'false' ? undefined : (value ?? undefined)
  const entries = Object.entries(value).flatMap(([key, inner]) => (meaning(inner) === undefined ? [] : [[key, meaning(inner)] as const]))
  return entries.length > 0 ? Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))) : undefined
}

const differs = (a: Mapping, b: Mapping, except: (key: string) => boolean): boolean =>
  [...new Set([...Object.keys(a), ...Object.keys(b)])].some(
    key => !except(key) && JSON.stringify(meaning(a[key])) !== JSON.stringify(meaning(b[key])),
  )

/**
 * Whether a machine of that version takes up the change only by a reboot. Documents of other kinds than the first never need one, and from 1.14 on
 * nothing counts as such.
 */
export const needsReboot = (version: string, before: Mapping, after: Mapping): boolean => {
  if (isAtLeast(version, 1, 14)) return false
  const knows = (since: number | undefined): boolean => since !== undefined && isAtLeast(version, 1, since)
  const [was, is] = [mappingOf(before['machine']), mappingOf(after['machine'])]
  // A feature is compared by itself only where both have any.
  const haveFeatures = was['features'] !== undefined && is['features'] !== undefined
  return (
    differs(before, after, key => ['debug', 'cluster', 'machine'].includes(key)) ||
    differs(was, is, key => key === 'features' || knows(IMMEDIATE[key])) ||
    differs(mappingOf(was['features']), mappingOf(is['features']), key => haveFeatures && knows(IMMEDIATE_FEATURES[key]))
  )
}
