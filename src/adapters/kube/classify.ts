// The one door through which trouble of a Kubernetes API comes: HTTP answers, `Status` bodies, socket and TLS errors become Faults here.
import { GROUP } from '../../api/names.ts'
import type { Fault, FaultKind } from '../../ports/fault.ts'
import { isRecord, list, number, record, text } from './json.ts'

/** A Fault with what an API server adds to it. */
export type ApiFault = Fault & {
  /** The HTTP status; 0 where there was no answer. */
  readonly code: number
  /** `reason` of the Status body, for example `AlreadyExists`; empty where there was none. */
  readonly reason: string
  /** `details.causes` of the Status body as text, for example a budget's refusal. */
  readonly causes: readonly Cause[]
  /** The message without peer and call, for those who name both themselves. */
  readonly sentence?: string
}
export type Cause = { readonly reason: string; readonly message: string; readonly field: string }

export type ApiResult<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: ApiFault }

/** What was asked of whom, for the message. */
export type Asked = {
  /** `10.0.0.1:6443`. */
  readonly peer: string
  /** `get talosoperations ichor-system/up-1`. */
  readonly call: string
  /** API group of what was asked for. */
  readonly group?: string
  /** Known secrets that must not show, for example the bearer token. */
  readonly secrets?: readonly string[]
}

/** An error that the transport makes itself; everything else comes from Node. */
export type OwnErrorCode = 'ICHOR_DEADLINE' | 'ICHOR_CANCELLED' | 'ICHOR_CREDENTIALS' | 'ICHOR_BODY'
export const ownError = (code: OwnErrorCode, message: string): Error => Object.assign(new Error(message), { code })

export const apiFault = (
  kind: FaultKind,
  message: string,
  more: Partial<ApiFault> = {},
): { readonly ok: false; readonly fault: ApiFault } => ({
  ok: false,
  fault: { code: 0, reason: '', causes: [], ...more, kind, message },
})

const faultFor = (asked: Asked, kind: FaultKind, sentence: string, more: Partial<ApiFault> = {}): ApiFault => ({
  ...apiFault(kind, redact(`${asked.peer}: ${asked.call}: ${sentence}`, asked.secrets), more).fault,
  sentence: redact(sentence, asked.secrets),
})

/** The resourceVersion asked for is too old to be served: list anew. */
export const isExpired = (fault: ApiFault): boolean => fault.code === 410

const MAX_MESSAGE = 1500

/** Takes out what must not be read in a status, an Event or a log, and makes one line of it. */
export const redact = (message: string, secrets: readonly string[] = []): string => {
  let clean = message
  for (const secret of secrets) if (secret.length >= 4) clean = clean.replaceAll(secret, '[redacted]')
  clean = clean
    .replace(/-----BEGIN [A-Z0-9 ]*(PRIVATE KEY|CERTIFICATE)-----[\s\S]*?(-----END [A-Z0-9 ]*-----|$)/g, '[redacted]')
    .replace(/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, '$1 [redacted]')
    .replace(/\beyJ[\w-]{8,}(\.[\w-]*){0,2}/g, '[redacted]')
    // Base64 of a PEM block: what kubeconfigs and Secrets hold.
    .replace(/\bLS0tLS1[A-Za-z0-9+/=]{8,}/g, '[redacted]')
    .replace(
      /\b((?:client-)?(?:key|certificate-authority|certificate)-data|(?:[a-z-]*token|password|client-secret))(["']?\s*[:=]\s*["']?)[^\s"',}]{4,}/gi,
      '$1$2[redacted]',
    )
    .replace(/\s+/g, ' ')
    .trim()
  return clean.length > MAX_MESSAGE ? `${clean.slice(0, MAX_MESSAGE)}…` : clean
}

/** Retry-After in seconds, as API servers send it; also a Status' `details.retryAfterSeconds`. */
const retryAfterMs = (header: string | undefined, status: unknown): number | undefined => {
  const seconds = Number(header) || number(record(record(status)['details'])['retryAfterSeconds'])
  return seconds > 0 ? seconds * 1000 : undefined
}

const kindOfCode = (code: number, reason: string): FaultKind => {
  switch (code) {
    case 400:
    case 413:
    case 415:
    case 422:
      return 'invalid'
    case 401:
      return 'unauthenticated'
    case 403:
      return 'forbidden'
    case 404:
      return 'notFound'
    case 405:
    case 406:
      return 'unsupported'
    case 409:
      return reason === 'AlreadyExists' ? 'alreadyExists' : 'conflict'
    // A list continued too late, a watch from too old a version: look again.
    case 410:
      return 'busy'
    case 429:
      return 'busy'
    default:
      return code >= 500 ? 'busy' : 'unknown'
  }
}

/** A `Status` names what was not found; an unknown type or path gets no details, or no Status at all. */
const isUnknownType = (body: unknown): boolean => {
  if (!isRecord(body)) return /page not found/i.test(text(body)) || text(body).trim() === ''
  if (/the server could not find the requested resource|page not found/i.test(text(body['message']))) return true
  return false
}

const causesOf = (body: unknown): readonly Cause[] =>
  list(record(record(body)['details'])['causes']).map(cause => {
    const c = record(cause)
    return { reason: text(c['reason']), message: text(c['message']), field: text(c['field']) }
  })

/** What the server said, in one line: its message, and those causes that the message does not say already. */
const said = (code: number, body: unknown): string => {
  if (!isRecord(body)) return text(body).slice(0, 300) || `HTTP ${code}`
  const message = text(body['message']) || `HTTP ${code}`
  const missing = causesOf(body)
    .filter(cause => cause.message !== '' && !message.includes(cause.message))
    .map(cause => (cause.field === '' ? cause.message : `${cause.field}: ${cause.message}`))
  return [message, ...missing].join('; ')
}

/** An answer that is no success, or a Status that came as an ERROR event of a watch. `body` is parsed JSON, or text. */
export const faultOfAnswer = (code: number, body: unknown, asked: Asked, retryAfter?: string): ApiFault => {
  const reason = text(record(body)['reason'])
  const more = { code, reason, causes: causesOf(body) }
  const say = (kind: FaultKind, sentence: string): ApiFault => faultFor(asked, kind, sentence, more)

  if (code === 404 && isUnknownType(body)) {
    return asked.group === GROUP
      ? say(
          'unsupported',
          'the server does not know this type; the CRDs of Ichor are not installed there: `ichor install --crds-only` installs them',
        )
      : say('unsupported', 'the server does not know this path or type')
  }
  if (code === 401) return say('unauthenticated', `the server does not accept our credential (${said(code, body)})`)
  if (code >= 300 && code < 400)
    return say('unknown', `the server answers with a redirect (HTTP ${code}); the address must be that of the API server itself`)
  const kind = kindOfCode(code, reason)
  const fault = say(kind, said(code, body))
  const wait = kind === 'busy' ? retryAfterMs(retryAfter, body) : undefined
  return wait === undefined ? fault : { ...fault, retryAfterMs: wait }
}

const NO_ANSWER: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: nothing listens there',
  ECONNRESET: 'the connection was cut before the answer',
  EPIPE: 'the connection was cut before the answer',
  ECONNABORTED: 'the connection was cut before the answer',
  ETIMEDOUT: 'no answer to the attempt to connect',
  EHOSTUNREACH: 'no route to that host',
  ENETUNREACH: 'no route to that network',
  EHOSTDOWN: 'that host is down',
  ENOTFOUND: 'no such host name',
  EAI_AGAIN: 'the host name cannot be resolved now',
  EADDRNOTAVAIL: 'no local address or port to connect from',
  HPE_INVALID_CONSTANT: 'the answer is not HTTP',
}

const WRONG_PEER: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT:
    'its certificate is self-signed; certificate-authority-data must hold the CA that signed the server certificate',
  SELF_SIGNED_CERT_IN_CHAIN:
    'its certificate is from another CA; certificate-authority-data must hold the CA that signed the server certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'its certificate is from a CA that we do not know; certificate-authority-data must hold the CA that signed the server certificate',
  UNABLE_TO_GET_ISSUER_CERT:
    'its certificate is from a CA that we do not know; certificate-authority-data must hold the CA that signed the server certificate',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'its certificate is from a CA that we do not know; certificate-authority-data must hold the CA that signed the server certificate',
  CERT_SIGNATURE_FAILURE:
    'its certificate is not signed by the CA of that name that we know; certificate-authority-data must hold the CA of today',
  CERT_HAS_EXPIRED: 'its certificate has expired; it must be renewed on the server',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; the clocks of the server and of this machine must agree',
  CERT_UNTRUSTED: 'its certificate is not trusted for this use',
  INVALID_PURPOSE: 'its certificate is not meant for servers',
}

/** An exception of Node, of an authentication plugin, or of ours. */
export const faultOfError = (error: unknown, asked: Asked): ApiFault => {
  const { code, message } = errorOf(error)
  const say = (kind: FaultKind, sentence: string): ApiFault => faultFor(asked, kind, sentence)

  if (code === 'ICHOR_DEADLINE') return say('unreachable', message)
  if (code === 'ICHOR_CANCELLED' || code === 'ABORT_ERR') return say('cancelled', 'stopped by us')
  if (code === 'ICHOR_CREDENTIALS') return say('unauthenticated', message)
  if (code === 'ICHOR_BODY') return say('unknown', message)
  if (NO_ANSWER[code]) return say('unreachable', `${NO_ANSWER[code]} (${code})`)
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || code === 'HOSTNAME_MISMATCH') {
    return say('wrongPeer', `its certificate is for another address; it must name the host that we call (${message})`)
  }
  if (WRONG_PEER[code]) return say('wrongPeer', `${WRONG_PEER[code]} (${code})`)
  // Where OpenSSL's error came up in a write, its reason is in the message only.
  const tls = code === 'EPROTO' ? `ERR_SSL_${message.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}` : code
  if (/^ERR_SSL_.*(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)/.test(tls)) {
    return say('wrongPeer', 'it does not speak TLS; the server address must begin with http://, or name another port')
  }
  // The peer ended the handshake with an alert about what we showed it.
  if (/^ERR_SSL_.*ALERT.*(CERT|UNKNOWN_CA|HANDSHAKE_FAILURE|ACCESS_DENIED)/.test(tls)) {
    return say('unauthenticated', `it refuses our client certificate (${code}); the credential must be from its client CA and not expired`)
  }
  if (/^ERR_(OSSL|CRYPTO|TLS)|^ERR_SSL_/.test(code))
    return say(
      'invalid',
      `the CA, client certificate or key cannot be used (${code}); they must be PEM, and the key must belong to the certificate`,
    )
  return say('unknown', code === '' ? message : `${message} (${code})`)
}

// Libraries throw all sorts of things; Node's parallel attempts to connect come as one AggregateError.
const errorOf = (error: unknown): { code: string; message: string } => {
  if (typeof error === 'string') return { code: '', message: error }
  if (!isRecord(error) && !(error instanceof Error)) return { code: '', message: String(error) }
  const e = error as { code?: unknown; message?: unknown; errors?: unknown; cause?: unknown }
  const inner = Array.isArray(e.errors) ? e.errors[0] : e.cause
  const code = typeof e.code === 'string' ? e.code : inner === undefined ? '' : errorOf(inner).code
  const message = text(e.message) || (inner === undefined ? 'an error without words' : errorOf(inner).message)
  return { code, message }
}
