/** The status codes of gRPC that machines answer with. */
export type Code =
  | 'Unknown'
  | 'InvalidArgument'
  | 'DeadlineExceeded'
  | 'NotFound'
  | 'AlreadyExists'
  | 'PermissionDenied'
  | 'FailedPrecondition'
  | 'Unimplemented'
  | 'Internal'
  | 'Unavailable'
  | 'ResourceExhausted'

/** What a machine answers: a value, or a code and the text that the real one says. */
export type Refusal = { readonly ok: false; readonly code: Code; readonly message: string }
export type Answer<T> = { readonly ok: true; readonly value: T } | Refusal

export const answer = <T>(value: T): Answer<T> => ({ ok: true, value })
export const refuse = (code: Code, message: string): Refusal => ({ ok: false, code, message })
