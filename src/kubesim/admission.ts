import { builtInFaults, unreadable } from './built-in-faults.ts'
import { isFields } from './fields.ts'
import type { Fields } from './fields.ts'
import { fieldsAt, textAt } from './fields.ts'
import { prune, withDefaults } from './prune.ts'
import type { FieldFault } from './refusal.ts'
import { badRequest, invalid, Refusal, resourceName } from './refusal.ts'
import type { ResourceType } from './resource-types.ts'
import { apiVersionOf } from './resource-types.ts'
import { ruleFaults } from './rules.ts'
import { invalidValue, required, schemaFaults } from './validate.ts'

export type User = { readonly name: string; readonly groups: readonly string[] }

/** A write as a policy sees it. `object` is absent for a deletion, `old` for a creation. */
export type AdmissionRequest = {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  readonly user: User
  /** As the store names it: `pods`, `talosoperations.ichor.maesh.dev`. */
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  readonly object?: Fields
  readonly old?: Fields
}

/** As a ValidatingAdmissionPolicy refuses: the policy and its binding are named to the user. */
export type Denial = {
  readonly policy: string
  readonly binding?: string
  readonly message: string
  readonly reason?: 'Invalid' | 'Forbidden'
}

export type Admission = {
  /** Why etcd takes nothing new now, in its words; undefined where it does. What is there can be removed. */
  readonly storageFault?: () => string | undefined
  readonly validate?: (request: AdmissionRequest) => Denial | undefined
  /** More rules of one resource, as sentences about its spec. */
  readonly rules?: Readonly<Record<string, (object: Fields, old: Fields | undefined) => readonly string[]>>
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const SUBDOMAIN_WORDS =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

const nameFaults = (object: Fields): FieldFault[] => {
  const name = textAt(object, 'metadata', 'name')
  if (name === '') return [{ ...required('metadata.name'), message: 'Required value: name or generateName is required' }]
  if (name.length > 253) return [invalidValue('metadata.name', name, 'must be no more than 253 bytes')]
  return SUBDOMAIN.test(name) ? [] : [invalidValue('metadata.name', name, SUBDOMAIN_WORDS)]
}

const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/
const LABEL_WORDS =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

const LONGEST_LABEL = 63
const TOO_LONG = `must be no more than ${LONGEST_LABEL} bytes`

const labelFaults = (object: Fields): FieldFault[] =>
  Object.values(fieldsAt(object, 'metadata', 'labels')).flatMap(value => [
    ...(typeof value === 'string' && value.length > LONGEST_LABEL ? [invalidValue('metadata.labels', value, TOO_LONG)] : []),
    ...(typeof value === 'string' && LABEL_VALUE.test(value) ? [] : [invalidValue('metadata.labels', value, LABEL_WORDS)]),
  ])

/** The body of a write as an object of its type: kind, version, name and namespace agree with the path. */
export const decoded = (type: ResourceType, body: unknown, place: { namespace: string; name: string }): Fields => {
  if (!isFields(body)) throw badRequest('the object provided is unrecognized (must be of type ' + type.kind + '): not a JSON object')
  if (type.custom && textAt(body, 'kind') === '') {
    const text = JSON.stringify(body)
    throw badRequest(`the object provided is unrecognized (must be of type ${type.kind}): Object 'Kind' is missing in '${text}' (${text})`)
  }
  const [kind, apiVersion] = [textAt(body, 'kind') || type.kind, textAt(body, 'apiVersion') || apiVersionOf(type)]
  if (type.custom && kind !== type.kind) {
    throw invalid({ ...type, kind }, textAt(body, 'metadata', 'name'), [invalidValue('kind', kind, `must be ${type.kind}`)])
  }
  if (kind !== type.kind || apiVersion !== apiVersionOf(type)) {
    const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
    const [from, to] = [`${version}.${kind}`, `${type.group || 'core'}.${type.kind}`]
    throw badRequest(
      type.custom
        ? `the API version in the data (${apiVersion}) does not match the expected API version (${apiVersionOf(type)})`
        : `${kind} in version "${group === '' ? version : apiVersion}" cannot be handled as a ${type.kind}: converting (${from}) to (${to}): unknown conversion`,
    )
  }
  const garbled = unreadable(type, body)
  if (garbled !== undefined) throw badRequest(`${kind} in version "${type.version}" cannot be handled as a ${kind}: ${garbled}`)
  const metadata = fieldsAt(body, 'metadata')
  const namespace = textAt(metadata, 'namespace')
  if (type.namespaced && namespace !== '' && namespace !== place.namespace) {
    throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`)
  }
  const name = textAt(metadata, 'name')
  if (place.name !== '' && name !== '' && name !== place.name) {
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${place.name})`)
  }
  return {
    ...body,
    kind,
    apiVersion,
    metadata: {
      ...metadata,
      ...(place.name === '' ? {} : { name: place.name }),
      ...(type.namespaced ? { namespace: place.namespace } : { namespace: undefined }),
    },
  }
}

/** Unknown fields are dropped; how the client asked about them decides whether it hears of it. */
export const pruned = (type: ResourceType, object: Fields, strictness: string, warn: (text: string) => void): Fields => {
  if (!type.custom) return object
  const { value, unknown: found } = prune(type.custom.schema, object)
  const unknown = found.toSorted()
  if (unknown.length > 0 && strictness === 'Strict') {
    const words = unknown.map(field => `unknown field "${field}"`).join(', ')
    throw badRequest(`${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: strict decoding error: ${words}`)
  }
  if (strictness !== 'Ignore') for (const field of unknown) warn(`unknown field "${field}"`)
  return withDefaultsOf(type, value as Fields)
}

export const withDefaultsOf = ({ custom }: ResourceType, object: Fields): Fields =>
  custom ? (withDefaults(custom.schema, object) as Fields) : object

/** Throws what speaks against an object: its name, its schema, its rules. */
export const checkObject = (type: ResourceType, object: Fields, old: Fields | undefined, admission: Admission): void => {
  const faults = [...(old ? [] : nameFaults(object)), ...labelFaults(object), ...builtInFaults(type, object)]
  if (type.custom) {
    const broken = schemaFaults(type.custom.schema, object)
    faults.push(...broken)
    if (!broken.some(({ reason }) => BLOCKING.includes(reason))) faults.push(...ruleFaults(type.custom.schema, object, old))
    else faults.push({ field: '<nil>', reason: 'FieldValueInvalid', message: UNCHECKED })
  }
  for (const message of admission.rules?.[type.shelf]?.(object, old) ?? []) {
    faults.push({ field: 'spec', reason: 'FieldValueInvalid', message: `Invalid value: ${message}` })
  }
  if (faults.length > 0) throw invalid(type, textAt(object, 'metadata', 'name'), faults)
}

/** Faults after which rules are not asked: they could not be sure of what they see. */
const BLOCKING = ['FieldValueNotSupported', 'FieldValueRequired', 'FieldValueTooLong', 'FieldValueTooMany', 'FieldValueTypeInvalid']

const UNCHECKED =
  'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'

/** Asks the policies of the cluster. */
export const admit = (type: ResourceType, request: AdmissionRequest, admission: Admission): void => {
  const denial = admission.validate?.(request)
  if (!denial) return
  const { policy, binding = policy, message, reason = 'Invalid' } = denial
  const words = `ValidatingAdmissionPolicy '${policy}' with binding '${binding}' denied request: ${message}`
  throw new Refusal(reason === 'Invalid' ? 422 : 403, reason, `${resourceName(type)} "${request.name}" is forbidden: ${words}`, {
    name: request.name,
    ...(type.group === '' ? {} : { group: type.group }),
    kind: type.plural,
    causes: [{ message: words }],
  })
}
