import { describe, expect, it } from 'vitest'
import { faultOfAnswer, faultOfError, isExpired, ownError, redact } from './classify.ts'

const asked = { peer: '10.0.0.1:6443', call: 'get talosoperations ichor/up', group: 'ichor.maesh.dev' }
const answer = (code: number, reason: string, message: string, details: unknown = {}) => ({
  kind: 'Status',
  status: 'Failure',
  code,
  reason,
  message,
  details,
})

describe('an answer, and the kind of fault that it is [B171 home-operations/tuppr#113]', () => {
  it.each([
    [400, 'BadRequest', 'invalid'],
    [401, 'Unauthorized', 'unauthenticated'],
    [403, 'Forbidden', 'forbidden'],
    [404, 'NotFound', 'notFound'],
    [405, 'MethodNotAllowed', 'unsupported'],
    [409, 'AlreadyExists', 'alreadyExists'],
    [409, 'Conflict', 'conflict'],
    [422, 'Invalid', 'invalid'],
    [429, 'TooManyRequests', 'busy'],
    [500, 'InternalError', 'busy'],
    [503, 'ServiceUnavailable', 'busy'],
    [504, 'Timeout', 'busy'],
    [302, '', 'unknown'],
  ])('of %i %s is %s', (code, reason, kind) => {
    const fault = faultOfAnswer(code, answer(code, reason, 'talosoperations.ichor.maesh.dev "up" is so'), asked)
    expect(fault).toMatchObject({ kind, code, reason })
    expect(fault.message).toContain('10.0.0.1:6443: get talosoperations ichor/up: ')
  })

  it('of 410 is known to the reflector', () => {
    expect(isExpired(faultOfAnswer(410, answer(410, 'Expired', 'too old resource version: 1 (2)'), asked))).toBe(true)
    expect(isExpired(faultOfAnswer(409, answer(409, 'Conflict', 'x'), asked))).toBe(false)
  })

  it.each(['404 page not found\n', answer(404, 'NotFound', 'the server could not find the requested resource'), ''])(
    'tells a missing CRD from a missing object: %j',
    body => {
      const fault = faultOfAnswer(404, body, asked)
      expect(fault.kind).toBe('unsupported')
      expect(fault.message).toContain('ichor install --crds-only')
      expect(faultOfAnswer(404, body, { ...asked, group: 'policy' }).message).not.toContain('ichor install')
    },
  )

  it('says every cause in one line, and none twice', () => {
    const causes = [
      { reason: 'FieldValueInvalid', field: 'spec.maxUnavailable', message: 'must be at least 1' },
      { reason: 'FieldValueInvalid', field: 'spec.kind', message: 'is said already' },
    ]
    const fault = faultOfAnswer(422, answer(422, 'Invalid', 'up is invalid: spec.kind: is said already', { causes }), asked)
    expect(fault.message).toBe(
      '10.0.0.1:6443: get talosoperations ichor/up: up is invalid: spec.kind: is said already; spec.maxUnavailable: must be at least 1',
    )
  })

  it('keeps what the server asks for as a pause', () => {
    expect(faultOfAnswer(429, answer(429, 'TooManyRequests', 'slow down'), asked, '7').retryAfterMs).toBe(7000)
    expect(faultOfAnswer(503, answer(503, 'ServiceUnavailable', 'later', { retryAfterSeconds: 3 }), asked).retryAfterMs).toBe(3000)
    expect(faultOfAnswer(500, 'oops', asked).retryAfterMs).toBeUndefined()
  })
})

describe('an error', () => {
  const nodeError = (code: string, message = code) => Object.assign(new Error(message), { code })

  it.each([
    ['ECONNREFUSED', 'unreachable', 'connection refused'],
    ['ECONNRESET', 'unreachable', 'cut before the answer'],
    ['ETIMEDOUT', 'unreachable', 'connect'],
    ['ENOTFOUND', 'unreachable', 'no such host'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'wrongPeer', 'must hold the CA'],
    ['CERT_HAS_EXPIRED', 'wrongPeer', 'has expired; it must be renewed'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'wrongPeer', 'must name the host that we call'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'wrongPeer', 'does not speak TLS'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'unauthenticated', 'client certificate'],
    ['ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE', 'unauthenticated', 'client certificate'],
    ['ERR_OSSL_PEM_NO_START_LINE', 'invalid', 'must be PEM'],
    ['EWHATEVER', 'unknown', 'EWHATEVER'],
  ])('%s is %s', (code, kind, words) => {
    const fault = faultOfError(nodeError(code), asked)
    expect(fault.kind).toBe(kind)
    expect(fault.message).toContain(words)
    expect(fault.message).toContain('10.0.0.1:6443')
  })

  it('of TLS may have its reason in the message only', () => {
    const words =
      'write EPROTO 40A:error:0A000412:SSL routines:ssl3_read_bytes:ssl/tls alert bad certificate:../ssl/record.c:916:SSL alert number 42:'
    expect(faultOfError(nodeError('EPROTO', words), asked).kind).toBe('unauthenticated')
    expect(
      faultOfError(
        nodeError('EPROTO', 'write EPROTO 40A:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:x.c:77:'),
        asked,
      ).kind,
    ).toBe('wrongPeer')
  })

  it('has its code wherever Node put it', () => {
    expect(faultOfError(new AggregateError([nodeError('ECONNREFUSED')], ''), asked).kind).toBe('unreachable')
    expect(faultOfError(new Error('request failed', { cause: nodeError('ECONNRESET') }), asked).kind).toBe('unreachable')
  })

  it.each(['a string', undefined, 7, {}])('may be no Error at all: %j', thrown => expect(faultOfError(thrown, asked).kind).toBe('unknown'))

  it('of our own says whether it was the deadline or us', () => {
    expect(faultOfError(ownError('ICHOR_DEADLINE', 'no answer within 3 s'), asked).kind).toBe('unreachable')
    expect(faultOfError(ownError('ICHOR_CANCELLED', ''), asked).kind).toBe('cancelled')
  })
})

describe('a message', () => {
  const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl'
  it.each([
    ['Authorization: Bearer abcdef123456', 'abcdef123456'],
    [`token ${jwt} expired`, jwt],
    ['-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIA\n-----END EC PRIVATE KEY-----', 'MHcCAQEEIA'],
    ['client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURQo=', 'LS0tLS1CRUdJTiBSU0EgUFJJVkFURQo='],
    ['{"password":"hunter2222"}', 'hunter2222'],
    ['"refresh-token": "0123456789abc"', '0123456789abc'],
  ])('shows no secret: %s', (message, secret) => {
    expect(redact(message)).not.toContain(secret)
    expect(redact(message)).toContain('[redacted]')
  })
  it('shows no secret that the caller knows', () =>
    expect(redact('user s3cr3t-value is unknown', ['s3cr3t-value'])).toBe('user [redacted] is unknown'))
  it('is one line of bounded length', () => {
    expect(redact('a\n\tb  c')).toBe('a b c')
    expect(redact('x'.repeat(5000)).length).toBeLessThan(1600)
  })
  it('keeps ordinary words', () =>
    expect(redact('User "system:serviceaccount:ichor:ichor" cannot list resource "nodes" in API group ""')).toContain(
      'system:serviceaccount:ichor:ichor',
    ))
})
