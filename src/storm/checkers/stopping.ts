import { ANNOTATION } from '../../api/names.ts'
import { isFinished } from '../../api/phases.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import { isStopped, openTargets } from '../../core/ledger.ts'
import type { Machine } from '../../world/machine.ts'
import { RESOURCE, conditionOf } from '../../world/objects.ts'
import { ICHOR } from '../../world/ports/home.ts'
import type { KubeObject } from '../../world/store.ts'
import type { Checker } from '../checker.ts'
import { onSignOfLife } from '../leading.ts'
import type { Scene } from '../scene.ts'
import { CLUSTER, NAMESPACE } from '../story.ts'
import { staysCordoned } from './nodes.ts'

/** What an operation owes to each of its machines, also while it stops or stands there, and not only in the end. */

const WINDOW_MS = 60_000
/** So often is asked within the window about a machine on which something is waited for, but not by those who only look around. */
const MANY = 20

/** Whenever an operation looks at one machine that is open, it looks at all: the clocks of all run. */
export const allAreAsked: Checker = {
  name: 'open-machines-are-all-asked',
  rule: 'spec 7',
  post: (scene, object) => {
    const { store } = scene.world
    let began = scene.now()
    let open = ''
    const asked = new Map<string, number>()
    scene.onCall(({ client, port, name, target }) => {
      if (port === 'talos' && name === 'machine' && client === scene.leader()) asked.set(target, (asked.get(target) ?? 0) + 1)
    })
    const addressesOf = (operation: TalosOperation): readonly (readonly [string, string])[] =>
      openTargets(operation.status).flatMap(({ name, hostname = name }) => {
        const machine = store.get(ICHOR.machines, NAMESPACE, name)
        return machine ? [[hostname, (machine['spec'] as { address: string }).address] as const] : []
      })
    onSignOfLife(scene, (client, since) => {
      const all = scene.stage.operations().map(operation => ({ operation, open: addressesOf(operation) }))
      const now = JSON.stringify([client, since, all.map(one => [one.operation.metadata.uid, one.open])])
      if (now === open && scene.now() - began < WINDOW_MS) return
      // An old list may have another address of a machine.
      if (now === open && !scene.stage.weather.areListsStale)
        for (const one of all) {
          const counts = one.open.map(([, address]) => asked.get(address) ?? 0)
          const most = Math.max(0, ...counts)
          for (const [i, [name]] of one.open.entries())
            if (most >= MANY && (counts[i] ?? 0) < most / 2)
              object(
                `${name} is open and was asked ${counts[i]} times in a minute, and another of ${one.operation.metadata.name} ${most} times`,
              )
        }
      open = now
      began = scene.now()
      asked.clear()
    })
  },
}

/** The longest pause after failures, and a pass in which every call takes its whole deadline; and once more. */
const LONGEST_MS = 240_000

/** It stands there, and goes on only when somebody asks for it. */
const stands = ({ spec, status, metadata }: TalosOperation): boolean =>
  !isFinished(status.phase) &&
  !spec.cancelled &&
  metadata.deletionTimestamp === undefined &&
  (isStopped(status) || (spec.paused && status.phase === 'Paused'))

/** Who could give it back sees the machine as it is, and is answered. */
const isInSight = ({ stage, world }: Scene, machine: Machine): boolean =>
  world.isUp(machine) &&
  !machine.cut &&
  world.api.available() &&
  !stage.isDisturbed() &&
  !stage.weather.areListsStale &&
  !machine.addresses.some(address => stage.weather.machineSays.has(address))

/** The operation that stands there and owes a Node its cordon back, with nothing that keeps it from that. */
const debtorOf = (scene: Scene, node: KubeObject): TalosOperation | undefined => {
  const { store, machines } = scene.world
  const uid = node.metadata.annotations?.[ANNOTATION.cordonedBy]
  const operations = uid === undefined ? [] : scene.stage.operations()
  const operation = operations.find(o => o.metadata.uid === uid)
  const machine = machines.find(m => m.name === node.metadata.name)
  const target = operation && machine && scene.targetOf(operation, machine)
  if (!operation || !machine || !target || !stands(operation)) return undefined
  if (target.phase !== 'Pending' && target.phase !== 'Failed') return undefined
  // Without them nobody knows how to reach it.
  const { address } = (store.get(ICHOR.machines, NAMESPACE, target.name)?.['spec'] ?? {}) as { address?: string }
  if (store.get(ICHOR.clusters, NAMESPACE, CLUSTER) === undefined || address !== machine.addresses[0]) return undefined
  if (conditionOf(node, 'Ready')?.status !== 'True' || !isInSight(scene, machine) || staysCordoned(scene, machine, operation.metadata.uid))
    return undefined
  const isTakenUp = operations.some(o => o !== operation && openTargets(o.status).some(t => t.name === target.name))
  return isTakenUp ? undefined : operation
}

export const stoppedGivesBack: Checker = {
  name: 'stopped-gives-back',
  rule: 'spec 12',
  post: (scene, object) => {
    const owedSince = new Map<string, number>()
    onSignOfLife(scene, (_, leadsSince) => {
      const now = scene.now()
      for (const node of scene.world.store.list(RESOURCE.nodes).items) {
        const { name } = node.metadata
        const debtor = debtorOf(scene, node)
        if (!debtor) {
          owedSince.delete(name)
          continue
        }
        const since = owedSince.get(name) ?? now
        owedSince.set(name, since)
        const forMs = now - Math.max(since, leadsSince)
        if (forMs > LONGEST_MS)
          object(`${name} is well, and ${debtor.metadata.name}, which stands there, has left its cordon on it for ${forMs} ms`)
      }
    })
  },
}
