import type { Fields } from './fields.ts'
import { textAt, valueAt } from './fields.ts'
import type { FieldFault } from './refusal.ts'
import type { ResourceType } from './resource-types.ts'
import { invalidValue } from './validate.ts'

/** Fields that are `metav1.MicroTime`: Go reads them with six digits of a second, and nothing else. */
const MICRO_TIMES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'leases.coordination.k8s.io': [
    ['spec', 'acquireTime'],
    ['spec', 'renewTime'],
  ],
  events: [['eventTime'], ['series', 'lastObservedTime']],
}

const MICRO = '.000000'
const LAYOUT = `2006-01-02T15:04:05${MICRO}Z07:00`

/** Why Go cannot read an object of a built-in type; undefined where it can, as far as our clients could get it wrong. */
export const unreadable = (type: ResourceType, object: unknown): string | undefined => {
  for (const path of MICRO_TIMES[type.shelf] ?? []) {
    const text = textAt(object, ...path)
    const [, rest = text] = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(.*)$/.exec(text) ?? []
    if (text !== '' && !/^\.\d{6}(Z|[+-]\d\d:\d\d)$/.test(rest))
      return `parsing time "${text}" as "${LAYOUT}": cannot parse "${rest}" as "${MICRO}"`
  }
  return undefined
}

const below = (object: Fields, field: string, least: number, words: string): FieldFault[] => {
  const value = valueAt(object, 'spec', field)
  return typeof value === 'number' && value < least ? [invalidValue(`spec.${field}`, value, words)] : []
}

/** An Event is in the namespace of what it is about; about the cluster, in that which is called default. */
const misplaced = (event: Fields): FieldFault[] => {
  const about = textAt(event, 'involvedObject', 'namespace')
  if (textAt(event, 'eventTime') !== '' || textAt(event, 'metadata', 'namespace') === (about || 'default')) return []
  return [invalidValue('involvedObject.namespace', about, 'does not match event.namespace')]
}

/** What the built-in types that our clients write do not allow of themselves. */
export const builtInFaults = (type: ResourceType, object: Fields): FieldFault[] => {
  if (type.shelf === 'leases.coordination.k8s.io')
    return [
      ...below(object, 'leaseDurationSeconds', 1, 'must be greater than 0'),
      ...below(object, 'leaseTransitions', 0, 'must be greater than or equal to 0'),
    ]
  return type.shelf === 'events' && type.group === '' ? misplaced(object) : []
}
