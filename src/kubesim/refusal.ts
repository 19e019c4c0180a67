import type { StoreFault } from '../world/store.ts'

type Cause = { reason?: string; message: string; field?: string }

export type StatusDetails = {
  name?: string
  group?: string
  kind?: string
  uid?: string
  causes?: readonly Cause[]
  retryAfterSeconds?: number
}

/** `metav1.Status` of a request that failed. */
export type FailureStatus = {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: Record<string, never>
  status: 'Failure'
  message: string
  reason?: string
  details?: StatusDetails
  code: number
}

/** Ends the handling of a request with a Status. The one exception of this room; the server turns it into the answer. */
export class Refusal extends Error {
  readonly status: FailureStatus
  constructor(code: number, reason: string | undefined, message: string, details?: StatusDetails) {
    super(message)
    this.status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, details, code }
  }
}

/** What of a resource type the words of a refusal need. */
export type Named = { readonly group: string; readonly plural: string; readonly kind: string }

const groupOf = (type: Named): { group?: string } => (type.group === '' ? {} : { group: type.group })
const suffixed = (word: string, type: Named): string => (type.group === '' ? word : `${word}.${type.group}`)

export const resourceName = (type: Named): string => suffixed(type.plural, type)

export const badRequest = (message: string): Refusal => new Refusal(400, 'BadRequest', message)

export const notFound = (type: Named, name: string): Refusal =>
  new Refusal(404, 'NotFound', `${resourceName(type)} "${name}" not found`, { name, ...groupOf(type), kind: type.plural })

export const noSuchResource = (): Refusal => new Refusal(404, 'NotFound', 'the server could not find the requested resource', {})

/** A path that nothing ever served; the answer is no Status. */
export const NO_PAGE = '404 page not found\n'

export const methodNotAllowed = (): Refusal =>
  new Refusal(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})

export const verbNotSupported = (type: Named, verb: string): Refusal =>
  new Refusal(405, 'MethodNotAllowed', `${verb} is not supported on resources of kind "${resourceName(type)}"`, {
    ...groupOf(type),
    kind: type.plural,
  })

export const unauthorized = (): Refusal => new Refusal(401, 'Unauthorized', 'Unauthorized')

export const expired = (message: string): Refusal => new Refusal(410, 'Expired', message)

/** Of a patch to a built-in type. */
export const unsupportedPatch = (): Refusal => new Refusal(415, 'UnsupportedMediaType', '415: Unsupported Media Type', {})

export const unsupportedMediaType = (accepted: readonly string[]): Refusal =>
  new Refusal(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )

/** One fault of one field, in the server's words: `spec.x: Required value`. */
export type FieldFault = { field: string; reason: string; message: string }

export const invalid = (type: Named, name: string, faults: readonly FieldFault[]): Refusal => {
  const lines = [...new Set(faults.map(({ field, message }) => `${field}: ${message}`))]
  const said = lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`
  return new Refusal(422, 'Invalid', `${suffixed(type.kind, type)} "${name}" is invalid: ${said}`, {
    ...(name === '' ? {} : { name }),
    ...groupOf(type),
    ...(type.kind === '' ? {} : { kind: type.kind }),
    causes: faults.map(({ field, reason, message }) => ({ reason, message, field })),
  })
}

export const fromStore = (type: Named, name: string, fault: StoreFault): Refusal => {
  if (fault.reason === 'Invalid') {
    const [, field = '', message = ''] = /^(\S+): (.*)$/s.exec(fault.message) ?? []
    const reason = message.startsWith('Required') ? 'FieldValueRequired' : 'FieldValueForbidden'
    return invalid(type, name, [{ field, reason, message }])
  }
  if (fault.reason === 'Expired') return expired(fault.message)
  return new Refusal(fault.code, fault.reason, fault.message, { name, ...groupOf(type), kind: type.plural })
}
