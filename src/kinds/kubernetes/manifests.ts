import type { TalosOperation } from '../../api/talos-operation.ts'
import { imageVersion, imageTitle } from '../../core/component-image.ts'
import type { Answer, Opening, PlannedMachine, Stage, Step } from '../../core/kind.ts'
import { YES, no, unknown } from '../../core/kind.ts'
import { asAnswer, gate } from '../../core/machine-steps/etcd.ts'
import { denied } from '../../core/machine-steps/guards.ts'
import { heldBecause, inOrder } from '../../core/machine-steps/order.ts'
import { addressOf, candidateOf, controlPlanesOf } from '../../core/machine-steps/target.ts'
import { versionText } from '../../core/versions.ts'
import type { Need, View, World } from '../../core/world.ts'
import { controlPlaneFacts, displayName, manifestFacts, nodeFacts, machineTitle } from '../../core/world.ts'
import type { StaticComponent } from '../../ports/components.ts'
import type { ManifestChange, RolloutFacts } from '../../ports/control-plane.ts'
import type { Result } from '../../ports/fault.ts'
import { STATIC_COMPONENTS, componentsNeed, componentsOf, controlPlaneToOpen, isThere, specOf } from './view.ts'

/** What Talos brings into the cluster is applied anew, kube-proxy with it; then everything is looked at once more. */

const APPLY_MS = 10 * 60_000
const ROLLOUT_MS = 30 * 60_000
const WHOLE_MS = 15 * 60_000

/** What one control plane does not know as a manifest, another may: nothing is deleted before all of them were asked. */
export const manifestsNeed = (operation: TalosOperation, world: World): readonly Need[] =>
  controlPlanesOf(world)
    .slice(0, specOf(operation).prune ? undefined : 1)
    .map(({ metadata: { name } }) => ({ what: 'manifests', name }))

const MOST = 5
export const some = (texts: readonly string[]): string =>
  texts.length > MOST ? `${texts.slice(0, MOST).join(', ')} and ${texts.length - MOST} more` : texts.join(', ')

export const refusedText = (changes: readonly ManifestChange[]): string =>
  changes
    .filter(c => c.would === 'refused')
    .map(({ name, detail }) => `${name} (${detail})`)
    .join('; ')

/** What no control plane has as a manifest any more, of what Talos once brought; a fault where one of them does not tell. */
export const leftoversOf = (world: World): Result<readonly string[]> => {
  const known = controlPlanesOf(world).map(({ metadata: { name } }) => manifestFacts(world, name))
  const fault = known.find(one => !one.ok)
  if (fault) return fault
  const [first = [], ...others] = known.map(one => (one.ok ? one.value.filter(c => c.would === 'leftover').map(c => c.name) : []))
  return { ok: true, value: first.filter(name => others.every(other => other.includes(name))) }
}

/** The same, where the operation is to delete it. */
const prunedBy = ({ operation, world }: View): Result<readonly string[]> =>
  specOf(operation).prune ? leftoversOf(world) : { ok: true, value: [] }

const PRUNED = 'At the end these are deleted, which Talos once brought and no longer does: '
/** A note may have 1024 characters, and what is read back out of it has to be all of it. */
const LONGEST_NOTE = 1000
/** There is room for 32 notes, of which the others need some. */
const MOST_NOTES = 24

/** The notes of the plan that show what will be deleted. Nothing else is. */
export const pruneNotes = (names: readonly string[]): readonly string[] => {
  const lists: string[] = []
  for (const name of names) {
    const longer = [lists.at(-1), name].filter(one => one !== undefined).join(', ')
    if (PRUNED.length + longer.length < LONGEST_NOTE) lists.splice(-1, 1, longer)
    else lists.push(name)
  }
  return lists.slice(0, MOST_NOTES).map(list => `${PRUNED}${list}.`)
}
const shown = ({ status }: TalosOperation): readonly string[] =>
  (status.preflight?.notes ?? []).filter(one => one.startsWith(PRUNED)).flatMap(note => note.slice(PRUNED.length, -1).split(', '))

const apply: Step = {
  name: 'apply',
  summary: "Applies Talos' bootstrap manifests by server-side apply, as this control plane makes them. Deletes nothing.",
  needs: view => [{ what: 'manifests', name: view.target.name }],
  done: view => {
    const changes = manifestFacts(view.world, view.target.name)
    if (!changes.ok) return unknown(`its manifests cannot be compared: ${changes.fault.message}`)
    const due = changes.value.filter(c => c.would === 'create' || c.would === 'change')
    if (due.length > 0) return no(`to be applied: ${some(due.map(c => c.name))}`)
    const refused = refusedText(changes.value)
    if (refused === '') return YES
    return {
      is: 'failed',
      reason: 'ManifestSyncFailed',
      message: `The API server does not take ${refused}. All programs are upgraded and all other manifests applied. Make the object and the configuration of the control planes agree, then resume; nothing is deleted and made anew for it.`,
    }
  },
  guard: isThere,
  act: {
    long: false,
    disruptive: true,
    describe: () => 'applying the bootstrap manifests',
    run: async ({ talos, kube }, view) => {
      const manifests = await talos.manifests(addressOf(view))
      if (!manifests.ok) return manifests
      const applied = await kube.applyManifests(manifests.value)
      // What is refused is told by the comparison, all of it at once.
      return !applied.ok && applied.fault.kind === 'invalid' ? { ok: true, value: undefined } : applied
    },
    fatal: denied,
  },
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: () => APPLY_MS,
  failure: 'ManifestSyncFailed',
}

const rolledOut = (name: string, rollout: RolloutFacts): Answer => {
  const { desired, updated, available, isObserved } = rollout
  if (!isObserved) return no(`the change of ${name} is not seen yet`)
  return updated >= desired && available >= desired ? YES : no(`${name}: ${updated} of ${desired} pods are new, ${available} are available`)
}

const rollout: Step = {
  name: 'rollout',
  summary:
    'The pods of kube-proxy are those of the new image, and they and CoreDNS are available. Neither is asked for where the cluster has none.',
  needs: view => [...componentsNeed(view), { what: 'controlPlane' }],
  done: view => {
    const [components, known] = [componentsOf(view), controlPlaneFacts(view.world)]
    if (!components.ok) return unknown(`it does not tell its components: ${components.fault.message}`)
    if (!known.ok) return unknown(`the Kubernetes API does not answer: ${known.fault.message}`)
    const wanted = components.value.kubeProxy
    const { kubeProxy, coreDNS } = known.value
    if (wanted !== undefined) {
      if (kubeProxy?.image !== wanted) return no(`the DaemonSet kube-proxy has ${kubeProxy?.image ?? 'gone'}, wanted ${wanted}`)
      const answer = rolledOut('kube-proxy', kubeProxy)
      if (answer.is !== 'yes') return answer
    }
    if (coreDNS && coreDNS.desired > 0 && coreDNS.available === 0) return no('no pod of CoreDNS is available')
    return YES
  },
  deadlineMs: () => ROLLOUT_MS,
  failure: 'ManifestSyncFailed',
  remedy: 'Look at the pods with `kubectl get pods -n kube-system`.',
}

const prune: Step = {
  name: 'prune',
  summary:
    'Deletes what Talos once brought into the cluster by a bootstrap manifest that no control plane has any more. Nothing that the plan did not name.',
  applies: ({ operation }) => specOf(operation).prune,
  needs: ({ operation, world }) => manifestsNeed(operation, world),
  done: ({ operation, world }) => {
    const left = leftoversOf(world)
    if (!left.ok) return unknown(`what is left over is not known: ${left.fault.message}`)
    const unannounced = left.value.filter(name => !shown(operation).includes(name))
    if (unannounced.length > 0)
      return {
        is: 'failed',
        reason: 'ManifestSyncFailed',
        message: `${some(unannounced)} would be deleted, too, but the plan did not show it: the configuration was changed meanwhile. All programs are upgraded. Cancel this operation, and start another with prune, whose plan shows it.`,
      }
    return left.value.length === 0 ? YES : no(`to be deleted: ${some(left.value)}`)
  },
  guard: isThere,
  act: {
    long: false,
    disruptive: true,
    describe: ({ operation }) => `deleting ${some(shown(operation))}`,
    run: async ({ talos, kube }, { operation, world }) => {
      const read = await Promise.all(controlPlanesOf(world).map(machine => talos.manifests(machine.spec.address)))
      const fault = read.find(one => !one.ok)
      if (fault) return fault
      return kube.pruneManifests(
        read.flatMap(one => (one.ok ? one.value : [])),
        shown(operation),
      )
    },
    fatal: denied,
  },
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: () => APPLY_MS,
  failure: 'ManifestSyncFailed',
}

/** What still is of another version, in words; empty where nothing is. Machines that somebody holds back are left alone on purpose. */
const leftBehind = ({ operation, world }: View): Result<readonly string[]> => {
  const { version } = specOf(operation)
  const [nodes, known] = [nodeFacts(world), controlPlaneFacts(world)]
  if (!nodes.ok) return nodes
  if (!known.ok) return known
  const podsOf = (component: StaticComponent) => known.value.pods.filter(p => p.component === component)
  const left: string[] = []
  for (const machine of controlPlanesOf(world))
    if (!podsOf('kube-apiserver').some(p => p.node === machine.status.nodeName))
      left.push(`${machineTitle(machine)} shows no kube-apiserver`)
  for (const { component, node, image, ready } of STATIC_COMPONENTS.flatMap(podsOf))
    if (imageVersion(image) !== version) left.push(`${component} on ${node} is ${imageTitle(image)}`)
    else if (!ready) left.push(`${component} on ${node} is not Ready`)
  const held = new Set(world.machines.filter(m => heldBecause(world, m) !== undefined).map(m => m.status.nodeName))
  for (const { name, kubeletVersion } of nodes.value) {
    const runs = versionText(kubeletVersion)
    if (!held.has(name) && runs !== undefined && runs !== version) left.push(`the kubelet of ${name} is ${kubeletVersion}`)
  }
  return { ok: true, value: left }
}

const whole: Step = {
  name: 'whole',
  summary: 'Looks at everything once more: each program of each machine has the version, and etcd is well.',
  needs: () => [{ what: 'controlPlane' }, { what: 'etcd' }],
  done: view => {
    const left = leftBehind(view)
    if (!left.ok) return unknown(`the Kubernetes API does not answer: ${left.fault.message}`)
    if (left.value.length > 0) return no(some(left.value))
    return asAnswer(gate(view.operation, view.world, { purpose: 'settled', etcdStepAllowed: true }))
  },
  deadlineMs: () => WHOLE_MS,
  failure: 'VersionMismatch',
  remedy: 'A machine that joined meanwhile is upgraded by another operation of the same version.',
}

const open = (view: View): Opening => {
  const found = controlPlaneToOpen(view)
  if ('instead' in found) return found.instead
  const changes = manifestFacts(view.world, view.target.name)
  if (!changes.ok) return { wait: `its manifests cannot be compared: ${changes.fault.message}`, reason: 'ManifestSyncFailed' }
  const isSame = !changes.value.some(c => c.would === 'create' || c.would === 'change' || c.would === 'refused')
  const isNothingLeft = [prunedBy(view), leftBehind(view)].every(left => left.ok && left.value.length === 0)
  if (isSame && isNothingLeft && rollout.done(view).is === 'yes') return { skip: 'all bootstrap manifests are applied' }
  return { open: { goal: { drain: 'none' } } }
}

const preview = (view: View): PlannedMachine => {
  const { version } = specOf(view.operation)
  const components = componentsOf(view)
  const from = (components.ok && components.value.kubeProxy && imageVersion(components.value.kubeProxy)) || 'as applied'
  const changes = manifestFacts(view.world, view.target.name)
  const differing = changes.ok ? changes.value.filter(c => c.would === 'create' || c.would === 'change').map(c => c.name) : []
  const left = prunedBy(view)
  const hasProxy = components.ok && components.value.kubeProxy !== undefined
  return {
    from,
    to: version,
    loses: [
      ...(hasProxy ? ['kube-proxy, one pod after the other'] : []),
      ...(differing.length > 0 ? [`what others changed in ${some(differing)}`] : []),
      ...(left.ok && left.value.length > 0 ? [`${some(left.value)}, deleted`] : []),
    ],
  }
}

export const manifestsStage: Stage = {
  name: 'manifests',
  summary:
    "Talos' bootstrap manifests, as the first control plane makes them, are applied to the cluster; then all is looked at once more.",
  orderNeeds: () => [{ what: 'nodes' }],
  order: (_, world) => inOrder(world, controlPlanesOf(world)).slice(0, 1).map(candidateOf),
  turn: () => YES,
  openNeeds: view => [
    { what: 'manifests', name: view.target.name },
    ...manifestsNeed(view.operation, view.world),
    ...componentsNeed(view),
    { what: 'controlPlane' },
  ],
  open,
  steps: [apply, rollout, prune, whole],
  abandon: [],
  preview,
  outcome: target => `applied the manifests of ${displayName(target)}`,
}
