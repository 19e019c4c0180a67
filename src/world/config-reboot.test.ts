import { expect, test } from 'vitest'
import { needsReboot } from './config-reboot.ts'

const UNTIL_1_13 = ['v1.10.9', 'v1.11.6', 'v1.12.1', 'v1.13.9']
const features = { rbac: true }
const base = { version: 'v1alpha1', machine: { type: 'worker', features }, cluster: {} }
const inMachine = (key: string, value: unknown = { a: 1 }) => ({ ...base, machine: { ...base.machine, [key]: value } })
const inFeatures = (key: string, value: unknown = { a: 1 }) => inMachine('features', { ...features, [key]: value })

/** Whether a change of this field alone waits for a reboot up to 1.13, as machined compares configurations. */
const FIELDS: readonly (readonly [name: string, after: Record<string, unknown>, needs: boolean])[] = [
  ...[
    'time',
    'certSANs',
    'install',
    'network',
    'sysfs',
    'sysctls',
    'logging',
    'controlPlane',
    'kubelet',
    'kernel',
    'registries',
    'pods',
  ].map(key => [key, inMachine(key), false] as const),
  ...['seccompProfiles', 'nodeLabels', 'nodeAnnotations', 'nodeTaints', 'ca', 'acceptedCAs'].map(
    key => [key, inMachine(key), false] as const,
  ),
  ...['disks', 'files', 'env', 'systemDiskEncryption', 'udev', 'baseRuntimeSpecOverrides'].map(key => [key, inMachine(key), true] as const),
  ['type', inMachine('type', 'controlplane'), true],
  ['token', inMachine('token', 'a.b'), true],
  ...['kubernetesTalosAPIAccess', 'kubePrism', 'hostDNS', 'imageCache'].map(key => [`features.${key}`, inFeatures(key), false] as const),
  ['features.nodeAddressSortAlgorithm', inFeatures('nodeAddressSortAlgorithm', 'v2'), false],
  ...['stableHostname', 'apidCheckExtKeyUsage', 'diskQuotaSupport'].map(key => [`features.${key}`, inFeatures(key, true), true] as const),
  ['features.rbac', inMachine('features', { rbac: false, kubePrism: {} }), true],
  ['persist', { ...base, persist: true }, true],
  ['debug', { ...base, debug: true }, false],
  ['cluster', { ...base, cluster: { clusterName: 'other' } }, false],
  ['nothing', structuredClone(base), false],
]

test.each(FIELDS)('%s', (_, after, needs) => {
  for (const version of UNTIL_1_13) expect(`${version} ${needsReboot(version, base, after)}`).toBe(`${version} ${needs}`)
  expect(needsReboot('v1.14.0-rc.1', base, after)).toBe(false)
})

test('a feature that needs none by itself needs one where there were no features before', () => {
  const { features: _, ...bare } = base.machine
  const before = { ...base, machine: bare }
  expect(needsReboot('v1.12.1', before, { ...before, machine: { ...bare, features: { kubePrism: { enabled: true } } } })).toBe(true)
})

test('what is empty is what is absent', () => {
  expect(needsReboot('v1.12.1', base, inMachine('files', []))).toBe(false)
  expect(needsReboot('v1.12.1', base, inMachine('env', {}))).toBe(false)
})
