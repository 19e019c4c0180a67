// What talosctl is asked to do, of real machines and of simulated ones, in this order.

/** Whose talosconfig: by role, `foreign` of another authority, `worker` with the worker as its endpoint. */
export const people = ['admin', 'operator', 'reader', 'backup', 'foreign', 'worker'] as const
export type Person = (typeof people)[number]

export type Command = {
  /** The arguments, split at blanks. `@cp-1` is the address of that machine, `@nobody` one where no machine is. */
  readonly run: string
  /** Default: admin. */
  readonly as?: Person
  /** What EDITOR is, for `edit`. */
  readonly editor?: string
  /** Its lines come in no fixed order. */
  readonly sorted?: true
  /** Goes on by itself: is ended after so many lines. */
  readonly lines?: number
  /** Takes from the answer what is not compared. */
  readonly see?: (text: string) => string
  /** Why the simulated machines answer otherwise. Each is a difference that stays, or something still to be simulated. */
  readonly apart?: string
  /** The lines of the simulated machines are only some of the real ones. */
  readonly some?: true
}

const cut =
  (...parts: readonly RegExp[]) =>
  (text: string): string =>
    parts.reduce((left, part) => left.replaceAll(part, '…'), text)
/** The programs of both sides are built differently. */
const build = cut(/(?<=(SHA|Built|Go version):).*/g)
/** Whether there is a name server to ask is not the machines' doing. */
const lookup = cut(/(?<=lookup [\w.-]+)(: no such host| on \S+: \w+ udp .*)/g)
const headOnly = (text: string): string => text.split('\n')[0] ?? ''
const sizes = cut(/\b\d+(\.\d+)? [kM]?B\b( \([\d.]+%\))?/g, /(?<=  )\d+(?=  )/g, /\b3\.[5-7]\.\d+\b/g)

const secrets = cut(/(?<=\b(ca|crt|key): )\S+/g)
/** Lines of that kind that follow each other come in no fixed order. */
const anyOrder =
  (kind: RegExp) =>
  (text: string): string => {
    const runs: string[][] = []
    for (const line of text.split('\n')) {
      const last = runs.at(-1)
      if (last && kind.test(line) && kind.test(last[0]!)) last.push(line)
      else runs.push([line])
    }
    return runs.flatMap(run => run.toSorted()).join('\n')
  }
const upgradePlan = (text: string): string => cut(/(?<=bootstrap-token-)\w+/g)(anyOrder(/^> "/)(text))
const rotationPlan = (text: string): string => secrets(anyOrder(/^  - .*: OK/)(text))
/** Not what is seen between the beginning and the end of a check, nor in which order the nodes are found: their addresses decide it. */
const checks = (text: string): string =>
  text
    .replace(/(?<=discovered nodes: \[)[^\]]*/, names => names.split(' ').toSorted().join(' '))
    .split('\n')
    .filter(line => !/^(\t|waiting for )/.test(line) || /: (\.\.\.|OK|SKIP)$/.test(line))
    .join('\n')
const allNodes = '--control-plane-nodes @cp-1,@cp-2,@cp-3 --worker-nodes @wk-1'
/** Keeps what it is to edit as a file. */
const keep = 'keep() { cp "$1" config.yaml; }; keep'

const get = (type: string, more: Partial<Command> = {}): readonly Command[] => [
  { run: `-n @cp-1 get ${type}`, ...more },
  { run: `-n @cp-1 get ${type} -o yaml`, ...more },
]

/** By topic. */
export const commands: Readonly<Record<string, readonly Command[]>> = {
  version: [
    { run: '-n @cp-1 version', see: build },
    { run: '-n @wk-1 version', see: build },
    { run: '-n @cp-1,@wk-1 version --short', sorted: true, see: build },
  ],
  resources: [
    { run: '-n @cp-1 get rd', some: true },
    ...get('members'),
    ...get('machinestatus'),
    ...get('machinetype'),
    ...get('nodenames'),
    { run: '-n @cp-1 get nodestatus' },
    {
      run: '-n @cp-1 get nodestatus -o yaml',
      apart: 'a simulated configuration gives its Node no label, and nobody in the simulated cluster writes node.alpha.kubernetes.io/ttl',
    },
    ...get('nodeips'),
    ...get('etcdmembers'),
    ...get('hostnamestatus'),
    ...get('networkstatus'),
    ...get('timestatus'),
    ...get('versions'),
    ...get('extensionstatuses'),
    ...get('metakeys'),
    ...get('securitystate'),
    ...get('platformmetadata'),
    ...get('diagnostics'),
    ...get('identities'),
    ...get('infos'),
    ...get('systemdisks'),
    ...get('imagecacheconfigs'),
    ...get('systeminformation'),
    ...get('etcdspecs', { see: cut(/(?<=\/etcd:v).*/g) }),
    { run: '-n @cp-1 get nodeaddresses' },
    { run: '-n @cp-1 get services' },
    { run: '-n @cp-1 get services etcd -o yaml' },
    { run: '-n @wk-1 get services' },
    { run: '-n @cp-1 get staticpodstatus' },
    { run: '-n @wk-1 get staticpodstatus' },
    { run: '-n @wk-1 get etcdmembers' },
    { run: '-n @wk-1 get machinetype -o json' },
    { run: '-n @cp-1 get ms -o json', apart: 'the other three types of that alias are not simulated' },
    { run: '-n @cp-1,@wk-1 get machinestatus', sorted: true },
    { run: '-n @wk-1 get member cp-2 -o yaml' },
    { run: '-n @cp-1 get machineconfig' },
    { run: '-n @cp-1 get mc' },
    { run: '-n @cp-1 get mc v1alpha1' },
    { run: '-n @cp-1,@cp-2,@wk-1 get mc persistent', sorted: true },
    { run: '-n @cp-1,@cp-2,@cp-3,@wk-1 get machinetype', sorted: true },
    { run: '-n @cp-1,@nobody get machinetype' },
    { run: '-n @nobody get members' },
    { run: '-e @cp-2 -n @wk-1 get machinetype' },
    { run: '-n @cp-1 get bootids' },
    { run: '-n @cp-1 get nosuch' },
    { run: '-n @cp-1 get members nosuch' },
    { run: '-n @cp-1 get members --namespace nosuch' },
    { run: '-n @cp-1 get members --watch', lines: 5, sorted: true },
    { run: '-n @cp-1 get machinestatus machine --watch -o yaml', lines: 16 },
    { run: '-n @cp-1,@wk-1 get machinetype --watch', lines: 3, sorted: true },
  ],
  cluster: [
    { run: '-n @cp-1 health --wait-timeout 45s', see: checks },
    { run: `-n @cp-1 health --wait-timeout 45s ${allNodes}`, see: checks },
    { run: '-n @wk-1 health --wait-timeout 3s', see: checks },
    { run: '-n @cp-1,@cp-2 health --wait-timeout 3s', see: headOnly },
    { as: 'reader', run: '-n @cp-1 health --wait-timeout 10s', see: checks },
    { as: 'backup', run: '-n @cp-1 health --wait-timeout 45s', see: checks },
    { run: '-n @cp-1 health --server=false --wait-timeout 20s', see: checks },
    { run: `-n @cp-1 health --server=false --wait-timeout 20s ${allNodes}`, see: checks },
    {
      run: '-n @cp-1 health --server=false --wait-timeout 3s --control-plane-nodes @cp-1,@cp-2 --worker-nodes @wk-1',
      see: cut(/(?<=etcd member ips )\[[^\]]*\]/g),
    },
    { run: '-n @cp-1 upgrade-k8s --dry-run --to 1.35.4', see: upgradePlan },
    { run: '-n @cp-1 upgrade-k8s --dry-run --to 1.35.5 --pre-pull-images=false', see: upgradePlan },
    { run: '-n @cp-1 upgrade-k8s --dry-run --to 1.35.5', see: upgradePlan },
    { run: '-n @cp-1 upgrade-k8s --dry-run --to 1.35.5 --pre-pull-images=false --upgrade-kubelet=false', see: upgradePlan },
    { run: '-n @cp-1 upgrade-k8s --dry-run --to 1.34.0', see: upgradePlan },
    { run: '-n @cp-1 upgrade-k8s --dry-run --to 1.36.0', see: upgradePlan },
    { run: '-n @cp-1 upgrade-k8s --dry-run --to 1.37.0', see: upgradePlan },
    { run: '-n @wk-1 upgrade-k8s --dry-run --to 1.35.5', see: upgradePlan },
    { run: '-n @cp-1,@cp-2 upgrade-k8s --dry-run', see: headOnly },
    { as: 'reader', run: '-n @cp-1 upgrade-k8s --dry-run --to 1.35.5' },
    { run: '-n @cp-1 rotate-ca --dry-run', see: rotationPlan },
    { run: '-n @cp-1 rotate-ca --dry-run --kubernetes=false', see: rotationPlan },
    { run: '-n @cp-1 rotate-ca --dry-run --talos=false', see: rotationPlan },
    { run: `-n @cp-1 rotate-ca --dry-run --talos=false ${allNodes}`, see: rotationPlan },
    { run: '-n @wk-1 rotate-ca --dry-run', see: rotationPlan },
    { as: 'reader', run: '-n @cp-1 rotate-ca --dry-run', see: rotationPlan },
    { as: 'operator', run: '-n @cp-1 rotate-ca --dry-run --talos=false', see: rotationPlan },
    { as: 'operator', run: 'config info', see: cut(/(?<=Certificate expires: ).*/g) },
    { as: 'operator', run: 'config contexts' },
    { run: 'image default' },
    // Of machines that talosctl itself made: no machine is asked.
    { run: 'cluster show --provisioner qemu --name nosuch --state nosuch' },
  ],
  services: [
    { run: '-n @cp-1,@wk-1 services', sorted: true },
    { run: '-n @cp-1 service etcd', see: text => text.split('EVENTS')[0]! },
    { run: '-n @wk-1 service kubelet', see: text => text.split('EVENTS')[0]! },
    { run: '-n @cp-1 service nosuch' },
    { run: '-n @cp-1 service etcd start' },
    { run: '-n @cp-1 service etcd stop' },
    { run: '-n @cp-1 service apid restart' },
    { run: '-n @cp-1 service nosuch restart' },
    { run: '-n @wk-1 service kubelet restart' },
  ],
  etcd: [
    { run: '-n @cp-1 etcd members', sorted: true },
    { run: '-n @cp-1,@cp-2,@cp-3 etcd members', sorted: true },
    { run: '-n @cp-1 etcd status', see: sizes },
    { run: '-n @cp-1,@cp-2,@cp-3 etcd status', sorted: true, see: sizes },
    { run: '-n @cp-1 etcd alarm list' },
    { run: '-n @cp-1 etcd alarm disarm' },
    { run: '-n @cp-1 etcd forfeit-leadership' },
    { run: '-n @cp-2 etcd forfeit-leadership' },
    { run: '-n @cp-3 etcd forfeit-leadership' },
    { run: '-n @cp-2 etcd defrag' },
    { run: '-n @cp-1 etcd remove-member 1234567890abcdef' },
    { run: '-n @cp-1 etcd remove-member nosuch' },
    { run: '-n @cp-1 etcd snapshot snapshot.db', see: cut(/\d+ bytes/g, /(?<=hash |revision |keys |size )[\da-f]+/g) },
    { run: '-n @wk-1 etcd members' },
    { run: '-n @wk-1 etcd status' },
    { run: '-n @wk-1 etcd alarm list' },
    { run: '-n @wk-1 etcd alarm disarm' },
    { run: '-n @wk-1 etcd forfeit-leadership' },
    { run: '-n @wk-1 etcd defrag' },
    { run: '-n @wk-1 etcd leave' },
    { run: '-n @wk-1 etcd remove-member 1234567890abcdef' },
    { run: '-n @wk-1 etcd snapshot never.db' },
    { run: '-n @cp-1 bootstrap' },
    { run: '-n @cp-2 bootstrap' },
    { run: '-n @wk-1 bootstrap' },
  ],
  access: [
    { as: 'reader', run: '-n @cp-1 version', see: build },
    { as: 'reader', run: '-n @cp-1 get members' },
    { as: 'reader', run: '-n @cp-1 get machineconfig' },
    { as: 'reader', run: '-n @cp-1 etcd members', sorted: true },
    { as: 'reader', run: '-n @cp-1 etcd forfeit-leadership' },
    { as: 'reader', run: '-n @cp-1 etcd snapshot never.db' },
    { as: 'reader', run: '-n @cp-1 etcd defrag' },
    { as: 'reader', run: '-n @cp-1 bootstrap' },
    { as: 'reader', run: '-n @cp-1 reboot --wait=false' },
    { as: 'reader', run: '-n @cp-1 reset --wait=false' },
    { as: 'reader', run: '-n @cp-1 service kubelet restart' },
    { as: 'reader', run: '-n @cp-1 kubeconfig never' },
    { as: 'reader', run: '-n @cp-1 read /proc/sys/kernel/random/boot_id' },
    { as: 'operator', run: '-n @cp-1 get machineconfig' },
    { as: 'operator', run: '-n @cp-1 patch mc -p {"machine":{"nodeLabels":{"a":"b"}}}' },
    { as: 'operator', run: '-n @cp-1 etcd alarm disarm' },
    { as: 'operator', run: '-n @cp-1 etcd forfeit-leadership' },
    { as: 'operator', run: '-n @cp-1 reboot --wait=false' },
    { as: 'operator', run: '-n @cp-1 upgrade --wait=false --image ghcr.io/siderolabs/installer:v1.12.2' },
    { as: 'operator', run: '-n @cp-1 reset --wait=false' },
    { as: 'backup', run: '-n @cp-1 version', see: build },
    { as: 'backup', run: '-n @cp-1 etcd members', sorted: true },
    { as: 'backup', run: '-n @cp-1 get members' },
    { as: 'foreign', run: '-n @cp-1 version', see: text => cut(/candidate authority certificate "[^"]*"/g)(build(text)) },
    { as: 'worker', run: '-n @wk-1 version', see: build },
    { as: 'worker', run: '-n @cp-1 version', see: build },
    { as: 'worker', run: '-n @wk-1,@cp-1 version', see: build },
    { as: 'worker', run: '-n @cp-1 get members' },
    { run: '-n @nobody version', see: build },
    { run: '-n @cp-1,@nobody version', see: build },
    { run: '-n nosuch.example version', see: text => lookup(build(text)) },
    { run: '-e @cp-1 -n cp-2 version', see: text => lookup(build(text)) },
    { run: '-e @nobody,@cp-1 -n @cp-1 version', see: build },
    { run: '-e @wk-1 -n @wk-1 version', see: build },
    { run: '-e @cp-2 -n @cp-1 version', see: build },
    { run: '-e @cp-3 -n @cp-1,@cp-2,@wk-1 version --short', sorted: true, see: build },
  ],
  configuration: [
    {
      run: '-n @cp-2 patch mc --dry-run -p {"machine":{"install":{"image":"example.com/installer:v1.12.2"}}}',
      see: cut(/Config diff:[^]*/g),
    },
    { run: '-n @cp-2 patch mc -p {"machine":{"install":{"image":"example.com/installer:v1.12.2"}}}' },
    { run: '-n @cp-2 patch mc -p {"machine":{"install":{"image":"example.com/installer:v1.12.2"}}}' },
    { run: '-n @cp-2 patch mc --mode no-reboot -p {"machine":{"install":{"image":"example.com/installer:v1.12.3"}}}' },
    { run: '-n @cp-2 patch mc --mode staged -p {"machine":{"install":{"image":"example.com/installer:v1.12.4"}}}' },
    { run: '-n @cp-2 patch mc --mode no-reboot -p {"machine":{"install":{"image":"example.com/installer:v1.12.5"}}}' },
    { run: '-n @cp-2 patch mc --mode try --timeout 1s -p {"machine":{"install":{"image":"example.com/installer:v1.12.0"}}}' },
    { run: '-n @cp-2 patch mc --mode no-reboot -p {"machine":{"env":{"EXAMPLE":"one"}}}', see: cut(/diff:[^]*/g) },
    { run: '-n @cp-2 patch mc --dry-run -p {"machine":{"env":{"EXAMPLE":"one"}}}', see: cut(/Config diff:[^]*/g) },
    { run: '-n @cp-2 patch mc --dry-run -p {"machine":{"type":"worker"}}' },
    { run: '-n @cp-2 patch mc -p {"machine":{"nosuch":1}}' },
    { run: '-n @cp-2 patch mc -p {"machine":{"nodeLabels":{"example.org/nosuch":{"$patch":"delete"}}}}' },
    { run: '-n @cp-2 patch mc -p [{"op":"add","path":"/machine/install/wipe","value":true}]' },
    { run: '-n @cp-2,@cp-3 patch mc -p {"machine":{"install":{"image":"example.com/installer:v1.12.6"}}}', sorted: true },
    { run: '-n @cp-2 get machineconfig' },
    { run: '-n @cp-2 edit mc', editor: 'true' },
    { run: '-n @cp-2,@cp-3 edit mc', editor: 'true' },
    { run: '-n @cp-2 edit mc', editor: 'truncate -s 0' },
    { run: '-n @cp-2 edit mc', editor: 'false', see: cut(/\/\S+/g) },
    { run: '-n @cp-2 edit mc --dry-run', editor: 'sed -i s|installer:v1.12.6|installer:v1.12.7|', see: cut(/Config diff:[^]*/g) },
    { run: '-n @cp-2 edit mc', editor: 'sed -i s|installer:v1.12.6|installer:v1.12.7|' },
    { run: '-n @cp-2 edit mc --mode no-reboot', editor: 'sed -i s|installer:v1.12.7|installer:v1.12.8|' },
    { run: '-n @cp-2 edit mc --mode staged', editor: 'sed -i s|installer:v1.12.8|installer:v1.12.9|' },
    { run: '-n @cp-2 edit mc', editor: 'sed -i s|^debug:|nosuch:|', see: cut(/(?<=stored to ").*(?=")/g) },
    { run: '-n @cp-2 edit members', editor: 'true' },
    { as: 'operator', run: '-n @cp-2 edit mc', editor: 'true' },
    { run: '-n @cp-2 edit mc', editor: keep },
    { run: '-n @cp-2 apply-config -f config.yaml' },
    { run: '-n @cp-2 apply-config -f config.yaml --mode no-reboot' },
    { run: '-n @cp-2 apply-config -f config.yaml --mode staged' },
    { run: '-n @cp-2 apply-config -f config.yaml --mode try --timeout 1s' },
    { run: '-n @cp-2 apply-config -f config.yaml --mode auto --dry-run' },
    { run: '-n @cp-2 apply-config -f config.yaml --mode reboot --dry-run' },
    { run: '-n @cp-2 apply-config -f nosuch.yaml' },
    { as: 'reader', run: '-n @cp-2 apply-config -f config.yaml' },
    // As it was, for whoever comes next.
    { run: '-n @cp-2,@cp-3 patch mc -p {"machine":{"install":{"image":"ghcr.io/siderolabs/installer:v1.12.1"}}}', sorted: true },
  ],
  'in a container': [
    { run: '-n @cp-2 reboot --wait=false' },
    { run: '-n @cp-2 reboot --mode powercycle --wait=false' },
    { run: '-n @cp-2 shutdown --wait=false' },
    { run: '-n @cp-2 upgrade --wait=false --image ghcr.io/siderolabs/installer:v1.12.2' },
    { run: '-n @cp-2 upgrade --wait=false --stage --image ghcr.io/siderolabs/installer:v1.12.2' },
    { run: '-n @cp-2 rollback' },
    { run: '-n @cp-2 meta write 0x0a example' },
    { run: '-n @cp-2 meta delete 0x0a' },
    { run: '-n @wk-1 reset --wait=false --graceful=false --system-labels-to-wipe NOSUCH' },
  ],
  files: [
    { run: '-n @wk-1 read /etc/hostname' },
    { run: '-n @wk-1 read /nosuch' },
    { run: '-n @wk-1 read /etc' },
    { run: '-n @wk-1 read /proc/sys/kernel/random/boot_id' },
    { run: '-n @wk-1 logs nosuch' },
    { run: '-n @wk-1 dmesg --tail', lines: 0 },
    { run: '-n @wk-1 image pull registry.k8s.io/nosuch:v1' },
    { run: '-n @cp-1 kubeconfig -', see: headOnly },
    { run: '-n @wk-1 kubeconfig never' },
    { run: '-n @cp-1 config new --roles os:reader role', see: headOnly },
    { run: '-n @wk-1 config new --roles os:reader other' },
    { run: '-n @wk-1 wipe disk vda' },
  ],
}
