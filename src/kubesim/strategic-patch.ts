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
    else if (Array.isArray(value)) result[field] = mergeList(kind, result[field], value, [...path, field], patch[`${ORDER}${field}`])
    else result[field] = strategicPatch(kind, result[field], value, [...path, field])
  }
  return result
}

const withoutDirectives = (patch: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(patch).filter(([field]) => !field.startsWith('$')))

const sameItem = (keys: readonly string[], a: unknown, b: unknown): boolean => {
  if (keys[0] === '') return same(a, b)
  return isFields(a) && isFields(b) && keys.every(key => a[key] !== undefined && same(a[key], b[key]))
}

const mergeList = (kind: string, current: unknown, patch: readonly unknown[], path: readonly string[], order: unknown): unknown => {
  const keys = patchKeys(kind, path)
  const directive = patch.find(item => isFields(item) && item[PATCH] === 'replace' && Object.keys(item).length === 1)
  if (!keys || directive) return patch.filter(item => item !== directive)
  const before: readonly unknown[] = Array.isArray(current) ? current : []
  let result: unknown[] = [...before]
  for (const item of patch) {
    const at = result.findIndex(each => sameItem(keys, each, item))
    if (isFields(item) && item[PATCH] === 'delete') {
      if (at >= 0) result = result.toSpliced(at, 1)
    } else if (at < 0) result.push(isFields(item) ? strategicPatch(kind, {}, item, path) : item)
    else if (keys[0] !== '') result[at] = strategicPatch(kind, result[at], item, path)
  }
  return ordered(result, Array.isArray(order) ? order : patch, before, keys)
}

/**
 * The items that the patch names in its order, among the others in theirs: one of the others comes before one of the patch only where it
 * stood before it in the list as it was.
 */
const ordered = (list: readonly unknown[], order: readonly unknown[], before: readonly unknown[], keys: readonly string[]): unknown[] => {
  const placeIn = (items: readonly unknown[], item: unknown): number => items.findIndex(each => sameItem(keys, each, item))
  const named = list.filter(item => placeIn(order, item) >= 0).toSorted((a, b) => placeIn(order, a) - placeIn(order, b))
  const others = list.filter(item => placeIn(order, item) < 0)
  const result: unknown[] = []
  for (const item of named) {
    const at = placeIn(before, item)
    while (others.length > 0 && at >= 0 && placeIn(before, others[0]) < at) result.push(others.shift())
    result.push(item)
  }
  return [...result, ...others]
}
