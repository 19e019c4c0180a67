import type { JSONSchemaProps } from '../api/structural.ts'
import { same } from '../world/json.ts'
import { isFields, valueAt } from './fields.ts'
import { below } from './prune.ts'
import type { FieldFault } from './refusal.ts'

/** A value as a fault shows it: texts quoted as Go quotes them, anything else as JSON. */
export const shown = (value: unknown): string => JSON.stringify(value)

export const required = (field: string): FieldFault => ({ field, reason: 'FieldValueRequired', message: 'Required value' })
export const invalidValue = (field: string, value: unknown, detail: string): FieldFault => ({
  field,
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${shown(value)}: ${detail}`,
})

const typeOf = (value: unknown): string => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

const INT_OR_STRING = 'x-kubernetes-int-or-string'

const typesOf = (schema: JSONSchemaProps): string[] =>
  schema[INT_OR_STRING] === true ? ['integer', 'string'] : schema.type === undefined ? [] : [schema.type]

const wrongType = (schema: JSONSchemaProps, value: unknown, path: string): FieldFault | undefined => {
  const [types, type] = [typesOf(schema), typeOf(value)]
  if (types.length === 0 || types.includes(type)) return undefined
  if (type === 'null' && schema.nullable) return undefined
  if (type === 'integer' && types.includes('number')) return undefined
  const detail = `${path} in body must be of type ${types.join(',')}: ${shown(type)}`
  return { field: path, reason: 'FieldValueTypeInvalid', message: `Invalid value: ${shown(type)}: ${detail}` }
}

const DATE_TIME = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/

/** Lengths of texts count code points, as the server does. */
const codePoints = (text: string): number => Array.from(text).length

const textFaults = (schema: JSONSchemaProps, text: string, path: string): FieldFault[] => {
  const faults: FieldFault[] = []
  const length = codePoints(text)
  const { maxLength, minLength, pattern, format } = schema
  if (maxLength !== undefined && length > maxLength) {
    const message = `Too long: may not be more than ${maxLength} ${maxLength === 1 ? 'byte' : 'bytes'}`
    faults.push({ field: path, reason: 'FieldValueTooLong', message })
  }
  if (minLength !== undefined && length < minLength) {
    faults.push(invalidValue(path, text, `${path} in body should be at least ${minLength} chars long`))
  }
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(text)) {
    faults.push(invalidValue(path, text, `${path} in body should match '${pattern}'`))
  }
  if (format === 'date-time' && (!DATE_TIME.test(text) || Number.isNaN(Date.parse(text)))) {
    const fault = invalidValue(path, text, `${path} in body must be of type date-time: ${shown(text)}`)
    faults.push({ ...fault, reason: 'FieldValueTypeInvalid' })
  }
  return faults
}

const numberFaults = (schema: JSONSchemaProps, value: number, path: string): FieldFault[] => {
  const faults: FieldFault[] = []
  const { maximum, minimum, exclusiveMaximum, exclusiveMinimum } = schema
  if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)) {
    faults.push(invalidValue(path, value, `${path} in body should be less than ${exclusiveMaximum ? '' : 'or equal to '}${maximum}`))
  }
  if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)) {
    faults.push(invalidValue(path, value, `${path} in body should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${minimum}`))
  }
  if (schema.multipleOf !== undefined && value % schema.multipleOf !== 0) {
    faults.push(invalidValue(path, value, `${path} in body should be a multiple of ${schema.multipleOf}`))
  }
  return faults
}

const tooMany = (path: string, count: number, max: number): FieldFault => ({
  field: path,
  reason: 'FieldValueTooMany',
  message: `Too many: ${count}: must have at most ${max} ${max === 1 ? 'item' : 'items'}`,
})

const duplicates = (schema: JSONSchemaProps, list: readonly unknown[], path: string): FieldFault[] => {
  const keys = (schema['x-kubernetes-list-map-keys'] ?? []) as readonly string[]
  const type = schema['x-kubernetes-list-type']
  if (type !== 'set' && type !== 'map') return []
  const identity = (item: unknown) => (type === 'set' ? item : Object.fromEntries(keys.map(key => [key, valueAt(item, key)])))
  return list.flatMap((item, index) => {
    const mine = identity(item)
    return list.slice(0, index).some(earlier => same(identity(earlier), mine))
      ? [{ field: `${path}[${index}]`, reason: 'FieldValueDuplicate', message: `Duplicate value: ${shown(mine)}` }]
      : []
  })
}

const listFaults = (schema: JSONSchemaProps, list: readonly unknown[], path: string): FieldFault[] => {
  const faults: FieldFault[] = []
  if (schema.items) for (const [index, item] of list.entries()) faults.push(...schemaFaults(schema.items, item, `${path}[${index}]`))
  if (schema.maxItems !== undefined && list.length > schema.maxItems) faults.push(tooMany(path, list.length, schema.maxItems))
  if (schema.minItems !== undefined && list.length < schema.minItems) {
    faults.push(invalidValue(path, list.length, `${path} in body should have at least ${schema.minItems} items`))
  }
  return [...faults, ...duplicates(schema, list, path)]
}

const objectFaults = (schema: JSONSchemaProps, object: Readonly<Record<string, unknown>>, path: string): FieldFault[] => {
  const faults: FieldFault[] = []
  const count = Object.keys(object).length
  if (schema.maxProperties !== undefined && count > schema.maxProperties) faults.push(tooMany(path, count, schema.maxProperties))
  if (schema.minProperties !== undefined && count < schema.minProperties) {
    faults.push(invalidValue(path, count, `${path} in body should have at least ${schema.minProperties} properties`))
  }
  for (const field of schema.required ?? []) if (object[field] === undefined) faults.push(required(below(path, field)))
  for (const [field, item] of Object.entries(object)) {
    const node = schema.properties?.[field] ?? schema.additionalProperties
    if (node && item !== undefined) faults.push(...schemaFaults(node, item, below(path, field)))
  }
  return faults
}

/** What a structural schema does not allow of a value, in the words of the real server. Rules (CEL) are not asked here. */
export const schemaFaults = (schema: JSONSchemaProps, value: unknown, path = ''): FieldFault[] => {
  const type = wrongType(schema, value, path)
  const faults: FieldFault[] = type ? [type] : []
  if (schema.enum && !schema.enum.some(allowed => same(allowed, value)) && !(value === null && schema.nullable)) {
    const allowed = schema.enum.map(shown).join(', ')
    faults.push({
      field: path,
      reason: 'FieldValueNotSupported',
      message: `Unsupported value: ${shown(value)}: supported values: ${allowed}`,
    })
  }
  if (typeof value === 'string') faults.push(...textFaults(schema, value, path))
  if (typeof value === 'number') faults.push(...numberFaults(schema, value, path))
  if (Array.isArray(value)) faults.push(...listFaults(schema, value, path))
  if (isFields(value)) faults.push(...objectFaults(schema, value, path))
  return faults
}
