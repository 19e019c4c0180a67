import { ANNOTATION, LABEL } from '../api/names.ts'
import type { HealthGate, MaintenanceWindow } from '../api/talos-cluster.ts'
import { RESOURCE, change } from '../world/objects.ts'
import { ICHOR } from '../world/ports/home.ts'
import { startService } from '../world/services.ts'
import type { Random } from '../world/random.ts'
import { drawGates, setUpStorage } from './gates.ts'
import { type Oddities, TWO_NETWORKS, drawOddities, oddWorld, setUpOddities } from './oddities.ts'
import type { Shape } from './plan.ts'
import type { Story } from './story.ts'

/** What somebody has written on a machine's TalosMachine or Node. */
export type Mark = {
  /** Index of the machine, control planes first. */
  readonly machine: number
  readonly on: 'machine' | 'node'
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

/** What people have set up besides: all that makes one cluster unlike another and is there before an operation begins. */
export type Setting = {
  /** Of the schematic that all machines run. */
  readonly extensions?: readonly string[]
  readonly windows?: readonly MaintenanceWindow[]
  readonly gates?: readonly HealthGate[]
  /** `spec.imageFactory` of the TalosCluster, as people write it. */
  readonly factory?: string
  readonly cilium?: { readonly version: string; readonly config?: Readonly<Record<string, string>> }
  readonly marks?: readonly Mark[]
  /** `spec.installImage` of one TalosMachine. */
  readonly image?: { readonly machine: number; readonly image: string }
  /** The etcd member whose database is mostly free space. */
  readonly bloated?: number
  /** A pod under two budgets, which can never be evicted. */
  readonly twoBudgets?: boolean
  /** All machines run the service of an extension, `ext-tool`. */
  readonly service?: boolean
  /** On what the machines run; metal where absent. */
  readonly platform?: string
  /** Bytes that etcd may have. */
  readonly quota?: number
  /** The controller's own pod runs on this machine. */
  readonly ownPod?: number
  /** Machines spell their host names in capitals. */
  readonly capitals?: boolean
  /** The deployment of a storage system with a budget of its own. */
  readonly storage?: boolean
  /** All machines have booted since they were last given a configuration. */
  readonly booted?: boolean
  readonly oddities?: Oddities
}

/** What the machines run where they have extensions, and what they may be brought to. */
export const SCHEMATIC = 'a'.repeat(64)
export const OTHER_SCHEMATIC = 'b'.repeat(64)
/** Repositories of a mirror, whose names do not tell what is in them: that of the machines, and one with more in it. */
export const MIRROR = 'registry.example.com/installer'
export const OTHER_MIRROR = 'registry.example.com/own/installer'
/** No factory knows it. */
export const UNKNOWN_SCHEMATIC = 'c'.repeat(64)

const drawMark = (random: Random, machines: number): Mark => {
  const mark = { machine: random.between(0, machines - 1), on: random.pick<Mark['on']>(['machine', 'machine', 'node']) }
  return random.chance(0.5)
    ? { ...mark, labels: { [LABEL.upgradeOrder]: random.pick(['1', '1', '2', '10', 'first', '-1']) } }
    : { ...mark, annotations: { [ANNOTATION.upgradeHold]: random.pick(['true', '', 'false', 'until the disk is changed']) } }
}

/** Most clusters have nothing of it. */
export const drawSetting = (random: Random, shape: Omit<Shape, 'setting'>, to: string): Setting => {
  const { controlPlanes, workers, talos, kubernetes } = shape
  const machines = controlPlanes + workers
  const windows: readonly (readonly MaintenanceWindow[])[] = [
    [{ schedule: '30 8 * * *', duration: '2h', timeZone: 'UTC' }],
    [{ schedule: '0 9,11,13 * * *', duration: '20m', timeZone: 'Europe/Berlin' }],
    [
      { schedule: '0 22 * * 6', duration: '4h', timeZone: 'America/New_York' },
      { schedule: '10 8 1 9 *', duration: '1h', timeZone: 'UTC' },
    ],
    [{ schedule: '* * * * *', duration: '2m', timeZone: 'UTC' }],
    [
      { schedule: 'every day', duration: '1h', timeZone: 'UTC' },
      { schedule: '0 */2 * * *', duration: '90m', timeZone: 'UTC' },
    ],
    [
      { schedule: '0 */2 * * *', duration: '0s', timeZone: 'UTC' },
      { schedule: '0 */2 * * *', duration: '1h', timeZone: 'Europe/Nowhere' },
      { schedule: '0 0 31 2 *', duration: '1h', timeZone: 'UTC' },
      { schedule: '* * * * *', duration: '2m', timeZone: 'UTC' },
    ],
  ]
  const setting: Setting = {
    ...(random.chance(0.3) ? { extensions: ['iscsi-tools'] } : {}),
    ...(random.chance(0.15) ? { windows: random.pick(windows) } : {}),
    ...(random.chance(0.2)
      ? {
          factory: random.pick([
            'factory.talos.dev',
            'https://factory.talos.dev/',
            'factory.talos.dev',
            'factory.example.com',
            'not a host',
          ]),
        }
      : {}),
    ...(random.chance(0.15)
      ? {
          cilium: random.pick<NonNullable<Setting['cilium']>>([
            { version: '1.15.6' },
            { version: '1.18.2', config: { 'kube-proxy-replacement': 'true', 'enable-bpf-masquerade': 'true' } },
            { version: '1.17.1', config: { 'kube-proxy-replacement': 'false' } },
            {
              version: '1.19.1',
              config: { 'kube-proxy-replacement': 'strict', 'enable-bpf-masquerade': 'true', 'routing-mode': 'native' },
            },
            {
              version: '1.20.0',
              config: { 'kube-proxy-replacement': 'true', 'enable-host-legacy-routing': 'true', 'default-lb-service-ipam': 'none' },
            },
            { version: '1.20.2', config: { 'enable-l2-announcements': 'true', 'enable-gateway-api': 'true', 'enable-ipv6': 'true' } },
            { version: '1.19.8' },
            { version: 'dev' },
          ]),
        }
      : {}),
    ...(random.chance(0.3) ? { marks: Array.from({ length: random.between(1, 3) }, () => drawMark(random, machines)) } : {}),
    ...(random.chance(0.1)
      ? {
          image: {
            machine: random.between(0, machines - 1),
            image: random.pick([
              `factory.talos.dev/metal-installer/${OTHER_SCHEMATIC}`,
              MIRROR,
              OTHER_MIRROR,
              'ghcr.io/siderolabs/installer:v1.13.9',
            ]),
          },
        }
      : {}),
    ...(random.chance(0.3) ? { bloated: random.between(0, controlPlanes - 1) } : {}),
    ...(random.chance(0.1) ? { twoBudgets: true } : {}),
    ...(random.chance(0.1) ? { storage: true } : {}),
    ...(random.chance(0.3) ? { service: true } : {}),
    ...(random.chance(0.06) ? { platform: random.pick(['container', 'aws', 'nocloud', '']) } : {}),
    ...(random.chance(0.05) ? { quota: 48 * 2 ** 20 } : {}),
    ...(workers > 0 && random.chance(0.2) ? { ownPod: controlPlanes + random.between(0, workers - 1) } : {}),
    ...(random.chance(0.1) ? { capitals: true } : {}),
    ...(random.chance(0.25) ? { gates: drawGates(random) } : {}),
    ...(random.chance(0.5) ? { booted: true } : {}),
    ...(random.chance(0.5) ? { oddities: drawOddities(random, { machines, controlPlanes, kubernetes, talos, to }) } : {}),
  }
  // Who brought Cilium later may have left the word for the other network where it was.
  return setting.cilium && random.chance(0.2)
    ? { ...setting, oddities: { ...setting.oddities, written: { patch: TWO_NETWORKS, workers: false } } }
    : setting
}

export const OWN_POD = { namespace: 'ichor-system', pod: 'ichor' }

/** What has to be there before the world begins. */
export const worldOf = (setting: Setting, { controlPlanes, talos }: Pick<Shape, 'controlPlanes' | 'talos'>) => {
  const { extensions, windows, gates, factory, cilium, storage, platform, quota, ownPod, capitals, oddities } = setting
  const name = (index: number): string => (index < controlPlanes ? `cp-${index + 1}` : `wk-${index - controlPlanes + 1}`)
  return {
    ...(extensions ? { schematic: SCHEMATIC, extensions } : {}),
    ...(cilium ? { cilium } : {}),
    ...(platform === undefined ? {} : { platform }),
    ...(quota ? { etcdQuotaBytes: quota } : {}),
    ...(capitals ? { hostnames: (index: number) => name(index).toUpperCase() } : {}),
    ...(oddities ? oddWorld(oddities, { controlPlanes, talos }) : {}),
    ...(ownPod === undefined ? {} : { self: { ...OWN_POD, node: name(ownPod) } }),
    cluster: {
      ...(windows ? { maintenanceWindows: [...windows] } : {}),
      ...(gates ? { healthGates: [...gates] } : {}),
      ...(factory ? { imageFactory: factory } : {}),
    },
    workloads: [
      ...(storage
        ? [{ name: 'instance-manager', namespace: 'longhorn-system', replicas: 2, graceSeconds: 2, budget: { maxUnavailable: 1 } }]
        : []),
      ...(ownPod === undefined ? [] : [{ name: OWN_POD.pod, namespace: OWN_POD.namespace, bare: true, graceSeconds: 2, on: [ownPod] }]),
    ],
  }
}

/** What is written once the machines are known. */
export const setUp = ({ world }: Story, setting: Setting): void => {
  const { extensions, marks = [], gates, image, bloated, twoBudgets, service, booted, oddities } = setting
  const { store, registry } = world
  registry.addSchematic(OTHER_SCHEMATIC, ['iscsi-tools', 'util-linux-tools'])
  registry.addRepository(MIRROR, extensions ? SCHEMATIC : '')
  registry.addRepository(OTHER_MIRROR, OTHER_SCHEMATIC)
  if (gates) setUpStorage(world)
  for (const machine of booted ? world.machines : []) machine.hasPersistent = false
  if (oddities) setUpOddities(world, oddities)
  const objectOf = (index: number) => {
    const [address] = world.machine(index).addresses
    return store.list(ICHOR.machines).items.find(m => (m['spec'] as { address?: string }).address === address)
  }
  for (const { machine, on, labels, annotations } of marks) {
    const [resource, object] =
      on === 'machine' ? [ICHOR.machines, objectOf(machine)] : [RESOURCE.nodes, store.get(RESOURCE.nodes, '', world.machine(machine).name)]
    if (!object) continue
    change(store, resource, object.metadata.namespace ?? '', object.metadata.name, now => ({
      ...now,
      metadata: {
        ...now.metadata,
        labels: { ...now.metadata.labels, ...labels },
        annotations: { ...now.metadata.annotations, ...annotations },
      },
    }))
  }
  const named = image && objectOf(image.machine)
  if (image && named)
    change(store, ICHOR.machines, named.metadata.namespace ?? '', named.metadata.name, now => ({
      ...now,
      spec: { ...(now['spec'] as object), installImage: image.image },
    }))
  for (const machine of service ? world.machines : []) startService(world.site, machine, 'ext-tool')
  if (bloated !== undefined) {
    const member = world.member(bloated)
    member.dbSize = member.dbSizeInUse * 4
  }
  const budget = twoBudgets ? store.list(RESOURCE.budgets).items[0] : undefined
  if (budget)
    store.create(RESOURCE.budgets, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: `${budget.metadata.name}-too`, namespace: budget.metadata.namespace ?? 'default' },
      spec: budget['spec'],
    })
}
