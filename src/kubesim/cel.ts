import { same } from '../world/json.ts'
import { isFields } from './fields.ts'

/**
 * The part of the Common Expression Language that validation rules of our resources use: literals, fields, `has`, comparison, logic, `in`,
 * `+`, the conditional, a few methods of texts, lists and maps, and the macros `all`, `exists`, `filter` and `map`. It reads rules as they stand in the
 * definition; it knows no types before evaluation and no cost.
 */
type Scope = Readonly<Record<string, unknown>>
/** A compiled expression. Evaluating throws an Error with CEL's words where CEL would answer an error. */
export type Expression = { readonly usesOld: boolean; readonly evaluate: (scope: Scope) => unknown }

type Node = (scope: Scope) => unknown

const TOKEN =
  /\s*(?:(\d+\.\d+|\d+)|(r"[^"]*"|r'[^']*'|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([A-Za-z_][A-Za-z0-9_]*)|(&&|\|\||[=!<>]=|[-+*/%!<>()[\]{}.,?:]))/y

type Token = { readonly kind: 'number' | 'text' | 'name' | 'sign' | 'end'; readonly value: string }

const tokens = (source: string): Token[] => {
  const found: Token[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < source.trimEnd().length) {
    const match = TOKEN.exec(source)
    if (!match) throw new Error(`not a rule that can be read here: ${source}`)
    const [, number, text, name, sign] = match
    if (number !== undefined) found.push({ kind: 'number', value: number })
    else if (text !== undefined) found.push({ kind: 'text', value: unquote(text) })
    else if (name !== undefined) found.push({ kind: 'name', value: name })
    else found.push({ kind: 'sign', value: sign ?? '' })
  }
  return [...found, { kind: 'end', value: '' }]
}

/** Raw texts (`r'…'`) mean what they say, so that patterns need no doubled backslashes. */
const unquote = (text: string): string =>
  text.startsWith('r')
    ? text.slice(2, -1)
    : text.slice(1, -1).replaceAll(/\\(.)/g, (_all, letter: string) => (letter === 'n' ? '\n' : letter === 't' ? '\t' : letter))

const bool = (value: unknown): boolean => {
  if (typeof value !== 'boolean') throw new Error('no such overload')
  return value
}

/** Logic where an error on one side does not matter when the other side decides. */
const either =
  (left: Node, right: Node, deciding: boolean): Node =>
  scope => {
    let failure: unknown
    try {
      if (bool(left(scope)) === deciding) return deciding
    } catch (error) {
      failure = error
    }
    if (bool(right(scope)) === deciding) return deciding
    if (failure) throw failure
    return !deciding
  }

const field = (object: unknown, name: string): unknown => {
  if (isFields(object) && Object.hasOwn(object, name)) return object[name]
  throw new Error(`no such key: ${name}`)
}

const compare = (sign: string, a: unknown, b: unknown): boolean => {
  if (sign === '==') return same(a, b)
  if (sign === '!=') return !same(a, b)
  if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string')) throw new Error('no such overload')
  const [left, right] = [a as number, b as number]
  return sign === '<' ? left < right : sign === '<=' ? left <= right : sign === '>' ? left > right : left >= right
}

const add = (a: unknown, b: unknown): unknown => {
  if (typeof a === 'number' && typeof b === 'number') return a + b
  if (typeof a === 'string' && typeof b === 'string') return a + b
  if (Array.isArray(a) && Array.isArray(b)) return [...(a as unknown[]), ...(b as unknown[])]
  throw new Error('no such overload')
}

const contains = (list: unknown, item: unknown): boolean => {
  if (Array.isArray(list)) return list.some(each => same(each, item))
  if (isFields(list) && typeof item === 'string') return Object.hasOwn(list, item)
  throw new Error('no such overload')
}

const size = (value: unknown): number => {
  if (typeof value === 'string') return Array.from(value).length
  if (Array.isArray(value)) return value.length
  if (isFields(value)) return Object.keys(value).length
  throw new Error('no such overload')
}

const METHODS: Record<string, (subject: unknown, args: unknown[]) => unknown> = {
  size: subject => size(subject),
  startsWith: (subject, [text]) => String(subject).startsWith(String(text)),
  endsWith: (subject, [text]) => String(subject).endsWith(String(text)),
  contains: (subject, [text]) => String(subject).includes(String(text)),
  matches: (subject, [pattern]) => new RegExp(String(pattern)).test(String(subject)),
}

/** Types are values too: `type(self) == int`. */
const TYPES = ['int', 'double', 'string', 'bool', 'list', 'map', 'null_type']
const typeName = (value: unknown): string => {
  if (value === null) return 'null_type'
  if (Array.isArray(value)) return 'list'
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'double'
  return typeof value === 'boolean' ? 'bool' : typeof value === 'string' ? 'string' : 'map'
}

const elements = (value: unknown): unknown[] => (Array.isArray(value) ? value : isFields(value) ? Object.keys(value) : [])

const MACROS: Record<string, (list: unknown[], test: (item: unknown) => unknown) => unknown> = {
  all: (list, test) => list.every(item => bool(test(item))),
  exists: (list, test) => list.some(item => bool(test(item))),
  filter: (list, test) => list.filter(item => bool(test(item))),
  map: (list, test) => list.map(item => test(item)),
}

/** Reads a rule; throws where it uses more than is known here. */
export const compile = (source: string): Expression => {
  const list = tokens(source)
  let at = 0
  const peek = (): Token => list[at] ?? { kind: 'end', value: '' }
  const isSign = (value: string): boolean => peek().kind === 'sign' && peek().value === value
  const take = (value: string): boolean => {
    if (!isSign(value)) return false
    at++
    return true
  }
  const expect = (value: string): void => {
    if (!take(value)) throw new Error(`not a rule that can be read here, ${value} expected: ${source}`)
  }
  const name = (): string => {
    const token = list[at++]
    if (token?.kind !== 'name') throw new Error(`not a rule that can be read here, a name expected: ${source}`)
    return token.value
  }
  const series = (end: string): Node[] => {
    const items: Node[] = []
    while (!take(end)) {
      items.push(conditional())
      if (!isSign(end)) expect(',')
    }
    return items
  }

  const has = (): Node => {
    expect('(')
    const path = [name()]
    while (take('.')) path.push(name())
    expect(')')
    const last = path.pop() ?? ''
    return scope => {
      const object = path.reduce<unknown>((value, part) => field(value, part), scope)
      if (!isFields(object)) throw new Error('no such overload')
      return Object.hasOwn(object, last)
    }
  }

  const primary = (): Node => {
    const token = peek()
    at++
    if (token.kind === 'number') return () => Number(token.value)
    if (token.kind === 'text') return () => token.value
    if (token.kind === 'name') {
      if (token.value === 'true' || token.value === 'false') return () => token.value === 'true'
      if (token.value === 'null') return () => null
      if (token.value === 'has' && isSign('(')) return has()
      if (token.value === 'size' && take('(')) {
        const [arg] = series(')')
        return scope => size(arg?.(scope))
      }
      if (token.value === 'type' && take('(')) {
        const [arg] = series(')')
        return scope => typeName(arg?.(scope))
      }
      if (TYPES.includes(token.value)) return () => token.value
      return scope => field(scope, token.value)
    }
    if (token.value === '(') {
      const inner = conditional()
      expect(')')
      return inner
    }
    if (token.value === '[') {
      const items = series(']')
      return scope => items.map(item => item(scope))
    }
    throw new Error(`not a rule that can be read here, at "${token.value}": ${source}`)
  }

  const member = (): Node => {
    let node = primary()
    for (;;) {
      const subject = node
      if (take('[')) {
        const key = conditional()
        expect(']')
        node = scope => {
          const [object, index] = [subject(scope), key(scope)]
          if (!Array.isArray(object)) return field(object, String(index))
          if (typeof index !== 'number' || index >= object.length) throw new Error(`index out of bounds: ${String(index)}`)
          return object[index] as unknown
        }
      } else if (take('.')) {
        const word = name()
        node = take('(') ? call(subject, word) : scope => field(subject(scope), word)
      } else return node
    }
  }

  const call = (subject: Node, word: string): Node => {
    const macro = MACROS[word]
    if (macro) {
      const variable = name()
      expect(',')
      const body = conditional()
      expect(')')
      return scope => macro(elements(subject(scope)), item => body({ ...scope, [variable]: item }))
    }
    const method = METHODS[word]
    if (!method) throw new Error(`not a rule that can be read here, no method ${word}: ${source}`)
    const args = series(')')
    return scope =>
      method(
        subject(scope),
        args.map(arg => arg(scope)),
      )
  }

  const unary = (): Node => {
    if (take('!')) {
      const inner = unary()
      return scope => !bool(inner(scope))
    }
    if (take('-')) {
      const inner = unary()
      return scope => -Number(inner(scope))
    }
    return member()
  }

  const sum = (): Node => {
    let node = unary()
    while (take('+')) {
      const [left, right] = [node, unary()]
      node = scope => add(left(scope), right(scope))
    }
    return node
  }

  const relation = (): Node => {
    const left = sum()
    if (peek().kind === 'name' && peek().value === 'in') {
      at++
      const right = sum()
      return scope => contains(right(scope), left(scope))
    }
    const sign = ['==', '!=', '<=', '>=', '<', '>'].find(take)
    if (sign === undefined) return left
    const right = sum()
    return scope => compare(sign, left(scope), right(scope))
  }

  const all = (): Node => {
    let node = relation()
    while (take('&&')) node = either(node, relation(), false)
    return node
  }
  const any = (): Node => {
    let node = all()
    while (take('||')) node = either(node, all(), true)
    return node
  }
  const conditional = (): Node => {
    const test = any()
    if (!take('?')) return test
    const yes = conditional()
    expect(':')
    const no = conditional()
    return scope => (bool(test(scope)) ? yes(scope) : no(scope))
  }

  const evaluate = conditional()
  if (peek().kind !== 'end') throw new Error(`not a rule that can be read here, at "${peek().value}": ${source}`)
  return { evaluate, usesOld: list.some(token => token.kind === 'name' && token.value === 'oldSelf') }
}
