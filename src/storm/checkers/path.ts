import type { TalosOperation } from '../../api/talos-operation.ts'
import { runningSlot } from '../../world/slots.ts'
import type { Checker } from '../checker.ts'

/** From where to where a machine may be brought, and what has to be there first. */

const minorOf = (version: string): number => Number(/^v1\.(\d+)\./.exec(version)?.[1])
const numberOf = (version: string): number => Number(/^v1\.\d+\.(\d+)$/.exec(version)?.[1])

export const minorSteps = (from: string, to: string): number => minorOf(to) - minorOf(from)

export const isBack = (from: string, to: string): boolean =>
  minorSteps(from, to) < 0 || (minorSteps(from, to) === 0 && numberOf(to) < numberOf(from))

/** The Kubernetes minors that a Talos minor supports: six in a row, the highest of which came with it. */
export const supports = (talos: string, kubernetes: string): boolean =>
  minorOf(kubernetes) <= minorOf(talos) + 23 && minorOf(kubernetes) >= minorOf(talos) + 18

/** Of the minors of Talos that exist. */
export const isKnown = (talos: string): boolean => minorOf(talos) >= 9 && minorOf(talos) <= 14

export const pathIsLegal: Checker = {
  name: 'path-is-legal',
  rule: 'I10',
  kinds: ['talos'],
  post: (scene, object) => {
    const { kubernetes } = scene.stage.plan.shape
    scene.onAct(({ what, machine }) => {
      if (what !== 'install-began' && what !== 'upgrade-requested') return
      const operation = scene.openOn(machine)?.operation
      if (!operation || operation.spec.override) return
      const from = runningSlot(machine.disk).version
      const { version: to } = operation.spec['talos'] as { version: string }
      if (isBack(from, to)) object(`${machine.name} is taken back from ${from} to ${to}`)
      if (minorSteps(from, to) > 1) object(`${machine.name} is brought from ${from} to ${to}, past a minor`)
      if (!supports(to, kubernetes)) object(`${machine.name} is brought to ${to}, which does not support Kubernetes ${kubernetes}`)
    })
  },
}

/** What the operation does to a control plane wants a snapshot of etcd before it; undefined where it does not. */
const snapshotFor = ({ spec }: TalosOperation): 'auto' | 'required' | undefined => {
  const { snapshot = 'auto' } = (spec['talos'] ?? {}) as { snapshot?: 'auto' | 'required' | 'skip' }
  const { action } = (spec['node'] ?? {}) as { action?: string }
  if (spec.kind === 'node') return action === 'reset' ? 'auto' : undefined
  if (spec.kind !== 'talos') return undefined
  return snapshot === 'skip' ? undefined : snapshot
}

/** There is nowhere to put a snapshot yet: whoever insists on one gets no act, and whoever does not is told that there is none. */
export const snapshotIsTold: Checker = {
  name: 'snapshot-is-told',
  rule: 'I24',
  post: (scene, object) =>
    scene.onAct(({ what, machine }) => {
      const operation = machine.role === 'controlplane' ? scene.openOn(machine)?.operation : undefined
      const snapshot = operation && snapshotFor(operation)
      if (snapshot === 'required') object(`${what} on ${machine.name} without the snapshot that was required`)
      if (snapshot === 'auto' && !operation?.status.preflight?.notes?.some(note => note.includes('etcd snapshot')))
        object(`${what} on ${machine.name}, and nobody was told that there is no snapshot`)
    }),
}
