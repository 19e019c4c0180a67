import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { etcdSnapshot } from './etcd-snapshot.ts'
import { condition, duration, int32, int64, intOrPercent, nameRef, text, timestamp } from './schema.ts'
import type { ResourceDefinition } from './schema.ts'
import { toCrd, toStructural } from './structural.ts'
import { talosCluster } from './talos-cluster.ts'
import { talosMachine } from './talos-machine.ts'
import { talosOperation } from './talos-operation.ts'

const said = <T extends z.ZodType>(schema: T) => schema.meta({ description: 'A field.' })
const object = (field: z.ZodType) => z.object({ field: said(field) })
const property = (field: z.ZodType) => toStructural(object(field)).properties?.['field']

describe('what becomes of a schema', () => {
  it('puts the bounds of an int-or-string beside the extension, and its pattern into the rule', () => {
    expect(property(intOrPercent().default(1))).toEqual({
      description: 'A field.',
      default: 1,
      minimum: 1,
      maximum: 1000,
      maxLength: 5,
      'x-kubernetes-int-or-string': true,
      'x-kubernetes-validations': [
        {
          rule: "type(self) == int || self.matches(r'^(100|[1-9][0-9]?)%$')",
          message: 'must be a number from 1 to 1000 or a percentage from 1% to 100%',
        },
      ],
    })
  })

  it('keeps the pattern of an int-or-string that has no rule for it', () => {
    const union = z.union([z.number().int().min(0), z.string().max(5).regex(/^a$/)]).meta({ 'x-kubernetes-int-or-string': true })
    expect(property(union)).toEqual({
      description: 'A field.',
      minimum: 0,
      maxLength: 5,
      pattern: '^a$',
      'x-kubernetes-int-or-string': true,
    })
  })

  it('keeps formats and drops the bounds that only say what a double holds', () => {
    expect(property(int64())).toEqual({ description: 'A field.', type: 'integer', format: 'int64', minimum: 0 })
    expect(property(int32())).toEqual({ description: 'A field.', type: 'integer', format: 'int32', minimum: 0, maximum: 2_147_483_647 })
    expect(property(z.int())).toEqual({ description: 'A field.', type: 'integer' })
    expect(property(timestamp())).toEqual({ description: 'A field.', type: 'string', format: 'date-time', maxLength: 64 })
  })

  it('says the sentence of a pattern instead of the pattern', () => {
    const schema = property(duration())
    expect(schema).not.toHaveProperty('pattern')
    expect(schema).toHaveProperty('x-kubernetes-validations.0.message', 'must be a duration with units, for example 90s, 10m or 1h30m')
    expect(duration().safeParse('10').error?.issues[0]?.message).toBe('must be a duration with units, for example 90s, 10m or 1h30m')
    expect(property(z.string().max(4).regex(/^a$/))).toHaveProperty('pattern', '^a$')
  })

  it('carries defaults, and requires only what has neither default nor absence', () => {
    const schema = z.object({
      must: said(text()),
      may: said(text().optional()),
      filled: said(text().default('x')),
      nested: said(z.object({ inner: said(z.boolean().default(false)) }).prefault({})),
    })
    const result = toStructural(schema)
    expect(result.required).toEqual(['must'])
    expect(result.properties).toMatchObject({
      filled: { default: 'x' },
      nested: { default: {}, properties: { inner: { default: false } } },
    })
    expect(result.properties?.['nested']).not.toHaveProperty('required')
  })

  it('turns records into maps, and literals into enums', () => {
    const map = z.record(z.string().max(63), text(10)).meta({ description: 'A map.', maxProperties: 8 })
    expect(toStructural(z.object({ map })).properties?.['map']).toEqual({
      description: 'A map.',
      type: 'object',
      maxProperties: 8,
      additionalProperties: { type: 'string', maxLength: 10 },
    })
    expect(property(z.literal('on'))).toEqual({ description: 'A field.', type: 'string', enum: ['on'] })
  })

  it('keeps nothing of an open object but the word that it is open', () => {
    const open = z.looseObject({}).meta({ description: 'Any values.', 'x-kubernetes-preserve-unknown-fields': true })
    expect(toStructural(z.object({ open })).properties?.['open']).toEqual({
      description: 'Any values.',
      type: 'object',
      properties: {},
      'x-kubernetes-preserve-unknown-fields': true,
    })
  })
})

describe('what is refused, with its path', () => {
  const refused: [string, z.ZodType, string][] = [
    ['a field without description', z.object({ a: z.object({ b: z.boolean() }).meta({ description: 'A.' }) }), 'a.b: has no description'],
    ['an empty description', z.object({ a: z.boolean().meta({ description: ' ' }) }), 'a: has no description'],
    ['a string without bound', object(z.string()), 'field: a string needs maxLength'],
    ['a date without bound', object(z.string().meta({ format: 'date-time' })), 'field: a string needs maxLength'],
    ['a string in an array', object(z.array(z.string()).max(2)), 'field[]: a string needs maxLength'],
    [
      'a string in a map',
      z.object({ m: z.record(z.string(), z.string()).meta({ description: 'M.', maxProperties: 2 }) }),
      'm{}: a string needs maxLength',
    ],
    ['an array without bound', object(z.array(z.boolean())), 'field: an array needs maxItems'],
    ['a tuple of several sorts', object(z.tuple([z.boolean(), text()])), 'field[]: anyOf is not structural'],
    ['a map without bound', object(z.record(z.string(), z.boolean())), 'field: a map needs maxProperties'],
    ['a field without description deep in an array', object(z.array(z.object({ x: z.boolean() })).max(1)), 'field[].x: has no description'],
    ['a union', object(z.union([text(), z.boolean()])), 'field: anyOf is not structural'],
    [
      'a discriminated union',
      object(z.discriminatedUnion('t', [z.object({ t: z.literal('a') }), z.object({ t: z.literal('b') })])),
      'field: oneOf is not structural',
    ],
    ['an intersection of unlike things', object(z.intersection(text(), z.literal('a'))), 'field: allOf is not structural'],
    ['two patterns', object(text().regex(/a/).regex(/b/)), 'field: allOf is not structural'],
    [
      'an int-or-string of something else',
      object(z.union([z.boolean(), text()]).meta({ 'x-kubernetes-int-or-string': true })),
      'field: x-kubernetes-int-or-string needs a union',
    ],
    [
      'an int-or-string without bound of its text',
      object(z.union([z.int(), z.string()]).meta({ 'x-kubernetes-int-or-string': true })),
      'field: a string needs maxLength',
    ],
    ['anything', object(z.unknown()), 'field: has no type'],
    ['an open object', object(z.looseObject({})), 'field: an open object needs x-kubernetes-preserve-unknown-fields'],
    ['a strict object', object(z.strictObject({})), 'field: a strict object is not structural'],
    [
      'properties beside a map',
      object(z.object({ a: said(text()) }).catchall(text())),
      'field: properties and additionalProperties exclude each other',
    ],
    ['a keyword that a CRD does not know', object(text().meta({ examples: ['a'] })), 'field: a CRD has no examples on string'],
    ['a pattern that is not RE2', object(text().regex(/^(?!a)/)), 'field: pattern ^(?!a) is not RE2'],
    ['a refinement that the CRD would lose', object(text().refine(value => value !== 'a')), 'field: a refinement is lost in the CRD'],
    [
      'a refinement of an object in an array',
      object(z.array(z.object({}).refine(() => true)).max(1)),
      'field[]: a refinement is lost in the CRD',
    ],
    [
      'a pattern of keys that the CRD would lose',
      object(z.record(z.string().regex(/^a/), z.boolean())),
      'field: the rule for the keys is lost in the CRD',
    ],
    [
      'a list map whose key may be absent',
      object(
        z
          .array(z.object({ name: said(text().optional()) }))
          .max(3)
          .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
      ),
      'field: list map key name must be required or have a default',
    ],
    ['a date of JavaScript', object(z.date()), 'field: has no type'],
  ]
  it.each(refused)('%s', (_what, schema, fault) => {
    expect(() => toStructural(schema)).toThrow(fault)
  })

  it('all of them at once, under the name that was given', () => {
    const schema = z.object({ a: z.string(), b: z.array(nameRef('x')) })
    expect(() => toStructural(schema, 'Thing.spec')).toThrow(
      [
        'not a structural, bounded schema:',
        '  Thing.spec.a: has no description',
        '  Thing.spec.a: a string needs maxLength',
        '  Thing.spec.b: has no description',
        '  Thing.spec.b: an array needs maxItems',
      ].join('\n'),
    )
  })

  it('but not a refinement that is said as a rule as well', () => {
    const rules = [{ rule: "self != 'a'", message: 'not a' }]
    const schema = text()
      .refine(value => value !== 'a')
      .meta({ 'x-kubernetes-validations': rules })
    expect(property(schema)).toMatchObject({ 'x-kubernetes-validations': rules })
  })
})

describe('a whole CRD', () => {
  const sample = {
    name: 'ca-rotation',
    block: 'caRotation',
    summary: 'Replaces CAs.',
    spec: z.object({ force: said(z.boolean().optional()) }),
  }

  it('is made of every resource', () => {
    for (const definition of [talosOperation([sample]), talosCluster, talosMachine, etcdSnapshot]) {
      expect(toCrd(definition)).toMatchObject({
        metadata: { name: `${definition.plural}.ichor.maesh.dev` },
        spec: {
          scope: 'Namespaced',
          names: { categories: ['ichor'], shortNames: definition.shortNames },
          versions: [{ name: 'v1alpha1', subresources: { status: {} }, schema: { openAPIV3Schema: { required: ['spec'] } } }],
        },
      })
    }
  })

  it('holds the rules at spec, where a transition rule sees the whole old spec', () => {
    type Rule = { rule: string; message?: string; messageExpression?: string }
    type Spec = { 'x-kubernetes-validations': Rule[] }
    const crd = toCrd(talosOperation([sample])) as { spec: { versions: { schema: { openAPIV3Schema: { properties: { spec: Spec } } } }[] } }
    const rules = crd.spec.versions[0]?.schema.openAPIV3Schema.properties.spec['x-kubernetes-validations'] ?? []
    expect(rules[0]).toEqual({
      rule: "(self.kind == 'ca-rotation') == has(self.caRotation)",
      messageExpression: "'spec.caRotation must be set exactly when spec.kind is ca-rotation; spec.kind is ' + self.kind",
    })
    expect(rules.filter(({ rule }) => rule.includes('oldSelf')).map(({ rule }) => /oldSelf\.(\w+)/.exec(rule)?.[1])).toEqual(
      expect.arrayContaining(['clusterRef', 'kind', 'caRotation', 'maxUnavailable', 'override', 'cancelled']),
    )
    expect(rules.some(({ rule }) => rule.includes('oldSelf.paused'))).toBe(false)
  })

  it('needs a sentence for spec and status', () => {
    const bare = (part: Partial<ResourceDefinition>) => () => toCrd({ ...talosMachine, ...part })
    expect(bare({ spec: z.object({}) })).toThrow('TalosMachine.spec has no description')
    expect(bare({ status: z.object({}) })).toThrow('TalosMachine.status has no description')
    expect(bare({ status: condition.extend({ bare: z.string() }) })).toThrow('TalosMachine.status.bare: a string needs maxLength')
  })
})
