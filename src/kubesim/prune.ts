import type { JSONSchemaProps } from '../api/structural.ts'
import { isFields } from './fields.ts'

/** The field path of Kubernetes: `spec.machines[0].name`. */
export const below = (path: string, field: string): string => (path === '' ? field : `${path}.${field}`)

const PRESERVE = 'x-kubernetes-preserve-unknown-fields'
/** Fields of the object itself that every schema knows. */
const ENVELOPE = ['apiVersion', 'kind', 'metadata']

export type Pruned = { value: unknown; unknown: string[] }

/** The value without fields that the schema does not know, and their paths. */
export const prune = (schema: JSONSchemaProps, value: unknown, path = ''): Pruned => {
  const unknown: string[] = []
  const walk = (node: JSONSchemaProps, at: unknown, here: string): unknown => {
    if (Array.isArray(at)) return node.items ? at.map((item, index) => walk(node.items as JSONSchemaProps, item, `${here}[${index}]`)) : at
    if (!isFields(at)) return at
    const kept: Record<string, unknown> = {}
    for (const [field, item] of Object.entries(at)) {
      const known = node.properties?.[field]
      if (here === '' && ENVELOPE.includes(field)) kept[field] = item
      else if (known) kept[field] = walk(known, item, below(here, field))
      else if (node.additionalProperties) kept[field] = walk(node.additionalProperties, item, below(here, field))
      else if (node[PRESERVE] === true) kept[field] = item
      else unknown.push(below(here, field))
    }
    return kept
  }
  return { value: walk(schema, value, path), unknown }
}

/** The value with the schema's defaults where fields are absent, or null where null is not allowed; such nulls are dropped. */
export const withDefaults = (schema: JSONSchemaProps, value: unknown): unknown => {
  if (Array.isArray(value)) return schema.items ? value.map(item => withDefaults(schema.items as JSONSchemaProps, item)) : value
  if (!isFields(value)) return value
  const filled: Record<string, unknown> = { ...value }
  for (const [field, node] of Object.entries(schema.properties ?? {})) {
    if (filled[field] === null && !node.nullable) delete filled[field]
    if (filled[field] === undefined && node.default !== undefined) filled[field] = node.default
    if (filled[field] !== undefined) filled[field] = withDefaults(node, filled[field])
  }
  const more = schema.additionalProperties
  if (more) {
    for (const [field, item] of Object.entries(filled)) if (!schema.properties?.[field]) filled[field] = withDefaults(more, item)
  }
  return filled
}
