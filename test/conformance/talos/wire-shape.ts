// The shape of a set of proto descriptors as far as the wire and its JSON form know it, by full names, and how two such sets differ.
import type { DescEnum, DescExtension, DescField, DescFile, DescMessage, DescService } from '@bufbuild/protobuf'
import { ScalarType } from '@bufbuild/protobuf'

type Field = {
  readonly number: number
  /** `string`, the full name of a message or enum, or `map<key, value>`. */
  readonly type: string
  readonly label: 'single' | 'optional' | 'repeated' | 'map'
  readonly oneof?: string
  readonly packed?: boolean
}
type Method = { readonly input: string; readonly output: string; readonly kind: string }
type Named<T> = Readonly<Record<string, T>>

/** As the probe prints it (`talos-probe descriptors`). */
export type WireShape = {
  readonly messages: Named<Named<Field>>
  readonly enums: Named<Named<number>>
  readonly services: Named<Named<Method>>
}

const scalar = (type: ScalarType): string => ScalarType[type].toLowerCase()

const typeOf = (of: { readonly message?: DescMessage; readonly enum?: DescEnum; readonly scalar?: ScalarType }): string =>
  of.message?.typeName ?? of.enum?.typeName ?? scalar(of.scalar!)

const fieldShape = (field: DescField | DescExtension): Field => {
  const { number } = field
  const oneof = field.oneof ? { oneof: field.oneof.name } : {}
  if (field.fieldKind === 'map') return { number, type: `map<${scalar(field.mapKey)}, ${typeOf(field)}>`, label: 'map' }
  if (field.fieldKind === 'list') return { number, type: typeOf(field), label: 'repeated', ...(field.packed ? { packed: true } : {}) }
  return { number, type: typeOf(field), label: field.proto.proto3Optional ? 'optional' : 'single', ...oneof }
}

/** What the files describe, types inside of types included. */
export function wireShapeOf(files: readonly DescFile[]): WireShape {
  const messages: Record<string, Named<Field>> = {}
  const enums: Record<string, Named<number>> = {}
  const services: Record<string, Named<Method>> = {}
  const addEnum = (one: DescEnum) => (enums[one.typeName] = Object.fromEntries(one.values.map(v => [v.name, v.number])))
  const addService = (one: DescService) =>
    (services[one.typeName] = Object.fromEntries(
      one.methods.map(m => [m.name, { input: m.input.typeName, output: m.output.typeName, kind: m.methodKind }]),
    ))
  const addMessage = (one: DescMessage) => {
    messages[one.typeName] = Object.fromEntries(one.fields.map(field => [field.name, fieldShape(field)]))
    one.nestedMessages.forEach(addMessage)
    one.nestedEnums.forEach(addEnum)
  }
  for (const file of files) {
    file.messages.forEach(addMessage)
    file.enums.forEach(addEnum)
    file.services.forEach(addService)
  }
  return { messages, enums, services }
}

export type ShapeDifferences = {
  /** What both have, and how it differs, as sentences. */
  readonly different: readonly string[]
  /** Full names: of a type where the whole of it is missing, else of its parts. */
  readonly onlyHere: readonly string[]
  readonly onlyThere: readonly string[]
}

/** Compares by name, and fields also by number: two fields of one number differ even where one of them has no counterpart by name. */
export function compareShapes(here: WireShape, there: WireShape): ShapeDifferences {
  const different: string[] = []
  const onlyHere: string[] = []
  const onlyThere: string[] = []
  const compare = (sort: keyof WireShape, separator: string) => {
    for (const [type, mine] of Object.entries(here[sort] as Named<Named<unknown>>)) {
      const theirs = (there[sort] as Named<Named<unknown>>)[type]
      if (!theirs) {
        onlyHere.push(type)
        continue
      }
      for (const [part, value] of Object.entries(mine)) {
        const [a, b] = [JSON.stringify(value), JSON.stringify(theirs[part])]
        if (b === undefined) onlyHere.push(`${type}${separator}${part}`)
        else if (!sameValue(value, theirs[part])) different.push(`${type}${separator}${part}: ${a} here, ${b} there`)
      }
      for (const part of Object.keys(theirs)) if (!(part in mine)) onlyThere.push(`${type}${separator}${part}`)
      for (const [number, [a, b]] of sharedNumbers(mine, theirs))
        if (a !== b) different.push(`${type}: number ${number} is ${a} here, ${b} there`)
    }
    for (const type of Object.keys(there[sort])) if (!(type in here[sort])) onlyThere.push(type)
  }
  compare('messages', '.')
  compare('enums', '.')
  compare('services', '/')
  return { different, onlyHere: onlyHere.toSorted(), onlyThere: onlyThere.toSorted() }
}

const sameValue = (a: unknown, b: unknown): boolean => {
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b) return a === b
  const keys = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...keys].every(key => (a as Named<unknown>)[key] === (b as Named<unknown>)[key])
}

/** The numbers that both use, with the name each has for it. */
function sharedNumbers(a: Named<unknown>, b: Named<unknown>): [number, [string, string]][] {
  const byNumber = (parts: Named<unknown>) =>
    new Map(Object.entries(parts).flatMap(([name, value]) => (numberOf(value) === undefined ? [] : [[numberOf(value)!, name] as const])))
  const theirs = byNumber(b)
  return [...byNumber(a)].flatMap(([number, name]) => (theirs.has(number) ? [[number, [name, theirs.get(number)!]] as const] : [])) as [
    number,
    [string, string],
  ][]
}

const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' ? value : typeof (value as Partial<Field>).number === 'number' ? (value as Field).number : undefined
