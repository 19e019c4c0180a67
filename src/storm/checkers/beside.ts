import type { Machine } from '../../world/machine.ts'
import { conditionOf } from '../../world/objects.ts'
import type { Checker } from '../checker.ts'
import { TAKES_AWAY, controlPlanesOf } from './control-planes.ts'

/** For so long it may have ailed when a look finds it well: each machine is asked itself, and what Kubernetes says of a Node comes late. */
const UNSEEN_MS = { 'without an API server': 5000, 'with a Node that was not Ready': 40_000 } as const
type Ailment = keyof typeof UNSEEN_MS

/** etcd aside: its API server does not run, or Kubernetes has a Node of it that is not Ready. */
export const othersAreWell: Checker = {
  name: 'other-control-planes-are-well',
  rule: 'I2',
  post: (scene, object) => {
    const { world } = scene
    const since = new Map<Machine, { readonly at: number; readonly what: Ailment }>()
    const ailment = (machine: Machine): Ailment | undefined => {
      if (machine.staticPods && machine.pods.get('kube-apiserver')?.isRunning === false) return 'without an API server'
      const ready = conditionOf(world.nodes.of(machine), 'Ready')?.status
      return ready !== undefined && ready !== 'True' ? 'with a Node that was not Ready' : undefined
    }
    const look = (): void => {
      for (const machine of controlPlanesOf(scene)) {
        const what = ailment(machine)
        if (what === undefined) since.delete(machine)
        else if (!since.has(machine)) since.set(machine, { at: scene.now(), what })
      }
    }
    world.site.listen(look)
    scene.onEntry(look)
    scene.onAct(({ what, machine, askedAt }) => {
      if (machine.role !== 'controlplane' || !TAKES_AWAY.has(what)) return
      look()
      if (scene.openOn(machine)?.operation.spec.override) return
      for (const other of controlPlanesOf(scene)) {
        const ails = since.get(other)
        if (other === machine || ails === undefined || ails.at >= askedAt('etcd', ...other.addresses) - UNSEEN_MS[ails.what]) continue
        object(`${what} on ${machine.name} while ${other.name} was ${ails.what} for ${scene.now() - ails.at} ms`)
      }
    })
  },
}
