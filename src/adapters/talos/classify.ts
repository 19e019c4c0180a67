import { status } from '@grpc/grpc-js'
import type { Fault, FaultKind } from '../../ports/fault.ts'
import { redacted } from './redact.ts'

/** How a gRPC call ended badly, from the server or from grpc-js itself. */
export type CallFailure = { readonly code: number; readonly details: string }

export type CallSite = {
  readonly address: string
  /** For people: `MachineService.Version`, `State.Get MachineStatuses.runtime.talos.dev/machine`. */
  readonly call: string
  /** Set where our own certificate ran out: a machine then may say so, or just hang up. */
  readonly credentialExpired?: Date | undefined
  /** Set where our own certificate is not valid yet by our clock. */
  readonly credentialBegins?: Date | undefined
}

/** Far more than any message of Talos; a peer may send 64 KiB. */
const longestDetails = 8_192

/**
 * The one door from gRPC to Faults. Talos's texts change between releases, so they only refine what the code says, and only by short pieces.
 */
export function classify(failure: CallFailure, site: CallSite): Fault {
  // The patterns below take the square of a text's length at worst.
  const text = tidy(failure.details.slice(0, longestDetails))
  const isRefused = failure.code === status.UNAVAILABLE && !isAboutTheirTime(text)
  if (isRefused && site.credentialExpired) {
    return faultAt(site, 'unauthenticated', `the client certificate expired on ${dateOf(site.credentialExpired)} (${text})`)
  }
  if (isRefused && site.credentialBegins) {
    const from = `the client certificate is valid only from ${dateOf(site.credentialBegins)} on, which has not come by the clock here`
    return faultAt(site, 'unauthenticated', `${from}; ${checkClocks} (${text})`)
  }
  return faultAt(site, kindOf(failure.code, text), text)
}

const checkClocks = 'check the clock of the computer that Ichor runs on, and the one of the machine'

function dateOf(date: Date): string {
  return date.toISOString().replace('.000Z', 'Z')
}

/** Their certificate, our clock: Talos renews it by itself long before it ends, so it is one of the two clocks. */
function isAboutTheirTime(text: string): boolean {
  return /certificate (has expired|is not yet valid)/i.test(text)
}

/** What OpenSSL says to bytes that are not TLS. */
function isOtherProtocol(text: string): boolean {
  return /wrong version number|packet length too long|unknown protocol|http request|unexpected message|no application protocol/i.test(text)
}

/**
 * What grpc-js and OpenSSL wrap around the reason: words, places in source files, and the time of the last try, by which the same failure would
 * read differently each time.
 */
function tidy(details: string): string {
  return details
    .replace(/^No connection established\. Last error: (Error: )?/, '')
    .replaceAll(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)/g, '')
    .replace(/\.?\s*Resolution note:\s*$/, '')
    .replaceAll(/[0-9A-F]{8,16}:error:[0-9A-F]+:SSL routines:[^:]*:([^:]+)(:[^\s:]*:\d+)?(:SSL alert number \d+)?:?/g, 'TLS: $1')
    .replaceAll(/\b[\d.]+:\d+->/g, '')
    .trim()
}

/** A Fault that names the machine and the call; the text is redacted here. */
export function faultAt(site: CallSite, kind: FaultKind, text: string): Fault {
  return { kind, message: `${site.address}: ${site.call}: ${redacted(withHint(kind, text)) || 'no reason given'}` }
}

function kindOf(code: number, text: string): FaultKind {
  // grpc-js gives it the code UNIMPLEMENTED, among others, and that must not read as "the machine does not have this".
  if (isCutShort(text)) return 'unreachable'
  switch (code) {
    // We say `cancelled` ourselves where we cancelled: this one is a server that stops.
    case status.CANCELLED:
    case status.DEADLINE_EXCEEDED:
      return 'unreachable'
    case status.UNKNOWN:
      return kindOfUnknown(text)
    case status.INVALID_ARGUMENT:
    case status.OUT_OF_RANGE:
      return 'invalid'
    case status.NOT_FOUND:
      return 'notFound'
    case status.ALREADY_EXISTS:
      return 'alreadyExists'
    case status.PERMISSION_DENIED:
      // COSI's answer for a type or namespace that this release does not have.
      return /^(resource type|namespace) ".*" is not supported/.test(text) ? 'unsupported' : 'forbidden'
    case status.RESOURCE_EXHAUSTED:
      // Ours, not the server's state: the same answer would be as large again.
      return text.includes('larger than max') ? 'unknown' : 'busy'
    case status.FAILED_PRECONDITION:
      return /already in progress|not ready (yet )?for|not available yet/.test(text) ? 'busy' : 'precondition'
    case status.ABORTED:
      return 'busy'
    case status.UNIMPLEMENTED:
      return /maintenance mode|agent mode|container mode/.test(text) ? 'precondition' : 'unsupported'
    case status.INTERNAL:
      return kindOfInternal(text)
    case status.UNAVAILABLE:
      return kindOfUnavailable(text)
    case status.UNAUTHENTICATED:
      return 'unauthenticated'
    default:
      return 'unknown'
  }
}

/** A plain Go error arrives as Unknown, with all its meaning in the text. */
function kindOfUnknown(text: string): FaultKind {
  if (isMissingImage(text)) return 'notFound'
  if (/upgrade mutex|\blocked\b/i.test(text)) return 'busy'
  if (/insufficient to maintain quorum|must be running to perform|must be healthy to perform|only one member/.test(text))
    return 'precondition'
  if (
    /etcdserver: |context deadline exceeded|no controlplane endpoints discovered|connection refused|toomanyrequests|Too Many Requests/i.test(
      text,
    )
  )
    return 'busy'
  if (isBrokenConnection(text)) return 'unreachable'
  return 'unknown'
}

function kindOfInternal(text: string): FaultKind {
  if (isMissingImage(text)) return 'notFound'
  if (text.includes('system disk not found')) return 'precondition'
  if (text.includes('invalid target')) return 'invalid'
  return isBrokenConnection(text) ? 'unreachable' : 'unknown'
}

function kindOfUnavailable(text: string): FaultKind {
  // The next try may find the clock set: machines set theirs early in each boot.
  if (isAboutTheirTime(text)) return 'unreachable'
  if (isOtherProtocol(text)) return 'wrongPeer'
  // An alert is what the machine says about our certificate; what we say about its certificate has other words.
  if (/\balert\b.*(certificate|unknown ca|access denied)/i.test(text)) return 'unauthenticated'
  if (
    /altnames|self[- ]signed certificate|unable to (verify the first|get (local )?issuer) certificate|certificate signature failure|invalid CA certificate|unsuitable certificate purpose|certificate chain too long/i.test(
      text,
    )
  ) {
    return 'wrongPeer'
  }
  return /containerd/.test(text) ? 'busy' : 'unreachable'
}

/** As grpc-js calls an answer that ends too soon. */
export const noStatus = 'Call ended without gRPC status'
export const noMessage = 'No message received'

/** Half an answer: whether the call had its effect was not said. */
function isCutShort(text: string): boolean {
  return text.includes(noStatus) || text === noMessage || /^Received HTTP status code|^No status information/.test(text)
}

function isMissingImage(text: string): boolean {
  return /image|installer|pull/i.test(text) && /not found|manifest[ _]unknown|name[ _]unknown|does not exist/i.test(text)
}

function isBrokenConnection(text: string): boolean {
  return /connection error|connection reset|ECONNRESET|no route to host|broken pipe|transport is closing|RST_STREAM|GOAWAY|\bEOF\b|stream terminated/i.test(
    text,
  )
}

/** What the bare text of a library leaves unsaid. */
function withHint(kind: FaultKind, text: string): string {
  if (isAboutTheirTime(text)) return `the machine's certificate is of another time than the clock here; ${checkClocks} (${text})`
  if (isOtherProtocol(text))
    return `what answers there does not speak TLS, so it is not the Talos API of a machine; check address and port (${text})`
  if (isCutShort(text)) return `the answer is not a whole one, as when a proxy or a dying server ends it (${text})`
  if (kind === 'wrongPeer') {
    return `the machine's certificate is not what this address and the talosconfig's ca call for; a machine without a configuration (maintenance mode) looks like this too (${text})`
  }
  if (kind === 'unauthenticated' && /alert certificate expired/i.test(text)) {
    return `the machine takes the client certificate of the talosconfig for expired, which by the clock here it is not; ${checkClocks} (${text})`
  }
  if (kind === 'unauthenticated') return `the machine does not accept the client certificate of the talosconfig: ${text}`
  // TLS was up and the machine left without a word: what a refused client certificate looks like where no alert comes through.
  if (text === 'Failed to connect')
    return 'the machine closed the connection right after the TLS handshake; it may not accept the client certificate of the talosconfig'
  return text
}
