import type { KeyedList } from './keyed-lists.ts'
import schema from './schema.json' with { type: 'json' }

/**
 * What a value of a machine configuration is to Talos, as far as merging and checking look. schema.json is read off Talos' own types
 * (test/probe, `config-schema`, which says what the signs mean); that it is fresh is asked by test/conformance/talos/config-patch.test.ts.
 */
export type Shape =
  | { readonly kind: 'string' | 'bool' | 'number' | 'any' | 'bytes' | 'whole' | 'opaque' | 'url' | 'size' }
  /** Read from text. `zero` is the word that does not override. */
  | { readonly kind: 'word'; readonly zero: string }
  /** May be absent, which is something else than its zero. */
  | { readonly kind: 'pointer'; readonly to: Shape }
  /** `keyed` names the way in which its items find each other; empty where a patch's are appended. */
  | { readonly kind: 'list'; readonly of: Shape; readonly keyed: KeyedList | '' }
  /** A `flat` one takes the patch's values as they are, where others merge them. */
  | { readonly kind: 'map'; readonly of: Shape; readonly flat: boolean }
  | { readonly kind: 'replace'; readonly of: Shape }
  | { readonly kind: 'struct'; readonly fields: Fields }

export type Fields = ReadonlyMap<string, Shape>

export type DocumentShape = {
  readonly shape: Shape
  /** Told from others of its kind by `name`. */
  readonly named: boolean
  /** Kinds that may not stand beside it under the same name. */
  readonly conflicts: readonly string[]
  /** Where Talos itself sees a secret; `*` stands for each key or item. */
  readonly secrets: readonly string[]
}

/** The Talos minor whose types these are. */
export const schemaMinor: string = schema.talos

type Described = {
  readonly type: string
  readonly named?: boolean
  readonly conflicts?: readonly string[]
  readonly secrets?: readonly string[]
}
const documents: Readonly<Record<string, Described>> = schema.documents
const types: Readonly<Record<string, Readonly<Record<string, string>>>> = schema.types

export const documentKinds: readonly string[] = Object.keys(documents).filter(kind => kind !== '')

/** Of a kind of document; of the one without a kind (`machine`, `cluster`) where `kind` is empty. */
export const documentShape = (kind: string): DocumentShape | undefined => {
  const described = Object.hasOwn(documents, kind) ? documents[kind] : undefined
  return (
    described && {
      shape: readShape(described.type),
      named: described.named ?? false,
      conflicts: described.conflicts ?? [],
      secrets: described.secrets ?? [],
    }
  )
}

const structs = new Map<string, Shape>()

const struct = (name: string): Shape => {
  const known = structs.get(name)
  if (known) return known
  const fields = new Map<string, Shape>()
  const shape: Shape = { kind: 'struct', fields }
  structs.set(name, shape)
  const { [name]: described = {} } = types
  for (const [field, signs] of Object.entries(described)) fields.set(field, readShape(signs))
  return shape
}

const readShape = (signs: string): Shape => {
  const rest = signs.slice(1)
  switch (signs[0]) {
    case '*':
      return { kind: 'pointer', to: readShape(rest) }
    case '=':
      return { kind: 'replace', of: readShape(rest) }
    case '@':
      return struct(rest)
    case '[':
      return { kind: 'list', keyed: rest.slice(0, rest.indexOf(']')) as KeyedList | '', of: readShape(rest.slice(rest.indexOf(']') + 1)) }
    case '{':
      return { kind: 'map', flat: !rest.startsWith('}'), of: readShape(rest.slice(rest.indexOf('}') + 1)) }
    default:
      return signs.startsWith('word(') ? { kind: 'word', zero: signs.slice(5, -1) } : { kind: signs as 'string' }
  }
}

/** Without what says how it merges. */
export const bare = (shape: Shape): Shape => (shape.kind === 'pointer' ? bare(shape.to) : shape.kind === 'replace' ? bare(shape.of) : shape)
