import type { Reason } from '../../api/reasons.ts'
import type { Answer, Step } from '../../core/kind.ts'
import { YES, unknown } from '../../core/kind.ts'
import { asAnswer, etcdNeed, gate } from '../../core/machine-steps/etcd.ts'
import { STATIC_POD_MS, crashingPod, staticPodNeeds, staticPodsRun } from '../../core/machine-steps/static-pods.ts'
import { isBackAsNode, isControlPlane, machineOf, replaced } from '../../core/machine-steps/target.ts'
import type { Need, View } from '../../core/world.ts'
import { displayName } from '../../core/world.ts'
import { trialMs } from './apply.ts'
import { reportsReady, whyNotReady } from '../../core/machine-steps/ready.ts'

/** A machine lives with its new configuration: Talos, its Node, its static pods and its etcd say so, and go on saying so. */

const WELL_MS = 10 * 60_000
const podNeeds = (view: View): readonly Need[] => (isControlPlane(view) ? staticPodNeeds(view) : [])

const machineIsWell = (view: View): Answer => {
  const facts = machineOf(view)
  if (!facts.ok) return replaced(view) ?? unknown(`it does not answer: ${facts.fault.message}`)
  // Talos only says that the pod is not ready, and not why.
  return crash(view) ?? reportsReady(facts.value)
}

/** The static pods are those that Talos renders from the configuration as it is now, and each of them works. */
const podsAreWell = (view: View): Answer => {
  return isControlPlane(view) ? (crash(view) ?? staticPodsRun(view)) : YES
}

const crash = (view: View): Extract<Answer, { is: 'failed' }> | undefined => {
  const crashing = isControlPlane(view) ? crashingPod(view) : undefined
  if (!crashing) return undefined
  const { component, node, waiting, restarts } = crashing
  return {
    is: 'failed',
    reason: 'StaticPodTimeout',
    message: `${displayName(view.target)}: ${component} does not stay up with the patched configuration: ${waiting?.reason}, ${waiting?.message} (${restarts} restarts). No further machine is given it. Look at its log with \`talosctl logs -k kube-system/${component}-${node}:${component}\`, set the configuration right and start another operation.`,
  }
}

const etcdIsWell = (view: View): Answer =>
  isControlPlane(view) ? asAnswer(gate(view.operation, view.world, { purpose: 'settled', etcdStepAllowed: true })) : YES

/** In the order in which each can be had. */
const QUESTIONS: readonly (readonly [Reason, (view: View) => Answer])[] = [
  ['MachineNotReady', machineIsWell],
  ['NodeNotReady', isBackAsNode],
  ['StaticPodTimeout', podsAreWell],
  ['EtcdUnhealthy', etcdIsWell],
]

const firstObjection = (view: View): { readonly reason: Reason; readonly answer: Answer } | undefined => {
  for (const [reason, ask] of QUESTIONS) {
    const answer = ask(view)
    if (answer.is !== 'yes') return { reason, answer }
  }
  return undefined
}

const isWell = (view: View): Answer => firstObjection(view)?.answer ?? YES

const whyNot: Step['failure'] = view => {
  const objection = firstObjection(view)
  return !machineOf(view).ok ? 'MachineUnreachable' : (objection?.reason ?? 'MachineNotReady')
}

const staysWell = {
  needs: view => [...podNeeds(view), ...etcdNeed(view)],
  done: isWell,
  /** What a kubelet reports stays true for 40 seconds after it has gone, and a health check of Talos is 20 seconds old. */
  stableMs: ({ world }) => 3 * world.timing.etcdStableMs,
  failure: whyNot,
} as const satisfies Partial<Step>

export const well: Step = {
  name: 'well',
  summary:
    'The machine lives with it for a minute: Talos reports it ready, its Node is Ready, its static pods are those of the new configuration, and etcd passes its gate.',
  ...staysWell,
  deadlineMs: () => WELL_MS,
}

export const trial: Step = {
  ...well,
  name: 'trial',
  summary:
    'The machine lives with it for a minute while it is on trial: Talos, its Node, its static pods and etcd are asked as in the mode no-reboot.',
  deadlineMs: trialMs,
}

/** After a reboot the rest is asked one by one. */
export const pods: Step = {
  name: 'static-pods',
  summary: 'The static pods of this control plane are those of the new configuration, and Ready.',
  applies: isControlPlane,
  needs: podNeeds,
  done: podsAreWell,
  deadlineMs: () => STATIC_POD_MS,
  failure: 'StaticPodTimeout',
}

export const ready: Step = {
  name: 'verify',
  summary: 'Talos reports the machine running and ready.',
  needs: podNeeds,
  done: machineIsWell,
  deadlineMs: () => WELL_MS,
  failure: whyNotReady,
}
