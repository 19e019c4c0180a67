import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import { type KubeConfig } from '../../adapters/kube/kubeconfig.ts'
import type { Certificate } from '../../core/looks/cluster-sight.ts'

/** Longer than a handshake takes; without an answer there is nothing to look at. */
const WITHIN_MS = 3_000

/** What one needs of a kubeconfig to get in, with whose it is: the client's certificate, the CA, and the one that the API server shows. */
export const kubeCertificates = async ({ cluster, user, server }: KubeConfig, whose: string): Promise<readonly Certificate[]> => {
  const [client, authority, shown] = await Promise.all([
    pemOf(user, 'client-certificate'),
    pemOf(cluster, 'certificate-authority'),
    shownBy(server),
  ])
  return [
    ...certificatesIn(client).map(one => ({
      ...validityOf(one),
      what: `client certificate of ${whose}`,
      remedy: 'Get another kubeconfig; from Talos itself:',
      command: 'talosctl kubeconfig',
    })),
    ...certificatesIn(authority).map(one => ({
      ...validityOf(one),
      what: `CA of ${whose}`,
      isAuthority: true as const,
      remedy: 'Plan its rotation.',
      command: 'talosctl rotate-ca --kubernetes --talos=false --dry-run',
    })),
    ...shown.map(one => ({
      ...validityOf(one),
      what: `certificate of the API server at ${new URL(server).host}`,
      remedy: 'Talos renews its own at half of their life: see why it did not. Another one is renewed by whoever made it.',
    })),
  ]
}

type Json = Readonly<Record<string, unknown>>

/** Content, or the file that is named; nothing where there is neither. What is no certificate is told by whoever uses it. */
const pemOf = async (of: Json, name: string): Promise<string> => {
  const data = of[`${name}-data`]
  if (typeof data === 'string') return Buffer.from(data, 'base64').toString()
  const path = of[name]
  return typeof path === 'string' ? readFile(path, 'utf8').catch(() => '') : ''
}

const certificatesIn = (pem: string): readonly X509Certificate[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []).flatMap(one => {
    try {
      return [new X509Certificate(one)]
    } catch {
      return []
    }
  })

const validityOf = ({ validFromDate, validToDate }: X509Certificate) => ({
  begins: validFromDate.getTime(),
  expires: validToDate.getTime(),
})

/** Of whoever answers there, believed or not: only its dates are looked at, and nothing is said to it. */
const shownBy = (server: string): Promise<readonly X509Certificate[]> =>
  new Promise(resolve => {
    const { protocol, hostname, port } = new URL(server)
    if (protocol !== 'https:') return resolve([])
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    const socket = connect({
      ...{ host, port: Number(port) || 443, rejectUnauthorized: false, timeout: WITHIN_MS },
      ...(isIP(host) ? {} : { servername: host }),
    })
    const end = (found: readonly X509Certificate[]): void => {
      socket.destroy()
      resolve(found)
    }
    socket.once('secureConnect', () => {
      const shown = socket.getPeerX509Certificate()
      end(shown ? [shown] : [])
    })
    socket.once('error', () => end([]))
    socket.once('timeout', () => end([]))
  })
