import { nearestAdvice } from '../nearest.ts'
import type { Note, Place } from './note.ts'
import { bare, type Shape } from './shape.ts'
import {
  entriesOf,
  isListing,
  isMapping,
  isNothing,
  isSingle,
  itemsOf,
  keyOf,
  removeKey,
  textOf,
  valueAt,
  type Mapping,
  type Node,
} from './yaml-nodes.ts'

/** One `$patch: delete`. */
export type Deletion = {
  /** From the root of the document; empty for all of it. An item of a list is `[n]`, where `n` says nothing. */
  readonly path: readonly string[]
  /** The item of a list to delete: the first that has this text under this key. */
  readonly item?: { readonly key: string; readonly value: string }
  readonly node: Node
}

/** Takes all deletions out of a document of a patch. `isEmpty` where nothing remains that could be merged. */
export const takeDeletions = (root: Mapping, place: Place): { readonly deletions: readonly Deletion[]; readonly isEmpty: boolean } => {
  const deletions: Deletion[] = []
  const isGone = takeFrom(root, undefined, place, deletion => deletions.push(deletion))
  return { deletions, isEmpty: isGone || isBare(root) }
}

/** Without `apiVersion`: a document that has one is merged even where it says nothing else. */
const isBare = (root: Mapping): boolean =>
  entriesOf(root).every(({ key, value }) => ['version', 'kind', 'name'].includes(key) && isSingle(value))

/** Whether the node is to go from where it is. */
const takeFrom = (node: Node, parent: Node | undefined, place: Place, take: (deletion: Deletion) => void): boolean => {
  if (isMapping(node)) {
    const mark = node.items.find(pair => keyOf(pair) === '$patch')
    if (mark && textOf(mark.value as Node) !== 'delete') {
      place.fault({ code: 'wrongType', problem: 'Talos knows no such $patch', advice: 'only `$patch: delete`' }, mark.key)
      removeKey(node, '$patch')
    } else if (mark) {
      takeMarked(node, parent, place, take)
      return true
    }
  } else if (!isListing(node)) return false
  const inner: readonly (readonly [string, Node, unknown])[] = isMapping(node)
    ? entriesOf(node).map(({ key, value }) => [key, value, key] as const)
    : itemsOf(node).map((value, index) => [`[${index}]`, value, value] as const)
  const gone = new Set(inner.filter(([key, value]) => takeFrom(value, node, place.at(key), take)).map(([, , what]) => what))
  if (gone.size === 0) return false
  if (isMapping(node)) for (const key of gone) removeKey(node, String(key))
  else node.items = node.items.filter(item => !gone.has(item))
  return node.items.length === 0
}

const takeMarked = (node: Mapping, parent: Node | undefined, place: Place, take: (deletion: Deletion) => void): void => {
  if (!isListing(parent)) {
    if (place.path.some(key => key.startsWith('['))) place.fault(insideItem, node)
    else take({ path: place.path, node })
    return
  }
  const [first] = entriesOf(node).filter(({ key }) => key !== '$patch')
  if (first) take({ path: place.path, item: { key: first.key, value: textOf(first.value) }, node })
  else {
    const problem = 'nothing says which item of the list is to be deleted'
    place.fault({ code: 'noMatch', problem, advice: 'name the item by a key of its own beside $patch' }, node)
  }
}

const insideItem: Note = {
  code: 'cannotMerge',
  problem: 'Talos deletes items of a list, but nothing inside of one',
  advice: 'delete the item, and give it anew in a second patch',
}

/** Deletes in `root`, which is of `shape`, and says where that is not possible. */
export const applyDeletion = (root: Mapping, shape: Shape, deletion: Deletion, place: Place): void => {
  const outcome = remove(shape, root, deletion.path, deletion)
  if (outcome === 'removed') return
  if (outcome === 'absent') place.warn({ code: 'noEffect', problem: 'there is nothing to delete', advice: '' }, deletion.node)
  else place.fault(outcome, deletion.node)
}

type Outcome = 'removed' | 'absent' | Note

const nothingThere: Note = { code: 'noMatch', problem: 'there is nothing to delete', advice: 'leave the deletion out for this machine' }

const remove = (shape: Shape, node: Node | undefined, path: readonly string[], deletion: Deletion): Outcome => {
  if (shape.kind === 'pointer') return isNothing(node) ? nothingThere : remove(shape.to, node, path, deletion)
  if (shape.kind === 'replace') return remove(shape.of, node, path, deletion)
  const [key = '', ...rest] = path
  if (shape.kind === 'struct') {
    // What a machine has its Talos knows, though it may be newer than the shapes.
    const field = shape.fields.get(key) ?? (valueAt(node, key) ? ({ kind: 'any' } as const) : undefined)
    if (!field) return unknownField(key, [...shape.fields.keys()])
    if (rest.length > 0) return remove(field, valueAt(node, key), rest, deletion)
    if (isNothing(valueAt(node, key)) || !isMapping(node)) return 'absent'
    removeKey(node, key)
    return 'removed'
  }
  if (shape.kind === 'list' || isListing(node)) return removeItem(shape, node, rest, deletion)
  const value = valueAt(node, key)
  if (value === undefined || !isMapping(node)) return nothingThere
  if (rest.length > 0) return remove(shape.kind === 'map' ? shape.of : shape, value, rest, deletion)
  removeKey(node, key)
  return 'removed'
}

const unknownField = (key: string, known: readonly string[]): Note => ({
  code: 'unknownField',
  problem: `there is no field ${key}`,
  advice: nearestAdvice(known, key),
})

const removeItem = (shape: Shape, node: Node | undefined, rest: readonly string[], { item }: Deletion): Outcome => {
  if (rest.length > 0) return insideItem
  const of = shape.kind === 'list' ? bare(shape.of) : shape
  const field = of.kind === 'struct' && item ? of.fields.get(item.key) : undefined
  if (!item || !isListing(node) || !field) return { ...nothingThere, advice: 'Talos finds items by a field of theirs that is a text' }
  if (!isFoundByText(field))
    return { ...nothingThere, problem: `Talos does not find items by ${item.key}`, advice: 'name a field that is a text' }
  const at = itemsOf(node).findIndex(one => {
    const value = valueAt(one, item.key)
    return (isNothing(value) ? '' : textOf(value)) === item.value
  })
  if (at === -1) return nothingThere
  node.items.splice(at, 1)
  return 'removed'
}

const isFoundByText = (field: Shape): boolean => field.kind === 'string' || ['word', 'opaque', 'url', 'size'].includes(bare(field).kind)
