import { z } from 'zod'
import { API_VERSION, GROUP, VERSION } from './names.ts'
import type { CelRule, ResourceDefinition } from './schema.ts'
import { celMatches, UNSEEN } from './schema.ts'

/** The part of `apiextensions.k8s.io/v1` JSONSchemaProps that our schemas use. */
export type JSONSchemaProps = {
  description?: string
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  format?: string
  enum?: readonly unknown[]
  default?: unknown
  nullable?: boolean
  properties?: Record<string, JSONSchemaProps>
  required?: readonly string[]
  additionalProperties?: JSONSchemaProps
  items?: JSONSchemaProps
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  multipleOf?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  minItems?: number
  maxItems?: number
  minProperties?: number
  maxProperties?: number
  [extension: `x-kubernetes-${string}`]: unknown
}

/** What zod emits: any JSON Schema, before it was looked at. */
type Emitted = { readonly [keyword: string]: unknown }

const INT_OR_STRING = 'x-kubernetes-int-or-string'
const PRESERVE = 'x-kubernetes-preserve-unknown-fields'
const VALIDATIONS = 'x-kubernetes-validations'

const VALUE = ['default', 'description', 'enum', 'nullable', 'type']
const NUMBER = ['exclusiveMaximum', 'exclusiveMinimum', 'format', 'maximum', 'minimum', 'multipleOf']
const STRING = ['format', 'maxLength', 'minLength', 'pattern']
const KEYWORDS: Record<string, readonly string[]> = {
  object: [...VALUE, 'additionalProperties', 'maxProperties', 'minProperties', 'properties', 'required'],
  array: [...VALUE, 'items', 'maxItems', 'minItems'],
  string: [...VALUE, ...STRING],
  integer: [...VALUE, ...NUMBER],
  number: [...VALUE, ...NUMBER],
  boolean: VALUE,
  [INT_OR_STRING]: [...VALUE, ...NUMBER, ...STRING],
  [PRESERVE]: VALUE,
}

/** The API server's regular expressions are RE2: no look-around, no back-reference. */
const NOT_RE2 = /\(\?(=|!|<=|<!|<[A-Za-z])|\\[1-9]|\\k</

/**
 * A zod schema as a structural Kubernetes schema.
 *
 * Throws one error that names every fault with its path: what the API server would refuse, what it would lose, and every field without a
 * bound or a sentence. The build calls it, so a fault fails the build and not an installation.
 */
export const toStructural = (schema: z.ZodType, path = ''): JSONSchemaProps => {
  const faults: string[] = []
  const lost = new Map<string, { what: string; steps: readonly (string | number)[] }>()
  const emitted = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    reused: 'inline',
    cycles: 'throw',
    unrepresentable: 'any',
    override: ({ zodSchema, path: steps }) => {
      const what = lostCheck(zodSchema)
      if (what !== undefined) lost.set(pathOf(path, steps), { what, steps })
    },
  }) as Emitted
  const complain = (at: string, fault: string) => faults.push(`${at || '(root)'}: ${fault}`)
  for (const [at, { what, steps }] of lost) {
    if (nodeAt(emitted, steps)?.[VALIDATIONS] === undefined) complain(at, `${what} is lost in the CRD; say it as ${VALIDATIONS} too`)
  }
  const result = structural(emitted, path, complain)
  if (faults.length > 0) throw new Error(`not a structural, bounded schema:\n${faults.map(fault => `  ${fault}`).join('\n')}`)
  return result
}

const nodeAt = (root: Emitted, steps: readonly (string | number)[]): Emitted | undefined =>
  steps.reduce<Emitted | undefined>((node, step) => node?.[step] as Emitted | undefined, root)

/** What zod checks but JSON Schema cannot say: the API server would accept what the controller then refuses. */
const lostCheck = (schema: z.core.$ZodTypes): string | undefined => {
  const { def } = schema._zod
  if (hasCheck(def, 'custom')) return 'a refinement'
  if (def.type !== 'record') return undefined
  const key = (def.keyType as z.core.$ZodTypes)._zod.def
  return key.type !== 'string' || hasCheck(key, 'custom') || hasCheck(key, 'string_format') ? 'the rule for the keys' : undefined
}

const hasCheck = (def: z.core.$ZodTypes['_zod']['def'], check: string): boolean =>
  (def.checks ?? []).some(({ _zod }) => _zod.def.check === check)

/** zod's path through the emitted schema, as a field path: properties/machines/items/properties/name is machines[].name. */
const pathOf = (base: string, steps: readonly (string | number)[]): string => {
  let path = base
  for (let i = 0; i < steps.length; i++) {
    if (steps[i] === 'properties') path = join(path, String(steps[++i]))
    else if (steps[i] === 'items') path += '[]'
    else if (steps[i] === 'additionalProperties') path += '{}'
  }
  return path
}

const join = (path: string, field: string): string => (path === '' ? field : `${path}.${field}`)

type Complain = (path: string, fault: string) => void

const structural = (emitted: Emitted, path: string, complain: Complain): JSONSchemaProps => {
  const node = emitted[INT_OR_STRING] === true ? mergeIntOrString(emitted, path, complain) : { ...emitted }
  const sort =
    node[INT_OR_STRING] === true ? INT_OR_STRING : node[PRESERVE] === true && node['type'] === undefined ? PRESERVE : String(node['type'])
  for (const union of ['anyOf', 'oneOf', 'allOf', 'not']) {
    if (node[union] === undefined) continue
    complain(path, `${union} is not structural; use optional members and a CEL rule, one pattern, or intOrPercent()`)
    return {}
  }
  const known = KEYWORDS[sort]
  if (known === undefined) {
    complain(path, `has no type; give it one, or ${PRESERVE}`)
    return {}
  }

  // zod bounds every integer by what a double can hold; that is no bound of the field.
  if (node['minimum'] === Number.MIN_SAFE_INTEGER) delete node['minimum']
  if (node['maximum'] === Number.MAX_SAFE_INTEGER) delete node['maximum']
  if (node[PRESERVE] === true) delete node['additionalProperties']

  for (const keyword of Object.keys(node)) {
    if (!known.includes(keyword) && !keyword.startsWith('x-kubernetes-'))
      complain(path, `a CRD has no ${keyword} on ${sort === 'undefined' ? 'this' : sort}`)
  }
  checkBounds(node, sort, path, complain)
  checkPattern(node, path, complain)

  return {
    ...(node as JSONSchemaProps),
    ...(node['properties'] === undefined ? {} : { properties: structuralProperties(node, path, complain) }),
    ...(isObject(node['items']) ? { items: structural(node['items'], `${path}[]`, complain) } : {}),
    ...(isObject(node['additionalProperties'])
      ? { additionalProperties: structural(node['additionalProperties'], `${path}{}`, complain) }
      : {}),
  }
}

const isObject = (value: unknown): value is Emitted => typeof value === 'object' && value !== null && !Array.isArray(value)

const structuralProperties = (node: Emitted, path: string, complain: Complain): Record<string, JSONSchemaProps> =>
  Object.fromEntries(
    Object.entries(node['properties'] as Record<string, Emitted>).map(([field, property]) => {
      if (typeof property['description'] !== 'string' || property['description'].trim() === '')
        complain(join(path, field), 'has no description')
      return [field, structural(property, join(path, field), complain)]
    }),
  )

/** The API server wants the bounds of an int-or-string beside the extension: numeric ones bind the number, the others the text. */
const mergeIntOrString = (emitted: Emitted, path: string, complain: Complain): Record<string, unknown> => {
  const { anyOf, type: _, ...outer } = emitted
  const branches = (anyOf ?? []) as readonly Emitted[]
  const number = branches.find(branch => branch['type'] === 'integer')
  const words = branches.find(branch => branch['type'] === 'string')
  if (branches.length !== 2 || number === undefined || words === undefined) {
    complain(path, `${INT_OR_STRING} needs a union of one integer and one string`)
    // One fault is enough.
    return { ...outer, maxLength: 0 }
  }
  const { type: _integer, ...numeric } = number
  const { type: _string, ...textual } = words
  for (const branch of [numeric, textual])
    if (branch['enum'] !== undefined) complain(path, 'an enum cannot bind only one half of an int-or-string')
  return { ...outer, ...numeric, ...textual }
}

const checkBounds = (node: Emitted, sort: string, path: string, complain: Complain): void => {
  const lacks = (bound: string) => typeof node[bound] !== 'number'
  if ((sort === 'string' || sort === INT_OR_STRING) && node['enum'] === undefined && lacks('maxLength'))
    complain(path, 'a string needs maxLength')
  if (sort === 'array') {
    if (lacks('maxItems')) complain(path, 'an array needs maxItems')
    if (!isObject(node['items'])) complain(path, 'an array needs one schema for its items')
    checkListKeys(node, path, complain)
  }
  if (sort === 'object') {
    const additional = node['additionalProperties']
    if (additional === false)
      complain(path, 'a strict object is not structural: the API server prunes unknown fields, it does not refuse them; use z.object')
    else if (additional !== undefined && node['properties'] !== undefined && Object.keys(node['properties'] as object).length > 0)
      complain(path, 'properties and additionalProperties exclude each other')
    else if (additional !== undefined && (!isObject(additional) || Object.keys(additional).length === 0))
      complain(path, `an open object needs ${PRESERVE}`)
    else if (additional !== undefined && lacks('maxProperties')) complain(path, 'a map needs maxProperties')
  }
}

const checkPattern = (node: Record<string, unknown>, path: string, complain: Complain): void => {
  const pattern = node['pattern']
  if (typeof pattern !== 'string') return
  if (NOT_RE2.test(pattern)) complain(path, `pattern ${pattern} is not RE2: no look-around, no back-references`)
  // A rule that says the same with a sentence: the pattern would fail first and show its regular expression instead.
  const rules = (node[VALIDATIONS] ?? []) as readonly CelRule[]
  if (rules.some(({ rule }) => rule.includes(celMatches(pattern)))) delete node['pattern']
}

const checkListKeys = (node: Emitted, path: string, complain: Complain): void => {
  if (node['x-kubernetes-list-type'] !== 'map') return
  const items = isObject(node['items']) ? node['items'] : {}
  const properties = (items['properties'] ?? {}) as Record<string, Emitted>
  const required = (items['required'] ?? []) as readonly string[]
  for (const key of (node['x-kubernetes-list-map-keys'] ?? []) as readonly string[]) {
    if (!required.includes(key) && properties[key]?.['default'] === undefined)
      complain(path, `list map key ${key} must be required or have a default`)
  }
}

/**
 * The `apiextensions.k8s.io/v1` CustomResourceDefinition of a resource, as a plain object. Throws as `toStructural` does; every fault names
 * its resource.
 */
export const toCrd = (definition: ResourceDefinition): object => {
  const spec = toStructural(definition.spec, `${definition.kind}.spec`)
  const status = toStructural(definition.status, `${definition.kind}.status`)
  for (const [field, schema] of Object.entries({ spec, status })) {
    if (schema.type !== 'object') throw new Error(`${definition.kind}.${field} is no object`)
    if (!schema.description) throw new Error(`${definition.kind}.${field} has no description`)
  }
  const { description, type, ...rest } = spec
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${definition.plural}.${GROUP}` },
    spec: {
      group: GROUP,
      names: {
        kind: definition.kind,
        listKind: `${definition.kind}List`,
        plural: definition.plural,
        singular: definition.singular,
        shortNames: definition.shortNames,
        categories: ['ichor'],
      },
      scope: 'Namespaced',
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: definition.columns.map(({ name, type: columnType, jsonPath, description: sentence, priority }) => ({
            name,
            type: columnType,
            jsonPath,
            description: sentence,
            ...(priority === undefined ? {} : { priority }),
          })),
          schema: {
            openAPIV3Schema: {
              description: definition.description,
              type: 'object',
              ...(definition.rules === undefined ? {} : { [VALIDATIONS]: definition.rules }),
              required: ['spec'],
              properties: {
                apiVersion: { description: `Always ${API_VERSION}.`, type: 'string' },
                kind: { description: `Always ${definition.kind}.`, type: 'string' },
                metadata: { type: 'object' },
                spec: { description, type, ...(definition.specRules.length === 0 ? {} : { [VALIDATIONS]: definition.specRules }), ...rest },
                status: status.properties?.['observedGeneration'] ? { ...status, default: UNSEEN } : status,
              },
            },
          },
        },
      ],
    },
  }
}
