import { celEnv, celError, isCelError, parse, plan } from '@bufbuild/cel'
import { strings } from '@bufbuild/cel/ext'

/**
 * Expressions of health gates, in the Common Expression Language. The object is `object`, as in a ValidatingAdmissionPolicy; `self`, as in the rules
 * of a CRD; and `status` is short for `object.status`. Pure: there is no clock in the language, and regular expressions take linear time.
 */

type Expression = NonNullable<ReturnType<typeof parse>['expr']>
type Cel = bigint | number | string | boolean | null | readonly Cel[] | ReadonlyMap<string, Cel>

export type GateAnswer =
  /** `seen`: the values that the expression looks at, for people; empty where they say no more than the answer. */
  | { readonly is: 'yes' | 'no'; readonly seen: string }
  /** It could not be evaluated for this object: a field is missing, or is of another type than is compared with. */
  | { readonly is: 'error'; readonly why: string }
  /** It gives something else than true or false. */
  | { readonly is: 'other'; readonly type: string }

const VARIABLES = ['object', 'self', 'status'] as const
const TYPES = ['bool', 'int', 'uint', 'double', 'bytes', 'string', 'list', 'map', 'null_type', 'type']
const NAMES: ReadonlySet<string> = new Set([...VARIABLES, ...TYPES])
/** Operators that never give true or false. */
const ARITHMETIC: ReadonlySet<string> = new Set(['_+_', '_-_', '_*_', '_/_', '_%_', '-_'])

const environment = celEnv({ funcs: strings })

/** What is wrong with an expression whatever the object is, with its place; undefined where nothing is. */
export const expressionProblem = (text: string): string | undefined => {
  const read = parsed(text)
  return typeof read === 'string' ? read : undefined
}

/** What the expression says of an object as the API server has it. Never throws. */
export const askExpression = (text: string, object: unknown): GateAnswer => {
  const expr = parsed(text)
  if (typeof expr === 'string') return { is: 'error', why: expr }
  const bindings = bindingsFor(object)
  const value = evaluated(expr, bindings)
  if (isCelError(value)) return { is: 'error', why: inWords(value.message) }
  if (typeof value !== 'boolean') return { is: 'other', type: typeName(value) }
  return { is: value ? 'yes' : 'no', seen: lookedAt(expr, bindings) }
}

/** Gates are asked every few seconds, and say the same for months. */
const KNOWN = 100
const known = new Map<string, Expression | string>()

/** The expression, or what is wrong with it. */
const parsed = (text: string): Expression | string => {
  const before = known.get(text)
  if (before !== undefined) return before
  const read = parsedAnew(text)
  if (known.size >= KNOWN) known.clear()
  known.set(text, read)
  return read
}

const parsedAnew = (text: string): Expression | string => {
  try {
    const { expr, sourceInfo } = parse(text)
    if (!expr) return 'it is empty'
    const found = problemIn(expr, NAMES) ?? resultProblem(expr)
    return found ? `${place(text, sourceInfo?.positions[String(found.id)])}: ${found.what}` : expr
  } catch (error) {
    if (error instanceof RangeError) return 'it is nested too deep'
    const { location, message = String(error) } = error as { message?: string; location?: { start: { offset: number } } }
    const what = message
      .replace(/^<input>:\d+:\d+: /, '')
      .replace(/ but expecting (?!end of input)[\s\S]*$/, ', which is not what belongs here')
    return `${place(text, location?.start.offset)}: ${what}`
  }
}

/** `line 1, column 8`, counted from one, as editors do. */
const place = (text: string, offset = 0): string => {
  const before = text.slice(0, offset)
  return `line ${before.split('\n').length}, column ${before.length - before.lastIndexOf('\n')}`
}

type Problem = { readonly id: bigint; readonly what: string }

/**
 * Where in the loops an expression stands. `item` is the variable of the innermost one. `isFree`: one of them goes over a list of any length, which is
 * no part of the item of the loop around it; a second such one would multiply the time, and nothing else happens meanwhile.
 */
type Loops = { readonly depth: number; readonly item: string | undefined; readonly isFree: boolean }
const NO_LOOP: Loops = { depth: 0, item: undefined, isFree: false }
const MOST_LOOPS = 2

/** Names and functions that do not exist: for each object the answer would be the same error. And what might take too long. */
const problemIn = (expr: Expression | undefined, names: ReadonlySet<string>, loops = NO_LOOP): Problem | undefined => {
  if (!expr) return undefined
  const { id, exprKind } = expr
  const first = (parts: readonly (Expression | undefined)[], scope = names, within = loops): Problem | undefined => {
    for (const part of parts) {
      const found = problemIn(part, scope, within)
      if (found) return found
    }
    return undefined
  }
  switch (exprKind.case) {
    case 'identExpr': {
      const { name } = exprKind.value
      return names.has(name) ? undefined : { id, what: `there is no ${name}; the object is called ${VARIABLES.slice(0, 2).join(' or ')}` }
    }
    case 'selectExpr':
      return first([exprKind.value.operand])
    case 'callExpr': {
      const { function: name, target, args } = exprKind.value
      const isUnknown = /^[A-Za-z_]\w*$/.test(name) && !environment.funcs.find(name)
      return isUnknown ? { id, what: `there is no function ${name}` } : first([target, ...args])
    }
    case 'listExpr':
      return first(exprKind.value.elements)
    case 'structExpr': {
      const { messageName, entries } = exprKind.value
      if (messageName !== '') return { id, what: `there is no type ${messageName}` }
      return first(entries.flatMap(({ keyKind, value }) => [keyKind.case === 'mapKey' ? keyKind.value : undefined, value]))
    }
    case 'comprehensionExpr': {
      const { iterVar, iterVar2, accuVar, iterRange, accuInit, loopCondition, loopStep, result } = exprKind.value
      if (loops.depth === MOST_LOOPS) return { id, what: `there are loops within loops, more than ${MOST_LOOPS} deep` }
      const isFree = iterRange?.exprKind.case !== 'listExpr' && (loops.item === undefined || rootOf(iterRange) !== loops.item)
      if (isFree && loops.isFree) return { id, what: 'a loop within a loop has to go over a part of its item' }
      const inner = new Set([...names, iterVar, iterVar2, accuVar])
      return (
        first([iterRange, accuInit]) ??
        first([loopCondition, loopStep, result], inner, { depth: loops.depth + 1, item: iterVar, isFree: isFree || loops.isFree })
      )
    }
    default:
      return undefined
  }
}

/** The variable that it is taken out of: `c` of `c.items.filter(…)[0]`. */
const rootOf = (expr: Expression | undefined): string | undefined => {
  const exprKind = expr?.exprKind
  switch (exprKind?.case) {
    case 'identExpr':
      return exprKind.value.name
    case 'selectExpr':
      return rootOf(exprKind.value.operand)
    case 'comprehensionExpr':
      return rootOf(exprKind.value.iterRange)
    case 'callExpr':
      return rootOf(exprKind.value.target ?? exprKind.value.args[0])
    default:
      return undefined
  }
}

/** What can be told without an object of its answer being no yes and no no. */
const resultProblem = ({ id, exprKind }: Expression): Problem | undefined => {
  const isOther =
    exprKind.case === 'listExpr' ||
    exprKind.case === 'structExpr' ||
    (exprKind.case === 'constExpr' && exprKind.value.constantKind.case !== 'boolValue') ||
    (exprKind.case === 'callExpr' && ARITHMETIC.has(exprKind.value.function))
  return isOther ? { id, what: 'it gives neither true nor false' } : undefined
}

type Bindings = Readonly<Record<string, Cel>>

const evaluated = (expr: Expression, bindings: Bindings): unknown => {
  try {
    return plan(environment, expr)(bindings as NonNullable<Parameters<ReturnType<typeof plan>>[0]>)
  } catch (error) {
    return celError(error)
  }
}

const bindingsFor = (object: unknown): Bindings => {
  const whole = asCel(object)
  const { status } = Object(object) as { readonly status?: unknown }
  return { object: whole, self: whole, ...(status === undefined ? {} : { status: asCel(status) }) }
}

/** As the API server itself sees JSON: whole numbers are int, others double. */
const asCel = (value: unknown): Cel => {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (Array.isArray(value)) return value.map(asCel)
  if (typeof value !== 'object' || value === null) return null
  return new Map(Object.entries(value).map(([key, inner]) => [key, asCel(inner)]))
}

const MOST_VALUES = 3
const LONGEST_VALUE = 60

/** The fields of the object that the expression reads, with what is in them: `WARN`, or `health WARN, phase Ready` where there are several. */
const lookedAt = (expr: Expression, bindings: Bindings): string => {
  const texts = new Map<string, string>()
  for (const { field, path } of fieldsIn(expr)) {
    const text = scalarText(evaluated(field, bindings))
    if (text !== undefined) texts.set(path.replace(/^(object|self)\./, ''), text)
  }
  const entries = [...texts].slice(0, MOST_VALUES)
  const [only] = entries
  return only && entries.length === 1 ? only[1] : entries.map(([path, text]) => `${path.split('.').at(-1)} ${text}`).join(', ')
}

/** The longest ways into the object, not those of single items of a list. */
const fieldsIn = (expr: Expression | undefined): readonly { readonly field: Expression; readonly path: string }[] => {
  if (!expr) return []
  const { exprKind } = expr
  switch (exprKind.case) {
    case 'selectExpr': {
      const path = exprKind.value.testOnly ? undefined : pathOf(expr)
      return path === undefined ? fieldsIn(exprKind.value.operand) : [{ field: expr, path }]
    }
    case 'callExpr':
      return [exprKind.value.target, ...exprKind.value.args].flatMap(fieldsIn)
    case 'comprehensionExpr':
      return fieldsIn(exprKind.value.iterRange)
    default:
      return []
  }
}

/** `status.ceph.health`; undefined where it is no way into the object. */
const pathOf = ({ exprKind }: Expression): string | undefined => {
  if (exprKind.case === 'identExpr') return VARIABLES.find(name => name === exprKind.value.name)
  if (exprKind.case !== 'selectExpr') return undefined
  const { operand, field } = exprKind.value
  const parent = operand && pathOf(operand)
  return parent && `${parent}.${field}`
}

const scalarText = (value: unknown): string | undefined => {
  const isScalar = typeof value === 'string' || typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean'
  if (!isScalar) return undefined
  const text = String(value).replaceAll(/\s+/g, ' ').trim() || 'empty'
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text
}

const inWords = (message: string): string =>
  message
    .replace(/^field not found: (.*)$/, 'it has no field $1')
    .replace(/^unresolved attribute$/, 'it has no status')
    .replace(/\s+/g, ' ')

const typeName = (value: unknown): string => {
  if (typeof value === 'bigint') return 'a whole number'
  if (typeof value === 'number') return 'a number'
  return typeof value === 'string' ? 'a text' : value === null ? 'null' : 'an object or a list'
}
