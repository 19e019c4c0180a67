import { isDeepStrictEqual } from 'node:util'
import { ok, type Result } from '../../ports/fault.ts'
import type { KubeClient } from './client.ts'
import type { Json } from './json.ts'
import { at, isRecord, record, text } from './json.ts'
import type { Resource } from './resource.ts'

/** A ValidatingAdmissionPolicy or its binding as it is installed. */
export type InstalledPolicy = { readonly kind: string; readonly metadata: { readonly name: string }; readonly spec?: unknown }

const policyType = (plural: string, kind: string): Resource => ({ group: 'admissionregistration.k8s.io', version: 'v1', plural, kind })
const SELF_REVIEW: Resource = { group: 'authentication.k8s.io', version: 'v1', plural: 'selfsubjectreviews', kind: 'SelfSubjectReview' }
/** Of policies and their bindings, by kind. */
export const POLICY_TYPES: Readonly<Record<string, Resource>> = {
  ValidatingAdmissionPolicy: policyType('validatingadmissionpolicies', 'ValidatingAdmissionPolicy'),
  ValidatingAdmissionPolicyBinding: policyType('validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding'),
}

/**
 * What differs between the policies as they should be and as the API server has them, a sentence each. One that somebody narrowed, by a selector or an
 * exception, differs: it may let through what it should not.
 */
export const policyGaps = async (
  client: KubeClient,
  expected: (user: string) => readonly InstalledPolicy[],
): Promise<Result<readonly string[]>> => {
  const self = await client.create(SELF_REVIEW, {}, { apiVersion: 'authentication.k8s.io/v1', kind: SELF_REVIEW.kind })
  if (!self.ok) return self
  const user = text(at(self.value, 'status', 'userInfo', 'username'))
  return gapsBetween((type, name) => client.get(type, { name }), expected(user), user)
}

/** The same for the controller that is known by that name; with anybody's way to read. */
export const gapsBetween = async (
  read: (type: Resource, name: string) => Promise<Result<{ readonly [field: string]: unknown }>>,
  expected: readonly InstalledPolicy[],
  user: string,
): Promise<Result<readonly string[]>> => {
  const gaps: string[] = []
  for (const { kind, metadata, spec } of expected) {
    const found = await read(POLICY_TYPES[kind]!, metadata.name)
    if (!found.ok && found.fault.kind !== 'notFound' && found.fault.kind !== 'unsupported') return found
    if (!found.ok) gaps.push(`${kind} ${metadata.name} is not there`)
    else if (!isDeepStrictEqual(withoutDefaults(record(found.value['spec'])), withoutDefaults(record(spec))))
      gaps.push(`${kind} ${metadata.name} is not the one of this version for the controller ${user}`)
  }
  return ok(gaps)
}

/** What the API server fills in, and what says nothing. */
const DEFAULTS: readonly (readonly [string, unknown])[] = [
  ['matchPolicy', 'Equivalent'],
  ['namespaceSelector', {}],
  ['objectSelector', {}],
  ['scope', '*'],
]

const withoutDefaults = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutDefaults)
  if (!isRecord(value)) return value
  const kept = Object.entries(value as Json).filter(
    ([name, held]) => !DEFAULTS.some(([key, usual]) => key === name && isDeepStrictEqual(held, usual)),
  )
  return Object.fromEntries(kept.map(([name, held]) => [name, withoutDefaults(held)]))
}
