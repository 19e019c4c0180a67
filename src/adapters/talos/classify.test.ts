import { status } from '@grpc/grpc-js'
import { describe, expect, test } from 'vitest'
import { classify } from './classify.ts'
import { redacted } from './redact.ts'

const site = { address: '10.5.0.2', call: 'MachineService.Upgrade' }
const kindOf = (code: status, details: string) => classify({ code, details }, site).kind

// As OpenSSL in Node tells what Go's crypto/tls, which Talos uses, sends.
const alert = (words: string, number: number) =>
  `No connection established. Last error: 407D04FE187F0000:error:0A000418:SSL routines:ssl3_read_bytes:${words}:../deps/openssl/openssl/ssl/record/rec_layer_s3.c:918:SSL alert number ${number} (2026-11-29T19:51:23.431Z). Resolution note: `

test.each([
  [status.CANCELLED, 'grpc: the client connection is closing', 'unreachable'],
  [status.DEADLINE_EXCEEDED, 'context deadline exceeded', 'unreachable'],
  [status.INVALID_ARGUMENT, 'installer image name is required', 'invalid'],
  [status.NOT_FOUND, 'error pulling image: ghcr.io/siderolabs/installer:v9: not found', 'notFound'],
  [status.ALREADY_EXISTS, 'etcd data directory is not empty', 'alreadyExists'],
  [status.PERMISSION_DENIED, 'not authorized', 'forbidden'],
  [status.PERMISSION_DENIED, 'resource type "BootIDs.runtime.talos.dev" is not supported', 'unsupported'],
  [status.PERMISSION_DENIED, 'namespace "hardware" is not supported', 'unsupported'],
  [status.PERMISSION_DENIED, 'write access is not allowed', 'forbidden'],
  [status.RESOURCE_EXHAUSTED, 'meta write failed', 'busy'],
  [status.RESOURCE_EXHAUSTED, 'Received message larger than max (34603013 vs. 33554432)', 'unknown'],
  [status.FAILED_PRECONDITION, 'method is not supported in container mode', 'precondition'],
  [status.FAILED_PRECONDITION, 'machine is not installed', 'precondition'],
  [status.FAILED_PRECONDITION, 'another installation/upgrade is already in progress', 'busy'],
  [status.UNIMPLEMENTED, 'unknown service machine.ImageService', 'unsupported'],
  [status.UNIMPLEMENTED, 'member list is only available on control plane nodes', 'unsupported'],
  [status.UNIMPLEMENTED, 'API is not implemented in maintenance mode', 'precondition'],
  [status.UNAUTHENTICATED, 'no peer certificates found', 'unauthenticated'],
  [
    status.UNKNOWN,
    'error validating installer image "ghcr.io/siderolabs/installer:v9": failed to resolve: ghcr.io/siderolabs/installer:v9: not found',
    'notFound',
  ],
  [status.UNKNOWN, 'failed to acquire upgrade mutex: error trying to lock etcd upgrade mutex: mutex: Locked by another session', 'busy'],
  [status.UNKNOWN, 'sequence not started: locked', 'busy'],
  [
    status.UNKNOWN,
    'error validating etcd for upgrade: etcd member count(2) is insufficient to maintain quorum if upgrade commences',
    'precondition',
  ],
  [status.UNKNOWN, 'failed to forfeit leadership: cannot forfeit leadership, only one member', 'precondition'],
  [status.UNKNOWN, 'failed to get etcd status: context deadline exceeded', 'busy'],
  [status.UNKNOWN, 'path must be a regular file', 'unknown'],
  [status.INTERNAL, 'upgrade failed: installer image "x" not found in containerd store: not found', 'notFound'],
  [status.INTERNAL, 'system disk not found', 'precondition'],
  [status.INTERNAL, 'Received RST_STREAM with code 2 (Internal server error)', 'unreachable'],
  [status.UNAVAILABLE, 'No connection established. Last error: Error: connect ECONNREFUSED 10.5.0.2:50000', 'unreachable'],
  [status.UNAVAILABLE, 'Connection dropped', 'unreachable'],
  [status.UNAVAILABLE, alert('tlsv1 alert unknown ca', 48), 'unauthenticated'],
  [status.UNAVAILABLE, alert('ssl/tls alert certificate expired', 45), 'unauthenticated'],
  [status.UNAVAILABLE, alert('ssl/tls alert bad certificate', 42), 'unauthenticated'],
  [status.UNAVAILABLE, 'No connection established. Last error: self-signed certificate in certificate chain', 'wrongPeer'],
  [status.UNAVAILABLE, 'No connection established. Last error: unable to verify the first certificate', 'wrongPeer'],
  [
    status.UNAVAILABLE,
    "No connection established. Last error: Hostname/IP does not match certificate's altnames: IP: 10.5.0.2 is not in the cert's list: 10.5.0.3",
    'wrongPeer',
  ],
])('%i %s is %s', (code, details, kind) => {
  expect(kindOf(code, details)).toBe(kind)
})

test('the message is one line that names machine and call, and reads the same each time', () => {
  const { message } = classify({ code: status.UNAVAILABLE, details: alert('tlsv1 alert unknown ca', 48) }, site)
  expect(message).toBe(
    '10.5.0.2: MachineService.Upgrade: the machine does not accept the client certificate of the talosconfig: TLS: tlsv1 alert unknown ca',
  )
  expect(classify({ code: status.UNKNOWN, details: 'a\n\tb' }, site).message).toBe('10.5.0.2: MachineService.Upgrade: a b')
})

test('once our own certificate has run out, that is the reason for a broken connection', () => {
  const expired = { ...site, credentialExpired: new Date('2026-03-01T00:00:00Z') }
  expect(classify({ code: status.UNAVAILABLE, details: 'Connection dropped' }, expired)).toMatchObject({
    kind: 'unauthenticated',
    message: expect.stringContaining('expired on 2026-03-01T00:00:00Z'),
  })
  expect(classify({ code: status.NOT_FOUND, details: 'x' }, expired).kind).toBe('notFound')
})

describe('secrets', () => {
  const random = 'MC4CAQAwBQYDK2VwBCIEIJ3vZ8q1oP0dTq7mX2wYb5nK9rLs4uVhGfEaCtRxWzQy'
  test.each([
    ['a PEM block', `x -----BEGIN ED25519 PRIVATE KEY-----\n${random}\n-----END ED25519 PRIVATE KEY----- y`, 'x [redacted] y'],
    ['a PEM block without an end', `x -----BEGIN EC PRIVATE KEY-----\nabc`, 'x [redacted]'],
    ['base64', `key material ${random}`, 'key material [redacted]'],
    ['a password in a URL', 'pull https://user:hunter2@registry.local/v2/', 'pull https://[redacted]@registry.local/v2/'],
    ['a field', '+    token: abcdef.0123456789abcdef', '+ token: [redacted]'],
    ['a quoted field', '"aescbcEncryptionSecret": "abc"', '"aescbcEncryptionSecret": [redacted]"'],
    ['a header', 'authorization: Basic abc==', 'authorization: [redacted]'],
  ])('%s', (_, text, expected) => {
    expect(redacted(text)).toBe(expected)
  })

  test('a text of megabytes is looked at in no time, and nothing that its end cuts through is told', () => {
    const from = performance.now()
    expect(redacted('a.'.repeat(16 * 1024 * 1024)).length).toBeLessThan(600)
    for (const piece of ['1.', 'alert ', 'F:error:', ' (2026-11-29T'])
      expect(classify({ code: status.UNAVAILABLE, details: piece.repeat(16_384) }, site).message.length).toBeLessThan(1_000)
    for (let before = 3_900; before < 4_200; before++) expect(redacted(`${'-'.repeat(before)} ${random}`, 10_000)).not.toContain('MC4CAQA')
    expect(performance.now() - from).toBeLessThan(2_000)
  })

  test('what only looks long stays', () => {
    const image = 'factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.13.9'
    expect(redacted(image)).toBe(image)
    const digest = 'ghcr.io/siderolabs/installer@sha256:376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'
    expect(redacted(digest)).toBe(digest)
  })
})
