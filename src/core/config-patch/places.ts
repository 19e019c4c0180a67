import { sameValue } from '../same-value.ts'
import type { ConfigDocument } from './documents.ts'
import { saying, valueAt, type Node } from './yaml-nodes.ts'

/** A place in machine configurations: a kind of document, empty for the main one, and the way in it. */
export type ConfigPlace = { readonly kind: string; readonly path: readonly string[] }

/** Of `cluster.etcd`, or `KubeletConfig.image`: documents are told by their capital letter. */
export const placeOf = (text: string): ConfigPlace => {
  const [first = '', ...path] = text.split('.')
  return /^[A-Z]/.test(first) ? { kind: first, path } : { kind: '', path: [first, ...path] }
}

/** What is said there, by each document that says something there. */
export const saidAt = (documents: readonly ConfigDocument[], { kind, path }: ConfigPlace): readonly unknown[] =>
  documents
    .filter(one => one.kind === kind)
    .map(({ root }) => saying(path.reduce<Node | undefined>(valueAt, root)))
    .filter(value => value !== undefined)

export const differsAt = (before: readonly ConfigDocument[], after: readonly ConfigDocument[], place: ConfigPlace): boolean =>
  !sameValue(saidAt(before, place), saidAt(after, place))
