import { setTimeout as pause } from 'node:timers/promises'
import type { ApiFault } from '../../adapters/kube/classify.ts'
import type { KubeClient, KubeObject } from '../../adapters/kube/client.ts'
import { at, list, text } from '../../adapters/kube/json.ts'
import { startReflector } from '../../adapters/kube/reflector.ts'
import type { Place, Resource } from '../../adapters/kube/resource.ts'
import { RESOURCE } from '../../adapters/kube/resource.ts'
import type { World } from '../../world/cluster.ts'
import type { KubeObject as WorldObject } from '../../world/store.ts'
import { same } from '../../world/json.ts'
import { systemClock } from '../system-clock.ts'
import { createNodeMerge } from './node-merge.ts'

/** A type that the world keeps. What is `shared` is changed at the server, too, and comes back from there. */
type Mirrored = Resource & { readonly shelf: string; readonly shared?: true }

const apps = (plural: string, kind: string): Mirrored => ({ group: 'apps', version: 'v1', plural, kind, shelf: `${plural}.apps` })

/** In the order in which they have to come. */
const TYPES: readonly Mirrored[] = [
  { ...RESOURCE.namespace, shelf: 'namespaces' },
  { ...RESOURCE.node, shelf: 'nodes', shared: true },
  { ...RESOURCE.configMap, shelf: 'configmaps' },
  apps('deployments', 'Deployment'),
  apps('replicasets', 'ReplicaSet'),
  { ...apps('daemonsets', 'DaemonSet'), shared: true },
  { ...RESOURCE.budget, shelf: 'poddisruptionbudgets.policy' },
  { ...RESOURCE.pod, shelf: 'pods', shared: true },
  { ...RESOURCE.volumeAttachment, shelf: 'volumeattachments.storage.k8s.io' },
]

export type Mirror = {
  /** All that is there at the start is at the server, too. */
  readonly ready: Promise<void>
  readonly stop: () => void
}

const RETRY_MS = 200

/**
 * Plays kubelets and controllers to a real API server: what the world does to its Nodes, pods and budgets is written there, and what people and Ichor do there
 * (cordons, marks, evictions, deletions) is done in the world. One object at a time, each from what both sides say now; a server that is away
 * is waited for.
 */
export const startMirror = (world: World, client: KubeClient, failed: (error: unknown) => void): Mirror => {
  const { store } = world
  const due = new Map<string, { readonly type: Mirrored; readonly place: Place & { readonly name: string } }>()
  /** By key: the uid in the world of what was written to the server, and its status there. */
  const written = new Map<string, { readonly uid: string; status: unknown }>()
  const mergeNode = createNodeMerge(store, client)
  let isStopped = false
  let wake: (() => void) | undefined
  let allDone: () => void = () => {}
  const ready = new Promise<void>(resolve => (allDone = resolve))

  const add = (type: Mirrored, namespace: string, name: string): void => {
    due.set(`${type.plural}/${namespace}/${name}`, { type, place: { name, ...(namespace === '' ? {} : { namespace }) } })
    wake?.()
  }

  const removeFromWorld = (type: Mirrored, object: WorldObject, gracePeriodSeconds: number): undefined => {
    const { namespace = '', name, uid } = object.metadata
    store.remove(type.shelf, namespace, name, { uid, gracePeriodSeconds })
  }

  /** Makes both sides agree on one object. Answers the fault of the server, if there was one. */
  const agree = async (key: string, type: Mirrored, place: Place & { readonly name: string }): Promise<ApiFault | undefined> => {
    const wanted = store.get(type.shelf, place.namespace ?? '', place.name)
    const known = written.get(key)
    const got = await client.get(type, place)
    if (!got.ok && got.fault.kind !== 'notFound') return got.fault
    const found = got.ok ? got.value : undefined

    if (found && (!wanted || (known && known.uid !== wanted.metadata.uid))) {
      // Never what the world did not bring there.
      if (!known) return undefined
      const deleted = await client.delete(type, place, { gracePeriodSeconds: 0 })
      if (!deleted.ok && deleted.fault.kind !== 'notFound') return deleted.fault
      written.delete(key)
      if (wanted) add(type, place.namespace ?? '', place.name)
      return undefined
    }
    if (!wanted) return void written.delete(key)
    if (!found) {
      if (known?.uid === wanted.metadata.uid) {
        written.delete(key)
        return removeFromWorld(type, wanted, 0)
      }
      const created = await client.create(type, { ...place, name: undefined }, draftOf(wanted))
      // One that the server makes by itself, as the namespace default.
      if (!created.ok && created.fault.kind !== 'alreadyExists') return created.fault
    }
    const record = known ?? { uid: wanted.metadata.uid, status: undefined }
    written.set(key, record)
    if (type.kind === 'DaemonSet' && found) takeImages(type, wanted, found)
    const fault =
      type.kind === 'Pod' && found
        ? await agreeOnPod(type, place, wanted, found)
        : type.kind === 'Node'
          ? await mergeNode(wanted, found)
          : undefined
    if (fault) return fault
    return agreeOnStatus(type, place, wanted, found, record)
  }

  /** Whoever applied Talos' manifests did so at the server. */
  const takeImages = (type: Mirrored, wanted: WorldObject, found: KubeObject): void => {
    const template = (wanted['spec'] as { template: { spec: object } }).template
    const containers = imagesOf(found).map(([name, image]) => ({ name, image }))
    if (same(imagesOf(wanted), imagesOf(found))) return
    const spec = { ...(wanted['spec'] as object), template: { ...template, spec: { ...template.spec, containers } } }
    store.update(type.shelf, { ...wanted, spec })
  }

  const agreeOnPod = async (type: Mirrored, place: Place, wanted: WorldObject, found: KubeObject): Promise<ApiFault | undefined> => {
    const node = text(at(wanted, 'spec', 'nodeName'))
    if (node !== '' && text(at(found, 'spec', 'nodeName')) === '') {
      const body = {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name: place.name, namespace: place.namespace },
        target: { kind: 'Node', name: node },
      }
      const bound = await client.create(type, { ...place, subresource: 'binding' }, body)
      if (!bound.ok) return bound.fault
    }
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = wanted.metadata
    const isLeavingThere = at(found, 'metadata', 'deletionTimestamp') !== undefined
    if (isLeavingThere && deletionTimestamp === undefined) {
      removeFromWorld(type, wanted, Number(at(found, 'metadata', 'deletionGracePeriodSeconds') ?? 0))
    } else if (!isLeavingThere && deletionTimestamp !== undefined) {
      const deleted = await client.delete(type, place, { gracePeriodSeconds: deletionGracePeriodSeconds })
      if (!deleted.ok && deleted.fault.kind !== 'notFound') return deleted.fault
    }
    return undefined
  }

  const agreeOnStatus = async (
    type: Mirrored,
    place: Place,
    wanted: WorldObject,
    found: KubeObject | undefined,
    record: { status: unknown },
  ): Promise<ApiFault | undefined> => {
    if (wanted['status'] === undefined || type.kind === 'Namespace') return undefined
    // The server itself counts a budget's evictions; what the world counted then takes their place.
    const status =
      type.kind === 'PodDisruptionBudget'
        ? budgetStatus(wanted, found)
        : type.kind === 'DaemonSet'
          ? daemonStatus(wanted, found)
          : wanted['status']
    if (same(record.status, status) && !isSpent(type, status, found)) return undefined
    const patched = await client.patch(type, { ...place, subresource: 'status' }, { status })
    if (!patched.ok) return patched.fault.kind === 'notFound' ? undefined : patched.fault
    record.status = status
    return undefined
  }

  const work = async (): Promise<void> => {
    while (!isStopped) {
      const [next] = due
      if (!next) {
        allDone()
        await new Promise<void>(resolve => (wake = resolve))
        continue
      }
      const [key, { type, place }] = next
      due.delete(key)
      const fault = await agree(key, type, place)
      if (!fault || isStopped) continue
      if (fault.kind === 'invalid' || fault.kind === 'forbidden') throw new Error(`the API server does not take ${key}: ${fault.message}`)
      if (!due.has(key)) due.set(key, { type, place })
      await pause(RETRY_MS, undefined, { ref: false })
    }
  }

  const stops = TYPES.map(type => {
    const watched = store.watch(type.shelf, '0', ({ object }) => add(type, object.metadata.namespace ?? '', object.metadata.name))
    return () => void (watched.ok && watched.stop())
  })
  const reflectors = TYPES.filter(({ shared }) => shared).map(type =>
    startReflector({
      source: {
        list: signal => client.list(type, { signal }),
        watch: (options, on) => client.watch(type, options, on),
      },
      parse: object => object,
      clock: systemClock,
      random: Math.random,
      changed: ({ object }) => add(type, text(at(object, 'metadata', 'namespace')), text(at(object, 'metadata', 'name'))),
    }),
  )
  work().catch(failed)
  return {
    ready,
    stop: () => {
      isStopped = true
      for (const stop of stops) stop()
      for (const { stop } of reflectors) stop()
      wake?.()
    },
  }
}

/** What the server has its own of is left out. */
const draftOf = (object: WorldObject): KubeObject => {
  const { name, namespace, labels, annotations, ownerReferences } = object.metadata
  return { ...object, metadata: { name, namespace, labels, annotations, ownerReferences }, status: undefined }
}

/** An eviction at the server took from the budget, and the world has counted anew since: to the same number, perhaps. */
const isSpent = (type: Mirrored, status: unknown, found: KubeObject | undefined): boolean =>
  type.kind === 'PodDisruptionBudget' && at(found, 'status', 'disruptionsAllowed') !== at(status, 'disruptionsAllowed')

const imagesOf = (object: unknown): readonly (readonly [name: string, image: string])[] =>
  list(at(object, 'spec', 'template', 'spec', 'containers')).map(one => [text(at(one, 'name')), text(at(one, 'image'))] as const)

/** Both sides count generations by themselves: what the world's controller has seen is what the server has now, or what was before. */
const daemonStatus = (wanted: WorldObject, found: KubeObject | undefined): object => {
  const status = wanted['status'] as { observedGeneration?: number }
  const generation = Number(at(found, 'metadata', 'generation') ?? 1)
  const isSeen = (status.observedGeneration ?? 0) >= wanted.metadata.generation && (!found || same(imagesOf(wanted), imagesOf(found)))
  return { ...status, observedGeneration: isSeen ? generation : generation - 1 }
}

const budgetStatus = (wanted: WorldObject, found: KubeObject | undefined): object => ({
  ...(wanted['status'] as object),
  disruptedPods: null,
  observedGeneration: Number(at(found, 'metadata', 'generation') ?? 1),
})
