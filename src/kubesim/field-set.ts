import type { JSONSchemaProps } from '../api/structural.ts'
import { same } from '../world/json.ts'
import type { Fields } from './fields.ts'
import { isFields } from './fields.ts'
import { applyKeys } from './merge-keys.ts'

/** Where a value stands, each step as FieldsV1 spells it: `f:name`, `k:{"type":"Ready"}`, `v:"x"`. */
export type FieldPath = readonly string[]
/** Places of values within an object, by their joined path. */
export type FieldSet = ReadonlyMap<string, FieldPath>

const SEPARATOR = '\u0000'
export const joined = (path: FieldPath): string => path.join(SEPARATOR)

/** What nobody owns: the server's own. */
const UNOWNED = new Set(
  [
    ['f:apiVersion'],
    ['f:kind'],
    ...[
      'name',
      'namespace',
      'generateName',
      'uid',
      'resourceVersion',
      'generation',
      'creationTimestamp',
      'deletionTimestamp',
      'deletionGracePeriodSeconds',
      'managedFields',
    ].map(field => ['f:metadata', `f:${field}`]),
  ].map(joined),
)

export type Leaf = { readonly path: FieldPath; readonly value: unknown }

/** The kind of an object and the schema of its resource where it is a custom one: they say which lists are merged. */
export type Shape = { readonly kind: string; readonly schema?: JSONSchemaProps }

const itemStep = (keys: readonly string[], item: unknown): string => {
  if (keys[0] === '' || !isFields(item)) return `v:${JSON.stringify(item)}`
  const named = keys.toSorted().map(key => [key, item[key]] as const)
  return `k:${JSON.stringify(Object.fromEntries(named.filter(([, value]) => value !== undefined)))}`
}

/** Every value that somebody can own, with its place. */
export const leavesOf = (object: Fields, shape: Shape): Leaf[] => {
  const leaves: Leaf[] = []
  const walk = (value: unknown, path: FieldPath, names: readonly string[], schema: JSONSchemaProps | undefined): void => {
    if (UNOWNED.has(joined(path))) return
    const keys = Array.isArray(value) ? applyKeys(shape.kind, names, schema) : undefined
    if (isFields(value) && Object.keys(value).length > 0) {
      for (const [field, item] of Object.entries(value)) {
        if (item === undefined) continue
        walk(item, [...path, `f:${field}`], [...names, field], schema?.properties?.[field] ?? schema?.additionalProperties)
      }
    } else if (keys && Array.isArray(value) && value.length > 0) {
      for (const item of value as readonly unknown[]) {
        const here = [...path, itemStep(keys, item)]
        if (keys[0] === '') leaves.push({ path: here, value: item })
        else {
          leaves.push({ path: [...here, '.'], value: true })
          walk(item, here, names, schema?.items)
        }
      }
    } else if (path.length > 0) leaves.push({ path, value })
  }
  walk(object, [], [], shape.schema)
  return leaves
}

export const setOf = (leaves: readonly Leaf[]): FieldSet => new Map(leaves.map(({ path }) => [joined(path), path]))

/** The leaves of an object that are new or say something else than before. */
export const changedLeaves = (before: readonly Leaf[], after: readonly Leaf[]): Leaf[] => {
  const old = new Map(before.map(leaf => [joined(leaf.path), leaf.value]))
  return after.filter(({ path, value }) => !old.has(joined(path)) || !same(old.get(joined(path)), value))
}

/** As `fieldsV1` of a managedFields entry. */
export const toFieldsV1 = (set: FieldSet): Fields => {
  const root: Record<string, unknown> = {}
  for (const path of set.values()) {
    let node = root
    for (const step of path) node = (node[step] ??= {}) as Record<string, unknown>
  }
  return root
}

export const fromFieldsV1 = (fields: unknown): FieldSet => {
  const set = new Map<string, FieldPath>()
  const walk = (node: unknown, path: FieldPath): void => {
    const entries = isFields(node) ? Object.entries(node) : []
    if (entries.length === 0 && path.length > 0) set.set(joined(path), path)
    for (const [step, inner] of entries) walk(inner, [...path, step])
  }
  walk(fields, [])
  return set
}

/** `.spec.taints[key="x"]`, as conflicts name a place. */
export const shownPath = (path: FieldPath): string =>
  path
    .map(step => {
      if (step === '.') return ''
      if (step.startsWith('f:')) return `.${step.slice(2)}`
      if (step.startsWith('v:')) return `[=${step.slice(2)}]`
      const keys = JSON.parse(step.slice(2)) as Record<string, unknown>
      return `[${Object.entries(keys)
        .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
        .join(',')}]`
    })
    .join('')
