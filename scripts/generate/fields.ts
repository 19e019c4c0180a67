// A structural schema as rows of a table: every field with its type, default, bounds and sentence.
import { REASON_NAMES } from '../../src/api/reasons.ts'
import type { CelRule } from '../../src/api/schema.ts'
import type { JSONSchemaProps } from '../../src/api/structural.ts'
import { code, table } from './markdown.ts'

/** All fields below a schema, each with its path, parents before children. */
export const fieldTable = (schema: JSONSchemaProps): string => {
  const rows = fieldRows(schema, '')
  return rows.length === 0 ? 'It has no fields.' : table(['Field', 'Type', 'Default', 'Bounds', 'Meaning'], rows)
}

const fieldRows = (schema: JSONSchemaProps, path: string): string[][] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const at = path === '' ? name : `${path}.${name}`
    const inner = field.items ?? field.additionalProperties ?? field
    const innerPath = field.items ? `${at}[]` : field.additionalProperties ? `${at}{}` : at
    return [
      [
        code(at) + (schema.required?.includes(name) ? ' (required)' : ''),
        typeOf(field),
        field.default === undefined ? '' : code(JSON.stringify(field.default)),
        bounds(field).join('; '),
        field.description ?? '',
      ],
      ...fieldRows(inner, innerPath),
    ]
  })

const typeOf = (field: JSONSchemaProps): string => {
  if (field['x-kubernetes-int-or-string'] === true) return 'integer or string'
  if (field.items) return `list of ${typeOf(field.items)}`
  if (field.additionalProperties) return `map of ${typeOf(field.additionalProperties)}`
  if (field.format === 'date-time') return 'time'
  return field.type ?? 'any'
}

/** The bounds of a field in words; of a list's or map's elements too. */
const bounds = (field: JSONSchemaProps): string[] => {
  const rules = rulesOf(field).map(({ message, rule }) => message ?? code(rule))
  // The sentence of a rule on a single value says its other bounds as well.
  if (rules.length > 0 && field.type !== 'object' && field.type !== 'array') return rules
  return [
    ...(field.enum ? [choice(field.enum)] : []),
    ...between(field.minimum, field.maximum, ''),
    ...(field.enum || field.format === 'date-time' ? [] : between(field.minLength, field.maxLength, ' characters')),
    ...(field.pattern ? [`matches ${code(field.pattern)}`] : []),
    ...between(field.minItems, field.maxItems, ' items'),
    ...between(field.minProperties, field.maxProperties, ' entries'),
    ...(field['x-kubernetes-list-type'] === 'set' ? ['each once'] : []),
    ...(field['x-kubernetes-list-type'] === 'map' ? [`unique by ${(field['x-kubernetes-list-map-keys'] as string[]).join(', ')}`] : []),
    ...rules,
    ...[field.items, field.additionalProperties].flatMap(inner =>
      inner && inner.type !== 'object' ? bounds(inner).map(bound => `each: ${bound}`) : [],
    ),
  ]
}

/** The list of reasons has a page of its own; docs/reference/resources and docs/reference/kinds lie beside it. */
const choice = (values: readonly unknown[]): string =>
  values.length === REASON_NAMES.length && REASON_NAMES.every(reason => values.includes(reason))
    ? 'one of the [reasons](../reasons.md)'
    : `one of ${values.map(value => code(String(value))).join(', ')}`

const rulesOf = (field: JSONSchemaProps): readonly CelRule[] => (field['x-kubernetes-validations'] ?? []) as readonly CelRule[]

const between = (low: number | undefined, high: number | undefined, unit: string): string[] => {
  if (low !== undefined && high !== undefined) return [`${low} to ${high}${unit}`]
  if (high !== undefined) return [`at most ${high}${unit}`]
  return low !== undefined ? [`at least ${low}${unit}`] : []
}
