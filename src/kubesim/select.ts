import type { KubeObject } from '../world/store.ts'
import { fieldsAt, textAt, valueAt } from './fields.ts'
import { badRequest } from './refusal.ts'
import type { ResourceType } from './resource-types.ts'

export type Selects = (object: KubeObject) => boolean

type Labels = Readonly<Record<string, unknown>>
type Requirement = (labels: Labels) => boolean

const KEY = '[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?'
const VALUE = '([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?'
const SET = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`)
const EQUAL = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*(${VALUE})$`)
const EXISTS = new RegExp(`^(!?)\\s*(${KEY})$`)

const requirement = (term: string): Requirement | undefined => {
  const set = SET.exec(term)
  if (set) {
    const [, key = '', , operator, list = ''] = set
    const values: readonly unknown[] = list.split(',').map(value => value.trim())
    return operator === 'in'
      ? labels => labels[key] !== undefined && values.includes(labels[key])
      : labels => labels[key] === undefined || !values.includes(labels[key])
  }
  const equal = EQUAL.exec(term)
  if (equal) {
    const [, key = '', , operator, value] = equal
    return operator === '!=' ? labels => labels[key] !== value : labels => labels[key] === value
  }
  const exists = EXISTS.exec(term)
  if (exists) {
    const [, not, key = ''] = exists
    return labels => (labels[key] === undefined) === (not === '!')
  }
  return undefined
}

/** A label selector as queries spell it: `a=b,c!=d,e in (f,g),h,!i`. */
const labelSelector = (selector: string): Requirement => {
  const terms = selector.split(/,(?![^(]*\))/).map(term => term.trim())
  if (selector.trim() === '') return () => true
  const requirements = terms.map(term => {
    const read = requirement(term)
    if (!read) throw badRequest(`unable to parse requirement: found '${term}', expected: a label selector`)
    return read
  })
  return labels => requirements.every(holds => holds(labels))
}

/** A LabelSelector object, as PodDisruptionBudgets carry it. Absent selects nothing, empty everything. */
export const objectSelector = (selector: unknown): Requirement => {
  if (selector === undefined || selector === null) return () => false
  const equal = Object.entries(fieldsAt(selector, 'matchLabels'))
  const expressions = valueAt(selector, 'matchExpressions')
  const list: readonly unknown[] = Array.isArray(expressions) ? expressions : []
  return labels =>
    equal.every(([key, value]) => labels[key] === value) &&
    list.every(expression => {
      const [value, values] = [labels[textAt(expression, 'key')], valueAt(expression, 'values')]
      const listed = Array.isArray(values) && values.includes(value)
      switch (textAt(expression, 'operator')) {
        case 'In':
          return listed
        case 'NotIn':
          return !listed
        case 'Exists':
          return value !== undefined
        default:
          return value === undefined
      }
    })
}

/** What each type can be selected by, besides name and namespace. */
const FIELDS: Record<string, readonly string[]> = {
  pods: [
    'spec.nodeName',
    'spec.restartPolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'spec.hostNetwork',
    'status.phase',
    'status.podIP',
    'status.nominatedNodeName',
  ],
  nodes: ['spec.unschedulable'],
  namespaces: ['status.phase'],
  secrets: ['type'],
  services: ['spec.clusterIP', 'spec.type'],
  events: [
    ...['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(field => `involvedObject.${field}`),
    'reason',
    'reportingComponent',
    'source',
    'type',
  ],
  'replicasets.apps': ['status.replicas'],
}

const fieldValue = (object: KubeObject, field: string): string => {
  const path = field === 'source' ? ['source', 'component'] : field.split('.')
  const value = valueAt(object, ...path)
  // Booleans are selected by their Go zero value where they are absent.
  if (value === undefined) return field === 'spec.unschedulable' || field === 'spec.hostNetwork' ? 'false' : ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A field selector: `spec.nodeName=a,status.phase!=Running`. */
const fieldSelector = (type: ResourceType, selector: string): Selects => {
  const known = ['metadata.name', 'metadata.namespace', ...(type.group === 'events.k8s.io' ? [] : (FIELDS[type.shelf] ?? []))]
  const terms = selector
    .split(',')
    .filter(term => term !== '')
    .map(term => {
      const [, field = '', operator, value = ''] = /^([^=!]*?)(==|=|!=)(.*)$/.exec(term) ?? []
      if (!operator) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`)
      if (!known.includes(field)) {
        throw badRequest(
          type.custom || known.length > 2
            ? `field label not supported: ${field}`
            : `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`,
        )
      }
      return (object: KubeObject) => (fieldValue(object, field) === value) === (operator !== '!=')
    })
  return object => terms.every(holds => holds(object))
}

export const selects = (type: ResourceType, query: { labels: string; fields: string }): Selects => {
  const [labels, fields] = [labelSelector(query.labels), fieldSelector(type, query.fields)]
  return object => labels(object.metadata.labels ?? {}) && fields(object)
}
