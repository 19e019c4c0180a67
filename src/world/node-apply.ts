import type { Draft, KubeObject } from './store.ts'

export type Taint = { readonly key: string; readonly value?: string; readonly effect: string }

/** What Talos wants of its own Node. */
export type NodeWishes = {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
}

const OWNED = { labels: 'talos.dev/owned-labels', annotations: 'talos.dev/owned-annotations', taints: 'talos.dev/owned-taints' } as const

const ownedBy = (node: KubeObject, what: keyof typeof OWNED): Set<string> => {
  const text = node.metadata.annotations?.[OWNED[what]]
  return new Set(text === undefined ? [] : (JSON.parse(text) as string[]))
}

/**
 * Takes what nobody has set, or what is as wished already; changes what is its own; leaves what others have set otherwise; and removes what was its own
 * and is wished no more.
 */
const applied = <T>(
  now: ReadonlyMap<string, T>,
  wished: ReadonlyMap<string, T>,
  owned: Set<string>,
  isSame: (a: T, b: T) => boolean,
): Map<string, T> => {
  const result = new Map(now)
  for (const [key, value] of wished) {
    const there = now.get(key)
    if (there === undefined || owned.has(key) || isSame(there, value)) {
      result.set(key, value)
      owned.add(key)
    }
  }
  for (const key of [...owned]) {
    if (wished.has(key)) continue
    owned.delete(key)
    result.delete(key)
  }
  return result
}

const isSameTaint = (a: Taint, b: Taint): boolean => (a.value ?? '') === (b.value ?? '') && a.effect === b.effect

/** The Node as Talos writes it: it remembers in annotations which labels, annotations and taints are its own. */
export const applyToNode = (node: KubeObject, wishes: NodeWishes): Draft => {
  const spec = node.spec as { readonly taints?: readonly Taint[] }
  const owned = { labels: ownedBy(node, 'labels'), annotations: ownedBy(node, 'annotations'), taints: ownedBy(node, 'taints') }
  const texts = (now: Readonly<Record<string, string>> | undefined, what: 'labels' | 'annotations'): Record<string, string> =>
    Object.fromEntries(applied(new Map(Object.entries(now ?? {})), new Map(Object.entries(wishes[what])), owned[what], (a, b) => a === b))
  const labels = texts(node.metadata.labels, 'labels')
  const annotations = texts(node.metadata.annotations, 'annotations')
  const byKey = (taints: readonly Taint[]): Map<string, Taint> => new Map(taints.map(taint => [taint.key, taint]))
  // Two taints of one key that others set stay both.
  const others = (spec.taints ?? []).filter(({ key }) => !owned.taints.has(key) && !wishes.taints.some(taint => taint.key === key))
  const mine = (spec.taints ?? []).filter(taint => !others.includes(taint))
  const taints = [...others, ...applied(byKey(mine), byKey(wishes.taints), owned.taints, isSameTaint).values()]
  for (const what of ['labels', 'annotations', 'taints'] as const) {
    if (owned[what].size > 0) annotations[OWNED[what]] = JSON.stringify([...owned[what]].toSorted())
    else delete annotations[OWNED[what]]
  }
  const { taints: _, ...rest } = spec
  return { ...node, metadata: { ...node.metadata, labels, annotations }, spec: taints.length > 0 ? { ...rest, taints } : rest }
}
