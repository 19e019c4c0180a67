// The library registers its parts with decorators and throws at import without this.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { createPrivateKey, type KeyObject, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'

/** A certificate and its key as PEM text. The key carries the label Talos writes: `ED25519 PRIVATE KEY` or `EC PRIVATE KEY`. */
export type CertificateAndKey = { readonly crt: string; readonly key: string }

export type Validity = { readonly notBefore: Date; readonly notAfter: Date }

type Algorithm = 'ed25519' | 'p256'
type Subject = { readonly commonName?: string; readonly organizations?: readonly string[] }

const hourMs = 3_600_000

/** How long Talos makes its own certificates: authorities ten years, an admin's one year, a server's a day. */
export const talosHours = { authority: 87_600, client: 8_760, server: 24 } as const

/** Negative hours give a certificate that has run out: it ended so long before `from`. */
export function validFor(from: Date, hours: number): Validity {
  const notAfter = new Date(from.getTime() + hours * hourMs)
  const notBefore = hours > 0 ? from : new Date(notAfter.getTime() - talosHours.server * hourMs)
  return { notBefore, notAfter }
}

/** The authority of the Talos API (`machine.ca`): Ed25519, O=talos. */
export function createTalosCa(options: { readonly from: Date }): Promise<CertificateAndKey> {
  return authority('ed25519', 'talos', options.from)
}

/** A Talos user: one Organization per role, no common name, and the only extended usage Talos accepts, clientAuth. */
export function createTalosClient(options: {
  readonly ca: CertificateAndKey
  readonly roles: readonly string[]
  readonly validity: Validity
}): Promise<CertificateAndKey> {
  return leaf('ed25519', options.ca, { organizations: options.roles }, 'client', [], options.validity)
}

/** What a machine shows on port 50000. `hosts` are IP addresses and names in any order. */
export function createTalosServer(options: {
  readonly ca: CertificateAndKey
  readonly commonName: string
  readonly hosts: readonly string[]
  readonly validity: Validity
}): Promise<CertificateAndKey> {
  return leaf('ed25519', options.ca, { commonName: options.commonName }, 'server', options.hosts, options.validity)
}

/** An authority of the Kubernetes side: ECDSA P-256; O=kubernetes unless said otherwise (`etcd`). */
export function createKubernetesCa(options: { readonly from: Date; readonly organization?: string }): Promise<CertificateAndKey> {
  return authority('p256', options.organization ?? 'kubernetes', options.from)
}

export function createKubernetesServer(options: {
  readonly ca: CertificateAndKey
  readonly commonName: string
  readonly hosts: readonly string[]
  readonly validity: Validity
}): Promise<CertificateAndKey> {
  return leaf('p256', options.ca, { commonName: options.commonName }, 'server', options.hosts, options.validity)
}

/** A Kubernetes user: the common name is the user, each Organization a group. */
export function createKubernetesClient(options: {
  readonly ca: CertificateAndKey
  readonly user: string
  readonly groups: readonly string[]
  readonly validity: Validity
}): Promise<CertificateAndKey> {
  return leaf('p256', options.ca, { commonName: options.user, organizations: options.groups }, 'client', [], options.validity)
}

/** OpenSSL, and so Node, refuses Talos's label for Ed25519 keys. What is inside is PKCS#8 all the same. */
export function talosPemToNode(pem: string): string {
  return pem.replaceAll(/-----(BEGIN|END) ED25519 (PRIVATE|PUBLIC) KEY-----/g, '-----$1 $2 KEY-----')
}

async function authority(algorithm: Algorithm, organization: string, from: Date): Promise<CertificateAndKey> {
  const keys = await generateKeys(algorithm)
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      ...validFor(from, talosHours.authority),
      name: [{ O: [organization] }],
      keys,
      signingAlgorithm: signing(algorithm),
      extensions: [
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
        new x509.BasicConstraintsExtension(true, undefined, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  )
  return { crt: certificatePem(certificate), key: await keyPem(keys.privateKey) }
}

async function leaf(
  algorithm: Algorithm,
  ca: CertificateAndKey,
  subject: Subject,
  usage: 'client' | 'server',
  hosts: readonly string[],
  validity: Validity,
): Promise<CertificateAndKey> {
  const keys = await generateKeys(algorithm)
  const issuer = new x509.X509Certificate(ca.crt)
  const issuerKey = createPrivateKey(talosPemToNode(ca.key))
  const names = hosts.map((host): x509.JsonGeneralName => ({ type: isIP(host) ? 'ip' : 'dns', value: host }))
  const certificate = await x509.X509CertificateGenerator.create(
    {
      ...validity,
      subject: subjectName(subject),
      issuer: issuer.subjectName,
      publicKey: keys.publicKey,
      signingKey: await importSigningKey(issuerKey),
      signingAlgorithm: signing(algorithmOf(issuerKey)),
      extensions: [
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([usage === 'client' ? x509.ExtendedKeyUsage.clientAuth : x509.ExtendedKeyUsage.serverAuth]),
        new x509.BasicConstraintsExtension(false, undefined, true),
        await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey, false, webcrypto),
        ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      ],
    },
    webcrypto,
  )
  return { crt: certificatePem(certificate), key: await keyPem(keys.privateKey) }
}

/** As Go writes it: all Organizations together in one part of the name, in the order DER wants, then the common name. */
function subjectName({ commonName, organizations = [] }: Subject): x509.JsonName {
  const inDerOrder = organizations.toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1))
  return [...(inDerOrder.length > 0 ? [{ O: inDerOrder }] : []), ...(commonName ? [{ CN: [commonName] }] : [])]
}

function signing(algorithm: Algorithm) {
  return algorithm === 'ed25519' ? { name: 'Ed25519' } : { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
}

async function generateKeys(algorithm: Algorithm): Promise<webcrypto.CryptoKeyPair> {
  return (await webcrypto.subtle.generateKey(signing(algorithm), true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
}

function algorithmOf(key: KeyObject): Algorithm {
  return key.asymmetricKeyType === 'ed25519' ? 'ed25519' : 'p256'
}

function importSigningKey(key: KeyObject): Promise<webcrypto.CryptoKey> {
  const pkcs8 = key.export({ type: 'pkcs8', format: 'der' })
  return webcrypto.subtle.importKey('pkcs8', pkcs8, signing(algorithmOf(key)), false, ['sign'])
}

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key))
  const parsed = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  return algorithmOf(parsed) === 'ed25519'
    ? parsed.export({ type: 'pkcs8', format: 'pem' }).toString().replaceAll(' PRIVATE KEY', ' ED25519 PRIVATE KEY')
    : parsed.export({ type: 'sec1', format: 'pem' }).toString()
}

function certificatePem(certificate: x509.X509Certificate): string {
  return `${certificate.toString('pem').trimEnd()}\n`
}
