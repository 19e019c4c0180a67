import { sameValue } from '../same-value.ts'
import { keyedMatch, type KeyedList } from './keyed-lists.ts'
import { repeats, type Note, type Place } from './note.ts'
import { bare, type Fields, type Shape } from './shape.ts'
import { mergedSize, mergedUrl } from './merge-text.ts'
import {
  append,
  copyOf,
  entriesOf,
  instead,
  integerOf,
  isListing,
  isMapping,
  isNothing,
  isSingle,
  itemsOf,
  plainTextOf,
  removeKey,
  saying,
  setValue,
  textOf,
  valueAt,
  type Listing,
  type Mapping,
  type Node,
} from './yaml-nodes.ts'

/**
 * What Talos' strategic merge makes of `left` when `right` patches it: `left` itself, changed in place; or a node for its place; or
 * undefined, where nothing is left. The rules are those of Talos' own types (`Shape`), with all their corners: that `0`, an empty text and
 * some words do not override, that an expression which the patch does not name is dropped.
 */
export const merged = (
  shape: Shape,
  left: Node | undefined,
  right: Node | undefined,
  place: Place,
  /** Behind something that may be absent, its zero is a value like others. */
  isOptional = false,
): Node | undefined => {
  switch (shape.kind) {
    case 'pointer':
      if (isNothing(right)) return left
      return isNothing(left) ? copyOf(right as Node) : merged(shape.to, left, right, place, true)
    case 'replace':
      return isNothing(right) || (shape.of.kind === 'map' && entriesOf(right).length === 0) ? left : instead(left, right as Node)
    case 'struct':
      return mergedStruct(shape.fields, left, right, place)
    case 'map':
      return mergedMap(shape, left, right, place)
    case 'list':
      return shape.keyed === '' ? appended(left, right, place) : mergedItems(shape.keyed, shape.of, left, right, place)
    case 'bytes':
      return isNothing(right) ? left : instead(left, right as Node)
    case 'bool':
    case 'whole':
      if (isNothing(right)) warnOfLoss(left, place)
      return isNothing(right) ? undefined : instead(left, right as Node)
    case 'any':
      return mergedAny(left, right, place)
    case 'url':
      return mergedUrl(left, right, place)
    case 'size':
      return mergedSize(left, right)
    case 'opaque':
      place.fault(cannotMerge('Talos cannot merge a value of this kind into one that is there'), right)
      return left
    case 'string':
    case 'number':
    case 'word':
      // What may be absent was seen to be there.
      if (isOptional || !isZero(shape, right)) return instead(left, right as Node)
      if (!isNothing(right) && !isZero(shape, left)) place.warn(noEffect, right)
      return left
  }
}

const noEffect: Note = {
  code: 'noEffect',
  problem: 'Talos does not merge this value, which is its zero, over one that is there',
  advice: 'to take the value away, write `$patch: delete` under the key',
}

export const cannotMerge = (problem: string): Note => ({
  code: 'cannotMerge',
  problem,
  advice: 'delete what is there with `$patch: delete` in a patch of its own, and give the new one in the next',
})

const warnOfLoss = (left: Node | undefined, place: Place): void => {
  if (isNothing(left) || saying(left) === false) return
  const problem = 'it is there and the patch does not name it, but Talos drops it when it merges what is around it'
  place.warn({ code: 'loss', problem, advice: 'name it in the patch, too, to keep it' })
}

const mergedStruct = (fields: Fields, left: Node | undefined, right: Node | undefined, place: Place): Node | undefined => {
  if (!isMapping(left)) return isNothing(right) ? left : copyOf(right as Node)
  for (const [name, shape] of fields) {
    const before = valueAt(left, name)
    put(left, name, before, merged(shape, before, valueAt(right, name), place.at(name)))
  }
  takeUnknown(fields, left, right, place)
  return left
}

/** Fields that a newer Talos may know, and the shapes do not: how it merges them is not known, but where there is none nothing is to be merged. */
const takeUnknown = (fields: Fields, left: Mapping, right: Node | undefined, place: Place): void => {
  for (const { key, keyNode, value } of entriesOf(right)) {
    if (fields.has(key) || isNothing(value)) continue
    const before = valueAt(left, key)
    if (isNothing(before)) setValue(left, key, copyOf(value))
    else if (!sameValue(saying(before), saying(value)))
      place.at(key).fault(cannotMerge('how Talos merges this field is not known here'), keyNode)
  }
}

const put = (mapping: Mapping, key: string, before: Node | undefined, after: Node | undefined): void => {
  if (after === before) return
  if (after) setValue(mapping, key, after)
  else removeKey(mapping, key)
}

const mergedMap = (
  shape: Extract<Shape, { kind: 'map' }>,
  left: Node | undefined,
  right: Node | undefined,
  place: Place,
): Node | undefined => {
  if (isNothing(right)) return left
  if (!isMapping(left)) return copyOf(right as Node)
  for (const { key, value } of entriesOf(right)) {
    const before = valueAt(left, key)
    const after = shape.flat || isNothing(before) ? instead(before, value) : merged(shape.of, before, value, place.at(key))
    put(left, key, before, after)
  }
  return left
}

const appended = (left: Node | undefined, right: Node | undefined, place: Place): Node | undefined => {
  if (isNothing(right)) return left
  if (!isListing(left)) return copyOf(right as Node)
  const before = itemsOf(left).map(saying)
  for (const [index, item] of itemsOf(right).entries())
    if (before.some(one => sameValue(one, saying(item)))) place.at(`[${index}]`).warn(repeats, item)
  append(left, itemsOf(right).map(copyOf))
  return left
}

const mergedItems = (keyed: KeyedList, of: Shape, left: Node | undefined, right: Node | undefined, place: Place): Node | undefined => {
  if (isNothing(right)) return left
  const listing: Listing = isListing(left) ? left : emptied(right as Node)
  const { find, isWhole } = keyedMatch(keyed, itemsOf(listing).length)
  for (const [index, item] of itemsOf(right).entries()) {
    const found = find(itemsOf(listing), item)
    if (found === -1) append(listing, [copyOf(item)])
    else if (isWhole) listing.items[found] = copyOf(item)
    else merged(bare(of), itemsOf(listing)[found], item, place.at(`[${index}]`))
  }
  return listing
}

const emptied = (node: Node): Listing => {
  const listing = copyOf(node) as Listing
  listing.items = []
  return listing
}

/** In an embedded object: by what the two values are. */
const mergedAny = (left: Node | undefined, right: Node | undefined, place: Place): Node | undefined => {
  const [before, after] = [sortOf(left), sortOf(right)]
  if (right === undefined) return left
  if (before === 'nothing') return copyOf(right)
  if (before !== after) {
    place.fault(cannotMerge(`Talos cannot merge ${after} into ${before}`), right)
    return left
  }
  if (after === 'a list') return appended(left, right, place)
  if (after === 'a mapping') return mergedMap({ kind: 'map', of: { kind: 'any' }, flat: false }, left, right, place)
  const value = saying(right)
  if (value === 0 || value === '') {
    if (saying(left) !== value) place.warn(noEffect, right)
    return left
  }
  return instead(left, right)
}

const sortOf = (node: Node | undefined): string => {
  if (isNothing(node)) return 'nothing'
  if (isMapping(node)) return 'a mapping'
  if (isListing(node)) return 'a list'
  const value = saying(node)
  if (typeof value === 'boolean') return 'a boolean'
  if (typeof value === 'string') return /^\d{4}-\d\d?-\d\d?/.test(plainTextOf(node) ?? '') ? 'a time' : 'a text'
  return integerOf(textOf(node).replaceAll('_', '')) === undefined ? 'a number with a fraction' : 'a whole number'
}

/** What a value that does not override looks like. */
const isZero = (shape: Shape, node: Node | undefined): boolean => {
  if (isNothing(node)) return true
  const written = textOf(node)
  if (shape.kind === 'string') return written === '' && isSingle(node)
  if (shape.kind === 'word')
    return written === '' || written.toLowerCase() === shape.zero.toLowerCase() || (shape.zero.startsWith('0') && isNought(written))
  return isNought(written)
}

/** `0`, `0x0`, `0s`, `0 MB`. */
const isNought = (written: string): boolean =>
  /^[-+]?(?:0[xX]0+|0[oO]0+|0[bB]0+|[0_]+(?:\.0*)?)\s*(?:[kKMGTPE]?i?B|ns|us|µs|ms|s|m|h)?$/.test(written)
