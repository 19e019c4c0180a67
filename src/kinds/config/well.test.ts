// What proves that the static pods live with a new configuration, and what does not.
import { describe, expect, it } from 'vitest'
import type { View } from '../../core/world.ts'
import type { MachineComponents } from '../../ports/components.ts'
import type { ControlPlanePod } from '../../ports/control-plane.ts'
import { given, ok } from '../talos/test-view.ts'
import { pods } from './well.ts'

const IMAGE = 'registry.k8s.io/kube-apiserver:v1.35.4'
const START = 1_000_000
const apiServer = (over: Partial<ControlPlanePod> = {}): ControlPlanePod => ({
  ...{ component: 'kube-apiserver', node: 'cp-1', image: IMAGE, configVersion: '2', ready: true, restarts: 0, startedAt: START },
  ...over,
})
const rendered: MachineComponents['staticPods'] = {
  'kube-apiserver': { image: IMAGE, rendered: { image: IMAGE, configVersion: '2', isProbed: true } },
}

const told = (pod: ControlPlanePod | undefined, servedAt = START, staticPods = rendered): string => {
  const base = given({ of: 'cp-1' })
  const { name, node = '' } = base.target
  const facts: View['world']['facts'] = {
    ...base.world.facts,
    components: { [name]: ok({ kubelet: { image: '' }, staticPods }) },
    controlPlane: ok({ pods: pod ? [{ ...pod, node }] : [], servedAt: { [node]: servedAt } }),
  }
  const answer = pods.done({ ...base, world: { ...base.world, facts } })
  return answer.is === 'failed' ? `failed ${answer.reason}: ${answer.message}` : 'why' in answer ? `${answer.is}: ${answer.why}` : answer.is
}

describe('the static pods of a machine', () => {
  const crashing = { ready: false, waiting: { reason: 'CrashLoopBackOff', message: 'back-off 80s' } }

  it.each<[string, string, RegExp]>([
    ['run as rendered', told(apiServer()), /^yes$/],
    ['are rendered no more', told(apiServer(), START, { 'kube-apiserver': { image: IMAGE } }), /^no: Talos has no kube-apiserver/],
    ['are shown as before', told(apiServer({ configVersion: '1' })), /^no: its kubelet does not show the new/],
    ['run, but are not Ready', told(apiServer({ ready: false })), /^no: the new kube-apiserver is not Ready$/],
    ['run, but do not serve yet', told(apiServer(), START - 1), /^no: .*does not serve yet$/],
    ['crashed a few times', told(apiServer({ ...crashing, restarts: 3 })), /^no: .*CrashLoopBackOff, back-off 80s$/],
    [
      'crash again and again',
      told(apiServer({ ...crashing, restarts: 4 })),
      /^failed StaticPodTimeout: cp-1: .*CrashLoopBackOff, back-off 80s \(4 restarts\).*talosctl logs -k kube-system\/kube-apiserver-/,
    ],
  ])('%s', (_, answer, expected) => expect(answer).toMatch(expected))

  it('are asked about on control planes only', () => {
    const controlPlane = given({ of: 'cp-1' })
    expect(pods.applies?.(given({ of: 'wk-1' }))).toBe(false)
    expect(pods.applies?.(controlPlane)).toBe(true)
    expect(pods.needs?.(controlPlane)).toEqual([{ what: 'components', name: controlPlane.target.name }, { what: 'controlPlane' }])
  })
})
