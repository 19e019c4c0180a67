import { isFields, listAt } from './fields.ts'
import { patchKeys } from './merge-keys.ts'
import { same } from '../world/json.ts'

const PATCH = '$patch'
const RETAIN = '$retainKeys'
const DELETE_FROM = '$deleteFromPrimitiveList/'
const ORDER = '$setElementOrder/'

/**
 * A strategic merge patch as kubectl sends them to built-in types: lists of objects merged by their keys, `$patch: delete | replace`,
 * `$retainKeys`, `$deleteFromPrimitiveList`, `$setElementOrder`.
 */
export const strategicPatch = (kind: string, document: unknown, patch: unknown, path: readonly string[] = []): unknown => {
  if (!isFields(patch)) return patch
  if (patch[PATCH] === 'replace') return withoutDirectives(patch)
  if (patch[PATCH] === 'delete') return {}
  let result: Record<string, unknown> = isFields(document) ? { ...document } : {}
  const retained = patch[RETAIN]
  if (Array.isArray(retained)) result = Object.fromEntries(Object.entries(result).filter(([field]) => retained.includes(field)))
  for (const [field, value] of Object.entries(patch)) {
    if (field.startsWith(DELETE_FROM)) {
      const target = field.slice(DELETE_FROM.length)
      const gone = Array.isArray(value) ? (value as unknown[]) : []
      result[target] = listAt(result, target).filter(item => !gone.some(each => same(each, item)))
      continue
    }
    if (field.startsWith('$')) continue
    if (value === null) delete result[field]
    else if (Array.isArray(value)) result[field] = mergeList(kind, result[field], value, [...path, field])
    else result[field] = strategicPatch(kind, result[field], value, [...path, field])
  }
  for (const [field, order] of Object.entries(patch)) {
    if (!field.startsWith(ORDER) || !Array.isArray(order)) continue
    const target = field.slice(ORDER.length)
    if (Array.isArray(result[target])) result[target] = ordered(result[target], order, patchKeys(kind, [...path, target]))
  }
  return result
}

const withoutDirectives = (patch: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(patch).filter(([field]) => !field.startsWith('$')))

const sameItem = (keys: readonly string[], a: unknown, b: unknown): boolean => {
  if (keys[0] === '') return same(a, b)
  return isFields(a) && isFields(b) && keys.every(key => a[key] !== undefined && same(a[key], b[key]))
}

const mergeList = (kind: string, current: unknown, patch: readonly unknown[], path: readonly string[]): unknown => {
  const keys = patchKeys(kind, path)
  const directive = patch.find(item => isFields(item) && item[PATCH] === 'replace' && Object.keys(item).length === 1)
  if (!keys || directive) return patch.filter(item => item !== directive)
  let result: unknown[] = Array.isArray(current) ? [...(current as unknown[])] : []
  for (const item of patch) {
    const at = result.findIndex(each => sameItem(keys, each, item))
    if (isFields(item) && item[PATCH] === 'delete') {
      if (at >= 0) result = result.toSpliced(at, 1)
    } else if (at < 0) result.push(isFields(item) ? strategicPatch(kind, {}, item, path) : item)
    else if (keys[0] !== '') result[at] = strategicPatch(kind, result[at], item, path)
  }
  return result
}

/** The items that the order names in that order; the others stay behind the item that they followed. */
const ordered = (list: readonly unknown[], order: readonly unknown[], keys: readonly string[] | undefined): unknown[] => {
  if (!keys) return [...list]
  const rank = (item: unknown): number => order.findIndex(each => sameItem(keys, each, item))
  let last = -1
  return list
    .map((item, at) => {
      const own = rank(item)
      if (own >= 0) last = own
      return { item, rank: own >= 0 ? own : last + 0.5, at }
    })
    .toSorted((a, b) => a.rank - b.rank || a.at - b.at)
    .map(({ item }) => item)
}
