/** Patches of configurations that say more than the bare ones of the invented machines: the first patch furnishes, those after it have something to meet. */

/** What many people have in theirs. Every Talos takes it without a restart. */
const FURNITURE = `machine:
  certSANs: [a.example, b.example]
  sysctls: {net.core.somaxconn: "1024", vm.overcommit_memory: "1"}
  time: {servers: [ntp.example], bootTimeout: 2m0s}
  nodeLabels: {room: blue, shelf: "7"}
  network:
    nameservers: [192.0.2.53]
    interfaces:
      - interface: eth1
        mtu: 1400
        dhcp: true
        ignore: false
        addresses: [192.0.2.7/24]
        vlans:
          - {vlanId: 10, mtu: 1400, dhcp: true}
          - {vlanId: 0x14, addresses: [192.0.2.8/24]}
      - deviceSelector: {driver: virtio, busPath: "00:*"}
        dhcp: true
      - deviceSelector: {physical: true}
        mtu: 9000
    kubespan: {enabled: true, mtu: 1420}
  kubelet:
    extraArgs: {v: "2"}
    clusterDNS: [10.96.0.10]
    defaultRuntimeSeccompProfileEnabled: true
    nodeIP: {validSubnets: [10.5.0.0/24]}
    extraMounts:
      - {destination: /var/x, source: /var/x, type: bind, options: [rbind, rw], uidMappings: [{containerID: 0, hostID: 1, size: 2}]}
    extraConfig: {whole: 1, zero: 0, part: 1.5, on: true, text: some, when: 2026-01-02, list: [1, two], inner: {deep: {a: b}}}
  registries:
    mirrors:
      registry.example: {endpoints: ["https://one.example"], overridePath: true, skipFallback: true}
    config:
      registry.example: {auth: {username: somebody, password: hunter22hunter22}, tls: {ca: QUE=}}
  logging:
    destinations:
      - {endpoint: "udp://logs.example:514/path?x=1#y", format: json_lines}
cluster:
  controlPlane: {localAPIServerPort: 6443}
  network: {dnsDomain: cluster.local, podSubnets: [10.244.0.0/16], serviceSubnets: [10.96.0.0/12]}
  apiServer:
    auditPolicy: {apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}
    admissionControl:
      - {name: PodSecurity, configuration: {apiVersion: v1, defaults: {enforce: baseline}}}
`

/** Documents beside the first, as the newer Talos have them. */
const FURNITURE_DOCUMENTS = `apiVersion: v1alpha1
kind: ExtensionServiceConfig
name: tool
environment: [A=1]
configFiles:
  - {content: one, mountPath: /one}
---
apiVersion: v1alpha1
kind: KmsgLogConfig
name: remote
url: tcp://somebody@logs.example:514/path?x=1#y
---
apiVersion: v1alpha1
kind: KmsgLogConfig
name: local
url: ?level=all
---
apiVersion: v1alpha1
kind: NetworkRuleConfig
name: ssh
portSelector: {ports: [22], protocol: tcp}
ingress: [{subnet: 10.0.0.0/8}]
---
apiVersion: v1alpha1
kind: VolumeConfig
name: EPHEMERAL
provisioning: {diskSelector: {match: system_disk}, minSize: 4GB, maxSize: 40GB, grow: false}
---
apiVersion: v1alpha1
kind: WatchdogTimerConfig
device: /dev/watchdog0
timeout: 2m0s
`

/** Documents that only 1.12 or 1.13 know. */
const NEWER_DOCUMENTS = `apiVersion: v1alpha1
kind: RegistryAuthConfig
name: registry.example
username: somebody
password: hunter22hunter22
---
apiVersion: v1alpha1
kind: LinkConfig
name: eth1
mtu: 1400
up: true
addresses: [{address: 192.0.2.9/24}]
---
apiVersion: v1alpha1
kind: RoutingRuleConfig
name: "1000"
src: 10.0.0.0/8
---
apiVersion: v1alpha1
kind: ImageVerificationConfig
rules:
  - {image: "registry.example/*", skip: true}
  - {image: "ghcr.io/*", deny: true}
`

/** Documents that only 1.14 knows. */
const COMING_DOCUMENTS = `apiVersion: v1alpha1
kind: KubeletConfig
image: ghcr.io/siderolabs/kubelet:v1.36.1
---
apiVersion: v1alpha1
kind: SysctlConfig
params: {net.core.somaxconn: "1024"}
---
apiVersion: v1alpha1
kind: KernelModuleConfig
name: tun
`

const iface = (inner: string): string => `machine: {network: {interfaces: [${inner}]}}\n`
const kubelet = (inner: string): string => `machine: {kubelet: {${inner}}}\n`
const config = (inner: string): string => kubelet(`extraConfig: {${inner}}`)
const json = (...operations: readonly object[]): string => JSON.stringify(operations)
const documentOf = (kind: string, inner: string): string => `apiVersion: v1alpha1\nkind: ${kind}\n${inner}\n`
const log = (endpoint: string): string => documentOf('KmsgLogConfig', `name: remote\nurl: ${endpoint}`)
const volume = (inner: string): string => documentOf('VolumeConfig', `name: EPHEMERAL\nprovisioning: {${inner}}`)

/** Onto the furniture; of each, what becomes of it is told by the rules of Talos' own types, and some of it is refused. */
const ONTO_FURNITURE: readonly string[] = [
  // Lists whose items are told apart in ways of their own.
  iface('{interface: eth1, mtu: 9000, vlans: [{vlanId: 10, mtu: 9000}, {vlanId: 20, dhcp: true}, {vlanId: x}, {mtu: 1}]}'),
  iface('{deviceSelector: {driver: virtio, busPath: "00:*"}, mtu: 1300}, {deviceSelector: {physical: true}, mtu: 1}, {mtu: 3}'),
  iface('{interface: eth1, vlans: [{mtu: 1}, {vlanId: 10, dhcp: false}]}'),
  iface('{interface: eth1, ignore: ~}, {interface: eth1, addresses: [192.0.2.7/24]}'),
  iface('{interface: eth1, dhcp: false, mtu: 0}'),
  'cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {defaults: {enforce: privileged}}}, {name: Other}]}}\n',
  'cluster: {apiServer: {auditPolicy: {}}}\n',
  'cluster: {apiServer: {auditPolicy: {rules: []}}}\n',
  'cluster: {network: {podSubnets: [10.32.0.0/12], serviceSubnets: ~}}\n',
  // Values that override nothing, or would be lost.
  'machine: {time: {bootTimeout: 0s}}\n',
  'machine: {time: {bootTimeout: "0"}, network: {kubespan: {mtu: 0}}}\n',
  'machine: {time: {disabled: yes, servers: [ntp.example, other.example]}}\n',
  'machine: {sysctls: {net.core.somaxconn: ""}, nodeLabels: ~, kubelet: {clusterDNS: ~}}\n',
  'machine: {time: ~, network: ~}\ncluster: ~\n',
  'machine: {registries: {mirrors: {registry.example: {endpoints: ["https://two.example"]}, "[::1]:5000": {skipFallback: no}}}}\n',
  'machine: {registries: {config: {registry.example: {auth: {password: anotherhunter22, username: ""}}}}}\n',
  'machine: {registries: {config: {registry.example: {tls: {ca: QkI=, insecureSkipVerify: true}}}}}\n',
  'machine: {registries: {config: {registry.example: {tls: {insecureSkipVerify: true}}}}}\n',
  'machine: {network: {interfaces: [{interface: eth1, dhcpOptions: {routeMetric: 0}, wireguard: {privateKey: c29tZXByaXZhdGVrZXk=}}]}}\n',
  // Embedded objects, by what the two values are.
  config('whole: 2, zero: 0, part: 2.5, on: false, text: other, when: 2027-01-02, list: [1, 3], inner: {deep: {c: d}}, more: {x: [y]}'),
  config('whole: 0, text: "", part: 0'),
  config('whole: some'),
  config('on: 1'),
  config('list: {a: b}'),
  config('when: never, part: 7'),
  config('inner: ~, text: ~, big: 123456789012345678901234567890, minus: -0x1F, exponent: 1e+3, octal: 0o17, binary: -0b11'),
  config('a: no, b: 0644, c: [on, {d: 0755}]'),
  kubelet('defaultRuntimeSeccompProfileEnabled: no, extraMounts: [{destination: /var/y, uidMappings: [{containerID: 0644}]}]'),
  kubelet('clusterDNS: {a: b}'),
  kubelet('nodeIP: [a]'),
  kubelet('defaultRuntimeSeccompProfileEnabled: 7'),
  kubelet('image: [a]'),
  'machine: {network: {kubespan: {mtu: many, enabled: {a: b}}}}\n',
  'machine: {logging: {destinations: [{endpoint: "tcp://other.example", format: json_lines}]}}\n',
  // Deletions.
  'machine: {network: {interfaces: [{interface: eth1, $patch: delete}]}}\n',
  'machine: {network: {interfaces: [{mtu: 1400, $patch: delete}]}}\n',
  'machine: {network: {interfaces: [{$patch: delete}]}}\n',
  'machine: {network: {interfaces: [{interface: eth1, addresses: {$patch: delete}}]}}\n',
  'machine: {network: {interfaces: [{nothing: eth1, $patch: delete}]}}\n',
  'machine: {network: {interfaces: {$patch: delete}}}\n',
  'machine: {network: {nameservers: [{a: b, $patch: delete}, {c: d}]}}\n',
  'machine: {network: {kubespan: {filters: {endpoints: {$patch: delete}}}}}\n',
  'machine: {kubelet: {extraConfig: {inner: {deep: {$patch: delete}}, list: {$patch: delete}}}}\n',
  'machine: {kubelet: {extraConfig: {nothing: {deep: {$patch: delete}}}}}\n',
  'machine: {kubelet: {extraConfig: {list: [{a: b, $patch: delete}]}}}\n',
  'machine: {registries: {mirrors: {registry.example: {endpoints: {$patch: delete}}}}}\n',
  'machine: {registries: {mirrors: {other.example: {$patch: delete}}}}\n',
  'machine: {logging: {destinations: [{endpoint: "udp://logs.example:514/path?x=1#y", $patch: delete}]}}\n',
  'cluster: {network: {podSubnets: {$patch: delete}}, apiServer: {auditPolicy: {rules: {$patch: delete}}}}\n',
  'machine: {time: {servers: {$patch: delete}}, sysctls: {vm.overcommit_memory: {$patch: delete}}}\nmachine2: {$patch: delete}\n',
  '$patch: delete\n',
  'version: v1alpha1\nmachine: {sysctls: {$patch: delete}}\n',
  'version: [v1alpha1]\nmachine: {sysctls: {$patch: delete}}\n',
  'machine: {kubelet: {extraConfig: {list: {a: {b: {$patch: delete}}}}}}\n',
  'machine: {sysctls: {$patch: delete}}\n---\nmachine: {sysctls: {a: "1"}}\n',
  // Operations, one after the other.
  json({ op: 'move', from: '/machine/sysctls/vm.overcommit_memory', path: '/machine/sysctls/other' }),
  json({ op: 'move', from: '/machine/sysctls/none', path: '/machine/sysctls/other' }),
  json({ op: 'move', from: '/machine/certSANs/0', path: '/machine/certSANs/-' }),
  json({ op: 'move', path: '/machine/certSANs/-' }),
  json({ op: 'remove', path: '/machine/certSANs/1' }, { op: 'remove', path: '/machine/time' }),
  json({ op: 'remove', path: '/machine/certSANs/01' }),
  json({ op: 'replace', path: '/machine/certSANs/0', value: 'c.example' }, { op: 'replace', path: '/machine/sysctls/new', value: '7' }),
  json({ op: 'replace', path: '/machine/nothing/here', value: 1 }),
  json({ op: 'copy', from: '/machine/sysctls/none', path: '/machine/sysctls/copied' }),
  json({ op: 'copy', from: '/machine/none/none', path: '/machine/sysctls/copied' }),
  json({ op: 'add', path: '/machine/certSANs/0', value: 'a.example' }, { op: 'add', path: '/machine/certSANs/7', value: 'x' }),
  json({ op: 'add', path: '/machine/type/x', value: 'y' }),
  json({ op: 'add', path: '/machine/sysctls/a/b', value: 'y' }),
  json({ op: 'test', path: '/machine/none', value: null }, { op: 'test', path: '/machine/certSANs', value: ['a.example', 'b.example'] }),
  json({ op: 'add', path: '/machine/kubelet/extraConfig/n', value: [{ a: 1, b: 'no', c: null, d: true, e: '0644' }, [], {}] }),
  json({ op: 'add', path: '/machine/nothing', value: { a: { b: 'c' } } }),
  json({ op: 'replace', path: '/machine/network/interfaces/0/mtu', value: 'many' }),
  '- {op: add, path: /machine/sysctls/a, value: no, why: somebody asked}\n',
  '- {op: add, path: /machine/kubelet/extraConfig/a, value: {b: [0644, on]}}\n',
  '[]\n',
  '- {op: remove, path: /machine/certSANs/0}\n---\nmachine: {}\n',
  // Ways of writing.
  'x: &x {a.b: "1"}\nmachine: {sysctls: {<<: *x, c.d: "2"}}\n',
  'machine: {sysctls: {<<: [{a: "1"}, {a: "2", b: "3"}]}}\n',
  'machine: &x\n  sysctls: *x\n',
  'machine: {sysctls: !!set {a, b}}\n',
  'machine: {sysctls: {? [a, b] : c}}\n',
  'machine: {sysctls: {a: "unclosed}}\n',
  'machine:\n  sysctls: {a: 1\n',
  'machine: {sysctls: {a: @b}}\n',
  'machine: %b\n',
  'machine:\n  sysctls:\n   a: b\n  c\n',
  'machine: {sysctls: {ä: "é", "€": "\u{1f600}"}} # größer\n',
  'machine: {sysctls: {a: }}\n# the end',
  '---\nmachine: {nodeLabels: {y: y, "n": n, dotted.key: "1.0"}}\n...\n',
  'apiVersion: v1alpha1\nmachine: {sysctls: {a: "1"}}\n',
  'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: some}\n',
  documentOf('Nothing', 'name: x'),
  documentOf('SysctlConfig', 'params: {a: b}'),
  documentOf('EnvironmentConfig', 'variables: {TOKEN: abcdefgh12345678}'),
]

/** Onto the documents. */
const ONTO_DOCUMENTS: readonly string[] = [
  documentOf('ExtensionServiceConfig', 'name: tool\nconfigFiles: [{content: uno, mountPath: /one}, {content: two, mountPath: /two}]'),
  documentOf('ExtensionServiceConfig', 'name: tool\n$patch: delete'),
  documentOf('ExtensionServiceConfig', 'name: another\n$patch: delete'),
  documentOf('ExtensionServiceConfig', 'name: tool\nconfigFiles: [{mountPath: /one, $patch: delete}]'),
  documentOf('ExtensionServiceConfig', 'name: tool\nconfigFiles: [{mountPath: /none, $patch: delete}]'),
  documentOf('ExtensionServiceConfig', 'name: tool\nenvironment: {$patch: delete}'),
  ...['tcp://other.example', 'udp:', '""', '"?z=2"', '"#z"', 'else/where', 'tcp://me:secret@other.example', 'tcp:opaque'].map(log),
  ...['tcp:', 'logs', '"//somebody@"', '"//logs.example"'].map(url => documentOf('KmsgLogConfig', `name: local\nurl: ${url}`)),
  documentOf('KmsgLogConfig', 'name: remote\nurl: {$patch: delete}'),
  documentOf('NetworkRuleConfig', 'name: ssh\ningress: [{subnet: 192.0.2.0/24}]\nportSelector: {ports: [2222]}'),
  documentOf('NetworkRuleConfig', 'name: ssh\ningress: ~\nportSelector: {ports: ~}'),
  documentOf('NetworkRuleConfig', 'name: ssh\ningress: [{subnet: 10.0.0.0/8, $patch: delete}]'),
  documentOf('NetworkRuleConfig', 'name: ssh\ningress: [{subnet: 192.0.2.0/24, except: 192.0.2.1/32}]'),
  ...['maxSize: 50%', 'maxSize: ""', 'maxSize: 60GB, grow: true', 'minSize: 8GB', 'diskSelector: {match: disk.size > 1u}'].map(volume),
  documentOf('WatchdogTimerConfig', 'timeout: 0'),
  documentOf('WatchdogTimerConfig', 'timeout: 0s\ndevice: ""'),
  `${documentOf('KmsgLogConfig', 'name: remote\nurl: {$patch: delete}')}---\nmachine: {sysctls: {$patch: delete}}\n---\nmachine: {sysctls: {a: "1"}}\n`,
  json({ op: 'add', path: '/machine/sysctls', value: {} }),
  NEWER_DOCUMENTS,
]

/** Onto those that are newer. */
const ONTO_NEWER: readonly string[] = [
  documentOf('LinkConfig', 'name: eth1\nmtu: 9000\naddresses: [{address: 192.0.2.10/24}]'),
  documentOf('LinkConfig', 'name: eth1\naddresses: [{address: 192.0.2.9/24, $patch: delete}]'),
  documentOf('DummyLinkConfig', 'name: eth1'),
  documentOf('RoutingRuleConfig', 'name: "1000"\nsrc: 10.1.0.0/16'),
  documentOf('ImageVerificationConfig', 'rules: [{image: "ghcr.io/*", skip: true}, {image: "docker.io/*", deny: true}]'),
  documentOf('RegistryAuthConfig', 'name: registry.example\npassword: anotherhunter22'),
  documentOf('RegistryAuthConfig', 'name: registry.example\n$patch: delete'),
]

/** Onto those that are to come. How they are merged is not known yet. */
const ONTO_COMING: readonly string[] = [
  documentOf('SysctlConfig', 'params: {net.core.somaxconn: "65535"}'),
  documentOf('SysctlConfig', 'params: {net.core.somaxconn: {$patch: delete}}'),
  documentOf('SysctlConfig', 'params: {$patch: delete}'),
  documentOf('SysctlConfig', '$patch: delete'),
  documentOf('KernelModuleConfig', 'name: tun\n$patch: delete'),
  documentOf('KernelModuleConfig', 'name: wireguard\nparameters: [a=1]'),
  documentOf('KubeletConfig', '$patch: delete'),
  documentOf('KubeServiceAccountConfig', 'privateKey: x'),
  documentOf('KubeProxyConfig', 'image: registry.k8s.io/kube-proxy:v1.36.2'),
  'machine: {install: {other: 1}, features: {coming: true}}\n',
  'machine: {features: {coming: {$patch: delete}}}\n',
]

/** Refused below Talos 1.14. */
export const COMING = [COMING_DOCUMENTS, ONTO_COMING] as const

/** What furnishes, and what may follow it: some machines take it, and some do not. The longer lists are met more often. */
export const FURNISHED: readonly (readonly [string, readonly string[]])[] = [
  ...Array.from({ length: 4 }, () => [FURNITURE, ONTO_FURNITURE] as const),
  [FURNITURE_DOCUMENTS, ONTO_DOCUMENTS],
  [NEWER_DOCUMENTS, ONTO_NEWER],
  COMING,
]
