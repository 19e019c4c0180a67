import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { kubeClient } from '../../adapters/kube/client.ts'
import { openKube } from '../../adapters/kube/kube.ts'
import { type KubeConfig, type KubeConfigOptions, loadKubeConfig } from '../../adapters/kube/kubeconfig.ts'
import { openTransport } from '../../adapters/kube/transport.ts'
import { parseAddress } from '../../adapters/talos/address.ts'
import { talosConnection } from '../../adapters/talos/connection.ts'
import type { TalosCluster } from '../../api/talos-cluster.ts'
import type { Certificate, ClusterSight } from '../../core/looks/cluster-sight.ts'
import { examineCluster, examineStranger } from '../../engine/examine.ts'
import type { Connections } from '../../ports/connections.ts'
import { ok, type Result } from '../../ports/fault.ts'
import type { Home, Key } from '../../ports/home.ts'
import { openPorts } from '../open-ports.ts'
import { systemClock } from '../system-clock.ts'
import { kubeCertificates } from './certificates.ts'

/** Who adds a cluster from elsewhere need not wait for all deadlines. */
const HASTY_MS = 3_000
const PATIENT_MS = 10_000

const clock = systemClock

/** A cluster that is registered, with the rights of a kubeconfig. */
export const registeredSight = async (
  kubeconfig: KubeConfigOptions,
  userAgent: string,
  key: Key,
  controllerNodes: readonly string[],
): Promise<Result<ClusterSight>> => {
  const config = await loadKubeConfig(kubeconfig)
  if (!config.ok) return config
  const ports = openPorts({ config: config.value, userAgent, namespace: key.namespace })
  try {
    const cluster = await ports.home.cluster(key)
    if (!cluster.ok) return cluster
    const certificates = await managedCertificates(ports.home, cluster.value)
    // Where it has a kubeconfig of its own, the controller runs elsewhere.
    const nodes = cluster.value.spec.kubeconfigSecretRef ? [] : controllerNodes
    return await examineCluster(
      { home: ports.home, connections: ports.connections, clock, withinMs: PATIENT_MS, resolve: addressesOf },
      key,
      { certificates, controllerNodes: nodes },
    )
  } finally {
    ports.close()
  }
}

const managedCertificates = async (home: Home, { metadata, spec }: TalosCluster): Promise<readonly Certificate[]> => {
  const ref = spec.kubeconfigSecretRef
  if (!ref) return []
  const origin = `Secret ${metadata.namespace}/${ref.name}`
  const secret = await home.secret({ namespace: metadata.namespace, name: ref.name })
  const data = secret.ok ? secret.value[ref.key || 'kubeconfig'] : undefined
  const config = data && (await loadKubeConfig({ text: new TextDecoder().decode(data), origin }))
  return config?.ok ? kubeCertificates(config.value, `the kubeconfig in ${origin}`) : []
}

export type Stranger = {
  readonly key: Key
  /** The text of a talosconfig, and which of its contexts. */
  readonly talosconfig: string
  readonly context?: string
  /** The text of the kubeconfig of the Talos cluster, and where it comes from; else it is the one that we ourselves use. */
  readonly kubeconfig?: { readonly text: string; readonly origin: string }
  readonly isHasty?: boolean
}

/** One that is not registered, by its credentials alone. */
export const strangerSight = async (own: KubeConfigOptions, userAgent: string, stranger: Stranger): Promise<ClusterSight> => {
  const { key, talosconfig, context, kubeconfig, isHasty = false } = stranger
  const talos = talosConnection({ talosconfig, clock, ...(context === undefined ? {} : { context }) })
  const config = await loadKubeConfig(kubeconfig ?? own)
  const transport = config.ok ? openTransport({ config: config.value, clock, userAgent, env: process.env }) : undefined
  const kube = transport ? ok(openKube(kubeClient(transport))) : (config as Extract<Result<KubeConfig>, { ok: false }>)
  const connections: Connections = {
    talos: () => Promise.resolve(talos),
    kube: () => Promise.resolve(kube),
    doubt: () => {},
    forget: () => {},
  }
  try {
    return await examineStranger(
      { connections, clock, withinMs: isHasty ? HASTY_MS : PATIENT_MS, resolve: addressesOf },
      key,
      kubeconfig ? { kubeconfigSecretRef: { name: key.name, key: 'kubeconfig' } } : {},
      { certificates: kubeconfig && config.ok ? await kubeCertificates(config.value, kubeconfig.origin) : [], controllerNodes: [] },
    )
  } finally {
    if (talos.ok) talos.value.destroy()
    transport?.close()
  }
}

/** Certificates of the kubeconfig that we ourselves use. */
export const ownCertificates = async (own: KubeConfigOptions): Promise<readonly Certificate[]> => {
  const config = await loadKubeConfig(own)
  return config.ok ? kubeCertificates(config.value, 'the kubeconfig') : []
}

const addressesOf = async (endpoint: string): Promise<readonly string[]> => {
  const host = parseAddress(endpoint)?.host
  if (host === undefined || isIP(host)) return []
  return lookup(host, { all: true }).then(
    found => found.map(({ address }) => address),
    () => [],
  )
}
