import type { ApiFault } from '../../adapters/kube/classify.ts'
import type { KubeClient, KubeObject } from '../../adapters/kube/client.ts'
import { at, texts } from '../../adapters/kube/json.ts'
import { RESOURCE } from '../../adapters/kube/resource.ts'
import { same } from '../../world/json.ts'
import type { KubeObject as WorldObject, Store } from '../../world/store.ts'

/** What both sides write of a Node: the world (Talos cordons, too), and Ichor and people at the server. */
type Shared = {
  readonly unschedulable: boolean
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const sharedOf = (node: unknown): Shared => ({
  unschedulable: at(node, 'spec', 'unschedulable') === true,
  labels: texts(at(node, 'metadata', 'labels')),
  annotations: texts(at(node, 'metadata', 'annotations')),
})

/** Merges in three ways: who changed something since both agreed last has it. Where both did, the world has. Answers the fault of the server. */
export const createNodeMerge = (store: Store, client: KubeClient) => {
  const agreed = new Map<string, Shared>()
  return async (node: WorldObject, found: KubeObject | undefined): Promise<ApiFault | undefined> => {
    const { name, uid } = node.metadata
    const ours = sharedOf(node)
    const theirs = found ? sharedOf(found) : ours
    const base = agreed.get(uid) ?? ours
    const merged: Shared = {
      unschedulable: ours.unschedulable === base.unschedulable ? theirs.unschedulable : ours.unschedulable,
      labels: merge(base.labels, ours.labels, theirs.labels),
      annotations: merge(base.annotations, ours.annotations, theirs.annotations),
    }
    // The server gives every new Node a taint that a controller would take away again.
    const taints = at(node, 'spec', 'taints') ?? null
    if (!same(theirs, merged) || !same(at(found, 'spec', 'taints') ?? null, taints)) {
      const patched = await client.patch(
        RESOURCE.node,
        { name },
        {
          metadata: { labels: change(theirs.labels, merged.labels), annotations: change(theirs.annotations, merged.annotations) },
          spec: { unschedulable: merged.unschedulable || null, taints },
        },
      )
      if (!patched.ok) return patched.fault
    }
    agreed.set(uid, merged)
    const now = store.get('nodes', '', name)
    if (now && !same(ours, merged)) {
      store.update('nodes', {
        ...now,
        metadata: { ...now.metadata, labels: merged.labels, annotations: merged.annotations },
        spec: { ...(now['spec'] as object), unschedulable: merged.unschedulable || undefined },
      })
    }
    return undefined
  }
}

type Texts = Readonly<Record<string, string>>

const merge = (base: Texts, ours: Texts, theirs: Texts): Texts => {
  const merged = { ...theirs }
  for (const key of new Set([...Object.keys(base), ...Object.keys(ours)])) {
    if (ours[key] === base[key]) continue
    if (ours[key] === undefined) delete merged[key]
    else merged[key] = ours[key]
  }
  return merged
}

const change = (from: Texts, to: Texts): Readonly<Record<string, string | null>> => ({
  ...Object.fromEntries(Object.keys(from).map(key => [key, null])),
  ...to,
})
