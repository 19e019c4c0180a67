import type { TalosOperation } from '../../api/talos-operation.ts'
import { imageTitle } from '../../core/component-image.ts'
import type { Checked, Refusal } from '../../core/kind.ts'
import { apiOutage } from '../../core/machine-steps/api-outage.ts'
import { etcdViews, gate, gateText } from '../../core/machine-steps/etcd.ts'
import { heldBecause, inOrder } from '../../core/machine-steps/order.ts'
import { waitingText } from '../../core/machine-steps/static-pods.ts'
import { controlPlanesOf } from '../../core/machine-steps/target.ts'
import type { Known } from '../../core/preflight.ts'
import { identity, knownOf, nodesRefusal, notReady, once, overridable, refuse, unanswered, unregistered } from '../../core/preflight.ts'
import { compareVersions, minorSteps, parseVersion, versionAsked, versionSpan } from '../../core/versions.ts'
import type { Version } from '../../core/versions.ts'
import type { Need, World } from '../../core/world.ts'
import { componentFacts, controlPlaneFacts, manifestFacts, nodeFacts, nodeOf, machineTitle } from '../../core/world.ts'
import type { ManifestChange } from '../../ports/control-plane.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import { leftoversOf, manifestsNeed, pruneNotes, refusedText, some } from './manifests.ts'
import { pending } from './pending.ts'
import type { Running } from './version-rules.ts'
import { combinations, deprecated, images, kubeletsOf, options, path, runningOf } from './version-rules.ts'
import { STATIC_COMPONENTS, specOf } from './view.ts'

/** What is asked of one control plane, which answers for all; nothing where there is none. */
const ofFirst = <T>(world: World, read: (world: World, name: string) => T): readonly T[] =>
  controlPlanesOf(world)
    .slice(0, 1)
    .map(({ metadata }) => read(world, metadata.name))

export const checkNeeds = (operation: TalosOperation, world: World): readonly Need[] => [
  ...world.machines.flatMap(({ metadata: { name } }): readonly Need[] => [
    { what: 'machine', name },
    { what: 'components', name },
    { what: 'configuration', name },
  ]),
  { what: 'nodes' },
  { what: 'etcd' },
  { what: 'addons' },
  { what: 'controlPlane' },
  { what: 'deprecatedApis' },
  ...manifestsNeed(operation, world),
]

/** Everything that speaks against the upgrade, at once. */
export const checks = (operation: TalosOperation, world: World): Checked => {
  const { version } = specOf(operation)
  const target = versionAsked(version)
  const missing = unregistered(world)
  if (missing.length > 0) return { found: {}, refusals: missing, notes: [] }

  const known = knownOf(world, world.machines)
  const nodes = nodeFacts(world)
  const here = nodes.ok ? nodes.value : []
  const running = runningOf(world)
  const kubelets = kubeletsOf(here)
  const span = versionSpan([...running, ...kubelets].map(r => r.version))
  const judged = combinations(operation, world, known, span?.lowest)
  const named = images(world, known, version)
  const old = deprecated(world, target)
  const given = options(world, known, target)
  const refusals = [
    ...selection(operation),
    ...unanswered(world, world.machines),
    ...(nodes.ok ? identity(world, known, nodes.value) : [nodesRefusal(nodes.fault)]),
    ...holds(world),
    ...path(running, kubelets, target),
    ...judged.refusals,
    ...named.refusals,
    ...old.refusals,
    ...given.refusals,
    ...pending(operation, world, known),
    ...secondNetwork(world),
    ...health(world, known, here),
    ...etcd(operation, world),
    ...apiOutage(operation, world),
  ]
  return {
    found: found(world, known, span),
    refusals: once(refusals),
    notes: [...notes(operation, world, running, kubelets, target), ...judged.notes, ...named.notes, ...old.notes, ...given.notes],
  }
}

/** Half a control plane is no version of Kubernetes. */
const selection = ({ spec }: TalosOperation): readonly Refusal[] =>
  spec.machineSelector === undefined
    ? []
    : [
        refuse(
          'WholeCluster',
          'spec.machineSelector is set, but Kubernetes is upgraded as a whole. To leave a worker at its kubelet, hold it with `ichor machine hold`.',
        ),
      ]

const holds = (world: World): readonly Refusal[] =>
  controlPlanesOf(world).flatMap(machine => {
    const held = heldBecause(world, machine)
    const name = machineTitle(machine)
    return held === undefined
      ? []
      : [refuse('HeldControlPlane', `${name} is ${held}. A control plane cannot be left out; release it first.`, machine.metadata.name)]
  })

/** All that is to be upgraded has to run: a component that does not come up is then known to be the new one's fault. */
const health = (world: World, known: readonly Known[], nodes: readonly NodeFacts[]): readonly Refusal[] => {
  const controlPlane = controlPlaneFacts(world)
  const machines = known
    .filter(k => k.facts.stage !== 'running' || (k.machine.spec.role === 'controlplane' && !k.facts.ready))
    .map(notReady)
  const untold = known.flatMap(k => {
    const components = componentFacts(world, k.machine.metadata.name)
    return components.ok
      ? []
      : [refuse('MachineNotReady', `${k.name} does not tell its components: ${components.fault.message}.`, k.machine.metadata.name)]
  })
  // Whose a pod is can be told by its Node only.
  if (nodes.length === 0) return [...machines, ...untold]
  if (!controlPlane.ok) return [...machines, ...untold, nodesRefusal(controlPlane.fault)]
  const pods = known
    .filter(k => k.machine.spec.role === 'controlplane')
    .flatMap(k => {
      const components = componentFacts(world, k.machine.metadata.name)
      const node = nodeOf(nodes, k.facts.nodename)?.name
      const told = components.ok ? components.value.staticPods : {}
      return STATIC_COMPONENTS.filter(name => told[name]).flatMap(name => {
        const pod = controlPlane.value.pods.find(p => p.component === name && p.node === node)
        if (pod?.ready) return []
        const waiting = pod?.waiting ?? told[name]?.told?.waiting
        const log = `\`talosctl -n ${k.facts.address} logs -k kube-system/${name}-${node ?? 'NODE'}:${name}\` shows what it wrote`
        const where = waiting && NEVER_RAN.test(waiting.reason) ? '' : `: ${log}`
        return [
          refuse(
            'StaticPodNotReady',
            `${name} on ${k.name} is not Ready${waitingText(waiting)}. Mend it first${where}.`,
            k.machine.metadata.name,
          ),
        ]
      })
    })
  return [...machines, ...untold, ...pods]
}

/** There is no process that could have written anything. */
const NEVER_RAN = /^(ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|CreateContainerConfigError)$/

const etcd = (operation: TalosOperation, world: World): readonly Refusal[] => {
  const verdict = gate(operation, world, { purpose: 'settled', etcdStepAllowed: true })
  return verdict.pass ? [] : [refuse(verdict.reason, gateText(verdict), verdict.machine)]
}

const FLANNEL = 'DaemonSet kube-system/kube-flannel'

/** Applying the bootstrap manifests would bring back a network that another one took the place of: pods would get addresses of the one or the other. */
const secondNetwork = (world: World): readonly Refusal[] => {
  const [changes] = ofFirst(world, manifestFacts)
  const { addons } = world.facts
  const runsCilium = addons?.ok === true && addons.value.cilium !== undefined
  const isBrought = changes?.ok === true && changes.value.some(c => c.name === FLANNEL && c.would === 'create')
  return runsCilium && isBrought
    ? [
        overridable(
          'SecondNetwork',
          `Cilium runs, and the bootstrap manifests would bring ${FLANNEL} back beside it. Set cluster.network.cni.name to none in the configuration of all control planes first.`,
        ),
      ]
    : []
}

const found = (world: World, known: readonly Known[], kubernetes: Checked['found']['kubernetes']): Checked['found'] => {
  const talos = versionSpan(known.map(k => k.facts.version))
  const members = versionSpan(etcdViews(world).flatMap(v => (v.view.ok ? [v.view.value.status.protocolVersion] : [])))
  const { addons } = world.facts
  const cilium = addons?.ok ? addons.value.cilium?.version : undefined
  return {
    ...(talos ? { talos } : {}),
    ...(kubernetes ? { kubernetes } : {}),
    ...(members ? { etcd: members } : {}),
    ...(cilium ? { cilium } : {}),
  }
}

const notes = (
  operation: TalosOperation,
  world: World,
  running: readonly Running[],
  kubelets: readonly Running[],
  target: Version,
): readonly string[] => {
  const list: string[] = []
  const all = [...running, ...kubelets].map(r => parseVersion(r.version))
  const changesMinor = all.some(v => v && (minorSteps(v, target) ?? 0) > 0)
  if (changesMinor)
    list.push(
      'No snapshot storage is configured for this cluster, so no etcd snapshot is taken first; `talosctl etcd snapshot` takes one. A minor cannot be taken back.',
    )
  const held = inOrder(world, world.machines).filter(m => m.spec.role === 'worker' && heldBecause(world, m) !== undefined)
  if (held.length > 0) list.push(`Held, so their kubelets stay as they are: ${held.map(machineTitle).join(', ')}.`)
  const isThere = all.every(v => v && compareVersions(v, target) === 0)
  return [...list, ...proxyNotes(world), ...manifestNotes(operation, world, isThere)]
}

const proxyNotes = (world: World): readonly string[] => {
  const [components] = ofFirst(world, componentFacts)
  const known = controlPlaneFacts(world)
  if (!components?.ok || components.value.kubeProxy !== undefined) return []
  const there = known.ok ? known.value.kubeProxy : undefined
  return there
    ? [`kube-proxy is switched off in the configuration, and yet its DaemonSet is there (${imageTitle(there.image)}). It is left as it is.`]
    : ['kube-proxy is switched off, and stays so.']
}

/** `isThere`: everything runs the version already. */
const manifestNotes = (operation: TalosOperation, world: World, isThere: boolean): readonly string[] =>
  ofFirst(world, manifestFacts).flatMap(changes =>
    changes.ok
      ? notesOf(operation, world, changes.value, isThere)
      : [`What applying the bootstrap manifests would change is not known: ${changes.fault.message}.`],
  )

const notesOf = (operation: TalosOperation, world: World, changes: readonly ManifestChange[], isThere: boolean): readonly string[] => {
  const told = (would: ManifestChange['would']): readonly string[] =>
    changes.filter(c => c.would === would).map(c => (c.detail === '' ? c.name : `${c.name} (${c.detail})`))
  const [created, changed, kept] = [told('create'), told('change'), told('kept')]
  const manifests = changes.length - kept.length - told('leftover').length
  const refused = refusedText(changes)
  return [
    ...(isThere && created.length + changed.length === 0 && refused === ''
      ? []
      : [`At the end Talos' ${manifests} bootstrap manifests are applied.`]),
    ...(created.length > 0 ? [`Apart from new images that creates ${some(created)}.`] : []),
    ...(changed.length > 0 ? [`Apart from new images that sets back ${some(changed)}.`] : []),
    ...(refused === ''
      ? []
      : [`The API server does not take ${refused}: the upgrade goes on, and stops at its very end with ManifestSyncFailed.`]),
    ...leftoverNotes(operation, world, told('leftover')),
    ...(kept.length > 0 ? [`Talos once brought these, too, but they stay in any case: ${some(kept)}.`] : []),
  ]
}

const leftoverNotes = (operation: TalosOperation, world: World, left: readonly string[]): readonly string[] => {
  if (!specOf(operation).prune)
    return left.length === 0
      ? []
      : [`Talos once brought these and no longer does; they stay, unless \`--prune\` asks to delete them: ${some(left)}.`]
  const pruned = leftoversOf(world)
  if (!pruned.ok) return [`What would be deleted is not known: ${pruned.fault.message}.`]
  if (pruned.value.length > 0) return pruneNotes(pruned.value)
  return ['Nothing is to be deleted: Talos has no inventory before 1.13, or all that is in it is still among the manifests.']
}
