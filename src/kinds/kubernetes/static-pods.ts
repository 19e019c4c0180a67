import type { Reason } from '../../api/reasons.ts'
import { CONFIG_PLACES } from '../../core/compatibility/removed-options.ts'
import { imageTitle } from '../../core/component-image.ts'
import type { Answer, Opening, PlannedMachine, Stage, Step, Verdict } from '../../core/kind.ts'
import { YES, no, wait } from '../../core/kind.ts'
import { failureTriedAnew, ms } from '../../core/ledger.ts'
import { both } from '../../core/machine-steps/guards.ts'
import {
  STATIC_POD_MS,
  isCrashing,
  runsAsRendered,
  serves,
  shownPod,
  staticPodNeeds,
  toldOf,
} from '../../core/machine-steps/static-pods.ts'
import { addressOf, controlPlanesOf, nodeNameOf } from '../../core/machine-steps/target.ts'
import type { View } from '../../core/world.ts'
import { controlPlaneFacts, displayName, isKnown, lastWordsFacts, machineTitle } from '../../core/world.ts'
import type { StaticComponent, Waiting } from '../../ports/components.ts'
import { imageChange, imageToSet, setImage } from './set-image.ts'
import {
  apiServersAreThere,
  controlPlaneToOpen,
  etcdIsWell,
  goingOver,
  imageBefore,
  oneAtATime,
  podsOf,
  specOf,
  versionsOf,
  wantedImage,
} from './view.ts'

/** A process that is not probed counts as Ready from its first moment, also one that ends in the next. Where nothing else proves that it works, it has to stay so. */
export const STEADY_POLLS = 3
/** A kubelet leaves so much time at most between two tries of a container: until then what was mended may not show. */
const LONGEST_BACK_OFF_MS = 6 * 60_000
/** Talos tells of static pods so late that it may still be about the pod before. */
const OLD_NEWS_MS = 30_000

type Broken = { readonly reason: Reason; readonly waiting: Waiting; readonly restarts: number }

/** What no time will mend. */
const brokenBy = ({ waiting, restarts }: { readonly waiting?: Waiting; readonly restarts: number }): Broken | undefined => {
  if (!waiting) return undefined
  const isMissing =
    waiting.reason === 'InvalidImageName' ||
    (/^(ErrImagePull|ImagePullBackOff)$/.test(waiting.reason) && /not found/i.test(waiting.message))
  if (isMissing) return { reason: 'ImageNotFound', waiting, restarts }
  return isCrashing({ waiting, restarts }) ? { reason: 'StaticPodTimeout', waiting, restarts } : undefined
}

const stepMs = ({ target, world }: View): number => world.now - ms(target.stepStartedAt)

/** Somebody mended what it had failed of, and asked for another try. */
const isTriedAnew = ({ operation, target }: View): boolean => failureTriedAnew(operation.status, target) !== undefined

/** Why the new pod will never run; told by the API, or by the machine where its API server is the one that does not come up. */
const brokenPod = (view: View, component: StaticComponent): Broken | undefined => {
  if (isTriedAnew(view) && stepMs(view) < LONGEST_BACK_OFF_MS) return undefined
  const shown = shownPod(view, component)
  if (shown) return shown.ready ? undefined : brokenBy(shown)
  const told = toldOf(view, component)?.told
  const isNews = view.target.step === 'running' && stepMs(view) >= OLD_NEWS_MS
  return told && !told.ready && isNews ? brokenBy(told) : undefined
}

/** The pod that Talos has for the kubelet runs with the image that was asked for. */
export const runsAsWanted = (view: View, component: StaticComponent, image: string): Answer => {
  const rendered = toldOf(view, component)?.rendered
  return rendered && rendered.image !== image
    ? no(`Talos still renders ${component} with ${rendered.image}`)
    : runsAsRendered(view, component)
}

/** Its process has answered somebody. */
const isProved = (view: View, component: StaticComponent): boolean =>
  toldOf(view, component)?.rendered?.isProbed === true || serves(view.world, shownPod(view, component), displayName(view.target)) === true

const failureOf = (view: View, component: StaticComponent, { reason, waiting, restarts }: Broken): Extract<Answer, { is: 'failed' }> => {
  const words = lastWordsFacts(view.world, view.target.name, component)
  const said = words.ok && words.value.length > 0 ? ` It wrote last: ${words.value.join(' | ')}.` : ''
  const what = reason === 'ImageNotFound' ? 'has no image' : `does not stay up (${restarts} restarts)`
  const patch = `talosctl -n ${addressOf(view)} patch machineconfig --mode no-reboot -p '{"cluster":{"${CONFIG_PLACES[component].section[1]}":{"image":"${imageBefore(view)}"}}}'`
  return {
    is: 'failed',
    reason,
    message: `${displayName(view.target)}: ${component} ${imageTitle(wantedImage(view))} ${what}: ${waiting.reason}, ${waiting.message}.${said} No further machine is given it. Mend what it complains of and resume; or cancel, and set back the image that ran before: ${patch}`,
  }
}

/** They were all begun at that time or later. */
export const staticPodsBeganSince = (view: View, at: number): boolean => {
  const known = controlPlaneFacts(view.world)
  const pods = known.ok ? known.value.pods.filter(pod => pod.node === nodeNameOf(view)) : []
  return pods.length > 0 && pods.every(({ startedAt = 0 }) => startedAt >= Math.floor(at / 1000) * 1000)
}

const running = (component: StaticComponent): Step => ({
  name: 'running',
  summary: `The kubelet runs the ${component} that Talos rendered from the new configuration, and it is Ready.`,
  needs: view => {
    const known = staticPodNeeds(view)
    const isBroken = known.every(n => isKnown(view.world.facts, n)) && brokenPod(view, component) !== undefined
    return isBroken ? [...known, { what: 'lastWords', name: view.target.name, component }] : known
  },
  done: view => {
    const broken = brokenPod(view, component)
    if (broken) return failureOf(view, component, broken)
    const answer = runsAsWanted(view, component, wantedImage(view))
    // The API server of a machine has the configuration of its scheduler as a file, and is rendered anew with it.
    return answer.is === 'yes' && component !== 'kube-apiserver' ? runsAsRendered(view, 'kube-apiserver') : answer
  },
  stableMs: view => (isProved(view, component) ? undefined : STEADY_POLLS * view.world.timing.pollMs),
  deadlineMs: () => STATIC_POD_MS,
  failure: 'StaticPodTimeout',
  remedy: `Look at its log with \`talosctl logs -k kube-system/${component}-NODE:${component}\`.`,
})

/** While one of them restarts, all others have to be there. */
const othersRun = (view: View, component: StaticComponent): Verdict => {
  const pods = podsOf(view.world, component)
  // The API of the only control plane may be away with the very pod that is to be replaced.
  if (!pods.ok) return wait(`the Kubernetes API does not answer: ${pods.fault.message}`)
  for (const machine of controlPlanesOf(view.world)) {
    const { name } = machine.metadata
    const pod = pods.value.find(p => p.node === machine.status.nodeName)
    const hostname = machineTitle(machine)
    if (name === view.target.name) continue
    if (!pod?.ready) return wait(`${component} on ${hostname} is not Ready`, 'StaticPodTimeout')
    if (serves(view.world, pod, hostname) === false) return wait(`${component} on ${hostname} does not serve yet`, 'StaticPodTimeout')
  }
  return YES
}

/** The API server of the machine may be away for a while: all others serve, and etcd is well, of which each has a member of its own. */
export const apiServerMayGo = (view: View): Verdict => both(othersRun(view, 'kube-apiserver'), () => etcdIsWell(view))

/** With the scheduler the API server of its machine begins anew, so that the same is asked before each of them. */
const guardOf =
  (component: StaticComponent) =>
  (view: View): Verdict =>
    component === 'kube-apiserver'
      ? apiServerMayGo(view)
      : both(
          both(othersRun(view, component), () => apiServersAreThere(view)),
          () => apiServerMayGo(view),
        )

const open =
  (component: StaticComponent) =>
  (view: View): Opening => {
    const found = controlPlaneToOpen(view)
    if ('instead' in found) return found.instead
    const wanted = imageToSet(view, component)
    if ('instead' in wanted) return wanted.instead
    if (wanted.from === wanted.image && runsAsWanted(view, component, wanted.image).is === 'yes')
      return { skip: `already runs ${specOf(view.operation).version}` }
    if (found.facts.stage !== 'running') return { wait: `it is ${found.facts.stage}`, reason: 'MachineNotReady' }
    return { open: { goal: { ...wanted, drain: 'none', ...(found.facts.nodename ? { node: found.facts.nodename } : {}) } } }
  }

const preview =
  (component: StaticComponent) =>
  (view: View): PlannedMachine => {
    const change = imageChange(view, component)
    if (change === undefined) return { from: 'unknown', to: specOf(view.operation).version, loses: [] }
    const members = controlPlanesOf(view.world).length
    const api = members < 2 ? 'the Kubernetes API, for about a minute' : `one of ${members} API servers, for about a minute`
    return {
      from: imageTitle(change.from),
      to: change.to,
      loses: [component === 'kube-apiserver' ? api : `its ${component}; another one leads within 15 seconds`],
    }
  }

/** One static pod of all control planes, one after the other. */
export const staticPodStage = (component: StaticComponent): Stage => ({
  name: component,
  summary: `${component} of every control plane, one after the other.`,
  ...goingOver({
    machines: controlPlanesOf,
    openNeeds: staticPodNeeds,
    open: open(component),
  }),
  turn: oneAtATime,
  steps: [
    setImage(component, {
      guard: guardOf(component),
      guardNeeds: () => [{ what: 'controlPlane' }, { what: 'etcd' }],
    }),
    running(component),
  ],
  abandon: [],
  preview: preview(component),
  outcome: target => `${component} ${versionsOf(target)}`,
})
