/** Patches of machine configurations as people write them, right and wrong, beyond those by which a rollout is told. */

const item = (text: string): string => `machine:\n  network:\n    interfaces:\n      - ${text.replaceAll('\n', '\n        ')}\n`
const rule = (inner: string): string => `apiVersion: v1alpha1\nkind: RoutingRuleConfig\nname: "1000"\n${inner}`

/** They say in other words what every machine takes without a restart. */
export const MANNERED_PATCHES: readonly string[] = [
  'machine: {sysctls: {net.core.somaxconn: "65535", "vm.max_map_count": "262144"}}\n',
  '# why\nmachine:\n  sysctls: &some\n    net.core.somaxconn: "65535" # once\n  sysfs: *some\n',
  'machine:\n  sysctls:\n    a.b: |\n      12\n    c.d: >-\n      3\n      4\n',
  '[{"op":"add","path":"/machine/sysctls","value":{"a":"0644","b":"no","c":"1","d":"plain","e":"","f":"two\\nlines"}}]',
  '[{"op":"test","path":"/machine/install/wipe","value":false},{"op":"replace","path":"/machine/install/wipe","value":true}]',
  '[{"op":"add","path":"/machine/certSANs/-","value":"a.example"},{"op":"copy","from":"/machine/certSANs/0","path":"/machine/certSANs/0"}]',
  '- op: add\n  path: /machine/sysctls\n  value: {a: "1", b~c: "2"}\n- op: move\n  from: /machine/sysctls/a\n  path: /machine/sysctls/z\n- op: remove\n  path: /machine/sysctls/b~0c\n',
  'apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: tool\nconfigFiles:\n  - content: one\n    mountPath: /one\n  - content: two\n    mountPath: /two\n---\napiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: other\nenvironment: [A=1]\n',
  'machine:\n  sysctls:\n    $patch: delete\n',
]

/** Whatever the machine has, they are refused. */
export const WRONG_PATCHES: readonly string[] = [
  'machine:\n  kubelet:\n    extraArg: {}\n',
  item('interface: eth0\nadresses: []'),
  item('interface: eth0\nmtu: big'),
  item('interface: eth7\n$patch: delete'),
  'machine:\n  kubelet:\n    imag:\n      $patch: delete\n',
  'machine:\n  kubelet:\n    $patch: replace\n',
  'machine:\n  kubelet:\n\t\timage: x\n',
  'machine:\n  certSANs: [a]\n  certSANs: [b]\n',
  'machine:\n  certSANs:\n    a: b\n',
  'machine:\n  time:\n    servers:\n      $patch: delete\n',
  'apiVersion: v1alpha1\nkind: HostnamConfig\n',
  'apiVersion: v1alpha1\nkind: LinkConfig\nmtu: 1\n',
  'apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\n$patch: delete\n',
  'apiVersion: v7\nkind: LinkConfig\nname: eth0\n',
  'kind: LinkConfig\nname: eth0\n',
  '[{"op": "ad", "path": "/machine/certSANs"}]',
  '[{"op": "add", "path": "/machine/certSANs"}]',
  '[{"op": "copy", "path": "/machine/certSANs/0", "from": "machine"}]',
  '["add"]',
  '[{"op":"remove","path":"/machine/sysctls/none"}]',
  '[{"op":"replace","path":"/machine/certSANs/9","value":"x"}]',
  '[{"op":"add","path":"/machine/certSANs/x","value":"x"}]',
  '[{"op":"test","path":"/machine/install/disk","value":"x"}]',
  '[{"op":"add","path":"/cluster/ca/key","value":"x"}]',
  '- op: remove\n  path: machine.certSANs\n',
  '- op: add\n  path: /machine/kubelet/imag\n  value: x\n',
  '# nothing\n',
  'just a text\n',
  '- just\n- a list\n',
  '12\n',
  'cluster:\n  ca:\n    crt: QQ==\n    key: QQ==\n',
  'machine:\n  token: other\n',
  'cluster:\n  serviceAccount:\n    $patch: delete\n',
  'cluster:\n  acceptedCAs:\n    - crt: QQ==\n      $patch: delete\n',
  'machine:\n  type: init\n',
  'debug: no\nmachine:\n  sysctls: {a: no, b: 0644, c: 1e3, d: ~}\n',
  `${rule('src: 10.0.0.0/8\n')}---\n${rule('src: 10.1.0.0/16\n')}`,
  'machine: &a\n  certSANs: *b\n',
  `machine:\n  sysctls: {a: "${'x'.repeat(9)}"}\n---\nmachine:\n  sysctls: {a: "y"}\n`,
]
