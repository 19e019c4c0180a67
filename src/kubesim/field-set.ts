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

/** Stands for an object or a merged list as such, whatever is in it. */
const CONTAINER = '{}'
/** Parts of built-in types that are there even when nothing is in them: nobody owns that they are there. */
const ALWAYS = new Set([
  'metadata',
  'spec',
  'status',
  'template',
  'resources',
  'source',
  'strategy',
  'updateStrategy',
  'nodeInfo',
  'daemonEndpoints',
  'scaleTargetRef',
])
/** Parts of built-in types that are owned as a whole. */
const WHOLE = new Set(['involvedObject', 'regarding', 'related', 'selector', 'nodeSelector', 'claimRef', 'secretRef'])

/**
 * Every value that somebody can own, with its place. With `containers`, also that an object or a merged list is there at all: who writes an
 * update owns that, who applies does not.
 */
export const leavesOf = (object: Fields, shape: Shape, containers = true): Leaf[] => {
  const leaves: Leaf[] = []
  const walk = (value: unknown, path: FieldPath, names: readonly string[], schema: JSONSchemaProps | undefined): void => {
    if (UNOWNED.has(joined(path))) return
    const name = names.at(-1) ?? ''
    const keys = Array.isArray(value) ? applyKeys(shape.kind, names, schema) : undefined
    const whole = !shape.schema && names[0] !== 'metadata' && WHOLE.has(name)
    const inner = isFields(value) ? !whole && Object.keys(value).length > 0 : keys !== undefined && (value as readonly unknown[]).length > 0
    const always = names.length === 0 || (names.length === 1 && name === 'metadata') || (!shape.schema && ALWAYS.has(name))
    if (containers && inner && !always && !path.at(-1)?.startsWith('k:')) leaves.push({ path, value: CONTAINER })
    if (isFields(value) && inner) {
      for (const [field, item] of Object.entries(value)) {
        if (item === undefined) continue
        walk(item, [...path, `f:${field}`], [...names, field], schema?.properties?.[field] ?? schema?.additionalProperties)
      }
    } else if (keys && Array.isArray(value) && value.length > 0) {
      for (const item of value as readonly unknown[]) {
        const here = [...path, itemStep(keys, item)]
        if (keys[0] === '') leaves.push({ path: here, value: item })
        else {
          leaves.push({ path: here, value: CONTAINER })
          walk(item, here, names, schema?.items)
        }
      }
    } else if (path.length > 0) leaves.push({ path, value: whole || !(isFields(value) || keys) ? value : CONTAINER })
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

/** As `fieldsV1` of a managedFields entry. A place that is owned and has owned places in it is marked by a dot. */
export const toFieldsV1 = (set: FieldSet): Fields => {
  const root: Record<string, unknown> = {}
  for (const path of set.values()) {
    let node = root
    for (const [at, step] of path.entries()) {
      const above = path.slice(0, at)
      if (at > 0 && set.has(joined(above))) node['.'] ??= {}
      node = (node[step] ??= {}) as Record<string, unknown>
    }
  }
  return root
}

export const fromFieldsV1 = (fields: unknown): FieldSet => {
  const set = new Map<string, FieldPath>()
  const walk = (node: unknown, path: FieldPath): void => {
    const steps = isFields(node) ? Object.entries(node) : []
    if (path.length > 0 && (steps.length === 0 || steps.some(([step]) => step === '.'))) set.set(joined(path), path)
    for (const [step, inner] of steps) if (step !== '.') walk(inner, [...path, step])
  }
  walk(fields, [])
  return set
}

/** `.spec.taints[key="x"]`, as conflicts name a place. */
export const shownPath = (path: FieldPath): string =>
  path
    .map(step => {
      if (step.startsWith('f:')) return `.${step.slice(2)}`
      if (step.startsWith('v:')) return `[=${step.slice(2)}]`
      const keys = JSON.parse(step.slice(2)) as Record<string, unknown>
      return `[${Object.entries(keys)
        .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
        .join(',')}]`
    })
    .join('')
