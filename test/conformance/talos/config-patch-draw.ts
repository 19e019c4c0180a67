// Patches drawn from a seed, along the types of machine configurations: names come from small pools, so that patches meet what others left.
import { stringify } from 'yaml'
import { bare, documentKinds, documentShape, type Shape } from '../../../src/core/config-patch/shape.ts'
import { createRandom, type Random } from '../../../src/world/random.ts'

/** Where a value drawn from its type alone would not be one that Talos reads. */
const WORDS: Readonly<Record<string, readonly unknown[]>> = {
  allowedIPs: ['10.7.0.0/16', 'fd01::/64'],
  excludeAdvertisedNetworks: ['10.7.0.0/16', 'fd01::/64'],
  extraAnnouncedEndpoints: ['10.0.0.1:51820'],
  ports: [80, '100-200'],
  action: ['unicast', 'blackhole'],
  adLACPActive: ['on', 'off'],
  adSelect: ['stable', 'bandwidth', 'count'],
  address: ['10.1.0.1/24', 'fd00::1/64'],
  arpAllTargets: ['any', 'all'],
  arpValidate: ['none', 'active'],
  auto: ['off', 'stable'],
  bondMode: ['balance-rr', '802.3ad', 'active-backup'],
  clientIdentifier: ['none', 'mac', 'duid'],
  destination: ['10.2.0.0/16', '0.0.0.0/0'],
  dst: ['10.3.0.0/16'],
  endpoint: ['10.0.0.9:51820', '10.0.0.8:51820'],
  except: ['10.4.1.0/24'],
  failOverMac: ['none', 'active'],
  filesystemType: ['xfs', 'ext4', 'none'],
  gateway: ['10.1.0.254', '10.1.0.253'],
  ingress: ['accept', 'block'],
  lacpRate: ['slow', 'fast'],
  primaryReselect: ['always', 'better'],
  protocol: ['tcp', 'udp', 'icmp'],
  provider: ['none', 'luks2'],
  source: ['10.1.0.1', '10.1.0.2'],
  src: ['10.5.0.0/16'],
  subnet: ['10.4.0.0/16', '10.6.0.0/16'],
  table: ['unspec', 'main', 'local', '100'],
  type: ['none', 'xfs', 'ext4'],
  vlanMode: ['802.1q', '802.1ad'],
  volumeType: ['partition', 'directory', 'disk'],
  wakeOnLan: ['magic', 'unicast'],
  xmitHashPolicy: ['layer2', 'layer3+4'],
}

/** Refused by us on purpose, whatever Talos says. */
const PROTECTED = new RegExp(
  '^(?:machine\\.(?:type|token|ca|acceptedCAs)|cluster\\.(?:id|secret|token|ca|acceptedCAs|aggregatorCA|serviceAccount|etcd\\.ca|\\w+EncryptionSecret))$',
)

/** Without them, what Talos writes is nothing that it reads. */
const REQUIRED = ['protocol', 'portSelector']

const TEXTS = ['a', 'b', 'c', '', 'no', '0644', '1.10', 'with: colon', 'two\nlines\n']
const KEYS = ['x', 'y', 'z']

/** A strategic merge patch of one to three documents. Whole documents are deleted where `present` has them. */
const drawPatch = (random: Random, present: Map<string, object>): string => {
  const documents = new Map<string, object>()
  const [[key, gone] = []] = random.chance(0.2) ? [...present] : []
  for (let left = random.between(1, 3); left > 0; left--) {
    const kind = random.chance(0.5) ? '' : random.pick(documentKinds)
    const { shape, named } = documentShape(kind)!
    const head = kind === '' ? {} : { apiVersion: 'v1alpha1', kind, ...(named ? { name: random.pick(['a1', 'b1']) } : {}) }
    documents.set(JSON.stringify(head), { ...(drawValue(random, shape, '', 0) as object), ...head })
    if (kind !== '') present.set(JSON.stringify(head), head)
  }
  if (key && gone) {
    documents.set(key, { ...gone, $patch: 'delete' })
    present.delete(key)
  }
  return [...documents.values()].map(document => stringify(document, { aliasDuplicateObjects: false })).join('---\n')
}

const drawValue = (random: Random, shape: Shape, path: string, depth: number): unknown => {
  const field = path.split('.').findLast(key => !key.startsWith('[')) ?? ''
  const isItem = path.endsWith(']')
  const wanted = bare(shape)
  if (depth > 0 && !isItem && !REQUIRED.includes(field) && random.chance(0.03)) return null
  switch (wanted.kind) {
    case 'struct': {
      if (depth > 1 && !isItem && path !== 'cluster.etcd' && !REQUIRED.includes(field) && random.chance(0.03)) return { $patch: 'delete' }
      const known = [...wanted.fields].filter(
        ([name]) => !PROTECTED.test(join(path, name)) && !['apiVersion', 'kind', 'version', 'name'].includes(name),
      )
      const chosen = known.filter(([key]) => REQUIRED.includes(key) || random.chance(depth === 0 ? 0.8 : depth === 1 ? 0.2 : 0.4))
      const name = isItem && wanted.fields.has('name') ? { name: random.pick(KEYS) } : {}
      const fields = chosen.map(([key, inner]) => [key, drawValue(random, inner, join(path, key), depth + 1)] as const)
      return { ...name, ...Object.fromEntries(fields), ...('name' in name && random.chance(0.1) ? { $patch: 'delete' } : {}) }
    }
    case 'map': {
      const keys = KEYS.filter(() => random.chance(0.5))
      return Object.fromEntries(
        keys.map(key => [key, wanted.flat ? drawArgument(random) : drawValue(random, wanted.of, join(path, key), depth + 1)]),
      )
    }
    case 'list':
      return Array.from({ length: random.between(0, 2) }, (_, index) => drawValue(random, wanted.of, `${path}.[${index}]`, depth + 1))
    case 'bool':
      return random.chance(0.5)
    case 'number':
      return random.pick([0, 1, 5, 100])
    case 'any':
      return drawAny(random, depth)
    case 'bytes':
      return ['hardwareAddr', 'duidRaw'].includes(field) ? '02:00:00:00:00:01' : 'AAEC'
    case 'url':
      return random.pick(['https://a.example:6443/x', 'https://b.example', 'tcp://c.example:9?q=1', 'udp://d.example:1'])
    case 'size':
      return random.pick(['10GiB', '50%', '1TB', ''])
    case 'whole':
      return drawWhole(random, field)
    case 'opaque':
      if (field === 'size') return '>= 100GB'
      return random.pick(path.startsWith('nameservers') ? ['10.0.0.1', 'fd00::2'] : (WORDS[field] ?? ['10.0.0.1', '10.0.0.2']))
    case 'word':
      // Permissions are numbers, durations are words.
      if (wanted.zero === '0 B') return random.pick(['10 GB', 123456789])
      if (wanted.zero === '0o0') return random.pick([0, 420, 384])
      return random.pick(WORDS[field] ?? (wanted.zero.startsWith('0') ? ['0s', '30s', '1m0s'] : [wanted.zero]))
    default:
      return random.pick(TEXTS)
  }
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

const drawArgument = (random: Random): unknown => random.pick(['v', '', '4', ['a', 'no'], []])

/** Each key has its own sort of value, for Talos does not merge one sort into another. */
const drawAny = (random: Random, depth: number): unknown => {
  const all: Readonly<Record<string, unknown>> = {
    text: random.pick(['a', '', 'yes', '0x10']),
    count: random.pick([0, 1, 7]),
    share: random.pick([0.5, 1.25]),
    flag: random.chance(0.5),
    list: Array.from({ length: random.between(0, 2) }, () => random.pick(['p', 'q', 3])),
    ...(depth < 8 ? { inner: random.chance(0.6) ? drawAny(random, depth + 2) : {} } : {}),
  }
  return Object.fromEntries(Object.entries(all).filter(() => random.chance(0.4)))
}

const drawWhole = (random: Random, field: string): unknown => {
  if (field === 'minSize') return random.pick(['1GiB', '2GB'])
  if (['match', 'triggerExpression', 'cgroupRankingExpression'].includes(field)) return random.pick(['disk.size > 1u', 'true'])
  return { crt: random.pick(['QUJD', 'REVG']), ...(random.chance(0.5) ? { key: 'S0VZ' } : {}) }
}

/** Operations on the main document, of which some find nothing. */
const drawJsonPatch = (random: Random): string => {
  const list = random.pick(['/machine/certSANs', '/cluster/network/podSubnets'])
  const mapping = random.pick(['/machine/kubelet/extraArgs', '/machine/sysctls', '/machine/nodeLabels'])
  const scalar = random.pick(['/machine/kubelet/image', '/machine/install/disk', '/cluster/clusterName'])
  const other = random.pick(['/machine/kubelet/image', '/machine/install/disk', `${mapping}/x`, `${list}/0`])
  const value = random.pick(['text', '010', 'no', '', 5, true, 1.5, 'with: colon', 'two\nlines\n'])
  const operation = (): object =>
    random.pick<object>([
      { op: 'add', path: scalar, value },
      { op: 'add', path: mapping, value: { x: value, y: '0644' } },
      { op: 'add', path: `${mapping}/x`, value },
      { op: 'add', path: `${list}/-`, value },
      { op: 'add', path: `${list}/${random.between(0, 1)}`, value },
      { op: 'replace', path: random.pick([scalar, `${list}/0`, `${mapping}/x`]), value },
      { op: 'replace', path: list, value: ['10.9.0.0/16'] },
      { op: 'remove', path: random.pick([scalar, `${list}/0`]) },
      { op: 'test', path: '/version', value: 'v1alpha1' },
      { op: 'test', path: `${list}/0`, value: random.pick(['talos.example.org', '10.244.0.0/16']) },
      { op: 'copy', from: random.pick([scalar, `${list}/0`]), path: other },
      { op: 'move', from: random.pick([scalar, `${list}/0`]), path: other },
    ])
  const operations = Array.from({ length: random.between(1, 3) }, operation)
  return random.chance(0.5) ? JSON.stringify(operations) : stringify(operations)
}

export type Drawn = { readonly configuration: number; readonly patches: readonly string[] }

/** The question of a seed, about one of so many configurations. */
export const drawQuestion = (seed: number, configurations: number, isJson: boolean): Drawn => {
  const random = createRandom(seed)
  const present = new Map<string, object>()
  const draw = (): string => (isJson ? drawJsonPatch(random) : drawPatch(random, present))
  return { configuration: random.between(0, configurations - 1), patches: Array.from({ length: random.between(1, 3) }, draw) }
}
