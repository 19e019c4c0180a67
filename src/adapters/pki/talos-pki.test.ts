import { createPrivateKey, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import * as tls from 'node:tls'
import { describe, expect, test } from 'vitest'
import {
  type CertificateAndKey,
  createKubernetesCa,
  createKubernetesClient,
  createKubernetesServer,
  createTalosCa,
  createTalosClient,
  createTalosServer,
  talosPemToNode,
  validFor,
} from './talos-pki.ts'

const from = new Date('2026-01-01T00:00:00Z')
const clientAuth = '1.3.6.1.5.5.7.3.2'
const serverAuth = '1.3.6.1.5.5.7.3.1'

/** Long enough for the handshakes below, which look at the machine's own clock. */
const longValidity = validFor(from, 87_600)

const parse = (pair: CertificateAndKey) => {
  const certificate = new X509Certificate(pair.crt)
  expect(certificate.checkPrivateKey(createPrivateKey(talosPemToNode(pair.key)))).toBe(true)
  return certificate
}

const isIssued = (certificate: X509Certificate, ca: X509Certificate) => certificate.checkIssued(ca) && certificate.verify(ca.publicKey)

describe('the Talos side', async () => {
  const ca = await createTalosCa({ from })
  const root = parse(ca)

  test('an authority of ten years', () => {
    expect(root.subject).toBe('O=talos')
    expect(root.ca).toBe(true)
    expect(root.publicKey.asymmetricKeyType).toBe('ed25519')
    expect(root.keyUsage).toEqual(expect.arrayContaining([serverAuth, clientAuth]))
    expect(root.validFromDate).toEqual(from)
    expect(root.validToDate).toEqual(new Date('2035-12-30T00:00:00Z'))
    expect(isIssued(root, root)).toBe(true)
  })

  test('keys carry the label of Talos, which Node refuses until it is changed', () => {
    expect(ca.key).toMatch(/^-----BEGIN ED25519 PRIVATE KEY-----\n[\s\S]+\n-----END ED25519 PRIVATE KEY-----\n$/)
    expect(() => createPrivateKey(ca.key)).toThrow()
    expect(talosPemToNode(ca.key)).toMatch(/^-----BEGIN PRIVATE KEY-----\n/)
  })

  test('a client is its roles, and nothing but a client', async () => {
    const client = parse(await createTalosClient({ ca, roles: ['os:admin', 'os:etcd:backup'], validity: longValidity }))
    expect(client.toLegacyObject().subject).toEqual({ O: ['os:admin', 'os:etcd:backup'] })
    expect(client.keyUsage).toEqual([clientAuth])
    expect(client.ca).toBe(false)
    expect(isIssued(client, root)).toBe(true)
  })

  test('a client may have run out already', async () => {
    const client = parse(await createTalosClient({ ca, roles: ['os:reader'], validity: validFor(from, -1) }))
    expect(client.validToDate).toEqual(new Date('2025-12-31T23:00:00Z'))
    expect(client.validFromDate < client.validToDate).toBe(true)
  })

  test('a server answers to its addresses and names', async () => {
    const server = parse(
      await createTalosServer({ ca, commonName: 'cp-1', hosts: ['10.5.0.2', 'fd00::2', 'cp-1', 'talos.default'], validity: longValidity }),
    )
    expect(server.checkIP('10.5.0.2')).toBe('10.5.0.2')
    expect(server.checkIP('fd00::2')).toBe('fd00::2')
    expect(server.checkIP('10.5.0.3')).toBeUndefined()
    expect(server.checkHost('talos.default')).toBe('talos.default')
    expect(server.checkHost('cp-2')).toBeUndefined()
    expect(server.keyUsage).toEqual([serverAuth])
    expect(isIssued(server, root)).toBe(true)
  })

  test('a handshake tells the server the roles of its caller', async () => {
    const server = await createTalosServer({ ca, commonName: 'cp-1', hosts: ['127.0.0.1'], validity: longValidity })
    const client = await createTalosClient({ ca, roles: ['os:operator'], validity: longValidity })
    expect(await handshake(ca, server, client)).toEqual({ O: 'os:operator' })
  })

  test('a handshake with a client of another authority fails', async () => {
    const server = await createTalosServer({ ca, commonName: 'cp-1', hosts: ['127.0.0.1'], validity: longValidity })
    const stranger = await createTalosClient({ ca: await createTalosCa({ from }), roles: ['os:admin'], validity: longValidity })
    await expect(handshake(ca, server, stranger)).rejects.toThrow()
  })
})

describe('the Kubernetes side', async () => {
  const ca = await createKubernetesCa({ from })
  const root = parse(ca)

  test('an authority on P-256', async () => {
    expect(root.subject).toBe('O=kubernetes')
    expect(root.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' })
    expect(ca.key).toMatch(/^-----BEGIN EC PRIVATE KEY-----\n/)
    expect(new X509Certificate((await createKubernetesCa({ from, organization: 'etcd' })).crt).subject).toBe('O=etcd')
  })

  test('a handshake tells the server the user and its groups', async () => {
    const server = await createKubernetesServer({
      ca,
      commonName: 'kube-apiserver',
      hosts: ['127.0.0.1', 'kubernetes.default.svc'],
      validity: longValidity,
    })
    const client = await createKubernetesClient({ ca, user: 'kubernetes-admin', groups: ['system:masters', 'dev'], validity: longValidity })
    expect(isIssued(parse(server), root)).toBe(true)
    expect(await handshake(ca, server, client)).toEqual({ CN: 'kubernetes-admin', O: ['dev', 'system:masters'] })
  })
})

/** One connection with certificates on both sides; answers with the subject that the server saw. */
async function handshake(ca: CertificateAndKey, server: CertificateAndKey, client: CertificateAndKey): Promise<tls.Certificate> {
  const material = (pair: CertificateAndKey) => ({ ca: ca.crt, cert: pair.crt, key: talosPemToNode(pair.key) })
  const listener = tls.createServer({ ...material(server), requestCert: true, rejectUnauthorized: true })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const socket = tls.connect({ ...material(client), host: '127.0.0.1', port: (listener.address() as AddressInfo).port })
  // The failure that counts is the server's; the client only sees its connection end.
  socket.on('error', () => {})
  try {
    return await new Promise((resolve, reject) => {
      listener.once('secureConnection', (connection: tls.TLSSocket) => {
        connection.on('error', () => {})
        // Plain object: Node's own has no prototype.
        resolve({ ...connection.getPeerCertificate().subject })
      })
      listener.once('tlsClientError', reject)
    })
  } finally {
    socket.destroy()
    listener.close()
  }
}
