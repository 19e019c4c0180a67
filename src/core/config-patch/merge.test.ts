// The rules in short; that they are Talos' is asked by test/conformance/talos/config-patch.test.ts.
import { expect, test } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { noteText } from './note.ts'
import { patchConfig } from './patch-config.ts'

const gone = { $patch: 'delete' }

/** What the last document says after the patches, of which the first is the configuration. */
const after = (config: object, ...patches: object[]): unknown => {
  const result = patchConfig(
    stringify(config),
    patches.map(patch => ({ name: 'p', text: stringify(patch) })),
    'v1.13.9',
  )
  return result.ok ? (parseAllDocuments(result.text) as { toJS: () => unknown }[]).at(-1)?.toJS() : result.faults.map(noteText)
}
const machine = (inner: object): object => ({ machine: inner })
const interfaces = (...list: object[]): object => machine({ network: { interfaces: list } })
const apiServer = (inner: object): object => ({ cluster: { apiServer: inner } })
const plugin = (configuration: object): object => apiServer({ admissionControl: [{ name: 'A', configuration }] })
const endpoint = (address: string): object => ({ cluster: { controlPlane: { endpoint: address } } })
const volume = (provisioning: object): object => ({ apiVersion: 'v1alpha1', kind: 'VolumeConfig', name: 'EPHEMERAL', provisioning })
const firewall = (ingress: string): object => ({ apiVersion: 'v1alpha1', kind: 'NetworkDefaultActionConfig', ingress })
const zswap = (inner: object): object => ({ apiVersion: 'v1alpha1', kind: 'ZswapConfig', ...inner })
const images = (...rules: object[]): object => ({ apiVersion: 'v1alpha1', kind: 'ImageVerificationConfig', rules })

test.each<readonly [string, object, object, object]>([
  ['lists are appended', machine({ certSANs: ['a'] }), machine({ certSANs: ['a', 'b'] }), machine({ certSANs: ['a', 'a', 'b'] })],
  [
    'some are replaced',
    { cluster: { network: { podSubnets: ['a'] } } },
    { cluster: { network: { podSubnets: ['b'] } } },
    { cluster: { network: { podSubnets: ['b'] } } },
  ],
  [
    'an audit policy is replaced',
    apiServer({ auditPolicy: { a: 1, b: 2 } }),
    apiServer({ auditPolicy: { b: 3 } }),
    apiServer({ auditPolicy: { b: 3 } }),
  ],
  ['but not by an empty one', apiServer({ auditPolicy: { a: 1 } }), apiServer({ auditPolicy: {} }), apiServer({ auditPolicy: { a: 1 } })],
  [
    'mappings are merged',
    machine({ sysctls: { a: '1', b: '2' } }),
    machine({ sysctls: { b: '3', c: '4' } }),
    machine({ sysctls: { a: '1', b: '3', c: '4' } }),
  ],
  ['an empty text does not override', machine({ sysctls: { a: '1' } }), machine({ sysctls: { a: '' } }), machine({ sysctls: { a: '1' } })],
  [
    'but as an argument',
    machine({ kubelet: { extraArgs: { a: '1' } } }),
    machine({ kubelet: { extraArgs: { a: '' } } }),
    machine({ kubelet: { extraArgs: { a: '' } } }),
  ],
  ['a zero overrides where it may be absent', zswap({ maxPoolPercent: 5 }), zswap({ maxPoolPercent: 0 }), zswap({ maxPoolPercent: 0 })],
  [
    'a zero does not in an embedded object, false does',
    plugin({ a: 'x', b: 5, c: true, d: { e: [1] } }),
    plugin({ a: '', b: 0, c: false, d: { e: [2] } }),
    plugin({ a: 'x', b: 5, c: false, d: { e: [1, 2] } }),
  ],
  [
    'interfaces find each other by name',
    interfaces({ interface: 'a', mtu: 1 }),
    interfaces({ interface: 'a', dhcp: true }, { interface: 'b' }),
    interfaces({ interface: 'a', mtu: 1, dhcp: true }, { interface: 'b' }),
  ],
  [
    'and by their whole selector',
    interfaces({ deviceSelector: { driver: 'x' } }),
    interfaces({ deviceSelector: { driver: 'x' }, mtu: 1 }, { deviceSelector: { driver: 'x', busPath: 'y' }, mtu: 2 }),
    interfaces({ deviceSelector: { driver: 'x' }, mtu: 1 }, { deviceSelector: { driver: 'x', busPath: 'y' }, mtu: 2 }),
  ],
  [
    'but not by one that says physical',
    interfaces({ deviceSelector: { physical: true } }),
    interfaces({ deviceSelector: { physical: true }, mtu: 1 }),
    interfaces({ deviceSelector: { physical: true } }, { deviceSelector: { physical: true }, mtu: 1 }),
  ],
  [
    'VLANs by their number',
    interfaces({ interface: 'a', vlans: [{ vlanId: 5 }] }),
    interfaces({ interface: 'a', vlans: [{ vlanId: 5, mtu: 1 }] }),
    interfaces({ interface: 'a', vlans: [{ vlanId: 5, mtu: 1 }] }),
  ],
  [
    'rules of images by the image, and whole',
    images({ image: 'a', deny: true }),
    images({ image: 'a', skip: true }, { image: 'b' }, { image: 'b' }),
    images({ image: 'a', skip: true }, { image: 'b' }, { image: 'b' }),
  ],
  ['the first of some words does not override', firewall('block'), firewall('accept'), firewall('block')],
  ['an address by its parts', endpoint('https://a:1/x'), endpoint('http://b'), endpoint('http://b/x')],
  ['bytes win over a share', volume({ maxSize: '1GiB' }), volume({ maxSize: '50%' }), volume({ maxSize: '1GiB' })],
  [
    'what is deleted goes, the rest is merged',
    machine({ sysctls: { a: '1', b: '2' } }),
    machine({ sysctls: { a: gone, c: '3' } }),
    machine({ sysctls: { b: '2', c: '3' } }),
  ],
  [
    'an item of a list is deleted by its first field',
    interfaces({ interface: 'a' }, { interface: 'b' }),
    interfaces({ interface: 'a', ...gone }),
    interfaces({ interface: 'b' }),
  ],
])('%s', (_, config, patch, wanted) => {
  expect(after(config, patch)).toEqual(wanted)
})

test('in one patch, what is deleted in the main document goes before anything is merged into it', () => {
  const text = [machine({ sysctls: { a: '2' } }), machine({ sysctls: { a: gone } })].map(document => stringify(document)).join('---\n')
  const result = patchConfig(stringify(machine({ sysctls: { a: '1' } })), [{ name: 'p', text }], 'v1.13.9')
  expect(result.ok && result.text).toBe('machine:\n  sysctls:\n    a: "2"\n')
})

test('operations on lists: in front, behind, instead', () => {
  const text = JSON.stringify([
    { op: 'add', path: '/machine/certSANs/0', value: 'front' },
    { op: 'add', path: '/machine/certSANs/-', value: 'behind' },
    { op: 'replace', path: '/machine/certSANs/1', value: 'instead' },
    { op: 'move', from: '/machine/certSANs/0', path: '/machine/certSANs/2' },
  ])
  const result = patchConfig('machine:\n  certSANs: [a]\n', [{ name: 'p', text }], 'v1.13.9')
  expect(result.ok && result.text).toBe('machine:\n  certSANs: [instead, behind, front]\n')
})

test('an embedded object keeps the sorts of its values', () => {
  expect(after(plugin({ a: 1 }), plugin({ a: 'x' }))).toEqual([expect.stringContaining('Talos cannot merge a text into a whole number')])
})

test('documents that do not stand beside each other are told in the patch that brings the second', () => {
  const [link, dummy] = ['LinkConfig', 'DummyLinkConfig'].map(kind => ({ apiVersion: 'v1alpha1', kind, name: 'a' }))
  expect(after(machine({}), link!, dummy!, { ...dummy, ...gone })).toEqual([
    'p, the configuration of the machine: DummyLinkConfig a and LinkConfig a may not stand beside each other',
  ])
})
