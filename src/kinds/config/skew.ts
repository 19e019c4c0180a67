import { CONFIG_PLACES } from '../../core/compatibility/removed-options.ts'
import { talosRelease } from '../../core/compatibility/table.ts'
import { imageVersion } from '../../core/component-image.ts'
import type { ConfigDocument } from '../../core/config-patch/documents.ts'
import { placeOf, saidAt } from '../../core/config-patch/places.ts'
import { minorSteps, parseVersion, versionOrder, versionSpan, versionText } from '../../core/versions.ts'
import type { World } from '../../core/world.ts'
import { controlPlaneFacts, machineTitle, nodeFacts } from '../../core/world.ts'
import type { Component } from '../../ports/components.ts'
import type { ControlPlaneFacts } from '../../ports/control-plane.ts'
import type { Change } from './change.ts'
import { isOfControlPlane } from './change.ts'
import type { Objection } from './objections.ts'

/** Versions of Kubernetes' programs that a patch changes, by their images, and the rules that they have to keep (procedures.md 14, I9 and I10). */

const COMPONENTS: readonly Component[] = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kube-proxy', 'kubelet']

/** Of one program on one machine. A version is undefined where nothing tells it. */
type Move = Pick<Change, 'name' | 'machine'> & {
  readonly component: Component
  readonly from: string | undefined
  readonly to: string | undefined
  /** Its image is no longer named: the one that Talos itself brings is taken, a later one after each upgrade of Talos. */
  readonly isUnpinned: boolean
}

const imageAt = (documents: readonly ConfigDocument[], component: Component): string | undefined => {
  const { section, kind } = CONFIG_PLACES[component]
  const hasOwn = documents.some(one => one.kind === kind)
  const [image] = saidAt(documents, placeOf(hasOwn ? `${kind}.image` : `${section.join('.')}.image`))
  return typeof image === 'string' && image !== '' ? image : undefined
}

const movesOf = (change: Change): readonly Move[] =>
  COMPONENTS.filter(component => component === 'kubelet' || isOfControlPlane(change)).flatMap(component => {
    const [before, after] = [imageAt(change.before, component), imageAt(change.after, component)]
    const own = talosRelease(change.facts.version)?.kubernetes
    const versionOf = (image: string | undefined): string | undefined =>
      image === undefined ? own && `v${own}` : (imageVersion(image) ?? undefined)
    const [from, to] = [versionOf(before), versionOf(after)]
    const isUnpinned = before !== undefined && after === undefined
    const { name, machine } = change
    return before === after || (from === to && !isUnpinned) ? [] : [{ name, machine, component, from, to, isUnpinned }]
  })

export const skew = (
  world: World,
  changes: readonly Change[],
): { readonly objections: readonly Objection[]; readonly notes: readonly string[] } => {
  const moves = changes.flatMap(movesOf)
  if (moves.length === 0) return { objections: [], notes: [] }
  const known = controlPlaneFacts(world)
  const notes = notesOf(moves)
  if (!known.ok)
    return {
      objections: [],
      notes: [...notes, `Whether these versions go together with what runs could not be told: ${known.fault.message}.`],
    }
  const pods = known.value.pods.flatMap(pod => {
    const version = imageVersion(pod.image)
    return version === undefined ? [] : [{ what: pod.component, version }]
  })
  // While machines change one after another there are both those from before and those from after.
  const servers = versionSpan([
    ...pods.filter(({ what }) => what === 'kube-apiserver').map(({ version }) => version),
    ...moves.flatMap(({ component, to }) => (component === 'kube-apiserver' && to !== undefined ? [to] : [])),
  ])
  if (!servers) return { objections: [], notes }
  const raised = raises(known.value, moves) ? behind(leftBehind(world, known.value, moves), servers.highest) : []
  return { objections: [...moves.flatMap(move => objectionsTo(move, servers)), ...moves.flatMap(move => besides(move, raised))], notes }
}

/** A program that runs somewhere, and that no move takes along. */
type Left = { readonly component: Exclude<Component, 'kube-apiserver'>; readonly where: string; readonly version: string }

/** The newest API server becomes newer. */
const raises = ({ pods }: ControlPlaneFacts, moves: readonly Move[]): boolean => {
  const now = versionSpan(pods.flatMap(pod => (pod.component === 'kube-apiserver' ? [imageVersion(pod.image) ?? ''] : [])))
  return (
    now !== undefined && moves.some(({ component, to = '' }) => component === 'kube-apiserver' && (versionOrder(to, now.highest) ?? 0) > 0)
  )
}

/** kube-proxy is among them whatever a patch says of its image: that changes only the manifests from which it comes. */
const leftBehind = (world: World, { pods, kubeProxy }: ControlPlaneFacts, moves: readonly Move[]): readonly Left[] => {
  const nodes = nodeFacts(world)
  const titleOf = (node: string): string => {
    const machine = world.machines.find(m => m.status.nodeName === node)
    return machine ? machineTitle(machine) : node
  }
  const isMoved = (component: Component, node: string): boolean =>
    moves.some(move => move.component === component && move.machine.status.nodeName === node)
  const of = (component: Left['component'], where: string, version: string | undefined): readonly Left[] =>
    version === undefined ? [] : [{ component, where, version }]
  return [
    ...pods.flatMap(({ component, node, image }) =>
      component === 'kube-apiserver' || isMoved(component, node) ? [] : of(component, titleOf(node), imageVersion(image)),
    ),
    ...(kubeProxy ? of('kube-proxy', 'the cluster', imageVersion(kubeProxy.image)) : []),
    ...(nodes.ok ? nodes.value : []).flatMap(({ name, kubeletVersion }) =>
      isMoved('kubelet', name) ? [] : of('kubelet', titleOf(name), versionText(kubeletVersion)),
    ),
  ]
}

/** In words, those that would be too old for it. */
const behind = (left: readonly Left[], highest: string): readonly string[] => {
  const groups = new Map<string, { readonly names: string[]; readonly one: Left }>()
  for (const one of left) {
    if (stepsOf(one.version, highest) <= MOST_BEHIND[one.component]) continue
    const key = `${one.component} ${one.version}`
    const group = groups.get(key)
    if (group) group.names.push(one.where)
    else groups.set(key, { names: [one.where], one })
  }
  return [...groups.values()].map(
    ({ names, one: { component, version } }) =>
      `${component} of ${names.join(', ')} is ${version}, and it may be ${minors(MOST_BEHIND[component])} behind at most`,
  )
}

/** What an API server leaves behind that is raised. */
const besides = ({ name, machine, component, to }: Move, problems: readonly string[]): readonly Objection[] =>
  component === 'kube-apiserver' && to !== undefined && problems.length > 0
    ? [{ name, machine: machine.metadata.name, rule: 'VersionSkew', what: wouldRun(component, to, problems.join('; ')) }]
    : []

const wouldRun = (component: Component, version: string, problem: string): string =>
  `would run ${component} ${version}: ${problem}. \`ichor upgrade kubernetes\` changes versions in an order that Kubernetes supports`

/** How many minors a program may be behind the newest API server. */
const MOST_BEHIND: Readonly<Record<Exclude<Component, 'kube-apiserver'>, number>> = {
  'kube-controller-manager': 1,
  'kube-scheduler': 1,
  'kube-proxy': 3,
  kubelet: 3,
}

const stepsOf = (from: string, to: string): number => {
  const [a, b] = [parseVersion(from), parseVersion(to)]
  return a && b ? (minorSteps(a, b) ?? 0) : 0
}

const objectionsTo = (
  { name, machine, component, from, to, isUnpinned }: Move,
  servers: { readonly lowest: string; readonly highest: string },
): readonly Objection[] => {
  if (to === undefined) return []
  const why = isUnpinned ? `, which is what its Talos brings where no image is named` : ''
  const object = (problem: string): Objection => ({
    ...{ name, machine: machine.metadata.name, rule: 'VersionSkew' },
    what: wouldRun(component, `${to}${why}`, problem),
  })
  const { lowest, highest } = servers
  if (component === 'kube-apiserver') {
    if (from !== undefined && stepsOf(from, to) < 0)
      return [
        object(`an API server cannot go back a minor from ${from}: its objects may be stored in a form that the older one does not know`),
      ]
    return stepsOf(lowest, highest) > 1
      ? [object(`API servers may be one minor apart at most, and there would be ${lowest} and ${highest} at once`)]
      : []
  }
  if ((versionOrder(to, lowest) ?? 0) > 0) return [object(`nothing may be newer than any API server, and one is ${lowest}`)]
  return stepsOf(to, highest) > MOST_BEHIND[component]
    ? [object(`an API server is ${highest}, and it may be ${minors(MOST_BEHIND[component])} behind at most`)]
    : []
}

const minors = (count: number): string => (count === 1 ? 'one minor' : `${count} minors`)

/** The same move of several machines is told once. */
const notesOf = (moves: readonly Move[]): readonly string[] => {
  const groups = new Map<string, { readonly isUnpinned: boolean; readonly names: string[] }>()
  for (const { name, component, from = 'unknown', to = 'unknown', isUnpinned } of moves) {
    const key = `${component} ${from} -> ${to}`
    const group = groups.get(key)
    if (group) group.names.push(name)
    else groups.set(key, { isUnpinned, names: [name] })
  }
  return [...groups].map(([move, { isUnpinned, names }]) =>
    isUnpinned
      ? `The image of ${move.split(' ')[0]} is no longer named on ${names.join(', ')}: Talos then takes its own (${move}), and another one after its next upgrade.`
      : `This changes a version of Kubernetes (${move} on ${names.join(', ')}). That is what \`ichor upgrade kubernetes\` is for: it pulls all images first and keeps the order.`,
  )
}
