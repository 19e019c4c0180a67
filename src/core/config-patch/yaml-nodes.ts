import { isAlias, isCollection, isMap, isScalar, isSeq, Pair, Scalar, YAMLMap, YAMLSeq, type Document } from 'yaml'

/**
 * YAML as the library's nodes, read by its failsafe schema: every scalar is its text and stays as it was written, for `0644` and `no` mean
 * one thing in a field that is a text and another in one that is a number. What Talos makes of a scalar is said here.
 */
export type Node = Scalar<string> | YAMLMap | YAMLSeq
type Mapping = YAMLMap
type Listing = YAMLSeq
export type { Listing, Mapping }

export const isMapping = (node: Node | undefined): node is Mapping => isMap(node)
export const isListing = (node: Node | undefined): node is Listing => isSeq(node)

/** A value that is neither of them. */
export const isSingle = (node: Node | undefined): boolean => isScalar(node)

/** Of a scalar; empty for a collection or nothing. */
export const textOf = (node: Node | undefined): string => (isScalar(node) ? String(node.value) : '')

const isPlain = (node: Scalar): boolean => node.type === Scalar.PLAIN && node.tag === undefined

/** The text of a scalar without quotes, of which a reader has to guess what it is. */
export const plainTextOf = (node: Node | undefined): string | undefined =>
  isScalar(node) && isPlain(node) ? String(node.value) : undefined

/** Absent, or null. */
export const isNothing = (node: Node | undefined): boolean => {
  const plain = plainTextOf(node)
  return node === undefined || (plain !== undefined && /^(?:|~|null|Null|NULL)$/.test(plain))
}

/** Where a node begins in its text, in UTF-16 units; undefined for one that was made here. */
export const offsetOf = (node: unknown): number | undefined => (node as { range?: readonly number[] } | undefined)?.range?.[0]

export const keyOf = ({ key }: Pair): string => (isScalar(key) ? String(key.value) : '')

/** Where nothing was written behind a key, `unfolded` has put a scalar that says so. */
const valueOf = ({ value }: Pair): Node => value as Node

export const entriesOf = (node: Node | undefined): readonly { readonly key: string; readonly keyNode: unknown; readonly value: Node }[] =>
  isMapping(node) ? node.items.map(pair => ({ key: keyOf(pair), keyNode: pair.key, value: valueOf(pair) })) : []

export const itemsOf = (node: Node | undefined): readonly Node[] => (isListing(node) ? (node.items as Node[]) : [])

export const valueAt = (node: Node | undefined, key: string): Node | undefined => {
  if (!isMapping(node)) return undefined
  const pair = node.items.find(item => keyOf(item) === key)
  return pair && valueOf(pair)
}

export const setValue = (mapping: Mapping, key: string, value: Node): void => {
  const pair = mapping.items.find(item => keyOf(item) === key)
  if (pair) pair.value = value
  else {
    if (mapping.items.length === 0) mapping.flow = false
    mapping.items.push(new Pair(text(key), value))
  }
}

export const removeKey = (mapping: Mapping, key: string): void => {
  mapping.items = mapping.items.filter(item => keyOf(item) !== key)
}

export const append = (listing: Listing, nodes: readonly Node[]): void => {
  if (listing.items.length === 0 && nodes.length > 0) listing.flow = false
  listing.items.push(...nodes)
}

export const copyOf = <T extends Node>(node: T): T => node.clone() as T

/** In the place of another scalar, whose remark stays. */
export const instead = (before: Node | undefined, node: Node): Node => {
  const copy = copyOf(node)
  if (isScalar(before) && isScalar(copy)) copy.comment ??= before.comment
  return copy
}

export const plain = (source: string): Scalar<string> => Object.assign(new Scalar(source), { type: Scalar.PLAIN })

/** A scalar that every reader takes for a text. */
export const text = (value: string): Scalar<string> => {
  const scalar = new Scalar(value)
  const isAmbiguous = typeof resolved(value) !== 'string' || /^(?:y|yes|n|no|on|off)$/i.test(value) || /^[\d.+-]/.test(value)
  if (isAmbiguous) scalar.type = Scalar.QUOTE_DOUBLE
  return scalar
}

/** What a plain scalar is where nothing says what it should be (an embedded object, a value of a JSON patch), by the rules of Talos' reader. */
const resolved = (source: string): string | number | bigint | boolean | null => {
  if (/^(?:|~|null|Null|NULL)$/.test(source)) return null
  if (/^(?:true|True|TRUE)$/.test(source)) return true
  if (/^(?:false|False|FALSE)$/.test(source)) return false
  const digits = source.replaceAll('_', '')
  const integer = integerOf(digits)
  if (integer !== undefined) return integer
  return /^[-+]?\d*\.?\d+(?:[eE][-+]\d+)?$|^[-+]?\d+\.$/.test(digits) ? Number(digits) : source
}

/** Also `0644`, which is octal there as it was in YAML 1.1. */
export const integerOf = (digits: string): number | bigint | undefined => {
  const found = /^([-+]?)(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9]\d*)$/.exec(digits)
  const [, sign, body = ''] = found ?? []
  if (!found) return undefined
  const value = BigInt(/^0[0-7]/.test(body) ? `0o${body.slice(1)}` : body.toLowerCase()) * (sign === '-' ? -1n : 1n)
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value
}

/** What a node says where nothing says what it should be. */
export const saying = (node: Node | undefined): unknown => {
  if (isMapping(node)) return Object.fromEntries(entriesOf(node).map(({ key, value }) => [key, saying(value)]))
  if (isListing(node)) return itemsOf(node).map(saying)
  const source = plainTextOf(node)
  return node === undefined ? undefined : source === undefined ? textOf(node) : resolved(source)
}

/** The node that says `value`, so that nobody reads it otherwise. */
export const nodeOf = (value: unknown): Node => {
  if (Array.isArray(value)) {
    const listing = new YAMLSeq()
    listing.items = value.map(nodeOf)
    return listing
  }
  if (typeof value === 'object' && value !== null) {
    const mapping = new YAMLMap()
    mapping.items = Object.entries(value).map(([key, inner]) => new Pair(text(key), nodeOf(inner)))
    return mapping
  }
  return typeof value === 'string' ? text(value) : plain(String(value))
}

/**
 * A document without anchors, aliases and merged keys: of each, what it stands for. Throws where one stands for itself, and for a set or
 * other collection that YAML has beside mappings and lists. `within` are the aliases that are being followed.
 */
export const unfolded = (document: Document, node: unknown, within: readonly unknown[] = []): Node => {
  if (isAlias(node)) {
    const target = node.resolve(document)
    if (within.includes(target)) throw new Error('an alias stands for itself')
    return unfolded(document, target, [...within, target])
  }
  if (isCollection(node) && node.tag !== undefined) throw new Error('a collection with a tag')
  if (isSeq(node)) return Object.assign(unanchored(node), { items: node.items.map(item => unfolded(document, item, within)) })
  if (isMap(node)) return unfoldedMapping(document, node, within)
  return isScalar(node) ? unanchored(node as Scalar<string>) : plain('')
}

const unfoldedMapping = (document: Document, node: YAMLMap, within: readonly unknown[]): Mapping => {
  const merged: Node[] = []
  const mapping = Object.assign(unanchored(node), { items: [] as Pair[] })
  for (const pair of node.items) {
    const value = unfolded(document, pair.value, within)
    const isMerge = isScalar(pair.key) && pair.key.type === Scalar.PLAIN && pair.key.value === '<<'
    if (!isMerge) mapping.items.push(new Pair(pair.key, beginningAt(pair.key, value)))
    else merged.push(...(isListing(value) ? itemsOf(value) : [value]))
  }
  for (const { key, value } of merged.flatMap(entriesOf)) if (!valueAt(mapping, key)) setValue(mapping, key, value)
  return mapping
}

/** For readers a value that goes over several lines begins where its key is. */
const beginningAt = (key: unknown, value: Node): Node => {
  const begin = offsetOf(key)
  if (begin !== undefined && value.range) value.range = [begin, value.range[1], value.range[2]]
  return value
}

/** The node alone; what is in it stays the other's. */
const unanchored = <T extends Node>(node: T): T => {
  const copy = Object.create(Object.getPrototypeOf(node) as object, Object.getOwnPropertyDescriptors(node)) as T
  delete copy.anchor
  return copy
}
