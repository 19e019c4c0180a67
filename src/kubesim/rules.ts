import type { JSONSchemaProps } from '../api/structural.ts'
import type { Expression } from './cel.ts'
import { compile } from './cel.ts'
import { isFields, listAt, textAt } from './fields.ts'
import { below } from './prune.ts'
import type { FieldFault } from './refusal.ts'
import { shown } from './validate.ts'

const RULES = 'x-kubernetes-validations'

const compiled = new Map<string, Expression | undefined>()

/** Undefined where the rule uses more of the language than is known here. */
const expression = (source: string): Expression | undefined => {
  if (!compiled.has(source)) {
    try {
      compiled.set(source, compile(source))
    } catch {
      compiled.set(source, undefined)
    }
  }
  return compiled.get(source)
}

/** The rules of a schema that cannot be asked here, each with its field: the real server would. */
export const unreadableRules = (schema: JSONSchemaProps, path = ''): string[] => [
  ...listAt(schema, RULES)
    .map(rule => textAt(rule, 'rule'))
    .filter(rule => expression(rule) === undefined)
    .map(rule => `${path || 'the object'}: ${rule}`),
  ...Object.entries(schema.properties ?? {}).flatMap(([field, node]) => unreadableRules(node, below(path, field))),
  ...(schema.items ? unreadableRules(schema.items, `${path}[]`) : []),
  ...(schema.additionalProperties ? unreadableRules(schema.additionalProperties, `${path}{}`) : []),
]

const messageOf = (rule: unknown, scope: Record<string, unknown>): string => {
  const said = expression(textAt(rule, 'messageExpression'))
  if (said && textAt(rule, 'messageExpression') !== '') {
    try {
      const message = said.evaluate(scope)
      if (typeof message === 'string' && message.trim() !== '') return message
    } catch {
      // As the real server does: a sentence that cannot be made gives way to the fixed one.
    }
  }
  return textAt(rule, 'message') || `failed rule: ${textAt(rule, 'rule')}`
}

const ruleFault = (schema: JSONSchemaProps, rule: unknown, self: unknown, old: unknown, path: string): FieldFault | undefined => {
  const source = textAt(rule, 'rule')
  const read = expression(source)
  if (!read || (read.usesOld && old === undefined)) return undefined
  const scope = { self, ...(old === undefined ? {} : { oldSelf: old }) }
  const field = `${path}${textAt(rule, 'fieldPath')}`
  // Objects and lists are not shown: they would fill the screen.
  const value = schema.type === 'object' || schema.type === 'array' ? '' : `: ${shown(self)}`
  const fault = (detail: string): FieldFault => ({ field, reason: 'FieldValueInvalid', message: `Invalid value${value}: ${detail}` })
  try {
    return read.evaluate(scope) === true ? undefined : fault(messageOf(rule, scope))
  } catch (error) {
    return fault(`${error instanceof Error ? error.message : String(error)} evaluating rule: ${textAt(rule, 'message') || source}`)
  }
}

/**
 * The rules of a schema that a value breaks. Rules that compare with the value before are asked where there is one; within lists they are
 * not asked.
 */
export const ruleFaults = (schema: JSONSchemaProps, self: unknown, old: unknown, path = ''): FieldFault[] => {
  const faults = listAt(schema, RULES).flatMap(rule => ruleFault(schema, rule, self, old, path) ?? [])
  if (Array.isArray(self) && schema.items) {
    for (const [index, item] of self.entries()) faults.push(...ruleFaults(schema.items, item, undefined, `${path}[${index}]`))
  }
  if (isFields(self)) {
    for (const [field, item] of Object.entries(self)) {
      const node = schema.properties?.[field] ?? schema.additionalProperties
      if (node) faults.push(...ruleFaults(node, item, isFields(old) ? old[field] : undefined, below(path, field)))
    }
  }
  return faults
}
