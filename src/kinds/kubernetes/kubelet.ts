import type { TalosOperation } from '../../api/talos-operation.ts'
import { imageVersion, imageTitle } from '../../core/component-image.ts'
import type { Answer, Opening, PlannedMachine, Stage, Step } from '../../core/kind.ts'
import { YES, no, unknown } from '../../core/kind.ts'
import { both } from '../../core/machine-steps/guards.ts'
import { giveBack, soak, uncordon } from '../../core/machine-steps/coming-back.ts'
import { machineToOpen } from '../../core/machine-steps/opening.ts'
import { cordon, drain } from '../../core/machine-steps/setting-aside.ts'
import { STATIC_POD_MS, staticPodsRun } from '../../core/machine-steps/static-pods.ts'
import { addressOf, chosen, drainGoal, isBackAsNode, machineOf, nodeOfTarget, replaced } from '../../core/machine-steps/target.ts'
import { controlPlanesFirst } from '../../core/machine-steps/turn.ts'
import { versionText, minorOf, parseVersion } from '../../core/versions.ts'
import type { View } from '../../core/world.ts'
import { displayName, machineFacts, serviceFacts } from '../../core/world.ts'
import { imageChange, imageToSet, setImage } from './set-image.ts'
import { STEADY_POLLS, apiServerMayGo, staticPodsBeganSince } from './static-pods.ts'
import { apiServersAreThere, componentsNeed, componentsOf, goingOver, imageBefore, specOf, versionsOf, wantedImage } from './view.ts'

const KUBELET_MS = 15 * 60_000

const serviceNeed = (view: Pick<View, 'target'>) => ({ what: 'service', name: view.target.name, service: 'kubelet' }) as const

/** Its Node says so, which a kubelet writes when it starts; and it is Ready in the boot in which the machine is. */
const nodeSays = (view: View, image: string): Answer => {
  const node = nodeOfTarget(view)
  if (!node.ok) return unknown(`the Kubernetes API does not answer: ${node.fault.message}`)
  if (node.value && versionText(node.value.kubeletVersion) !== imageVersion(image))
    return no(`its Node still tells of ${node.value.kubeletVersion}`)
  return isBackAsNode(view)
}

const runsAsWanted = (view: View, image: string): Answer => {
  const [facts, components] = [machineOf(view), componentsOf(view)]
  const service = serviceFacts(view.world, view.target.name, 'kubelet')
  if (!facts.ok) return replaced(view) ?? unknown(`it does not answer: ${facts.fault.message}`)
  if (!components.ok) return unknown(`it does not tell its components: ${components.fault.message}`)
  if (!service.ok) return unknown(`it does not tell its services: ${service.fault.message}`)
  const { state = 'away', health = 'unknown', lastEvent, startedAt } = service.value ?? {}
  const says = lastEvent ? `: ${lastEvent}` : ''
  if (state === 'Failed' && /not found/i.test(lastEvent ?? '') && view.target.step === 'kubelet') {
    const message = `${displayName(view.target)}: its kubelet has no image${says}. Pods on it go on running, but nobody looks after them. Bring ${wantedImage(view)} to the registry, start it with \`talosctl -n ${addressOf(view)} service kubelet start\`, and resume; or cancel, and set back ${chosen(view.target, 'from')}.`
    return { is: 'failed', reason: 'ImageNotFound', message }
  }
  if (state !== 'Running' || health !== 'healthy')
    return no(`its kubelet is ${state === 'Running' ? `running, and ${health}` : state}${says}`)
  const { running = '' } = components.value.kubelet
  // By whatever name the runtime has it.
  const runs = imageVersion(running)
  if (runs !== undefined && runs !== imageVersion(image)) return no(`its kubelet still runs ${running}`)
  // Without a Node there is only the later start to go by.
  if (facts.value.nodename === '')
    return startedAt !== undefined && String(startedAt) !== chosen(view.target, 'startedAt')
      ? YES
      : no('its kubelet has not been started since')
  return nodeSays(view, image)
}

const kubelet: Step = {
  name: 'kubelet',
  summary: 'The kubelet runs with the new image and is healthy, and its Node says that version and is Ready.',
  needs: view => [...componentsNeed(view), serviceNeed(view)],
  done: view => runsAsWanted(view, wantedImage(view)),
  deadlineMs: () => KUBELET_MS,
  failure: 'KubeletTimeout',
  remedy: 'Look at its log with `talosctl logs kubelet`. Its image is not set back.',
  // What was taken for it is given back, and not taken again.
  milestone: true,
}

/** By then a kubelet has begun anew what it begins anew after its own start. */
const BEGUN_MS = 20_000

/** A kubelet of another minor ends the containers of the one before and begins them anew, those of static pods among them. */
const staticPods: Step = {
  name: 'static-pods',
  summary: 'The static pods of a control plane are there again: a kubelet of another minor begins them anew, its API server among them.',
  applies: ({ target }) => target.role === 'controlplane',
  needs: view => [...componentsNeed(view), serviceNeed(view), { what: 'controlPlane' }],
  done: staticPodsRun,
  stableMs: view => {
    const service = serviceFacts(view.world, view.target.name, 'kubelet')
    const startedAt = service.ok ? service.value?.startedAt : undefined
    if (startedAt !== undefined && staticPodsBeganSince(view, startedAt)) return undefined
    return isOtherMinor(imageBefore(view), wantedImage(view)) ? BEGUN_MS : STEADY_POLLS * view.world.timing.pollMs
  },
  deadlineMs: () => STATIC_POD_MS,
  failure: 'StaticPodTimeout',
  remedy: 'Look at the pods with `kubectl get pods -n kube-system -l tier=control-plane`.',
}

const isOtherMinor = (from: string, to: string): boolean => {
  const [before, after] = [parseVersion(imageTitle(from)), parseVersion(imageTitle(to))]
  return !(before && after && minorOf(before) === minorOf(after))
}

/** Whether the machine is drained for it at all. */
const drainsFor = (operation: TalosOperation, from: string, to: string): boolean => {
  const policy = specOf(operation).drain
  return policy === 'always' || (policy === 'minor' && isOtherMinor(from, to))
}

const open = (view: View): Opening => {
  const { operation, world, target } = view
  const found = machineToOpen(view)
  if ('instead' in found) return found.instead
  const wanted = imageToSet(view, 'kubelet')
  if ('instead' in wanted) return wanted.instead
  if (wanted.from === wanted.image && runsAsWanted(view, wanted.image).is === 'yes')
    return { skip: `already runs ${specOf(operation).version}` }
  if (found.facts.stage !== 'running') return { wait: `it is ${found.facts.stage}`, reason: 'MachineNotReady' }
  const service = serviceFacts(world, target.name, 'kubelet')
  const startedAt = service.ok ? service.value?.startedAt : undefined
  return {
    open: {
      goal: {
        ...wanted,
        ...drainGoal(view),
        ...(drainsFor(operation, wanted.from, wanted.image) ? {} : { drain: 'none' }),
        startedAt: String(startedAt ?? ''),
      },
    },
  }
}

const outdated = ({ target, world }: View): string | undefined => {
  const facts = machineFacts(world, target.name)
  return facts.ok && target.before?.bootID !== undefined && facts.value.bootID !== target.before.bootID
    ? 'it was rebooted by somebody else before its kubelet was touched; opening it anew'
    : undefined
}

const preview = (view: View): PlannedMachine => {
  const change = imageChange(view, 'kubelet')
  if (change === undefined) return { from: 'unknown', to: specOf(view.operation).version, loses: [] }
  const { from, to } = change
  const isDrained = drainsFor(view.operation, from, to) && drainGoal(view).drain !== 'none'
  return {
    from: imageTitle(from),
    to,
    loses: [
      isDrained
        ? 'its pods, which are evicted first'
        : isOtherMinor(from, to)
          ? 'its kubelet, for seconds; containers may be begun anew'
          : 'its kubelet, for seconds; its pods go on running',
      ...(view.target.role === 'controlplane' && isOtherMinor(from, to) ? ['its static pods, which are begun anew'] : []),
    ],
  }
}

/** Every kubelet, control planes first. */
export const kubeletStage: Stage = {
  name: 'kubelet',
  summary: 'The kubelet of every machine: control planes one at a time, then workers, as many as maxUnavailable allows.',
  ...goingOver({ machines: world => world.machines, openNeeds: view => [...componentsNeed(view), serviceNeed(view)], open }),
  turn: controlPlanesFirst,
  outdated,
  steps: [
    cordon(() => YES),
    drain,
    setImage('kubelet', {
      guard: view =>
        view.target.role === 'controlplane' ? both(apiServersAreThere(view), () => apiServerMayGo(view)) : apiServersAreThere(view),
      guardNeeds: ({ target }) => [{ what: 'controlPlane' }, ...(target.role === 'controlplane' ? [{ what: 'etcd' } as const] : [])],
    }),
    kubelet,
    staticPods,
    uncordon,
    soak,
  ],
  abandon: [giveBack],
  preview,
  outcome: target => `kubelet ${versionsOf(target)}`,
}
