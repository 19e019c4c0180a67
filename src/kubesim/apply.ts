import { same } from '../world/json.ts'
import type { Fields } from './fields.ts'
import { isFields } from './fields.ts'
import type { FieldPath, Leaf, Shape } from './field-set.ts'
import { joined, leavesOf, shownPath } from './field-set.ts'
import type { Entry, Manager } from './managed-fields.ts'
import { conflictsOf, entriesOf, isSameManager } from './managed-fields.ts'
import { applyKeys } from './merge-keys.ts'
import { Refusal } from './refusal.ts'
import type { JSONSchemaProps } from '../api/structural.ts'

const merged = (live: unknown, config: unknown, shape: Shape): unknown => {
  const walk = (old: unknown, wanted: unknown, names: readonly string[], schema: JSONSchemaProps | undefined): unknown => {
    if (isFields(wanted)) {
      const result: Record<string, unknown> = isFields(old) ? { ...old } : {}
      for (const [field, value] of Object.entries(wanted)) {
        result[field] = walk(result[field], value, [...names, field], schema?.properties?.[field] ?? schema?.additionalProperties)
      }
      return result
    }
    const keys = Array.isArray(wanted) ? applyKeys(shape.kind, names, schema) : undefined
    if (!Array.isArray(wanted) || !keys || !Array.isArray(old)) return wanted
    const result: unknown[] = [...(old as readonly unknown[])]
    for (const item of wanted as readonly unknown[]) {
      const at = result.findIndex(each =>
        keys[0] === '' ? same(each, item) : isFields(each) && isFields(item) && keys.every(key => same(each[key], item[key])),
      )
      if (at < 0) result.push(item)
      else result[at] = walk(result[at], item, names, schema?.items)
    }
    return result
  }
  return walk(live, config, [], shape.schema)
}

/** The object without the value at a place; containers that are left empty by it go too. */
const removeAt = (value: unknown, path: FieldPath): unknown => {
  const [step, ...rest] = path
  if (step === undefined) return undefined
  if (step.startsWith('f:')) {
    if (!isFields(value)) return value
    const field = step.slice(2)
    const { [field]: inner, ...others } = value
    if (inner === undefined) return value
    const left = removeAt(inner, rest)
    if (left !== undefined) return { ...others, [field]: left }
    return Object.keys(others).length > 0 ? others : undefined
  }
  if (!Array.isArray(value)) return value
  const wanted = JSON.parse(step.slice(2)) as unknown
  const at = (value as readonly unknown[]).findIndex(item =>
    step.startsWith('v:')
      ? same(item, wanted)
      : isFields(item) && Object.entries(wanted as Fields).every(([key, each]) => same(item[key], each)),
  )
  if (at < 0) return value
  const left = removeAt(value[at], rest)
  const list = left === undefined ? value.toSpliced(at, 1) : value.with(at, left)
  return list.length > 0 ? list : undefined
}

const conflict = (conflicts: readonly { entry: Entry; leaf: Leaf }[]): Refusal => {
  const causes = conflicts.map(({ entry, leaf }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with "${entry.name}"${entry.subresource ? ` with subresource "${entry.subresource}"` : ''}${entry.operation === 'Update' ? ` using ${entry.apiVersion}` : ''}`,
    field: shownPath(leaf.path),
  }))
  const [first] = causes
  if (first && causes.length === 1)
    return new Refusal(409, 'Conflict', `Apply failed with 1 conflict: ${first.message}: ${first.field}`, { causes })
  const groups = [...new Set(causes.map(cause => cause.message))].toSorted().map(message => {
    const fields = causes.filter(cause => cause.message === message).map(cause => `- ${cause.field}`)
    return `${message.replace('conflict ', 'conflicts ')}:\n${fields.join('\n')}`
  })
  return new Refusal(409, 'Conflict', `Apply failed with ${causes.length} conflicts: ${groups.join('\n')}`, { causes })
}

/**
 * Server-side apply: the configuration merged over the live object; what this manager applied before, does not any more, and nobody else
 * owns is removed. A field that another manager owns and that would change is a conflict unless forced.
 */
export const applied = (
  live: Fields,
  config: Fields,
  how: { readonly manager: Manager; readonly shape: Shape; readonly force: boolean },
): { object: unknown; owned: readonly Leaf[] } => {
  const owned = leavesOf(config, how.shape, false)
  const conflicts = conflictsOf(live, owned, how.manager, how.shape)
  if (conflicts.length > 0 && !how.force) throw conflict(conflicts)
  let object = merged(live, config, how.shape)
  const entries = entriesOf(live)
  const before = entries.find(entry => isSameManager(entry, how.manager))
  const wanted = new Set(owned.map(({ path }) => joined(path)))
  for (const [key, path] of before?.fields ?? []) {
    const elsewhere = entries.some(entry => entry !== before && entry.fields.has(key))
    if (!wanted.has(key) && !elsewhere) object = removeAt(object, path)
  }
  return { object, owned }
}
