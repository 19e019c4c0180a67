import { patchConfig } from '../core/config-patch/patch-config.ts'
import type { DeprecatedApi } from '../ports/control-plane.ts'
import type { World, WorldOptions } from '../world/cluster.ts'
import { setConfig, stageConfig, tryConfig } from '../world/configuration.ts'
import type { Machine } from '../world/machine.ts'
import { RESOURCE } from '../world/objects.ts'
import type { Random } from '../world/random.ts'

/** What makes one cluster in a hundred unlike all others: identities, addresses and versions that clash, a Kubernetes with a past. */
export type Oddities = {
  /** One machine that runs another release of Talos than the others. */
  readonly release?: { readonly machine: number; readonly talos: string }
  /** What the boards say that they are. */
  readonly uuids?: 'all zero' | 'the same' | 'none'
  /** Every machine has an address of each family; which comes first. */
  readonly families?: 'IPv4 first' | 'IPv6 first' | 'IPv6 alone'
  /** The API server has a virtual address beside those of the machines. */
  readonly vip?: boolean
  /** What a vendor appends to the versions of Kubernetes. */
  readonly vendorTail?: string
  /** Members of etcd go by other names than their machines. */
  readonly memberNames?: boolean
  /** Machines call themselves by numbers, letters and both. */
  readonly hosts?: boolean | 'alike'
  /** All machines boot by Secure Boot. */
  readonly secureBoot?: boolean
  /** Of an installer that no factory made: extensions without a schematic, or a schematic that is none. */
  readonly own?: 'extensions' | 'schematic'
  /** A machine that calls itself as the first one does. */
  readonly namesake?: number
  /** Patch that somebody applied to the configurations of all machines long ago, or of the control planes alone. */
  readonly written?: { readonly patch: string; readonly workers: boolean }
  /** Objects that Talos once brought, and brings no longer; the second belongs to somebody else by now. */
  readonly leftovers?: boolean
  readonly deprecated?: readonly DeprecatedApi[]
  /** A bootstrap manifest that the API server does not take, or a part of the cluster that somebody edited. */
  readonly manifest?: 'refused' | 'edited' | 'deleted'
  /** End of an image whose process ends at once. */
  readonly crashing?: string
  /** Nobody enforces who may start what. */
  readonly policyGaps?: boolean
  /** etcd has raised NOSPACE, and room by now. */
  readonly alarm?: boolean
  /** A pod that has ended, and still stands on a machine. */
  readonly ended?: boolean
  /** A configuration that waits on one machine, for its next boot or for its end. */
  readonly pending?: { readonly machine: number; readonly as: 'staged' | 'trial' }
  /** A worker whose kubelet tells no API of itself. */
  readonly aloof?: number
  /** The operation is there before anybody has seen a machine. */
  readonly early?: boolean
}

const DIGEST = `sha256:${'e'.repeat(64)}`

type Clash = {
  readonly machines: number
  readonly controlPlanes: number
  readonly kubernetes: string
  readonly talos: string
  readonly to: string
}

/** The version after it. */
const next = (version: string): string => version.replace(/\d+$/, patch => String(Number(patch) + 1))

const written = (random: Random, { kubernetes }: Clash): NonNullable<Oddities['written']> => ({
  workers: random.chance(0.5),
  patch: random.pick([
    // Flags, gates and plugins that a later Kubernetes does not know.
    'machine: {kubelet: {extraArgs: {cloud-config: "", feature-gates: "LegacySidecarContainers=true, LoadBalancerIPMode=false,"}, extraConfig: {featureGates: {CSIMigrationPortworx: true}}}}\n',
    'cluster: {apiServer: {extraArgs: {enable-admission-plugins: "PersistentVolumeLabel,NodeRestriction", feature-gates: [APIListChunking=true]}}}\n',
    // Images that another version can, or cannot, take the place of.
    `machine: {kubelet: {image: "ghcr.io/siderolabs/kubelet:${kubernetes}@${DIGEST}"}}\n`,
    `cluster: {scheduler: {image: "registry.k8s.io/kube-scheduler:${kubernetes}@${DIGEST}"}}\n`,
    'cluster: {proxy: {image: "registry.k8s.io/kube-proxy:latest"}}\n',
    'cluster: {proxy: {image: "registry.k8s.io/kube-proxy"}}\n',
    'cluster: {proxy: {disabled: true}}\n',
    `cluster: {scheduler: {image: "registry.k8s.io/kube-scheduler:${kubernetes}-rc.1"}}\n`,
    // Nothing that matters, in another way of writing.
    '---\nmachine: {nodeLabels: {rack: "7"}}\n',
    'apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: own\nenvironment: [A=1]\n',
  ]),
})

/** One or two of them. */
export const drawOddities = (random: Random, clash: Clash): Oddities => {
  const { machines, controlPlanes, kubernetes, talos, to } = clash
  const anyOf = (): Oddities =>
    random.pick<() => Oddities>([
      () => ({ release: { machine: random.between(0, machines - 1), talos: random.pick([to, talos.replace(/\d+$/, '2'), to]) } }),
      () => ({ uuids: random.pick(['all zero', 'the same', 'none']) }),
      () => ({ families: random.pick(['IPv4 first', 'IPv6 first', 'IPv6 alone']) }),
      () => ({ vip: true }),
      () => ({ vendorTail: random.pick(['+acme.2', '-acme.2', '.acme']) }),
      () => ({ memberNames: true }),
      () => ({ hosts: random.pick([true, 'alike'] as const) }),
      () => ({ secureBoot: true }),
      () => ({ own: random.pick(['extensions', 'schematic']) }),
      () => (machines > 1 ? { namesake: random.between(1, machines - 1) } : {}),
      () => ({ written: written(random, clash) }),
      () => ({ written: written(random, clash) }),
      () => ({ leftovers: true }),
      () => ({ leftovers: true, policyGaps: random.chance(0.2) }),
      () => ({
        deprecated: [
          { resource: 'flowcontrol.apiserver.k8s.io/v1beta3 flowschemas', removedIn: '1.32' },
          { resource: 'example.k8s.io/v1 things', removedIn: random.pick(['', '1.99', '2.0', '1', kubernetes.slice(1, 5)]) },
        ],
      }),
      () => ({ manifest: random.pick(['refused', 'edited', 'deleted']) }),
      () => ({
        crashing: `${random.pick(['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet'])}:${next(kubernetes)}`,
      }),
      () => ({ policyGaps: true }),
      () => ({ early: true }),
      () => (machines > controlPlanes ? { aloof: random.between(controlPlanes, machines - 1) } : {}),
      () => ({ pending: { machine: random.between(0, machines - 1), as: random.pick(['staged', 'trial']) } }),
      () => ({ ended: true }),
      () => ({ alarm: true }),
    ])()
  return { ...anyOf(), ...(random.chance(0.4) ? anyOf() : {}), ...(controlPlanes > 1 && random.chance(0.1) ? { vip: true } : {}) }
}

/** So long a trial lasts that somebody began a moment ago. */
const TRIAL_MS = 600_000

/** Host names of numbers, letters and both; and such as differ in the way only in which their numbers are written, or where they end. */
const APART = ['m10', 'm2', 'm', '2', '10', 'm-a', 'm-b', 'M2']
const ALIKE = ['n2', 'n02', 'n002', 'n2b', '2n', 'n2a', 'n', 'n02-1']

const ZERO = '00000000-0000-0000-0000-000000000000'

/** What the world begins with. */
export const oddWorld = (
  { release, uuids, families, vip, vendorTail, memberNames, namesake, hosts, own }: Oddities,
  shape: { readonly talos: string; readonly controlPlanes: number },
): Partial<WorldOptions> => {
  const v4 = (index: number): string => `10.5.0.${index + 2}`
  const v6 = (index: number): string => `fd00::${index + 2}`
  const nameOf = (index: number): string => (index < shape.controlPlanes ? `cp-${index + 1}` : `wk-${index - shape.controlPlanes + 1}`)
  return {
    ...(release ? { talos: (index: number) => (index === release.machine ? release.talos : shape.talos) } : {}),
    ...(uuids ? { uuids: () => ({ 'all zero': ZERO, 'the same': `1${ZERO.slice(1)}`, none: '' })[uuids] } : {}),
    ...(families
      ? {
          addresses: (index: number) =>
            ({ 'IPv4 first': [v4(index), v6(index)], 'IPv6 first': [v6(index), v4(index)], 'IPv6 alone': [v6(index)] })[families],
        }
      : {}),
    ...(vip ? { vip: '10.5.0.250' } : {}),
    ...(vendorTail ? { vendorTail: () => vendorTail } : {}),
    ...(memberNames ? { memberNames: (index: number) => `etcd-${index}` } : {}),
    ...(hosts ? { hostnames: (index: number) => (hosts === 'alike' ? ALIKE : APART)[index] ?? nameOf(index) } : {}),
    ...(own === 'extensions' ? { extensions: ['own'] } : own === 'schematic' ? { schematic: 'own-build' } : {}),
    ...(namesake === undefined ? {} : { hostnames: (index: number) => nameOf(index === namesake ? 0 : index) }),
  }
}

const ALOOF = 'machine: {kubelet: {skipNodeRegistration: true}}\n'
const INVENTORY = { namespace: 'kube-system', name: 'talos-bootstrap-manifests-inventory' }

/** Of what there are many, five are named; and all of them fit into no single note. */
const OLD = ['once', 'gone', ...Array.from({ length: 40 }, (_, at) => `old-${at + 1}`)]

/** An object that Talos brought once, and brings no longer; known since there is an inventory. */
export const leaveBehind = ({ store }: World, name: string, annotations: Readonly<Record<string, string>> = {}): void => {
  const inventory = store.get(RESOURCE.configMaps, INVENTORY.namespace, INVENTORY.name)
  if (!inventory) return
  store.create(RESOURCE.configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'kube-system', annotations } })
  const data = { ...(inventory['data'] as object), [`kube-system_${name}__ConfigMap`]: '' }
  store.update(RESOURCE.configMaps, { ...inventory, data })
}

/** Of a network that another one took the place of since. */
export const TWO_NETWORKS = 'cluster: {network: {cni: {name: flannel}}}\n'

/** What somebody did to it since. */
export const setUpOddities = (
  world: World,
  { written: wrote, leftovers, deprecated, manifest, crashing, policyGaps, ended, alarm, secureBoot, pending, aloof }: Oddities,
): void => {
  const { site, store, faults } = world
  const patch = (machine: Machine, text: string): void => {
    const patched = patchConfig(machine.config, [{ name: 'long ago', text }], 'v1.13.0')
    if (!patched.ok) throw new Error(`nobody could write ${text}: ${patched.faults[0]?.problem}`)
    // Some begin with a line that parts it from nothing.
    setConfig(site, machine, `${wrote?.patch.startsWith('---') ? '---\n' : ''}${patched.text}`)
  }
  if (wrote) for (const machine of world.machines) if (wrote.workers || machine.role === 'controlplane') patch(machine, wrote.patch)
  if (aloof !== undefined) {
    patch(world.machine(aloof), ALOOF)
    world.userDeleteNode(world.machine(aloof).name)
  }
  if (leftovers) {
    for (const name of OLD) leaveBehind(world, name)
    leaveBehind(world, 'of-another', { 'config.k8s.io/owning-inventory': 'another' })
    store.remove(RESOURCE.configMaps, INVENTORY.namespace, 'gone')
  }
  if (pending) {
    const machine = world.machine(pending.machine)
    const other = machine.config.replace('wipe: false', 'wipe: true')
    if (pending.as === 'staged') stageConfig(site, machine, other)
    else tryConfig(site, machine, other, TRIAL_MS)
  }
  for (const { disk } of secureBoot ? world.machines : []) {
    const slot = disk.slots[disk.booted]
    if (slot) disk.slots[disk.booted] = { ...slot, secureBoot: true }
  }
  if (deprecated) faults.deprecatedApis = deprecated
  if (policyGaps) faults.policyGaps = ['The policy ichor-start is not there']
  if (crashing !== undefined) faults.crashing.set(crashing, 'Error: unknown flag: --gone')
  const [dns] = store.list(RESOURCE.configMaps, 'kube-system').items.filter(m => m.metadata.name !== INVENTORY.name)
  if (manifest === 'refused' && dns) faults.refusedManifests.set(`ConfigMap kube-system/${dns.metadata.name}`, 'data: field is immutable')
  if (manifest === 'edited' && dns) store.update(RESOURCE.configMaps, { ...dns, data: { edited: 'by hand' } })
  if (manifest === 'deleted' && dns) store.remove(RESOURCE.configMaps, 'kube-system', dns.metadata.name)
  if (alarm) {
    world.etcd.raiseAlarm(world.member(0).id, 'NOSPACE')
    // Compacted since: what is free is in the files still.
    for (const member of world.etcd.members()) member.dbSize = member.dbSizeInUse * 4
  }
  if (ended)
    for (const [index, phase] of (['Succeeded', 'Failed'] as const).entries())
      store.create(RESOURCE.pods, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `ended-${index}`, namespace: 'default' },
        spec: { nodeName: world.machine(world.machines.length - 1).name, containers: [] },
        status: { phase },
      })
}
