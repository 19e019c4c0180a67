import { parseAllDocuments } from 'yaml'
import type { Answer } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { Machine } from '../../world/machine.ts'
import { isAtLeast } from '../../world/releases.ts'

export type Mapping = { readonly [key: string]: unknown }
export const mappingOf = (value: unknown): Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Mapping) : {}

/** The keys that Talos knows at the top and below `machine` and `cluster`. Deeper ones are not looked at. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  '': ['version', 'debug', 'persist', 'machine', 'cluster'],
  machine: [
    ...['type', 'token', 'ca', 'acceptedCAs', 'certSANs', 'controlPlane', 'kubelet', 'pods', 'network', 'disks', 'install', 'files', 'env'],
    ...['time', 'sysctls', 'sysfs', 'registries', 'systemDiskEncryption', 'features', 'udev', 'logging', 'kernel', 'seccompProfiles'],
    ...['baseRuntimeSpecOverrides', 'nodeLabels', 'nodeAnnotations', 'nodeTaints'],
  ],
  cluster: [
    ...['id', 'secret', 'controlPlane', 'clusterName', 'network', 'token', 'aescbcEncryptionSecret', 'secretboxEncryptionSecret', 'ca'],
    ...['acceptedCAs', 'aggregatorCA', 'serviceAccount', 'apiServer', 'controllerManager', 'proxy', 'scheduler', 'discovery', 'etcd'],
    ...['coreDNS', 'externalCloudProvider', 'extraManifests', 'extraManifestHeaders', 'inlineManifests', 'adminKubeconfig'],
    ...['allowSchedulingOnMasters', 'allowSchedulingOnControlPlanes'],
  ],
}

const unknownKeys = (config: Mapping): string | undefined => {
  const strange = (path: string, value: Mapping): readonly string[] =>
    Object.keys(value).filter(key => KNOWN[path] && !KNOWN[path].includes(key))
  const lines: string[] = []
  for (const section of ['machine', 'cluster']) {
    const inner = mappingOf(config[section])
    const keys = strange(section, inner)
    if (keys.length > 0) lines.push(`${section}:`, ...keys.map(key => `    ${key}: ${JSON.stringify(inner[key])}`))
  }
  lines.push(...strange('', config).map(key => `${key}: ${JSON.stringify(config[key])}`))
  return lines.length > 0 ? `unknown keys found during decoding:\n${lines.join('\n')}\n` : undefined
}

/** The document of the first kind of configuration, which has neither `apiVersion` nor `kind`. Undefined where there is none. */
export const v1alpha1Of = (text: string): Answer<Mapping | undefined> => {
  const documents = parseAllDocuments(text)
  const parsed = Array.isArray(documents) ? documents : []
  const error = parsed.flatMap(document => document.errors)[0]
  if (error) return refuse('InvalidArgument', `yaml: ${error.message}`)
  const values = parsed.map(document => document.toJS() as unknown)
  if (values.some(value => value !== null && (typeof value !== 'object' || Array.isArray(value))))
    return refuse('InvalidArgument', 'recovered: expected a mapping node')
  const main = values.map(mappingOf).find(value => value['kind'] === undefined && (value['version'] === 'v1alpha1' || 'machine' in value))
  const unknown = main ? unknownKeys(main) : undefined
  return unknown === undefined ? answer(main) : refuse('InvalidArgument', unknown)
}

/** As Go's package for several errors in one prints them. */
const errorsIn = (errors: readonly string[]): string =>
  `${errors.length} error${errors.length === 1 ? '' : 's'} occurred:\n${errors.map(text => `\t* ${text}\n`).join('')}\n`

/** What is wrong with a configuration for this machine. A machine in maintenance may become either type. */
export const validationError = (machine: Machine, config: Mapping): string | undefined => {
  const errors: string[] = []
  const type = mappingOf(config['machine'])['type']
  if (machine.config !== '' && type !== machine.role)
    errors.push(`machine type ${JSON.stringify(type)}: the simulated machine is and remains a ${machine.role}`)
  if (type !== 'controlplane' && type !== 'worker')
    errors.push(`machine type ${JSON.stringify(type ?? '')}: neither controlplane nor worker`)
  const endpoint = mappingOf(mappingOf(config['cluster'])['controlPlane'])['endpoint']
  if (typeof endpoint !== 'string' || endpoint === '') errors.push('invalid controlplane endpoint: hostname must not be blank')
  return errors.length === 0 ? undefined : errorsIn([`v1alpha1.Config: ${errorsIn(errors)}`])
}

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
  if (typeof value !== 'object' || value === null) return value === '' || value === false ? undefined : (value ?? undefined)
  const entries = Object.entries(value).flatMap(([key, inner]) => (meaning(inner) === undefined ? [] : [[key, meaning(inner)] as const]))
  return entries.length > 0 ? Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))) : undefined
}

const differs = (a: Mapping, b: Mapping, except: (key: string) => boolean): boolean =>
  [...new Set([...Object.keys(a), ...Object.keys(b)])].some(
    key => !except(key) && JSON.stringify(meaning(a[key])) !== JSON.stringify(meaning(b[key])),
  )

/** Whether a machine of that version takes up the change only by a reboot. From 1.14 on nothing counts as such. */
export const needsReboot = (version: string, before: Mapping, after: Mapping): boolean => {
  if (isAtLeast(version, 1, 14)) return false
  const knows = (since: number | undefined): boolean => since !== undefined && isAtLeast(version, 1, since)
  const [was, is] = [mappingOf(before['machine']), mappingOf(after['machine'])]
  return (
    differs(before, after, key => ['debug', 'cluster', 'machine'].includes(key)) ||
    differs(was, is, key => key === 'features' || knows(IMMEDIATE[key])) ||
    differs(mappingOf(was['features']), mappingOf(is['features']), key => knows(IMMEDIATE_FEATURES[key]))
  )
}
