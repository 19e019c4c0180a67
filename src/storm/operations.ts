import type { Random } from '../world/random.ts'
import { COMING, FURNISHED } from './furnished.ts'
import { type Source, drawSource } from './patch-sources.ts'
import { MANNERED_PATCHES, WRONG_PATCHES } from './patches.ts'
import type { Draft, Shape } from './plan.ts'
import { MIRROR, OTHER_MIRROR, OTHER_SCHEMATIC, SCHEMATIC, UNKNOWN_SCHEMATIC } from './setting.ts'
import { SHARED_PATCHES, versionPatches } from './version-patches.ts'

type Spec = Draft['spec']

type Draw = (random: Random, shape: Shape, to: string) => Spec

/** When the invented world begins; a time to start after is told by the clock on the wall. */
const BEGIN = Date.UTC(2026, 8, 1, 8)
const MINUTE = 60_000

/** Only some machines, by what is written on them. */
const drawSelector = (random: Random): object => {
  const cluster = 'ichor.maesh.dev/cluster'
  return random.pick([
    { matchLabels: { [cluster]: 'home' } },
    { matchLabels: { [cluster]: 'another' } },
    { matchExpressions: [{ key: cluster, operator: 'In', values: ['home', 'other'] }] },
    { matchExpressions: [{ key: cluster, operator: 'NotIn', values: ['other'] }] },
    { matchExpressions: [{ key: cluster, operator: 'Exists' }] },
    { matchExpressions: [{ key: 'ichor.maesh.dev/upgrade-order', operator: 'DoesNotExist' }] },
    // They hit nothing, each told as it was typed.
    { matchExpressions: [{ key: cluster, operator: 'DoesNotExist' }] },
    { matchExpressions: [{ key: 'rack', operator: 'Exists' }] },
    { matchExpressions: [{ key: 'rack', operator: 'In', values: [random.pick(['7', '8'])] }] },
    { matchExpressions: [{ key: cluster, operator: 'NotIn', values: ['home', ...(random.chance(0.5) ? ['other'] : [])] }] },
    { matchExpressions: [{ key: cluster, operator: 'In', values: ['another', 'other'] }] },
    { names: Array.from({ length: random.pick([1, 13]) }, (_, at) => `nobody-${at}`) },
  ])
}

/** What few ask for. */
const seldom = (random: Random): Readonly<Record<string, unknown>> => ({
  ...(random.chance(0.15) ? { machineSelector: drawSelector(random) } : {}),
  ...(random.chance(0.15) ? { startAfter: new Date(BEGIN + random.between(-60, 20) * MINUTE).toISOString() } : {}),
  ...(random.chance(0.15) ? { ttlAfterFinished: random.pick(['30s', '5m', '3h']) } : {}),
  ...(random.chance(0.2) ? { override: true } : {}),
  ...(random.chance(0.2) ? { ignoreWindows: true } : {}),
  ...(random.chance(0.2) ? { again: true } : {}),
})

const envelope = (random: Random, shape: Shape): Readonly<Record<string, unknown>> => ({
  maxUnavailable: random.pick([1, 1, 1, 2, '50%']),
  // Some forget to.
  ...(shape.controlPlanes < 3 && random.chance(0.9) ? { acknowledge: ['api-outage'] } : {}),
  ...(random.chance(0.3) ? { minReadySeconds: random.between(1, 60) } : {}),
  drain: { policy: random.pick(['wait', 'wait', 'wait', 'force', 'skip']), timeout: random.pick(['2m', '5m', '10m']) },
  timeouts: { reboot: random.pick(['10m', '30m']) },
})

/** Versions that nobody should be brought to from there, or need not. */
const strangeVersion = (random: Random, { talos }: Shape): string =>
  random.pick([talos, 'v1.13.2', 'v1.12.9', 'v1.11.6', 'v1.9.6', 'v1.14.0', 'v1.19.3', 'v1.13.99', 'v2.0.0', TOO_LARGE])

/** The schema takes it, and no program does. */
const TOO_LARGE = 'v1.99999999999999999999.0'

const strangeImage = (random: Random, to: string): string =>
  random.pick([
    `ghcr.io/siderolabs/installer:${to}`,
    'ghcr.io/siderolabs/installer:latest',
    'ghcr.io/siderolabs/installer:v1.12.9',
    `${MIRROR}:${to}`,
    `${OTHER_MIRROR}:${to}`,
    `factory.talos.dev/metal-installer/${SCHEMATIC}:${to}`,
    `factory.talos.dev/metal-installer/${OTHER_SCHEMATIC}:${to}`,
    `factory.talos.dev/metal-installer-secureboot/${SCHEMATIC}:${to}`,
    `factory.talos.dev/aws-installer/${SCHEMATIC}:${to}`,
    `factory.talos.dev/metal-installer/${OTHER_SCHEMATIC}@sha256:${'d'.repeat(64)}`,
    `https://factory.talos.dev/metal-installer/${SCHEMATIC}:${to}`,
    `ghcr.io/siderolabs/installer:${to}@sha256:${'d'.repeat(64)}`,
    'ghcr.io/siderolabs/installer',
    'ghcr.io/siderolabs/Installer:v1.13.9',
    'an installer',
    `[fd00::1]:5000/installer:${to}`,
    `installer:${to}`,
    'a@b@c',
    ' ',
    `registry.example.com/own/installer:${to}@`,
    `localhost/installer:${to}`,
    `re_gistry.example:x/installer:${to}`,
    `registry.example.com/own//installer:${to}`,
    `registry.example.com/own/installer:-${to}`,
    'registry.example.com/own/installer@sha256:1',
    `ghcr.io/siderolabs/installer@sha256:${'d'.repeat(64)}`,
    `ghcr.io/siderolabs/installer:${to}-own`,
    `ghcr.io/siderolabs/installer:${to}-rc.1`,
    `ghcr.io/siderolabs/metal-installer:${to}`,
    `factory.talos.dev/metal-installer/${SCHEMATIC.toUpperCase()}:${to}`,
    `factory.talos.dev/metal-installer/abc:${to}`,
    `factory.talos.dev/installer/${SCHEMATIC}:${to}`,
    `factory.talos.dev/installer-secureboot/${SCHEMATIC}:${to}`,
    `factory.talos.dev/metal-installer/${SCHEMATIC}:latest`,
    `other.example/metal-installer/${SCHEMATIC}:${to}`,
  ])

const drawTalos: Draw = (random, shape, to) => {
  const plain = { version: to, ...(random.chance(0.2) ? { rebootMode: 'powercycle' } : {}) }
  if (random.chance(0.6)) return { kind: 'talos', ...envelope(random, shape), talos: plain }
  const version = random.chance(0.25) ? strangeVersion(random, shape) : to
  const talos = {
    ...plain,
    version,
    ...(random.chance(0.2) ? { schematic: random.pick([SCHEMATIC, OTHER_SCHEMATIC, OTHER_SCHEMATIC, UNKNOWN_SCHEMATIC]) } : {}),
    ...(random.chance(0.25) ? { image: strangeImage(random, version) } : {}),
    ...(random.chance(0.3) ? { snapshot: random.pick(['auto', 'auto', 'skip', 'skip', 'required']) } : {}),
  }
  return { kind: 'talos', ...envelope(random, shape), ...seldom(random), talos }
}

const drawService = (random: Random, { setting }: Shape, isOdd: boolean): string =>
  setting?.service === true && random.chance(0.6) ? 'ext-tool' : isOdd ? random.pick(['kubelet', 'ext-tool', 'ext-nothing']) : 'kubelet'

const drawNode: Draw = (random, shape) => {
  const isMember = random.chance(0.6) || shape.workers === 0
  const machine = isMember ? `cp-${random.between(1, shape.controlPlanes)}` : `wk-${random.between(1, shape.workers)}`
  const isOdd = random.chance(0.3)
  const etcdActions = isMember || isOdd ? ['etcd-defrag', ...(shape.controlPlanes > 1 || isOdd ? ['forfeit-leadership'] : [])] : []
  const { oddities, quota } = shape.setting ?? {}
  // Who sees that etcd is full gives its space back.
  const isFull = isMember && (oddities?.alarm === true || quota !== undefined)
  const action = random.pick(
    isFull && random.chance(0.7)
      ? ['etcd-defrag']
      : ['reboot', 'reboot', 'shutdown', 'restart-service', 'restart-service', 'reset', 'reset', ...etcdActions],
  )
  const accepted = shape.controlPlanes < 3 ? ['api-outage', 'no-fault-tolerance'] : ['no-fault-tolerance']
  return {
    kind: 'node',
    ...envelope(random, shape),
    ...(isOdd ? { ...seldom(random), machineSelector: undefined, acknowledge: accepted } : {}),
    node: {
      machine: isOdd && random.chance(0.1) ? 'nobody' : machine,
      action,
      ...(action === 'reboot' && random.chance(0.4) ? { mode: random.pick(['powercycle', 'force', 'default']) } : {}),
      ...(action === 'restart-service' ? { service: drawService(random, shape, isOdd) } : {}),
      ...(action === 'reset' && random.chance(0.8) ? { rebootAfter: random.chance(0.5), wipe: random.pick(['state', 'disk']) } : {}),
    },
  }
}

/** A patch further, which every Talos takes that takes the one before; or something else. */
const drawKubernetes: Draw = (random, shape) => {
  const [, minor = '', patch = ''] = /^v1\.(\d+)\.(\d+)$/.exec(shape.kubernetes) ?? []
  const isOdd = random.chance(0.4)
  const next = `v1.${minor}.${Number(patch) + 1}`
  const others = [
    `v1.${Number(minor) + 1}.0`,
    `v1.${Number(minor) - 1}.9`,
    `v1.${minor}.0`,
    `v1.${Number(minor) + 2}.0`,
    `v1.${Number(minor) + 5}.0`,
    'v2.0.0',
    TOO_LARGE,
  ]
  // Who builds Kubernetes himself knows that nobody can read its versions.
  const isBuilt = shape.setting?.oddities?.vendorTail !== undefined
  const version = isOdd ? random.pick([next, next, shape.kubernetes, ...others]) : next
  const kubernetes = {
    version,
    drain: random.pick(['never', 'minor', 'always']),
    ...(random.chance(shape.setting?.oddities?.leftovers ? 0.8 : 0.3) ? { prune: true } : {}),
  }
  return {
    kind: 'kubernetes',
    ...envelope(random, shape),
    ...(isOdd ? seldom(random) : {}),
    ...(isBuilt && random.chance(0.5) ? { override: true } : {}),
    kubernetes,
  }
}

/** What one of the patches adds to a list, so that it shows how often it was applied. */
export const ADDED = 'patched.example.com'

export const PATCHES = {
  adds: `machine:\n  certSANs:\n    - ${ADDED}\n`,
  sets: 'machine:\n  sysctls:\n    net.core.somaxconn: "65535"\n',
  kubelet: 'machine:\n  kubelet:\n    extraArgs:\n      v: "4"\n',
  document: 'apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: tool\nenvironment:\n  - LEVEL=debug\n',
  operations: '- op: add\n  path: /machine/install/wipe\n  value: true\n',
  nothing: 'machine:\n  install:\n    disk: /dev/sda\n',
  onBoot: 'machine:\n  env:\n    LEVEL: debug\n',
} as const
/** Those that are refused, or that a machine is not well with. */
export const STRANGE_PATCHES = {
  cutsOff:
    'machine:\n  network:\n    interfaces:\n      - interface: eth0\n        routes:\n          - network: 0.0.0.0/0\n            gateway: 192.0.2.1\n',
  typo: 'machine:\n  sysctl:\n    net.core.somaxconn: "65535"\n',
  secret: 'cluster:\n  secret: bm90aGluZw==\n',
  gone: 'machine:\n  nodeLabels:\n    $patch: delete\n',
  trap: 'machine:\n  files:\n    - path: /var/x\n      permissions: 0644\n      op: create\n      content: x\n',
  noYaml: 'machine: {',
  kept: 'cluster: {apiServer: {extraArgs: {etcd-servers: "https://192.0.2.1:2379"}}}\n',
  keptByKubelet: 'machine: {kubelet: {extraArgs: {cert-dir: /var/lib/elsewhere}}}\n',
} as const

const drawConfig: Draw = (random, shape) => {
  const isOdd = random.chance(0.5)
  const mode = random.pick(['try', 'try', 'no-reboot', 'staged', 'reboot'])
  const usual = random.pick(['adds', 'adds', 'sets', 'kubelet', 'document', 'operations'] as const)
  const patches = [PATCHES[usual], ...(random.chance(0.3) && usual !== 'operations' && usual !== 'document' ? [PATCHES.sets] : [])]
  const sources = patches.map(inline => ({ inline }))
  if (!isOdd) return { kind: 'config', ...envelope(random, shape), config: { mode, patches: sources } }
  const asked = drawOddPatches(random, shape)
  const safe = asked.some(({ inline }) => inline === STRANGE_PATCHES.cutsOff) ? 'try' : mode
  return {
    kind: 'config',
    ...envelope(random, shape),
    ...seldom(random),
    config: { mode: safe, patches: random.chance(0.9) ? asked : sources },
  }
}

const drawOddPatches = (random: Random, { talos, kubernetes, setting }: Shape): readonly Source[] => {
  const some = (most: number, draw: () => Source): readonly Source[] => Array.from({ length: random.between(1, most) }, draw)
  if (random.chance(0.2)) return some(2, () => drawSource(random))
  // Where somebody has named images before, they are changed more often.
  if (random.chance(setting?.oddities?.written ? 0.5 : 0.2)) {
    const lists = [versionPatches(kubernetes), versionPatches(kubernetes), SHARED_PATCHES]
    return some(2, () => ({ inline: random.pick(random.pick(lists)) }))
  }
  // Of those that are wrong whatever a machine has, each is told.
  if (random.chance(0.2)) return some(4, () => ({ inline: random.pick(WRONG_PATCHES) }))
  if (random.chance(0.35)) {
    const lists = [Object.values({ ...STRANGE_PATCHES, onBoot: PATCHES.onBoot, nothing: PATCHES.nothing }), MANNERED_PATCHES]
    return [{ inline: random.pick<string>(random.pick(lists)) }]
  }
  const [furniture, patches] = talos >= 'v1.14' && random.chance(0.5) ? COMING : random.pick(FURNISHED)
  const count = random.chance(0.6) ? 1 : random.between(2, 6)
  return [furniture, ...Array.from({ length: count }, () => random.pick(patches))].map(inline => ({ inline }))
}

/** What an operation of each kind asks for. */
const draws: Readonly<Record<string, Draw>> = { talos: drawTalos, node: drawNode, kubernetes: drawKubernetes, config: drawConfig }

/** The kinds that storms know how to ask for. */
export const stormKinds: readonly string[] = Object.keys(draws)

export const drawOperation = (random: Random, kind: string, shape: Shape, to: string): Spec => {
  const draw = draws[kind]
  if (!draw) throw new Error(`storms do not know the kind ${kind} (they know: ${stormKinds.join(', ')})`)
  return draw(random, shape, to)
}
