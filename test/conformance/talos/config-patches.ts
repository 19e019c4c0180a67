// Patches picked by hand: what users write, and the corners of Talos' rules.
import { stringify } from 'yaml'

type Picked = readonly [name: string, ...patches: readonly (string | object)[]]

const network = (interfaces: readonly object[]): object => ({ machine: { network: { interfaces } } })
const volume = (provisioning: object): object => ({ apiVersion: 'v1alpha1', kind: 'VolumeConfig', name: 'EPHEMERAL', provisioning })
const apiServer = (inner: object): object => ({ cluster: { apiServer: inner } })
const plugin = (inner: object): object => apiServer({ admissionControl: [inner] })
const named = (kind: string, name: string, inner: object = {}): object => ({ apiVersion: 'v1alpha1', kind, name, ...inner })
const gone = { $patch: 'delete' }

const picked: readonly Picked[] = [
  ['a scalar', { machine: { install: { disk: '/dev/nvme0n1' } } }],
  ['an image of the kubelet', { machine: { kubelet: { image: 'ghcr.io/siderolabs/kubelet:v1.34.1' } } }],
  [
    'arguments replace each other by key',
    { machine: { kubelet: { extraArgs: { a: '1', b: '2' } } } },
    { machine: { kubelet: { extraArgs: { a: ['3', '4'], c: '' } } } },
  ],
  ['lists are appended', { machine: { certSANs: ['a.example', 'b.example'] } }],
  ['lists are appended, even to themselves', { machine: { certSANs: ['a.example'] } }, { machine: { certSANs: ['a.example'] } }],
  ['pod and service subnets are replaced', { cluster: { network: { podSubnets: ['10.1.0.0/16'], serviceSubnets: ['10.2.0.0/16'] } } }],
  ['subnets by an empty list', { cluster: { network: { podSubnets: [] } } }],
  ['subnets by nothing', 'cluster:\n  network:\n    podSubnets:\n'],
  ['the audit policy is replaced', apiServer({ auditPolicy: { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [] } })],
  ['the audit policy by an empty mapping', apiServer({ auditPolicy: {} })],
  ['the audit policy is deleted', apiServer({ auditPolicy: gone })],
  [
    'an admission plugin is merged by name',
    plugin({ name: 'PodSecurity', configuration: { defaults: { enforce: 'privileged' }, exemptions: { namespaces: ['storage'] } } }),
  ],
  ['another admission plugin', plugin({ name: 'EventRateLimit', configuration: { limits: [{ type: 'Server', qps: 5 }] } })],
  ['an admission plugin is deleted', plugin({ name: 'PodSecurity', ...gone })],
  ['a scalar of another sort in an embedded object', plugin({ name: 'PodSecurity', configuration: { defaults: { enforce: 5 } } })],
  [
    'zeros in an embedded object',
    plugin({ name: 'A', configuration: { a: 'x', b: 5, c: true, d: 1.5 } }),
    plugin({ name: 'A', configuration: { a: '', b: 0, c: false, d: 2.5 } }),
  ],
  [
    'authorizers are appended',
    apiServer({ authorizationConfig: [{ type: 'Webhook', name: 'a', webhook: { timeout: '3s' } }] }),
    apiServer({ authorizationConfig: [{ type: 'Webhook', name: 'a', webhook: { timeout: '5s' } }] }),
  ],
  [
    'volumes of the API server are appended',
    apiServer({ extraVolumes: [{ hostPath: '/a', mountPath: '/b', readonly: true }] }),
    apiServer({ extraVolumes: [{ hostPath: '/a', mountPath: '/b' }] }),
  ],
  [
    'requests are merged',
    apiServer({ resources: { requests: { cpu: '1', memory: '1Gi' } } }),
    apiServer({ resources: { requests: { cpu: '2' }, limits: { memory: '2Gi' } } }),
  ],
  [
    'interfaces are merged by name',
    network([{ interface: 'eth0', addresses: ['10.0.0.5/24'], dhcp: true }]),
    network([{ interface: 'eth0', addresses: ['10.0.0.6/24'], mtu: 9000, dhcp: false }, { interface: 'eth1' }]),
  ],
  [
    'interfaces are merged by selector',
    network([{ deviceSelector: { driver: 'virtio' }, dhcp: true }]),
    network([{ deviceSelector: { driver: 'virtio' }, mtu: 1400 }]),
  ],
  [
    'other selectors',
    network([{ deviceSelector: { driver: 'virtio' } }]),
    network([{ deviceSelector: { driver: 'virtio', busPath: '00:*' }, mtu: 1400 }]),
  ],
  [
    'selectors that say physical',
    network([{ deviceSelector: { physical: true } }]),
    network([{ deviceSelector: { physical: true }, mtu: 1400 }]),
  ],
  [
    'VLANs are merged by id',
    network([{ interface: 'eth0', vlans: [{ vlanId: 5, mtu: 1 }] }]),
    network([{ interface: 'eth0', vlans: [{ vlanId: 5, addresses: ['10.0.5.1/24'] }, { vlanId: 6 }] }]),
  ],
  [
    'an interface is deleted',
    network([
      { interface: 'eth0', mtu: 1 },
      { interface: 'eth1', mtu: 2 },
    ]),
    network([{ interface: 'eth0', ...gone }]),
  ],
  ['an interface that is not there is deleted', network([{ interface: 'eth9', ...gone }])],
  [
    'a VLAN is deleted inside of an interface',
    network([{ interface: 'eth0', vlans: [{ vlanId: 5 }] }]),
    network([{ interface: 'eth0', vlans: [{ vlanId: 5, ...gone }] }]),
  ],
  ['a field is deleted', { machine: { kubelet: { image: gone, extraArgs: { a: 'b' } } } }],
  ['a field of nothing is deleted', { machine: { time: { servers: gone } } }],
  ['a field that there is not is deleted', { machine: { kubelet: { imag: gone } } }],
  ['a label is deleted', { machine: { nodeLabels: { a: 'b', c: 'd' } } }, { machine: { nodeLabels: { a: gone } } }],
  ['a deletion beside values', { machine: { sysctls: { a: '1', b: '2' } } }, { machine: { sysctls: { a: gone, b: '3' } } }],
  [
    'mirrors are merged',
    { machine: { registries: { mirrors: { 'docker.io': { endpoints: ['https://other.example'], overridePath: true } } } } },
  ],
  [
    'the address of the control plane by its parts',
    { cluster: { controlPlane: { endpoint: 'https://api.example' } } },
    { cluster: { controlPlane: { endpoint: 'https://10.0.0.9:6443/x?y#z' } } },
    { cluster: { controlPlane: { endpoint: '//other.example:1' } } },
  ],
  [
    'zeros do not override',
    { machine: { sysctls: { a: '1' }, install: { image: 'x' } } },
    { machine: { sysctls: { a: '' }, install: { image: '' } } },
  ],
  [
    'zeros override where they may be absent',
    { machine: { features: { rbac: true, kubePrism: { enabled: true, port: 1 } } } },
    { machine: { features: { rbac: false, kubePrism: { enabled: false, port: 0 } } } },
  ],
  [
    'the traps of YAML 1.1',
    'debug: yes\nmachine:\n  sysctls: {a: no, b: 0644, c: 1.10, d: 0x1F, e: 1_000, f: ~}\n  nodeLabels: {on: off}\n  files:\n    - {path: /a, permissions: 0644, op: create, content: no}\n  kubelet:\n    extraArgs: {a: no, b: 012, c: [yes, 1.0]}\n',
  ],
  ['anchors and merged keys', 'machine:\n  sysctls: &s\n    a: "1"\n  sysfs: *s\n  nodeLabels:\n    <<: *s\n    b: "2"\n'],
  [
    'comments and styles',
    '# first\nmachine: # second\n  nodeLabels: {a: "b", c: \'d\'} # third\n  # fourth\n  files:\n    - content: |\n        one\n          two\n      path: >-\n        /a\n        b\n',
  ],
  [
    'a deletion after a value of the same',
    { machine: { sysctls: { a: '1' } } },
    `${stringify({ machine: { sysctls: { a: '2' } } })}---\n${stringify({ machine: { sysctls: { a: gone } } })}`,
  ],
  ['an empty patch', '{}'],
  ['nothing but a version', 'version: v1alpha1\n'],
  ['a new document', named('VLANConfig', 'eth0.5', { vlanID: 5, parent: 'eth0', up: true })],
  [
    'a document is merged',
    named('UserVolumeConfig', 'a', { provisioning: { maxSize: '10GiB' } }),
    named('UserVolumeConfig', 'a', { filesystem: { type: 'xfs' } }),
    named('UserVolumeConfig', 'b'),
  ],
  ['a document is deleted', named('UserVolumeConfig', 'a'), named('UserVolumeConfig', 'a', gone)],
  [
    'a document is deleted and made anew',
    named('LinkConfig', 'a', { mtu: 1 }),
    `${stringify(named('LinkConfig', 'a', gone))}---\n${stringify(named('LinkConfig', 'a', { up: true }))}`,
  ],
  ['a document that is not there is deleted', named('LinkConfig', 'a', gone)],
  ['two documents of one name', `${stringify(named('LinkConfig', 'a'))}---\n${stringify(named('LinkConfig', 'a'))}`],
  ['documents that do not stand beside each other', named('LinkConfig', 'a'), named('DummyLinkConfig', 'a')],
  [
    'two documents of a kind and the main one, last',
    `${stringify(named('LinkConfig', 'a', { mtu: 1 }))}---\n${stringify(named('LinkConfig', 'b'))}---\n${stringify({ machine: { sysctls: { a: '1' } } })}`,
  ],
  [
    'a volume loses what a patch of it does not name',
    volume({ diskSelector: { match: 'disk.size > 1u' }, minSize: '1GiB', maxSize: '2GiB', grow: true }),
    volume({ maxSize: '3GiB' }),
  ],
  ['bytes win over a share', volume({ maxSize: '2GiB' }), volume({ maxSize: '50%' })],
  ['a share gives way to bytes', volume({ maxSize: '50%' }), volume({ maxSize: '2GiB' })],
  [
    'an action that is the zero',
    { apiVersion: 'v1alpha1', kind: 'NetworkDefaultActionConfig', ingress: 'block' },
    { apiVersion: 'v1alpha1', kind: 'NetworkDefaultActionConfig', ingress: 'accept' },
  ],
  [
    'rules of a firewall are replaced',
    named('NetworkRuleConfig', 'a', { portSelector: { ports: [1, '2-3'], protocol: 'tcp' }, ingress: [{ subnet: '10.0.0.0/8' }] }),
    named('NetworkRuleConfig', 'a', {
      portSelector: { ports: [4], protocol: 'udp' },
      ingress: [{ subnet: '10.1.0.0/16', except: '10.1.1.0/24' }],
    }),
  ],
  [
    'a routing rule cannot be merged',
    named('RoutingRuleConfig', '1000', { src: '10.0.0.0/8', table: 'main' }),
    named('RoutingRuleConfig', '1000', { table: 'local' }),
  ],
  [
    'rules of image verification are replaced by image',
    {
      apiVersion: 'v1alpha1',
      kind: 'ImageVerificationConfig',
      rules: [
        { image: 'a/*', deny: true },
        { image: 'b/*', skip: true },
      ],
    },
    {
      apiVersion: 'v1alpha1',
      kind: 'ImageVerificationConfig',
      rules: [
        { image: 'a/*', skip: true },
        { image: 'c/*', deny: true },
        { image: 'c/*', skip: true },
      ],
    },
  ],
  [
    'files of an extension are merged by where they are',
    named('ExtensionServiceConfig', 'a', { configFiles: [{ mountPath: '/a', content: '1' }], environment: ['A=1'] }),
    named('ExtensionServiceConfig', 'a', {
      configFiles: [
        { mountPath: '/a', content: '2' },
        { mountPath: '/b', content: '3' },
      ],
      environment: ['B=2'],
    }),
  ],
  [
    'a file of an extension is deleted',
    named('ExtensionServiceConfig', 'a', { configFiles: [{ mountPath: '/a', content: '1' }] }),
    named('ExtensionServiceConfig', 'a', { configFiles: [{ mountPath: '/a', ...gone }] }),
  ],
  [
    'an expression goes that the patch does not name',
    { apiVersion: 'v1alpha1', kind: 'OOMConfig', triggerExpression: 'a', sampleInterval: '1s' },
    { apiVersion: 'v1alpha1', kind: 'OOMConfig', sampleInterval: '2s' },
  ],
  ['an unknown field', { machine: { kubelet: { imag: 'x' } } }],
  ['an unknown kind', { apiVersion: 'v1alpha1', kind: 'LinkConfg', name: 'a' }],
  ['a kind of another version', { apiVersion: 'v2', kind: 'LinkConfig', name: 'a' }],
  ['a kind without a version', { kind: 'LinkConfig', name: 'a' }],
  ['a mapping where a list belongs', { machine: { certSANs: { a: 'b' } } }],
  ['a text where a boolean belongs', { machine: { features: { rbac: 'maybe' } } }],
  ['no YAML', 'machine: [\n'],
  ['a key twice', 'machine:\n  sysctls: {a: "1", a: "2"}\n'],
  ['a list that is no JSON patch', '- machine\n'],
]

const operations: readonly Picked[] = [
  ['add', [{ op: 'add', path: '/machine/certSANs/-', value: 'a.example' }]],
  ['add in front', [{ op: 'add', path: '/machine/certSANs/0', value: 'a.example' }]],
  ['add too far behind', [{ op: 'add', path: '/machine/certSANs/9', value: 'a.example' }]],
  ['add into nothing', [{ op: 'add', path: '/machine/sysctls/a', value: '1' }]],
  [
    'add a way and go it',
    [
      { op: 'add', path: '/machine/sysctls', value: {} },
      { op: 'add', path: '/machine/sysctls/net.ipv4~1x~0y', value: '1' },
    ],
  ],
  ['replace what is not there', [{ op: 'replace', path: '/machine/kubelet/extraArgs', value: { a: 'b' } }]],
  ['remove', [{ op: 'remove', path: '/machine/certSANs' }]],
  ['remove what is not there', [{ op: 'remove', path: '/machine/sysctls' }]],
  [
    'test and replace',
    [
      { op: 'test', path: '/machine/install/disk', value: '/dev/sda' },
      { op: 'replace', path: '/machine/install/disk', value: '/dev/sdb' },
    ],
  ],
  [
    'a test that fails',
    [
      { op: 'test', path: '/machine/install/disk', value: '/dev/sdb' },
      { op: 'remove', path: '/machine/install/disk' },
    ],
  ],
  [
    'move and copy',
    [
      { op: 'copy', from: '/machine/install/disk', path: '/machine/install/image' },
      { op: 'move', from: '/machine/install/image', path: '/machine/kubelet/image' },
    ],
  ],
  ['a field that there is not', [{ op: 'add', path: '/machine/kubelet/imag', value: 'x' }]],
  ['an operation that there is not', [{ op: 'ad', path: '/machine/kubelet/image', value: 'x' }]],
  ['the traps of YAML 1.1', '- op: add\n  path: /machine/sysctls\n  value: {a: 0644, b: no, c: 1.10, d: "0644", e: 1_000}\n'],
  [
    'a strategic merge patch and then operations',
    { machine: { sysctls: { a: '1' } } },
    [{ op: 'replace', path: '/machine/sysctls/a', value: '2' }],
  ],
  ['a document more', named('LinkConfig', 'a'), [{ op: 'remove', path: '/machine/certSANs' }]],
  ['as JSON', '[{"op":"add","path":"/machine/nodeLabels","value":{"a":"b"}}]'],
]

export type NamedPatches = { readonly name: string; readonly patches: readonly string[] }

const texts = (list: readonly Picked[]): readonly NamedPatches[] =>
  list.map(([name, ...patches]) => ({ name, patches: patches.map(patch => (typeof patch === 'string' ? patch : stringify(patch))) }))

export const strategicPatches = texts(picked)
/** For configurations of one document, and one that is no longer. */
export const jsonPatches = texts(operations)
