/**
 * What can go wrong outside, as values. An adapter turns every exception into a Fault at one `classify`, redacts secrets there, and nothing
 * past that door throws.
 */
export type FaultKind =
  /** No answer: refused, reset, no route, deadline passed. Whether the call had its effect is unknown. */
  | 'unreachable'
  /** The server answered that it cannot now: 429, 5xx, UNAVAILABLE, RESOURCE_EXHAUSTED. */
  | 'busy'
  /** The resourceVersion was not the current one. Throw the decision away and observe again. */
  | 'conflict'
  | 'notFound'
  | 'alreadyExists'
  /** The credential is not accepted: 401, or a TLS handshake refused for it. */
  | 'unauthenticated'
  /** The credential is good but may not do this: 403, PERMISSION_DENIED. */
  | 'forbidden'
  /** The request itself is wrong: 400, 422, INVALID_ARGUMENT. */
  | 'invalid'
  /** The server does not know the call or the resource type: UNIMPLEMENTED, no such CRD. */
  | 'unsupported'
  /** The server refuses in its present state: FAILED_PRECONDITION. */
  | 'precondition'
  /** The peer is not who it should be: its certificate is for another address or from another CA. */
  | 'wrongPeer'
  /** We stopped it ourselves. */
  | 'cancelled'
  /** Anything else, as the server said it. */
  | 'unknown'

export type Fault = {
  readonly kind: FaultKind
  /** One line, without secrets, that names the peer and the call. */
  readonly message: string
  /** The machine that gives no answer gives one to others: it runs, and only the way from here to it is cut. */
  readonly runs?: true
  /** How long the server asks us to stay away. */
  readonly retryAfterMs?: number
}

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: Fault }

export const ok = <T>(value: T): Result<T> => ({ ok: true, value })
export const failed = (kind: FaultKind, message: string, retryAfterMs?: number): { readonly ok: false; readonly fault: Fault } => ({
  ok: false,
  fault: retryAfterMs === undefined ? { kind, message } : { kind, message, retryAfterMs },
})
export const done: Result<void> = { ok: true, value: undefined }

/** A fault after which the same call may simply be made again: nothing is known to be wrong with the request. */
export const isTransient = (fault: Fault): boolean =>
  fault.kind === 'unreachable' || fault.kind === 'busy' || fault.kind === 'conflict' || fault.kind === 'cancelled'
