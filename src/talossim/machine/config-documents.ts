import { parseAllDocuments } from 'yaml'
import type { Answer } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import { isAtLeast } from '../../world/releases.ts'
import type { Below } from './config-shapes.ts'
import { fieldsOf, KIND_SINCE } from './config-shapes.ts'

export type Mapping = { readonly [key: string]: unknown }
const isMapping = (value: unknown): value is Mapping => typeof value === 'object' && value !== null && !Array.isArray(value)
export const mappingOf = (value: unknown): Mapping => (isMapping(value) ? value : {})

/** A scalar as text; empty where there is none. */
export const textOf = (value: unknown): string => (['string', 'number', 'boolean'].includes(typeof value) ? `${value as string}` : '')

/** A machine configuration, taken apart. */
export type Configuration = {
  /** The document of the first kind, which has neither `apiVersion` nor `kind`. */
  readonly main: Mapping | undefined
  readonly others: readonly (Mapping & { readonly kind: string })[]
}

/** What of a value no field is known for, in its place; undefined where nothing is. */
const unknownIn = (value: unknown, below: Below, since13: boolean): unknown => {
  if (!below) return undefined
  if (below.each) {
    const inner: Below = { type: below.type, each: false }
    if (Array.isArray(value)) {
      const found = value.map(item => unknownIn(item, inner, since13)).filter(item => item !== undefined)
      return found.length > 0 ? found : undefined
    }
    return found(Object.entries(mappingOf(value)).map(([key, item]) => [key, unknownIn(item, inner, since13)]))
  }
  const fields = fieldsOf(below.type, since13)
  if (!fields || !isMapping(value)) return undefined
  return found(
    Object.entries(value).map(([key, item]) => [key, fields.has(key) ? unknownIn(item, fields.get(key), since13) : (item ?? null)]),
  )
}

const found = (entries: readonly (readonly [string, unknown])[]): Mapping | undefined => {
  const left = entries.filter(([, value]) => value !== undefined)
  return left.length > 0 ? Object.fromEntries(left.toSorted(([a], [b]) => (a < b ? -1 : 1))) : undefined
}

/** YAML as Go's package writes it: at multiples of four blanks, but for what stands beside a dash. */
const written = (value: unknown, depth: number): string => {
  const indent = ' '.repeat(depth)
  if (Array.isArray(value))
    return value.length === 0 ? ' []\n' : `\n${value.map(item => `${indent}- ${written(item, depth + 2).trimStart()}`).join('')}`
  if (!isMapping(value)) return ` ${typeof value === 'string' && /^[\w./-]+$/.test(value) ? value : JSON.stringify(value)}\n`
  const entries = Object.entries(value)
  const below = (Math.floor(depth / 4) + 1) * 4
  return entries.length === 0 ? ' {}\n' : `\n${entries.map(([key, inner]) => `${indent}${key}:${written(inner, below)}`).join('')}`
}

const unknownKeys = (document: Mapping, type: string, version: string): string | undefined => {
  const { apiVersion: _, kind: __, ...rest } = document
  const unknown = unknownIn(type === 'v1alpha1' ? document : rest, { type, each: false }, isAtLeast(version, 1, 13))
  return unknown === undefined ? undefined : `unknown keys found during decoding:${written(unknown, 0)}`
}

/** Fields that only the first kind of document has at its top. */
const OF_MAIN = ['machine', 'cluster', 'debug', 'persist']

/** Why a machine of that version cannot read a document; undefined where it can. */
const objectionTo = (document: Mapping, version: string): string | undefined => {
  const kind = textOf(document['kind'])
  const apiVersion = OF_MAIN.some(key => key in document) ? 'v1alpha1' : textOf(document['apiVersion'])
  if (kind === '') return apiVersion === 'v1alpha1' ? unknownKeys(document, 'v1alpha1', version) : 'missing kind'
  const since = KIND_SINCE.get(kind)
  if (apiVersion !== 'v1alpha1' || since === undefined || !isAtLeast(version, 1, since))
    return `${JSON.stringify(kind)} ${JSON.stringify(apiVersion)}: not registered`
  // Of fields that came with 1.14 nothing is known here.
  return isAtLeast(version, 1, 14) ? undefined : unknownKeys(document, kind, version)
}

/** Reads a configuration as a machine of that version does: unknown documents, fields and repetitions are refused in its words. */
export const readConfiguration = (text: string, version: string): Answer<Configuration> => {
  const documents = parseAllDocuments(text)
  const parsed = Array.isArray(documents) ? documents : []
  const error = parsed.flatMap(document => document.errors)[0]
  if (error) return refuse('InvalidArgument', `decode error: yaml: ${error.message}`)
  const values = parsed.map(document => document.toJS() as unknown).filter(value => value !== null)
  const seen = new Set<string>()
  for (const value of values) {
    if (!isMapping(value)) return refuse('InvalidArgument', 'recovered: expected a mapping node')
    const id = [value['apiVersion'], value['kind'] ?? 'v1alpha1', value['name']].map(textOf).join('/')
    if (seen.has(id)) return refuse('InvalidArgument', `duplicate document ${id} is not allowed`)
    seen.add(id)
    const objection = objectionTo(value, version)
    if (objection !== undefined) return refuse('InvalidArgument', objection)
  }
  if (values.length === 0) return refuse('InvalidArgument', 'config not found')
  const mappings = values.map(mappingOf)
  return answer({
    main: mappings.find(value => value['kind'] === undefined),
    others: mappings.flatMap(value => (typeof value['kind'] === 'string' ? [{ ...value, kind: value['kind'] }] : [])),
  })
}
