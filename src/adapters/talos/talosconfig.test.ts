import { createPrivateKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { createKubernetesCa, createKubernetesClient, createTalosCa, createTalosClient, validFor } from '../pki/talos-pki.ts'
import { parseTalosconfig, type TalosconfigResult, writeTalosconfig } from './talosconfig.ts'

const from = new Date('2026-01-01T00:00:00Z')
const now = new Date('2026-06-01T00:00:00Z')
const validity = validFor(from, 8760)
const ca = await createTalosCa({ from })
const admin = await createTalosClient({ ca, roles: ['os:admin', 'os:reader'], validity })
const stranger = await createTalosClient({ ca, roles: ['os:admin'], validity })

const base64 = (text: string) => Buffer.from(text).toString('base64')
const good = { endpoints: ['10.5.0.2'], ca: base64(ca.crt), crt: base64(admin.crt), key: base64(admin.key) }

/** A talosconfig whose one context `prod` is the good one with these fields changed; `undefined` leaves one out. */
const withFields = (fields: Record<string, unknown>) => {
  const context = Object.fromEntries(Object.entries({ ...good, ...fields }).filter(([, value]) => value !== undefined))
  return stringify({ context: 'prod', contexts: { prod: context } })
}

const valueOf = (result: TalosconfigResult) => {
  if (!result.ok) throw new Error(result.problem)
  return result.value
}

test('a whole context, with a key that Node loads', () => {
  const value = valueOf(parseTalosconfig(withFields({ nodes: ['10.5.0.3', '10.5.0.4'] }), { now }))
  expect(value).toMatchObject({
    contextName: 'prod',
    endpoints: [{ host: '10.5.0.2', port: 50000 }],
    nodes: ['10.5.0.3', '10.5.0.4'],
    caPem: ca.crt,
    crtPem: admin.crt,
    notAfter: new Date('2027-01-01T00:00:00Z'),
    roles: ['os:admin', 'os:reader'],
  })
  expect(createPrivateKey(value.keyPem).asymmetricKeyType).toBe('ed25519')
})

test('a single role, an ECDSA key and two authorities are fine too', async () => {
  const ecdsaCa = await createKubernetesCa({ from })
  const client = await createKubernetesClient({ ca: ecdsaCa, user: 'someone', groups: ['os:reader'], validity })
  const value = valueOf(
    parseTalosconfig(withFields({ ca: base64(ca.crt + ecdsaCa.crt), crt: base64(client.crt), key: base64(client.key) }), { now }),
  )
  expect(value.roles).toEqual(['os:reader'])
  expect(value.caPem).toBe(ca.crt + ecdsaCa.crt)
})

describe('which context', () => {
  const contexts = { one: good, two: good }
  test.each([
    ['the current one', { context: 'two', contexts }, undefined, 'two'],
    ['the one asked for', { context: 'two', contexts }, 'one', 'one'],
    ['the only one, where none is current', { contexts: { one: good } }, undefined, 'one'],
    ['the only one, where the current name is empty', { context: '', contexts: { one: good } }, undefined, 'one'],
  ])('%s', (_, file, context, expected) => {
    expect(valueOf(parseTalosconfig(stringify(file), { now, context })).contextName).toBe(expected)
  })
})

describe('endpoints', () => {
  test.each([
    ['cp.example.org', 'cp.example.org', 50000],
    ['cp.example.org:50001', 'cp.example.org', 50001],
    ['10.5.0.2:443', '10.5.0.2', 443],
    ['https://cp.example.org', 'cp.example.org', 443],
    ['https://cp.example.org/', 'cp.example.org', 443],
    ['https://cp.example.org:6443', 'cp.example.org', 6443],
    ['HTTPS://cp.example.org', 'cp.example.org', 443],
    ['[fd00::2]', 'fd00::2', 50000],
    ['[fd00::2]:50001', 'fd00::2', 50001],
    ['fd00::2', 'fd00::2', 50000],
    ['fe80::1%eth0', 'fe80::1%eth0', 50000],
    ['https://[fd00::2]', 'fd00::2', 443],
    ['https://[fd00::2]:6443', 'fd00::2', 6443],
  ])('%s', (text, host, port) => {
    expect(valueOf(parseTalosconfig(withFields({ endpoints: [text] }), { now })).endpoints).toEqual([{ host, port }])
  })

  test('the old field target comes last', () => {
    const { endpoints } = valueOf(parseTalosconfig(withFields({ endpoints: ['a'], target: 'b:1' }), { now }))
    expect(endpoints).toEqual([
      { host: 'a', port: 50000 },
      { host: 'b', port: 1 },
    ])
  })

  test('there may be none', () => {
    expect(valueOf(parseTalosconfig(withFields({ endpoints: undefined }), { now })).endpoints).toEqual([])
  })

  test.each(['', 'http://cp', 'cp:0', 'cp:65536', 'cp:port', 'a:b:c', '[cp]:50000', 'https://cp/path', 'user@cp', 'two words'])(
    'not "%s"',
    text => {
      expect(parseTalosconfig(withFields({ endpoints: [text] }), { now })).toEqual({
        ok: false,
        problem: `endpoint "${text}" of context "prod" is none of host, host:port, https://host and https://host:port`,
      })
    },
  )
})

describe('what is wrong, in one sentence', async () => {
  const expired = await createTalosClient({ ca, roles: ['os:admin'], validity: validFor(now, -24) })
  const notPem = (field: string, what: string) => `${field} of context "prod" is not a base64 of PEM with a ${what} in it`
  const brokenPem = base64('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
  const brokenKey = base64('-----BEGIN ED25519 PRIVATE KEY-----\nAAAA\n-----END ED25519 PRIVATE KEY-----\n')
  test.each(
    [
      ['context: prod\ncontexts: {', 'talosconfig is not YAML: line 2 cannot be read'],
      ['contexts:\n  prod:\n    key: "c2VjcmV0\n', 'talosconfig is not YAML: line 4 cannot be read'],
      ['a: *nowhere', 'talosconfig is not YAML: an alias in it points nowhere'],
      ['just words', 'talosconfig is not YAML with contexts in it, but a single value'],
      ['- a', 'talosconfig is not YAML with contexts in it, but a single value'],
      ['', 'talosconfig has no contexts'],
      ['context: ""\ncontexts: {}\n', 'talosconfig has no contexts'],
      ['context: prod\ncontexts: []\n', 'talosconfig has no contexts'],
      [stringify({ context: 'dev', contexts: { prod: good, stage: good } }), 'talosconfig has no context "dev"; it has "prod", "stage"'],
      [stringify({ context: 'toString', contexts: { prod: good } }), 'talosconfig has no context "toString"; it has "prod"'],
      [stringify({ contexts: { prod: good, stage: good } }), 'talosconfig names no current context; it has "prod", "stage"'],
      [withFields({ ca: undefined }), 'context "prod" has no ca'],
      [withFields({ crt: undefined }), 'context "prod" has no crt'],
      [withFields({ key: '' }), 'context "prod" has no key'],
      [
        withFields({ crt: undefined, key: undefined, auth: { siderov1: { identity: 'a@b' } } }),
        'context "prod" has no crt: it signs its requests as for Omni, and a client certificate is needed here',
      ],
      [withFields({ ca: ca.crt }), notPem('ca', 'certificate')],
      [withFields({ crt: 'c2VjcmV0' }), notPem('crt', 'certificate')],
      [withFields({ crt: brokenPem }), notPem('crt', 'certificate')],
      [withFields({ ca: base64(ca.crt) + brokenPem }), notPem('ca', 'certificate')],
      [withFields({ key: good.crt }), notPem('key', 'private key')],
      [withFields({ key: brokenKey }), notPem('key', 'private key')],
      [
        withFields({ crt: base64(expired.crt), key: base64(expired.key) }),
        'the client certificate of context "prod" expired on 2026-05-31T00:00:00Z',
      ],
      [withFields({ key: base64(stranger.key) }), 'crt and key of context "prod" do not belong together'],
      [withFields({ endpoints: '10.5.0.2' }), 'endpoints of context "prod" is not a list of texts'],
      [withFields({ nodes: [1] }), 'nodes of context "prod" is not a list of texts'],
    ].map(([text, problem]) => ({ text, problem })),
  )('$problem', ({ text, problem }) => {
    expect(parseTalosconfig(text ?? '', { now })).toEqual({ ok: false, problem })
  })

  test('the context asked for is not there', () => {
    expect(parseTalosconfig(withFields({}), { now, context: 'dev' })).toEqual({
      ok: false,
      problem: 'talosconfig has no context "dev"; it has "prod"',
    })
  })

  test('valid until the very second it says', () => {
    const end = new Date('2027-01-01T00:00:00Z')
    expect(parseTalosconfig(withFields({}), { now: new Date(end.getTime() - 1) }).ok).toBe(true)
    expect(parseTalosconfig(withFields({}), { now: end }).ok).toBe(false)
  })
})

describe('writing one', () => {
  const written = (keyPem: string) =>
    writeTalosconfig({
      contextName: 'prod',
      endpoints: ['10.5.0.2', '[fd00::2]:50001'],
      nodes: ['10.5.0.3'],
      caPem: ca.crt,
      crtPem: admin.crt,
      keyPem,
    })

  test('is read back as it was', () => {
    const value = valueOf(parseTalosconfig(written(admin.key), { now }))
    expect(value).toMatchObject({
      contextName: 'prod',
      endpoints: [
        { host: '10.5.0.2', port: 50000 },
        { host: 'fd00::2', port: 50001 },
      ],
      nodes: ['10.5.0.3'],
      caPem: ca.crt,
      crtPem: admin.crt,
    })
  })

  test('the key gets the label of Talos, whichever it came with', () => {
    const keyIn = (text: string) => Buffer.from(parse(text).contexts.prod.key, 'base64').toString()
    expect(keyIn(written(admin.key))).toBe(admin.key)
    expect(keyIn(written(valueOf(parseTalosconfig(written(admin.key), { now })).keyPem))).toBe(admin.key)
  })
})
