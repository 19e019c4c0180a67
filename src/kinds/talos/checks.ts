import type { TalosOperation } from '../../api/talos-operation.ts'
import { etcdStep } from '../../core/compatibility/etcd-step.ts'
import type { Finding } from '../../core/compatibility/table.ts'
import { compatibilityTable, talosKernel, talosMinor, talosRelease } from '../../core/compatibility/table.ts'
import { told } from '../../core/compatibility/told.ts'
import { talosStep, verdict } from '../../core/compatibility/verdict.ts'
import { wayOut } from '../../core/compatibility/way-out.ts'
import { carriesSchematic } from '../../core/install-image.ts'
import type { Checked, Refusal } from '../../core/kind.ts'
import { factoryHost } from '../../core/talos-image.ts'
import { etcdViews } from '../../core/machine-steps/etcd.ts'
import { controlPlanesOf, isOnlySchedulable, isSelected } from '../../core/machine-steps/target.ts'
import { bootsPending } from '../../core/pending-configuration.ts'
import type { Known } from '../../core/preflight.ts'
import {
  besideUnwell,
  identity,
  knownOf,
  nodesRefusal,
  noneSelected,
  notReady,
  once,
  overridable,
  refuse,
  unanswered,
  unregistered,
} from '../../core/preflight.ts'
import { parseVersion, versionOrder, versionSpan } from '../../core/versions.ts'
import type { Need, World } from '../../core/world.ts'
import { machineFacts, nodeFacts } from '../../core/world.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import { isRefused } from './path.ts'
import { chooseImage, gate, refusesOneOfTwo, specOf } from './view.ts'

export const checkNeeds = (operation: TalosOperation, world: World): readonly Need[] => [
  ...world.machines.map((m): Need => ({ what: 'machine', name: m.metadata.name })),
  ...world.machines.filter(m => isSelected(operation, m)).map((m): Need => ({ what: 'configuration', name: m.metadata.name })),
  { what: 'nodes' },
  { what: 'etcd' },
  { what: 'addons' },
  { what: 'kubernetes' },
]

/** Everything that speaks against the upgrade, at once. */
export const checks = (operation: TalosOperation, world: World): Checked => {
  const spec = specOf(operation)
  // Without machines all that follows would only say the same again in other words.
  if (world.machines.length === 0) return { found: {}, refusals: registration(operation, world), notes: [] }

  const known = knownOf(world, world.machines)
  const mine = known.filter(k => isSelected(operation, k.machine))
  const nodes = nodeFacts(world)
  const refusals = [
    ...registration(operation, world),
    ...unanswered(world, world.machines),
    ...(nodes.ok ? identity(world, known, nodes.value) : [nodesRefusal(nodes.fault)]),
    ...containers(mine),
    ...direction(mine, spec.version),
    ...images(operation, world, mine),
    ...health(mine),
    ...besideUnwell(
      world,
      mine.map(k => k.machine),
    ),
    ...quorum(operation, world, mine),
    ...oneOfTwo(operation, world, mine),
    ...combinations(operation, world, mine, nodes.ok ? nodes.value : []),
    ...snapshot(spec.snapshot, world),
  ]
  return {
    found: found(world, known, nodes.ok ? nodes.value : []),
    refusals: once(refusals),
    notes: notes(operation, world, mine, nodes.ok ? nodes.value : []),
  }
}

const registration = (operation: TalosOperation, world: World): readonly Refusal[] => {
  const refusals = unregistered(world)
  return refusals.length > 0 ? refusals : noneSelected(operation, world)
}

/** Newer than what runs. The same version with another schematic is an upgrade too; nothing to do at all is no refusal. */
const direction = (mine: readonly Known[], version: string): readonly Refusal[] => {
  const unknown = mine.filter(k => versionOrder(k.facts.version, version) === undefined)
  const newer = mine.filter(k => versionOrder(k.facts.version, version) === 1)
  const [first] = newer
  return [
    ...unknown.map(k =>
      overridable(
        'VersionUnknown',
        `${k.name} runs ${k.facts.version}, which is no version that can be compared.`,
        k.machine.metadata.name,
      ),
    ),
    ...(first
      ? [
          overridable(
            'DowngradeRefused',
            `${version} is older than what runs: ${newer.map(k => `${k.name} ${k.facts.version}`).join(', ')}. Choose a version that is not older than any machine's.`,
            newer.length === 1 ? first.machine.metadata.name : undefined,
          ),
        ]
      : []),
  ]
}

/** Talos in a container has no disk: it answers every upgrade with a refusal. */
const containers = (mine: readonly Known[]): readonly Refusal[] => {
  const [first, ...others] = mine.filter(k => k.facts.platform === 'container')
  if (!first) return []
  const names = [first, ...others].map(k => k.name).join(', ')
  return [
    refuse(
      'ContainerMode',
      `Talos runs in container mode on ${names}, where it upgrades nothing: start other images.`,
      first.machine.metadata.name,
    ),
  ]
}

/** Machines of which the same is to be said are named together. */
const images = (operation: TalosOperation, world: World, mine: readonly Known[]): readonly Refusal[] => {
  const groups = new Map<string, { readonly refusal: Refusal; readonly others: string[] }>()
  for (const k of mine) {
    const choice = chooseImage(operation, world, k.machine, k.facts)
    if (choice.ok) continue
    const key = `${choice.rule} ${choice.message.replaceAll(k.name, '')}`
    const group = groups.get(key)
    if (!group) groups.set(key, { refusal: refuse(choice.rule, choice.message, k.machine.metadata.name), others: [] })
    // What names no machine is about none.
    else if (choice.message.includes(k.name)) group.others.push(k.name)
  }
  return [...groups.values()].map(({ refusal, others }) =>
    others.length === 0 ? refusal : refuse(refusal.rule, `${refusal.message} The same holds for ${others.join(', ')}.`),
  )
}

/** A worker that is not ready may be cured by the upgrade; a control plane has to be well before it is taken away. */
const health = (mine: readonly Known[]): readonly Refusal[] =>
  mine.filter(k => k.facts.stage !== 'running' || (k.machine.spec.role === 'controlplane' && !k.facts.ready)).map(notReady)

const quorum = (operation: TalosOperation, world: World, mine: readonly Known[]): readonly Refusal[] => {
  if (unansweredControlPlane(world)) return []
  // Upgrading workers only asks nothing of quorum, but an etcd in trouble is no time to drain nodes either.
  const targets = mine.filter(k => k.machine.spec.role === 'controlplane')
  const verdicts =
    targets.length > 0 ? targets.map(k => gate(operation, world, 'restart', k.machine.metadata.name)) : [gate(operation, world, 'settled')]
  const worst = verdicts.find(v => !v.pass && v.kind !== 'hold') ?? verdicts.find(v => !v.pass)
  return worst && !worst.pass
    ? [refuse(worst.reason, worst.remedy ? `${worst.message} ${worst.remedy}` : worst.message, worst.machine)]
    : []
}

/** Below 1.13 Talos has the last word: its own check of etcd, which nobody can acknowledge away, wants three members or one. */
const oneOfTwo = (operation: TalosOperation, world: World, mine: readonly Known[]): readonly Refusal[] => {
  const { version } = specOf(operation)
  if (controlPlanesOf(world).length !== 2) return []
  return mine
    .filter(k => k.machine.spec.role === 'controlplane' && k.facts.version !== version && refusesOneOfTwo(k.facts.version, version))
    .map(k =>
      refuse(
        'TwoControlPlanes',
        `${k.name} runs ${k.facts.version}, on which Talos itself refuses to upgrade one of two etcd members. Add a third control plane first, or upgrade the two by hand with \`talosctl upgrade --force\`.`,
        k.machine.metadata.name,
      ),
    )
}

const unansweredControlPlane = (world: World): boolean => controlPlanesOf(world).some(m => !machineFacts(world, m.metadata.name).ok)

/** The path, the combination with Kubernetes and Cilium, and what happens to etcd. */
const combinations = (operation: TalosOperation, world: World, mine: readonly Known[], nodes: readonly NodeFacts[]): readonly Refusal[] => {
  const { version } = specOf(operation)
  const from = [...new Set(mine.map(k => k.facts.version))].filter(v => v !== version)
  if (from.length > 0 && !isInTable(version)) {
    const known = compatibilityTable.talosMinors.map(m => m.minor)
    return [
      overridable(
        'TalosUnknown',
        `Talos ${version} is not in the compatibility table, which knows ${known[0]} to ${known.at(-1)}: whether it goes together with what runs is not known. Choose a release of these, or a newer Ichor.`,
      ),
    ]
  }
  const kubernetes = kubeletVersions(nodes)
  const { addons } = world.facts
  const cilium = addons?.ok ? addons.value.cilium : undefined
  const kernel = talosKernel(version)
  const state = kubernetes.flatMap(k =>
    verdict({ talos: version, kubernetes: k, kernel, ...(cilium ? { cilium } : {}) }).map(f =>
      f.verdict === 'known-bad' && f.pair === 'Talos × Kubernetes'
        ? { ...f, reason: `${f.reason}${whereRuns(k, nodes)}${wayOut(version, k)}` }
        : f,
    ),
  )
  const etcd = mine.some(k => k.machine.spec.role === 'controlplane')
    ? from.flatMap(v => etcdStep({ fromTalos: v, toTalos: version, runningEtcd: runningEtcd(world) }).findings)
    : []
  const findings = [...from.flatMap(v => talosStep(v, version)), ...state, ...etcd]
  return findings.filter(isRefused).map(f => overridable(ruleOf(f), told(f)))
}

const isInTable = (version: string): boolean => {
  const parsed = parseVersion(version)
  return parsed !== undefined && talosMinor(parsed) !== undefined
}

/** The Nodes with that kubelet, where not all have it: the lowest, and the highest, of them decide for all. */
const whereRuns = (kubernetes: string, nodes: readonly NodeFacts[]): string => {
  const having = nodes.filter(n => n.kubeletVersion === kubernetes)
  return having.length === nodes.length ? '' : ` It runs on ${having.map(n => n.name).join(', ')}.`
}

/** A Node that no kubelet has reported to says none. */
const kubeletVersions = (nodes: readonly NodeFacts[]): readonly string[] =>
  [...new Set(nodes.map(n => n.kubeletVersion))].filter(v => v !== '')

const RULES: Readonly<Record<Finding['pair'], string>> = {
  'Talos step': 'TalosSkew',
  'Talos × Kubernetes': 'KubernetesSkew',
  'Cilium × Kubernetes': 'CiliumKubernetes',
  'Cilium × kernel': 'CiliumKernel',
  'Cilium × Talos': 'CiliumTalos',
  'etcd step': 'EtcdStep',
}
const ruleOf = (finding: Finding): string => RULES[finding.pair]
const runningEtcd = (world: World): readonly string[] =>
  etcdViews(world).flatMap(v =>
    v.view.ok && v.view.value.status.storageVersion !== ''
      ? [v.view.value.status.protocolVersion].filter(p => p.split('.').length > 2)
      : [],
  )

const snapshot = (wish: 'auto' | 'required' | 'skip', world: World): readonly Refusal[] =>
  wish === 'required' && controlPlanesOf(world).length > 0
    ? [
        refuse(
          'SnapshotStorage',
          'spec.talos.snapshot is required, but no snapshot storage is configured for this cluster. Take a snapshot with `talosctl etcd snapshot` and set it to skip, or to auto.',
        ),
      ]
    : []

const found = (world: World, known: readonly Known[], nodes: readonly NodeFacts[]): Checked['found'] => {
  const talos = versionSpan(known.map(k => k.facts.version))
  const kubernetes = versionSpan(nodes.map(n => n.kubeletVersion))
  const etcd = versionSpan(etcdViews(world).flatMap(v => (v.view.ok ? [v.view.value.status.protocolVersion] : [])))
  const { addons } = world.facts
  const cilium = addons?.ok ? addons.value.cilium?.version : undefined
  return { ...(talos ? { talos } : {}), ...(kubernetes ? { kubernetes } : {}), ...(etcd ? { etcd } : {}), ...(cilium ? { cilium } : {}) }
}

const notes = (operation: TalosOperation, world: World, mine: readonly Known[], nodes: readonly NodeFacts[]): readonly string[] => {
  const spec = specOf(operation)
  const list: string[] = []
  const controlPlanes = mine.filter(k => k.machine.spec.role === 'controlplane')
  const pending = mine.filter(k => k.facts.version !== spec.version || changesSchematic(operation, world, k))
  if (pending.length === 0 && mine.length > 0) list.push(`All ${mine.length} machines already run ${spec.version}; there is nothing to do.`)
  list.push(...bootsPending(world, pending))
  if (spec.snapshot === 'auto' && controlPlanes.length > 0)
    list.push('No snapshot storage is configured for this cluster, so no etcd snapshot is taken first.')
  if (pending.length > 0 && isInTable(spec.version) && talosRelease(spec.version) === undefined)
    list.push(
      `The compatibility table of ${compatibilityTable.asOf} does not list ${spec.version}; it is judged as the other releases of its minor.`,
    )
  const { imageFactory = '' } = world.cluster.spec
  if (factoryHost(imageFactory) !== imageFactory)
    list.push(
      `spec.imageFactory of the TalosCluster is ${JSON.stringify(imageFactory)}; in references of images it is written ${factoryHost(imageFactory)}.`,
    )
  const only = nodes.length === 1 ? nodes[0] : undefined
  if (only && isOnlySchedulable(nodes, only))
    list.push('Single node: it is neither cordoned nor drained, and the Kubernetes API is away while it reboots.')
  for (const f of combinationsOf(operation, world, nodes)) if (f.verdict === 'warning') list.push(told(f))
  const etcd = controlPlanes[0]
    ? etcdStep({ fromTalos: controlPlanes[0].facts.version, toTalos: spec.version, runningEtcd: runningEtcd(world) })
    : undefined
  if (etcd?.crossesMinor)
    list.push(
      `etcd goes to ${etcd.targetEtcd}: a control plane can be rolled back to its other slot only until the last control plane is upgraded.`,
    )
  return list
}

const combinationsOf = (operation: TalosOperation, world: World, nodes: readonly NodeFacts[]): readonly Finding[] => {
  const { version } = specOf(operation)
  const { addons } = world.facts
  const cilium = addons?.ok ? addons.value.cilium : undefined
  return kubeletVersions(nodes).flatMap(k =>
    verdict({ talos: version, kubernetes: k, kernel: talosKernel(version), ...(cilium ? { cilium } : {}) }),
  )
}

const changesSchematic = (operation: TalosOperation, world: World, k: Known): boolean => {
  const choice = chooseImage(operation, world, k.machine, k.facts)
  return choice.ok && !carriesSchematic(choice, k.facts.schematic)
}
