import { beginKubelet, endKubelet } from '../../world/kubelet.ts'
import { answers } from '../../world/machine.ts'
import { crashApiServer } from '../../world/static-pods.ts'
import type { Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'

/** A control plane on which etcd goes on, and something else does not. */

const WHATS = ['kubelet ends', 'kube-apiserver ends again and again'] as const

export const ailing: Trouble<Stage> = {
  family: 'ailing',
  harmless: false,
  draw: ({ random, shape, horizonMs, calls }) => ({
    family: 'ailing',
    what: random.pick(WHATS),
    when: random.chance(0.4) ? { call: random.between(1, calls) } : { at: random.between(0, horizonMs) },
    machine: random.between(0, shape.controlPlanes - 1),
    forMs: random.between(20_000, random.pick([120_000, 1_200_000])),
  }),
  strike: (stage, { what, machine: index }) => {
    const { site } = stage.story.world
    const machine = stage.machine(index)
    if (machine.role !== 'controlplane' || machine.stage !== 'running' || !answers(machine) || !machine.kubelet) return
    stage.note(`${what} on ${machine.name}`)
    if (what !== 'kubelet ends') return crashApiServer(site, machine)
    const { life } = machine
    stage.byHand(undefined, () => endKubelet(site, machine))
    return () => {
      // Whoever has booted it since has begun it.
      if (machine.life === life && answers(machine) && !machine.kubelet) stage.byHand(undefined, () => beginKubelet(site, machine))
    }
  },
}
