import { sameValue } from '../same-value.ts'
import { repeats, type Note, type Place } from './note.ts'
import {
  append,
  copyOf,
  entriesOf,
  isListing,
  isMapping,
  isNothing,
  itemsOf,
  nodeOf,
  plain,
  removeKey,
  saying,
  setValue,
  textOf,
  valueAt,
  type Mapping,
  type Node,
} from './yaml-nodes.ts'

const VERBS = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const

/** One operation of RFC 6902. */
export type Operation = {
  readonly verb: (typeof VERBS)[number]
  readonly path: readonly string[]
  readonly from: readonly string[]
  readonly value?: Node
  readonly node: Node
}

/** The operations of a list of them; those that are none are written down as faults. */
export const readOperations = (root: Node, place: Place): readonly Operation[] =>
  itemsOf(root).flatMap((node, index) => readOperation(node, place.at(`[${index}]`)) ?? [])

const readOperation = (node: Node, place: Place): Operation | undefined => {
  const wrong = (problem: string, advice: string): undefined => {
    place.fault({ code: 'wrongType', problem, advice }, node)
    return undefined
  }
  for (const { key, keyNode } of entriesOf(node))
    if (!['op', 'path', 'from', 'value'].includes(key))
      place
        .at(key)
        .fault({ code: 'unknownField', problem: 'an operation has no such field', advice: 'it has op, path, from and value' }, keyNode)
  const verb = VERBS.find(one => one === textOf(valueAt(node, 'op')))
  if (!verb) return wrong('this is no operation of a JSON patch', `its op is one of ${VERBS.join(', ')}`)
  const [path, from] = [pointerOf(valueAt(node, 'path')), pointerOf(valueAt(node, 'from'))]
  if (!path) return wrong('its path is no JSON pointer', 'write it as /machine/kubelet/image')
  if ((verb === 'move' || verb === 'copy') && !from) return wrong('it does not say from where', 'give a JSON pointer as from')
  const value = valueAt(node, 'value')
  if (['add', 'replace', 'test'].includes(verb) && value === undefined) return wrong('it has no value', 'give one')
  return { verb, path, from: from ?? [], node, ...(value === undefined ? {} : { value }) }
}

/** The whole document has no pointer here: nobody means to replace it. */
const pointerOf = (node: Node | undefined): readonly string[] | undefined => {
  const written = textOf(node)
  return written.startsWith('/')
    ? written
        .slice(1)
        .split('/')
        .map(key => key.replaceAll('~1', '/').replaceAll('~0', '~'))
    : undefined
}

/** Carries an operation out in `root`, or says why it cannot be. */
export const applyOperation = (root: Mapping, operation: Operation, place: Place): void => {
  const { verb, path, from, value, node } = operation
  // What stands in no mapping is not there to Talos; what a mapping does not have is null to it.
  const named = verb === 'copy' ? from : path
  if ((verb === 'copy' || verb === 'replace') && find(root, named) === undefined && isMapping(parentOf(root, named)))
    place.warn({ ...nothingAt(named), advice: verb === 'copy' ? 'Talos takes null for it' : 'Talos adds it' }, node)
  if (verb === 'add' && itemsOf(parentOf(root, path)).some(item => sameValue(saying(item), saying(value)))) place.warn(repeats, node)
  const problem = apply(root, { verb, path, from, value })
  if (problem) place.fault(problem, node)
}

const apply = (root: Mapping, { verb, path, from, value }: Omit<Operation, 'node'>): Note | undefined => {
  switch (verb) {
    case 'add':
      return add(root, path, fresh(value))
    case 'replace':
      return replace(root, path, fresh(value))
    case 'remove':
      return remove(root, path)
    case 'test':
      return test(root, path, value)
    case 'copy':
      return isReachable(root, from) ? add(root, path, copyOf(find(root, from) ?? plain('null'))) : nothingAt(from)
    case 'move': {
      const found = find(root, from)
      return found === undefined ? nothingAt(from) : (remove(root, from) ?? add(root, path, found))
    }
  }
}

/** As Talos reads it: by what it is, not by where it goes. */
const fresh = (value: Node | undefined): Node => nodeOf(saying(value))

const nothingAt = (path: readonly string[]): Note => ({
  code: 'noMatch',
  problem: `there is nothing at /${path.join('/')}`,
  advice: 'a JSON patch makes no way to its place: add what is around it first, or use a strategic merge patch',
})

const find = (root: Node, path: readonly string[]): Node | undefined =>
  path.reduce<Node | undefined>((node, key) => (isListing(node) ? itemsOf(node)[indexOf(key)] : valueAt(node, key)), root)

/** -1 for what is none. */
const indexOf = (key: string): number => (/^(?:0|[1-9]\d*)$/.test(key) ? Number(key) : -1)

const parentOf = (root: Node, path: readonly string[]): Node | undefined => find(root, path.slice(0, -1))

/** A pointer names one thing at least. */
const lastOf = (path: readonly string[]): string => {
  const [key = ''] = path.slice(-1)
  return key
}

const isReachable = (root: Node, path: readonly string[]): boolean => isMapping(parentOf(root, path)) || find(root, path) !== undefined

const replace = (root: Node, path: readonly string[], node: Node): Note | undefined => {
  const [parent, key] = [parentOf(root, path), lastOf(path)]
  if (!isReachable(root, path)) return nothingAt(path)
  if (isMapping(parent)) setValue(parent, key, node)
  else if (isListing(parent)) parent.items[indexOf(key)] = node
  return undefined
}

const add = (root: Node, path: readonly string[], node: Node): Note | undefined => {
  const [parent, key] = [parentOf(root, path), lastOf(path)]
  if (isMapping(parent)) {
    setValue(parent, key, node)
    return undefined
  }
  if (!isListing(parent)) return nothingAt(path.slice(0, -1))
  const index = key === '-' ? parent.items.length : indexOf(key)
  if (index === -1 || index > parent.items.length) return nothingAt(path)
  if (index === parent.items.length) append(parent, [node])
  else parent.items.splice(index, 0, node)
  return undefined
}

const remove = (root: Node, path: readonly string[]): Note | undefined => {
  const [parent, key] = [parentOf(root, path), lastOf(path)]
  if (find(root, path) === undefined) return nothingAt(path)
  if (isMapping(parent)) removeKey(parent, key)
  else if (isListing(parent)) parent.items.splice(indexOf(key), 1)
  return undefined
}

const test = (root: Node, path: readonly string[], value: Node | undefined): Note | undefined => {
  const found = find(root, path)
  const isSame = isNothing(found) ? isNothing(value) : sameValue(saying(found), saying(value))
  return isSame
    ? undefined
    : { code: 'noMatch', problem: `the test of /${path.join('/')} fails`, advice: 'the machine has another value there' }
}
