import { InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'
import type { KindBlock, OperationSpec } from '../../api/talos-operation.ts'
import { talosOperation } from '../../api/talos-operation.ts'
import { parseTarget } from '../../core/target-version.ts'
import { mayRepeat } from './repeatable.ts'
import { Stop } from './stop.ts'

/** A flag that sets one field of an operation's spec. Words, choices and checks come from the field's schema. */
export type SpecFlag = {
  /** The way to the field: `['drain', 'policy']`. */
  readonly path: readonly string[]
  readonly option: Option
  /** Commander's name for its value. */
  readonly key: string
  readonly schema: FieldSchema
}

/** The part of JSON Schema that fields of a spec use. */
type FieldSchema = {
  readonly type?: string
  readonly description?: string
  readonly enum?: readonly string[]
  readonly pattern?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly anyOf?: readonly FieldSchema[]
  readonly items?: FieldSchema
  readonly properties?: Readonly<Record<string, FieldSchema>>
  readonly 'x-kubernetes-validations'?: readonly { readonly message?: string }[]
}

/** Fields of the envelope that have no flag of their own: the commands set them. */
const withoutFlag = new Set(['clusterRef', 'kind', 'paused', 'cancelled', 'machineSelector'])

/** Flags whose names say more than the field's own. */
const flagNames: Readonly<Record<string, string>> = { 'timeouts.reboot': 'reboot-timeout' }

/** The flags of the envelope, without those that the kind or the action never looks at. */
export const envelopeFlags = (kinds: readonly KindBlock[], { ignores = [] }: Pick<KindBlock, 'ignores'> = {}): SpecFlag[] => {
  const blocks = new Set(kinds.map(kind => kind.block))
  const idle = new Set<string>(ignores)
  const { properties = {} } = jsonSchema(talosOperation(kinds).spec)
  return Object.entries(properties)
    .filter(([field]) => !withoutFlag.has(field) && !blocks.has(field) && !idle.has(field))
    .flatMap(([field, schema]) => flagsOf([field], schema))
}

/** The field that the command takes without a flag, where the kind has one. */
export const positionalOf = (kind: KindBlock): FieldSchema | undefined => jsonSchema(kind.spec).properties?.['version']

/** The version that the field's own words name. */
export const exampleOf = ({ description = '' }: { readonly description?: string } = {}): string =>
  /like (v\d+\.\d+\.\d+)/.exec(description)?.[1] ?? 'vX.Y.Z'

export const kindFlags = (kind: KindBlock): SpecFlag[] =>
  Object.entries(jsonSchema(kind.spec).properties ?? {})
    .filter(([field]) => field !== 'version')
    // Within its own command a kind's field needs no prefix.
    .flatMap(([field, schema]) => flagsOf([kind.block, field], schema, [field]))

const flagsOf = (path: readonly string[], schema: FieldSchema, named: readonly string[] = path): SpecFlag[] => {
  if (schema.type === 'object')
    return Object.entries(schema.properties ?? {}).flatMap(([field, inner]) => flagsOf([...path, field], inner, [...named, field]))
  const name = flagNames[path.join('.')] ?? named.join('-').replaceAll(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
  const items = schema.type === 'array' ? schema.items : undefined
  if (items?.type === 'object') return []
  const description =
    sentence(schema.description ?? '') +
    (schema.default === undefined || isEmpty(schema.default) ? '' : ` (default: ${JSON.stringify(schema.default).replaceAll('"', '')})`)
  const option =
    schema.type === 'boolean' ? new Option(`--${name}`, description) : new Option(`--${name} <${placeholder(schema)}>`, description)
  // Commander shows the choices in the help, and refuses others by name.
  const choices = schema.enum ?? items?.enum
  if (choices) option.choices([...choices])
  // Given again and again, or with commas. Not commander's own way, which would also swallow the version behind it.
  if (items) mayRepeat(option)
  if (items) option.argParser((value: string, earlier: readonly string[] | undefined) => [...(earlier ?? []), ...chosen(value, choices)])
  return [{ path, option, key: option.attributeName(), schema }]
}

const chosen = (value: string, choices: readonly string[] | undefined): string[] => {
  const values = value.split(',').map(one => one.trim())
  const wrong = values.find(one => choices && !choices.includes(one))
  if (wrong !== undefined) throw new InvalidArgumentError(`Allowed choices are ${choices?.join(', ')}.`)
  return values
}

/**
 * The spec that these flags ask for: only what was given, so that the server's defaults stay the server's. Ends the command with one line
 * for each flag that is wrong.
 */
export const specOf = (
  kinds: readonly KindBlock[],
  kind: KindBlock,
  cluster: string,
  version: string | undefined,
  given: Readonly<Record<string, unknown>>,
  machineSelector?: OperationSpec['machineSelector'],
): { asked: object; complete: OperationSpec } => {
  const flags = [...envelopeFlags(kinds), ...kindFlags(kind)]
  const items = kind.files ? given[kind.files.field] : undefined
  const asked: Record<string, unknown> = {
    clusterRef: { name: cluster },
    kind: kind.name,
    ...(machineSelector ? { machineSelector } : {}),
    [kind.block]: { ...(version === undefined ? {} : { version }), ...(kind.files && items ? { [kind.files.field]: items } : {}) },
  }
  for (const flag of flags) {
    const value = given[flag.key]
    if (value === undefined) continue
    if (flag.schema.format === 'date-time' && !(typeof value === 'string' && isTime(value)))
      throw new Stop(
        'usage',
        `${flag.option.long} ${JSON.stringify(value)}: must be a time with its zone, for example 2026-03-01T22:00:00Z`,
      )
    set(asked, flag.path, typed(value, flag.schema))
  }

  const parsed = talosOperation(kinds).spec.safeParse(asked)
  if (parsed.success) return { asked, complete: parsed.data as OperationSpec }
  const versionPath = `${kind.block}.version`
  const problems = new Set(
    parsed.error.issues.map(issue => {
      const path = issue.path.map(String)
      const flag = flags.find(one => path.slice(0, one.path.length).join('.') === one.path.join('.'))
      if (kind.files && path[0] === kind.block && path[1] === kind.files.field) return filesProblem(kind.files.field, given, issue)
      if (path.join('.') === versionPath) return versionProblem(kind, version ?? '', issue.message)
      if (flag?.schema.type === 'integer') return `${flag.option.long} ${JSON.stringify(at(asked, flag.path))} ${notInRange(flag.schema)}`
      if (flag) return `${flag.option.long} ${JSON.stringify(at(asked, flag.path))}: ${expectation(flag.schema, issue.message)}`
      return `${path.join('.')}: ${issue.message}`
    }),
  )
  const [first = '', ...others] = problems
  throw new Stop('usage', first, others)
}

type Issue = { readonly code?: string; readonly path: readonly PropertyKey[]; readonly message: string; readonly maximum?: unknown }

/** `-` is standard input, as for kubectl. */
export const fileTitle = (path: string): string => (path === '-' ? 'standard input' : path)

/** What is wrong with the files that make up `field`, or with one of them, by its name. */
const filesProblem = (field: string, given: Readonly<Record<string, unknown>>, { code, path, message, maximum }: Issue): string => {
  const paths = given['file'] as readonly string[]
  const [, , index] = path
  if (typeof index !== 'number')
    return `--file: ${paths.length} files are more than the ${String(maximum)} that one operation takes as ${field}`
  const name = fileTitle(paths[index] ?? '')
  if (code === 'too_small') return `${name} is empty`
  if (code === 'too_big')
    return `${name} is too long: it may have ${String(maximum)} characters. Make several files of it, or put it into a Secret or a ConfigMap`
  return `${name}: ${message}`
}

/** In the words of the checks, so that both doors say the same. */
const versionProblem = (kind: KindBlock, text: string, message: string): string => {
  const target = parseTarget(text, exampleOf(positionalOf(kind)))
  if (target.ok) return `version ${JSON.stringify(text)}: ${message}`
  const problem = target.problem.replace(/\.$/, '')
  return problem.startsWith('"') ? `version ${problem}` : problem
}

const notInRange = ({ minimum, maximum }: FieldSchema): string =>
  `is not a number${minimum === undefined ? '' : ` from ${minimum}`}${maximum === undefined ? '' : ` to ${maximum}`}`

/** RFC 3339 on a day that there is: the calendar of JavaScript goes on counting after the end of a month. */
const isTime = (text: string): boolean => {
  const [, day] = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.exec(text) ?? []
  if (day === undefined || Number.isNaN(Date.parse(text))) return false
  const midnight = Date.parse(`${day}T00:00:00Z`)
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(day)
}

/** What would be right: the schema's own sentence where it has one. */
const expectation = (schema: FieldSchema, message: string): string => {
  const choices = schema.enum ?? schema.items?.enum
  if (choices) return `must be one of ${choices.join(', ')}`
  const own = schema['x-kubernetes-validations']?.find(rule => rule.message)?.message
  if (own) return own
  if (message.startsWith('must ')) return message
  return schema.description ? `${message} (${sentence(schema.description)})` : message
}

const typed = (value: unknown, schema: FieldSchema): unknown => {
  const isNumber = schema.type === 'integer' || schema.type === 'number' || schema.anyOf?.some(one => one.type === 'integer')
  return isNumber && typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value
}

const placeholder = (schema: FieldSchema): string => {
  if (schema.anyOf?.some(one => one.pattern?.includes('%'))) return 'number|percent'
  if (schema.pattern?.includes('ns|us|µs')) return 'duration'
  if (schema.type === 'integer') return 'number'
  return (schema.items ?? schema).enum ? 'choice' : 'value'
}

const set = (object: Record<string, unknown>, [field = '', ...rest]: readonly string[], value: unknown): void => {
  if (rest.length === 0) object[field] = value
  else set((object[field] ??= {}) as Record<string, unknown>, rest, value)
}

const at = (object: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, field) => (inner as Record<string, unknown> | undefined)?.[field], object)

// Help texts of options are no sentences: no full stop at the end, a small letter at the start.
const sentence = (text: string): string => {
  const trimmed = text.trim().replace(/\.$/, '')
  return /^[A-Z][a-z]* [a-z]/.test(trimmed) ? trimmed.charAt(0).toLowerCase() + trimmed.slice(1) : trimmed
}

const isEmpty = (value: unknown): boolean =>
  value === false ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

const jsonSchema = (schema: z.ZodType): FieldSchema => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as FieldSchema
