import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type CertificateAndKey,
  createKubernetesCa,
  createKubernetesClient,
  createKubernetesServer,
  createTalosCa,
  createTalosClient,
  createTalosServer,
  talosHours,
  validFor,
} from '../../adapters/pki/talos-pki.ts'
import { writeTalosconfig } from '../../adapters/talos/talosconfig.ts'
import type { MachinesPki } from '../../talossim/entrance.ts'

/** Longer than any demo runs; the real ones are renewed by themselves. */
const SERVER_HOURS = 30 * 24
const HOUR_MS = 3_600_000

export type TalosCredentials = {
  readonly acceptedCAs: string
  /** What the machines show of their root of trust. */
  readonly authority: CertificateAndKey
  /** Signs what a machine shows. */
  readonly certify: MachinesPki['certify']
  readonly talosconfigPath: string
  /** Signs another client for so long. */
  readonly talosClient: (roles: readonly string[], ttlMs: number) => Promise<CertificateAndKey & { readonly ca: string }>
}

type Named = { readonly name: string; readonly address: string }

/** The Talos CA of the cluster, what its machines show, and a talosconfig of role os:admin in the folder. */
export const makeTalosCredentials = async (options: {
  readonly cluster: string
  readonly machines: readonly Named[]
  /** Addresses of control planes. */
  readonly endpoints: readonly string[]
  readonly folder: string
}): Promise<TalosCredentials> => {
  const from = new Date()
  const ca = await createTalosCa({ from })
  const admin = await createTalosClient({ ca, roles: ['os:admin'], validity: validFor(from, talosHours.client) })
  const talosconfigPath = join(options.folder, 'talosconfig')
  const text = writeTalosconfig({
    contextName: options.cluster,
    endpoints: options.endpoints,
    // For talosctl, which asks all of them where no `-n` names one. Ichor finds its machines by itself.
    nodes: options.machines.map(({ address }) => address),
    caPem: ca.crt,
    crtPem: admin.crt,
    keyPem: admin.key,
  })
  writeFileSync(talosconfigPath, text, { mode: 0o600 })
  return {
    acceptedCAs: ca.crt,
    authority: ca,
    certify: ({ name, hosts, notBefore, notAfter }) =>
      createTalosServer({ ca, commonName: name, hosts, validity: { notBefore, notAfter } }),
    talosconfigPath,
    talosClient: async (roles, ttlMs) => ({
      ca: ca.crt,
      ...(await createTalosClient({ ca, roles, validity: validFor(new Date(), ttlMs / HOUR_MS) })),
    }),
  }
}

export type KubernetesCredentials = {
  readonly ca: string
  readonly authority: CertificateAndKey
  readonly server: CertificateAndKey
  readonly admin: CertificateAndKey
}

/** The Kubernetes CA, the API server's certificate for `host`, and an administrator's. */
export const makeKubernetesCredentials = async (host: string): Promise<KubernetesCredentials> => {
  const from = new Date()
  const ca = await createKubernetesCa({ from })
  const [server, admin] = await Promise.all([
    createKubernetesServer({ ca, commonName: 'kube-apiserver', hosts: [host, 'localhost'], validity: validFor(from, SERVER_HOURS) }),
    createKubernetesClient({ ca, user: 'admin', groups: ['system:masters'], validity: validFor(from, talosHours.client) }),
  ])
  return { ca: ca.crt, authority: ca, server, admin }
}

/** A kubeconfig for one user, whose context is in Ichor's namespace. */
export const writeKubeconfig = (options: {
  readonly path: string
  readonly cluster: string
  readonly namespace: string
  readonly url: string
  readonly caPem: string
  readonly user: { readonly name: string } & ({ readonly certificate: CertificateAndKey } | { readonly token: string })
}): void => {
  const { path, cluster, namespace, url, caPem, user } = options
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const context = `${user.name}@${cluster}`
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: cluster, cluster: { server: url, 'certificate-authority-data': base64(caPem) } }],
    users: [
      {
        name: user.name,
        user:
          'token' in user
            ? { token: user.token }
            : { 'client-certificate-data': base64(user.certificate.crt), 'client-key-data': base64(user.certificate.key) },
      },
    ],
    contexts: [{ name: context, context: { cluster, user: user.name, namespace } }],
    'current-context': context,
  }
  writeFileSync(path, `${JSON.stringify(config, undefined, 2)}\n`, { mode: 0o600 })
}
