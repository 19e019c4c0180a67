import type { Fault, Result } from '../../ports/fault.ts'
import { rightIn, rightText } from '../missing-right.ts'

/** `unknown`: it could not be looked at, and why. */
export type Severity = 'ok' | 'warning' | 'error' | 'unknown'

export type Finding = {
  readonly severity: Severity
  /** What was found, where, and what that does. */
  readonly message: string
  /** What to do about it. */
  readonly remedy?: string
  /** The same as a line to type, where there is one. */
  readonly command?: string
  /** The right that is missing to see it. */
  readonly lacks?: string
}

/** One thing that can be wrong. What is well says so in one finding; what is not, in one for each thing that is wrong. */
export type Look<Sight> = { readonly name: string; readonly look: (sight: Sight) => readonly Finding[] }

/** A look and what it found. */
export type Looked = { readonly look: string; readonly findings: readonly Finding[] }

export const lookAt = <Sight>(looks: readonly Look<Sight>[], sight: Sight): readonly Looked[] =>
  looks.map(({ name, look }) => ({ look: name, findings: look(sight) }))

type Cure = Pick<Finding, 'remedy' | 'command' | 'lacks'>

export const fine = (message: string): Finding => ({ severity: 'ok', message })
export const warning = (message: string, cure: Cure = {}): Finding => ({ severity: 'warning', message, ...cure })
export const wrong = (message: string, cure: Cure = {}): Finding => ({ severity: 'error', message, ...cure })
export const unseen = (message: string, cure: Cure = {}): Finding => ({ severity: 'unknown', message, ...cure })

/** All that is wrong; where nothing is, that it is well. */
export const orFine = (found: readonly Finding[], well: string): readonly Finding[] => (found.length > 0 ? found : [fine(well)])

/** What a fault keeps from being seen. */
export const unseenFor = (what: string, fault: Fault): Finding =>
  unseen(
    `${what} cannot be seen: ${fault.message}`,
    fault.kind === 'forbidden' ? { remedy: 'Ask somebody who may see it.', ...lackOf(fault) } : {},
  )

/** The right that a fault is about. */
export const lackOf = ({ message }: Fault): Pick<Finding, 'lacks'> => {
  const right = rightIn(message)
  return right ? { lacks: rightText(right) } : {}
}

/** The look at a value; where there is none, that it cannot be seen. */
export const seen = <T>(what: string, result: Result<T>, look: (value: T) => readonly Finding[]): readonly Finding[] =>
  result.ok ? look(result.value) : [unseenFor(what, result.fault)]

/** `a`, `a and b`, `a, b and c`. */
export const listed = (names: readonly string[]): string =>
  names.length < 2 ? (names[0] ?? '') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

export const plural = (count: number, word: string, words = `${word}s`): string => `${count} ${count === 1 ? word : words}`
