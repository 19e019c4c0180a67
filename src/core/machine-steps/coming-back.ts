import { ANNOTATION } from '../../api/names.ts'
import type { EtcdGateVerdict } from '../etcd-gate.ts'
import type { GivingBack, Step } from '../kind.ts'
import { YES, no, unknown, wait } from '../kind.ts'
import { ms } from '../ledger.ts'
import type { View } from '../world.ts'
import { podFacts } from '../world.ts'
import { asAnswer, etcdNeed } from './etcd.ts'
import { GATE_HOLD_MS } from './guards.ts'
import { isBackAsNode, isControlPlane, machineOf, nodeNameOf, nodeOfTarget, onNode, replacementOf } from './target.ts'

/** A machine is back: what has to hold before the next one is touched, and what is given back. */

const MINUTE = 60_000
export const READY_MS = 15 * MINUTE
const STATIC_PODS_MS = 10 * MINUTE
export const CALL_MS = 5 * MINUTE

export const nodeReady: Step = {
  name: 'node-ready',
  summary: "The Kubernetes Node is Ready and carries the machine's new boot id.",
  done: isBackAsNode,
  deadlineMs: () => READY_MS,
  failure: 'NodeNotReady',
}

/**
 * The last moment of this try at which the machine is known to have run its old boot: its second, because Kubernetes tells starts in whole seconds. That the
 * restart itself was accepted is written late where the API went away with the only control plane, so it tells nothing here.
 */
const lastKnownBefore = ({ target }: View): number => {
  const before = (target.receipts ?? []).filter(r => r.step !== 'upgrade')
  const at = Math.max(ms(target.startedAt), ...before.map(r => ms(r.at)))
  return Math.floor(at / 1000) * 1000
}

export const apiServer: Step = {
  name: 'api-server',
  summary: 'The API server of this control plane runs again. Talos calls a machine ready before its static pods are.',
  applies: isControlPlane,
  needs: view => {
    const node = nodeNameOf(view)
    return node === undefined ? [] : [{ what: 'pods', node }]
  },
  done: view => {
    const node = nodeNameOf(view)
    if (node === undefined) return YES
    const pods = podFacts(view.world, node)
    if (!pods.ok) return unknown(`its pods cannot be listed: ${pods.fault.message}`)
    const pod = pods.value.find(p => p.mirror && p.namespace === 'kube-system' && p.name.startsWith('kube-apiserver-'))
    if (!pod) return no('its kubelet reports no kube-apiserver yet')
    // The shadow of the pod before stays Ready for a while, so its containers have to be younger than the try.
    if (pod.startedAt === undefined || pod.startedAt < lastKnownBefore(view))
      return no('its kube-apiserver has not started since the reboot')
    return pod.ready === true ? YES : no('its kube-apiserver is not Ready')
  },
  deadlineMs: () => STATIC_PODS_MS,
  failure: 'StaticPodTimeout',
}

/** `settled`: what etcd has to say once the machine is back. */
export const rejoin = (settled: (view: View) => EtcdGateVerdict): Step => ({
  name: 'rejoin',
  summary: 'etcd passes its gate with this member back, and again after 20 seconds.',
  applies: isControlPlane,
  needs: etcdNeed,
  done: view => asAnswer(settled(view)),
  stableMs: ({ world }) => world.timing.etcdStableMs,
  deadlineMs: () => GATE_HOLD_MS,
  failure: 'EtcdUnhealthy',
})

/** Its Node bears the mark of this operation. */
export const isMarked = (view: View): boolean => {
  const node = nodeOfTarget(view)
  return node.ok && node.value?.annotations[ANNOTATION.cordonedBy] === view.operation.metadata.uid
}

export const uncordon: Step = {
  name: 'uncordon',
  summary: 'Lifts the cordon if it is its own, and takes its mark off; a cordon of anybody else stays.',
  done: view => {
    const node = nodeOfTarget(view)
    if (!node.ok) return unknown(`the Kubernetes API does not answer: ${node.fault.message}`)
    return isMarked(view) ? no('its Node still carries the mark of this operation') : YES
  },
  act: {
    long: false,
    disruptive: false,
    describe: () => 'uncordoning its Node',
    run: ({ kube }, view) => onNode(view, kube.uncordon),
  },
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: () => CALL_MS,
  failure: 'NodeNotReady',
}

export const soak: Step = {
  name: 'soak',
  summary: 'The machine stays ready for minReadySeconds before the next one is touched.',
  applies: view => view.operation.spec.minReadySeconds > 0,
  done: view => {
    const facts = machineOf(view)
    if (!facts.ok) return unknown(`it does not answer: ${facts.fault.message}`)
    if (facts.value.stage !== 'running' || !facts.value.ready) return no('it is not ready')
    return isBackAsNode(view)
  },
  stableMs: view => view.operation.spec.minReadySeconds * 1000,
  deadlineMs: view => view.operation.spec.minReadySeconds * 1000 + READY_MS,
  failure: 'NodeNotReady',
}

/** Where a machine is closed before its end: the cordon goes if the machine is healthy, and stays with a word if it is not. */
export const giveBack: GivingBack = {
  ...uncordon,
  name: 'give-back',
  guard: view => {
    const [facts, node] = [machineOf(view), nodeOfTarget(view)]
    // Who replaced it has its Node, and with it the cordon that was not meant for him.
    const isThere = facts.ok ? facts.value.stage === 'running' : replacementOf(view) !== undefined
    return isThere && node.ok && node.value?.ready === true ? YES : wait('it is not healthy, so its cordon stays')
  },
}
