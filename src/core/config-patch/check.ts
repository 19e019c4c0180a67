import { nearestAdvice } from '../nearest.ts'
import type { Place } from './note.ts'
import { bare, type Shape } from './shape.ts'
import { entriesOf, isListing, isMapping, isNothing, isSingle, itemsOf, plainTextOf, saying, textOf, type Node } from './yaml-nodes.ts'

/**
 * Whether a value can be what Talos wants there: fields that there are, mappings and lists where they belong. Whether a word is one that
 * Talos knows is left to its own dry run. `isNewer` where the machine may know more fields than the shapes do.
 */
export const checkValue = (shape: Shape, node: Node, place: Place, isNewer: boolean): void => {
  if (isNothing(node)) return
  const wanted = bare(shape)
  const isWrong = mismatch(wanted, node)
  if (isWrong) place.fault({ code: 'wrongType', problem: isWrong, advice: '' }, node)
  else if (wanted.kind === 'struct') checkFields(wanted.fields, node, place, isNewer)
  else if (wanted.kind === 'map') for (const { key, value } of entriesOf(node)) checkValue(wanted.of, value, place.at(key), isNewer)
  else if (wanted.kind === 'list')
    for (const [index, item] of itemsOf(node).entries()) checkValue(wanted.of, item, place.at(`[${index}]`), isNewer)
  else warnOfTraps(wanted, node, place)
}

const mismatch = (wanted: Shape, node: Node): string => {
  const isScalar = isSingle(node)
  switch (wanted.kind) {
    case 'struct':
    case 'map':
      return isMapping(node) ? '' : 'Talos wants a mapping here'
    case 'list':
      return isListing(node) ? '' : 'Talos wants a list here'
    case 'any':
    case 'opaque':
    case 'whole':
      return ''
    case 'bool':
      return isScalar && isBoolean(node) ? '' : 'Talos wants true or false here'
    case 'number':
      return isScalar && typeof saying(node) !== 'string' && typeof saying(node) !== 'boolean' ? '' : 'Talos wants a number here'
    default:
      return isScalar ? '' : 'Talos wants a single value here'
  }
}

const isBoolean = (node: Node): boolean => typeof saying(node) === 'boolean' || YAML_1_1.test(textOf(node))

const YAML_1_1 = /^(?:y|n|yes|no|on|off)$/i

const checkFields = (fields: ReadonlyMap<string, Shape>, node: Node, place: Place, isNewer: boolean): void => {
  for (const { key, keyNode, value } of entriesOf(node)) {
    const field = fields.get(key)
    if (field) checkValue(field, value, place.at(key), isNewer)
    else {
      const note = { code: 'unknownField', problem: 'there is no such field', advice: nearestAdvice([...fields.keys()], key) } as const
      if (isNewer) place.at(key).warn(note, keyNode)
      else place.at(key).fault(note, keyNode)
    }
  }
}

/** What YAML 1.1 reads otherwise than 1.2, and Talos sometimes so and sometimes so. */
const warnOfTraps = (wanted: Shape, node: Node, place: Place): void => {
  if (wanted.kind === 'any' && isMapping(node)) for (const { key, value } of entriesOf(node)) warnOfTraps(wanted, value, place.at(key))
  if (wanted.kind === 'any') for (const [index, item] of itemsOf(node).entries()) warnOfTraps(wanted, item, place.at(`[${index}]`))
  const isText = ['string', 'opaque', 'url', 'size'].includes(wanted.kind)
  warnOfTrap(node, place, wanted.kind === 'bool' ? 'boolean' : isText ? 'text' : 'any')
}

/** `as` is what Talos makes of a scalar there. */
export const warnOfTrap = (node: Node, place: Place, as: 'boolean' | 'text' | 'any'): void => {
  const written = plainTextOf(node) ?? ''
  if (YAML_1_1.test(written)) {
    const meant = /^(?:y|yes|on)$/i.test(written)
    const [read, advice] =
      as === 'boolean' ? [meant, `write ${meant}`] : ['a text', `write "${written}" for the text, or ${meant} for the boolean`]
    place.warn({ code: 'trap', problem: `${written} without quotes is ${read} to Talos`, advice }, node)
  }
  // Not which: digits may be a secret.
  if (/^[-+]?0[0-7_]+$/.test(written)) {
    const problem = `a number with a leading zero is ${as === 'text' ? 'a text' : 'octal'} to Talos`
    const advice = as === 'text' ? 'write quotes around it' : 'write 0o instead of the zero where that is meant, or quotes around a text'
    place.warn({ code: 'trap', problem, advice }, node)
  }
}
