import type { StaticComponent, StaticPodFacts, Waiting } from '../../ports/components.ts'
import type { ControlPlanePod } from '../../ports/control-plane.ts'
import type { Answer } from '../kind.ts'
import { YES, no, unknown } from '../kind.ts'
import type { Need, View, World } from '../world.ts'
import { componentFacts, controlPlaneFacts, displayName } from '../world.ts'
import { nodeNameOf } from './target.ts'

/** The static pods of a control plane, as its kubelet runs them, held against what Talos has for that kubelet. */

/** How long one may take until it is Ready. */
export const STATIC_POD_MS = 10 * 60_000
/** So often its process ended before it is given up: a start may fail once or twice where etcd is slow. */
const MOST_RESTARTS = 4

export const staticPodNeeds = ({ target }: Pick<View, 'target'>): readonly Need[] => [
  { what: 'components', name: target.name },
  { what: 'controlPlane' },
]

/** What Talos says of it; undefined where it cannot be asked, or has none. */
export const toldOf = (view: View, component: StaticComponent): StaticPodFacts | undefined => {
  const components = componentFacts(view.world, view.target.name)
  return components.ok ? components.value.staticPods[component] : undefined
}

/** The very pod that Talos renders now, as the API shows it; undefined while it shows another one, or none. */
export const shownPod = (view: View, component: StaticComponent): ControlPlanePod | undefined => {
  const rendered = toldOf(view, component)?.rendered
  const known = controlPlaneFacts(view.world)
  const pod = known.ok ? known.value.pods.find(p => p.component === component && p.node === nodeNameOf(view)) : undefined
  return rendered && pod?.configVersion === rendered.configVersion && pod.image === rendered.image ? pod : undefined
}

/** Whether an API server has said so itself since its process began; undefined where it says nothing of the sort, as other programs do not. */
export const serves = (world: World, pod: ControlPlanePod | undefined, hostname: string): boolean | undefined => {
  const known = controlPlaneFacts(world)
  if (pod?.component !== 'kube-apiserver' || pod.startedAt === undefined || !known.ok) return undefined
  const servedAt = known.value.servedAt[hostname] ?? known.value.servedAt[pod.node]
  return servedAt === undefined ? undefined : servedAt >= pod.startedAt
}

/** It runs as Talos has it for the kubelet, whatever that is: known by image and annotation, Ready, and serving where it says such a thing. */
export const runsAsRendered = (view: View, component: StaticComponent): Answer => {
  const components = componentFacts(view.world, view.target.name)
  if (!components.ok) return unknown(`it does not tell its components: ${components.fault.message}`)
  if (!components.value.staticPods[component]?.rendered) return no(`Talos has no ${component} for its kubelet: its etcd is not well`)
  const known = controlPlaneFacts(view.world)
  if (!known.ok) return unknown(`the Kubernetes API does not answer: ${known.fault.message}`)
  const shown = shownPod(view, component)
  if (!shown) return no(`its kubelet does not show the new ${component} yet`)
  if (!shown.ready) return no(`the new ${component} is not Ready${waitingText(shown.waiting)}`)
  return serves(view.world, shown, displayName(view.target)) === false ? no(`the new ${component} runs, but does not serve yet`) : YES
}

/** All of the machine do. */
export const staticPodsRun = (view: View): Answer => {
  const components = componentFacts(view.world, view.target.name)
  if (!components.ok) return unknown(`it does not tell its components: ${components.fault.message}`)
  const answers = componentsIn(components.value.staticPods).map(component => runsAsRendered(view, component))
  return answers.find(answer => answer.is !== 'yes') ?? YES
}

/** The first one that Talos has now and that will not stay up by itself. */
export const crashingPod = (view: View): ControlPlanePod | undefined => {
  const components = componentFacts(view.world, view.target.name)
  if (!components.ok) return undefined
  return componentsIn(components.value.staticPods)
    .map(component => shownPod(view, component))
    .find(pod => pod !== undefined && !pod.ready && isCrashing(pod))
}

const componentsIn = (pods: object): readonly StaticComponent[] => Object.keys(pods) as StaticComponent[]

/** Its process ended so often that its kubelet hardly tries any more. */
export const isCrashing = ({ waiting, restarts }: { readonly waiting?: Waiting; readonly restarts: number }): boolean =>
  waiting?.reason === 'CrashLoopBackOff' && restarts >= MOST_RESTARTS

/** `: ImagePullBackOff, Back-off pulling image …`, to follow a sentence; empty where the kubelet says nothing. */
export const waitingText = (waiting: Waiting | undefined): string =>
  waiting ? `: ${[waiting.reason, waiting.message].filter(text => text !== '').join(', ')}` : ''
