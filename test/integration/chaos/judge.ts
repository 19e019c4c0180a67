// Counts what must never happen during a rollout, from what the machines themselves saw of it.
import { at, text } from '../../../src/adapters/kube/json.ts'
import { RESOURCE, type Resource } from '../../../src/adapters/kube/resource.ts'
import { ANNOTATION, leaseName } from '../../../src/api/names.ts'
import type { KubeObject } from '../../../src/adapters/kube/client.ts'
import type { JournalEntry } from '../../../src/world/journal.ts'
import { versionOf, type Machine } from '../../../src/world/machine.ts'
import { CLUSTER, NAMESPACE, type ClusterOnTheWire } from '../../cluster-on-the-wire.ts'
import { again, eventually } from './stage.ts'

export type Judge = {
  /** What the machines saw since it was called. */
  readonly entries: (what: string, machine?: string) => readonly JournalEntry[]
  readonly count: () => number
  /** Everything that went wrong, once the operation is completed; empty where all is as it should be. */
  readonly verdict: (operation: string) => Promise<readonly string[]>
}

type Wish = {
  readonly version: string
  /** Names of machines that nobody may touch. */
  readonly held?: readonly string[]
  /** When controllers began to lead. What one has begun, the next may have to begin again; the same one never does. */
  readonly terms: () => readonly number[]
}

/** What takes a machine, or something on it, away. */
const ACTS = ['install-began', 'reboot-requested', 'forfeit']

export const judge = (cluster: ClusterOnTheWire, { version, held = [], terms }: Wish): Judge => {
  const { world, client } = cluster
  const violations: string[] = []
  const pending: Promise<unknown>[] = []
  const entries: JournalEntry[] = []
  const object = (what: string): void => {
    if (!violations.includes(what)) violations.push(what)
  }

  const stop = world.journal.onEntry(entry => {
    entries.push(entry)
    const { what, machine: name } = entry
    const gone = world.away('controlplane').map(m => m.name)
    if (gone.length > 1) object(`${gone.join(' and ')} are away at once`)
    if (what === 'quorum-lost' || what === 'boot-failed' || what === 'drain-gave-up') object(`${what} ${name}`)
    if (!ACTS.includes(what)) return
    if (held.includes(name)) object(`${what} on ${name}, which is held`)
    const others = world.away().filter(m => m.name !== name)
    if (others.length > 0) object(`${what} on ${name} while ${others.map(m => m.name).join(' and ')} is away`)
    if (what !== 'reboot-requested') return
    const left = movablePods(world.store.list('pods').items, name)
    if (left.length > 0) object(`${what} on ${name} with ${left.join(', ')} still there`)
    pending.push(stillCordoned(name))
  })

  /** It stays cordoned until long after its reboot: asked now, the server still says so. */
  const stillCordoned = (node: string) =>
    eventually(async () => {
      const found = await client.get(RESOURCE.node, { name: node })
      if (!found.ok) throw new Error(found.fault.message)
      if (at(found.value, 'spec', 'unschedulable') !== true) object(`${node} was rebooted, and not cordoned`)
    })

  /** Twice the same by one and the same leader. */
  const repeated = (machine: Machine): readonly string[] =>
    ['install-began', 'reboot-requested'].flatMap(what =>
      entries
        .filter(e => e.what === what && e.machine === machine.name)
        .flatMap(({ at: time }, index, all) => {
          const before = all[index - 1]?.at
          return before === undefined || terms().some(began => began > before && began <= time)
            ? []
            : [`${what} on ${machine.name} once more after ${time - before} ms, by the same leader`]
        }),
    )

  const outcomeOf = (machine: Machine): readonly string[] => {
    const { name } = machine
    const of = (what: string) => entries.filter(e => e.what === what && e.machine === name).length
    const isHeld = held.includes(name)
    return [
      ...(of('boot') === (isHeld ? 0 : 1) ? [] : [`${name} was booted ${of('boot')} times`]),
      ...(of('install-began') === 0 && !isHeld ? [`nothing was installed on ${name}`] : []),
      ...((versionOf(machine) === version) === isHeld ? [`${name} runs ${versionOf(machine)}`] : []),
      ...(world.nodes.isReady(name) ? [] : [`Node ${name} is not ready`]),
    ]
  }

  const leftBehind = async (operation: string): Promise<readonly string[]> => {
    const of = async (type: Resource, place: { namespace?: string; name: string }): Promise<KubeObject> => {
      const found = await client.get(type, place)
      if (!found.ok) throw new Error(found.fault.message)
      return found.value
    }
    const nodes = await Promise.all(world.machines.map(({ name }) => of(RESOURCE.node, { name })))
    const lock = text(at(await of(RESOURCE.lease, { namespace: NAMESPACE, name: leaseName(CLUSTER) }), 'spec', 'holderIdentity'))
    const found = await of(RESOURCE.talosOperation, { namespace: NAMESPACE, name: operation })
    const finalizers = (at(found, 'metadata', 'finalizers') ?? []) as readonly string[]
    return [
      ...nodes
        .filter(n => at(n, 'spec', 'unschedulable') === true || at(n, 'metadata', 'annotations', ANNOTATION.cordonedBy) !== undefined)
        .map(n => `a cordon was left on ${text(at(n, 'metadata', 'name'))}`),
      ...(lock === '' ? [] : [`${lock} holds the lock`]),
      ...finalizers.map(finalizer => `${operation} has the finalizer ${finalizer}`),
    ]
  }

  return {
    entries: (what, machine) => entries.filter(e => e.what === what && (machine === undefined || e.machine === machine)),
    count: () => entries.length,
    verdict: async operation => {
      await Promise.all(pending)
      // The pass that completes it gives the lock back a moment later.
      const left = await eventually(async () => {
        const now = await leftBehind(operation)
        if (now.length > 0) throw new Error(now.join('; '))
        return now
      }, 20_000).catch((error: Error) => [error.message])
      stop()
      const all = [...violations, ...world.machines.flatMap(repeated), ...world.machines.flatMap(outcomeOf), ...left]
      const background = cluster.faults.map(fault => `in the background: ${String(fault)}`)
      return [...all, ...background].map(violation => `${violation} (${again})`)
    },
  }
}

/** Names of those that a drain has to move. */
const movablePods = (pods: readonly { readonly metadata: KubeObject }[], node: string): readonly string[] =>
  pods
    .filter(pod => {
      const owners = (at(pod, 'metadata', 'ownerReferences') ?? []) as readonly { kind: string; controller?: boolean }[]
      const owner = owners.find(o => o.controller)?.kind
      const isDone = ['Succeeded', 'Failed'].includes(text(at(pod, 'status', 'phase')))
      return text(at(pod, 'spec', 'nodeName')) === node && owner !== 'DaemonSet' && owner !== 'Node' && !isDone
    })
    .map(pod => text(at(pod, 'metadata', 'name')))
