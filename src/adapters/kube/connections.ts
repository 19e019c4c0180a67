import { createHash } from 'node:crypto'
import { CONTROLLER } from '../../api/names.ts'
import type { TalosCluster } from '../../api/talos-cluster.ts'
import type { Clock } from '../../ports/clock.ts'
import { failed, isTransient, ok, type Result } from '../../ports/fault.ts'
import type { Home, Key } from '../../ports/home.ts'
import type { Kube } from '../../ports/kube.ts'
import { kubeClient } from './client.ts'
import { openKube } from './kube.ts'
import { loadKubeConfig } from './kubeconfig.ts'
import { openTransport, type RequestRecord, type Transport } from './transport.ts'

export type KubeConnectionsOptions = {
  readonly home: Pick<Home, 'secret'>
  /** The Kubernetes API of the cluster that Ichor runs in: for a TalosCluster without a kubeconfig. */
  readonly own: Kube
  readonly clock: Clock
  readonly userAgent: string
  readonly onRequest?: (record: RequestRecord) => void
  readonly env?: Readonly<Record<string, string | undefined>>
}

export type KubeConnections = {
  /** The half of `Connections` that is about Kubernetes. */
  readonly kube: (cluster: TalosCluster) => Promise<Result<Kube>>
  /** As `Connections.doubt`. */
  readonly doubt: (cluster: TalosCluster) => void
  /** As `Connections.forget`. */
  readonly forget: (cluster: Key) => void
  readonly close: () => void
}

/** A Secret is read again after this time, and at once when the server refused what was in it. */
const RECHECK_MS = 15_000

type Open = { readonly hash: string; readonly transport: Transport; readonly kube: Kube; checkedAt: number; isDoubtful: boolean }

const keyOf = (...parts: readonly string[]): string => JSON.stringify(parts)

/** One connection for each TalosCluster with a kubeconfig of its own, kept until the content of its Secret changes. */
export const kubeConnections = (options: KubeConnectionsOptions): KubeConnections => {
  const { home, own, clock } = options
  const open = new Map<string, Open>()
  // Two passes at once must not open two connections.
  const opening = new Map<string, Promise<Result<Kube>>>()

  /** Which of them a cluster takes. */
  const taken = new Map<string, string>()

  const takes = (cluster: Key, key: string | undefined): void => {
    const id = keyOf(cluster.namespace, cluster.name)
    const before = taken.get(id)
    if (before === key) return
    if (key === undefined) taken.delete(id)
    else taken.set(id, key)
    // Several may have one kubeconfig.
    if (before !== undefined && ![...taken.values()].includes(before)) drop(before)
  }

  const drop = (key: string): void => {
    open.get(key)?.transport.close()
    open.delete(key)
  }

  const connect = async (cluster: TalosCluster, name: string, entry: string): Promise<Result<Kube>> => {
    const { namespace } = cluster.metadata
    const key = keyOf(namespace, name, entry)
    const known = open.get(key)
    if (known && !known.isDoubtful && clock.monotonic() - known.checkedAt < RECHECK_MS) return ok(known.kube)

    const origin = `Secret ${namespace}/${name}`
    const secret = await home.secret({ namespace, name })
    if (!secret.ok) {
      // While our own API is away, what it said last still holds.
      if (known && isTransient(secret.fault)) return ok(known.kube)
      drop(key)
      if (secret.fault.kind !== 'notFound') return secret
      return failed(
        'notFound',
        `${origin} does not exist; spec.kubeconfigSecretRef of TalosCluster ${cluster.metadata.name} must name a Secret of its namespace with a kubeconfig under ${entry}`,
      )
    }
    const data = secret.value[entry]
    if (data === undefined || data.length === 0) {
      drop(key)
      const keys = Object.keys(secret.value)
      const has = keys.length === 0 ? 'it is empty' : `it has ${keys.join(', ')}`
      return failed(
        'invalid',
        `${origin} has no key ${entry}${data === undefined ? '' : ' with content'} (${has}); spec.kubeconfigSecretRef.key of TalosCluster ${cluster.metadata.name} must name the one with the kubeconfig`,
      )
    }
    const hash = createHash('sha256').update(data).digest('hex')
    if (known?.hash === hash) {
      known.checkedAt = clock.monotonic()
      known.isDoubtful = false
      return ok(known.kube)
    }
    drop(key)
    const config = await loadKubeConfig({ text: Buffer.from(data).toString('utf8'), origin: `${origin}, key ${entry}` })
    if (!config.ok) return config
    const transport = openTransport({
      config: config.value,
      clock,
      userAgent: options.userAgent,
      env: options.env,
      onRequest: request => {
        // The server knows us no more, or does not answer: there may be another kubeconfig by now.
        if (request.code === 401 || request.code === 0) connection.isDoubtful = true
        options.onRequest?.(request)
      },
    })
    const kube = openKube(kubeClient(transport, { fieldManager: CONTROLLER }))
    const connection: Open = { hash, transport, kube, checkedAt: clock.monotonic(), isDoubtful: false }
    open.set(key, connection)
    return ok(kube)
  }

  return {
    doubt: ({ metadata, spec: { kubeconfigSecretRef: reference } }) => {
      const known = reference && open.get(keyOf(metadata.namespace, reference.name, reference.key || 'kubeconfig'))
      if (known) known.isDoubtful = true
    },
    kube: cluster => {
      const reference = cluster.spec.kubeconfigSecretRef
      if (!reference) {
        takes(cluster.metadata, undefined)
        return Promise.resolve(ok(own))
      }
      // The server fills in the default; an object of an older CRD may lack it.
      const entry = reference.key || 'kubeconfig'
      const key = keyOf(cluster.metadata.namespace, reference.name, entry)
      takes(cluster.metadata, key)
      const underway = opening.get(key)
      if (underway) return underway
      const started = connect(cluster, reference.name, entry).finally(() => opening.delete(key))
      opening.set(key, started)
      return started
    },
    forget: cluster => takes(cluster, undefined),
    close: () => {
      for (const key of [...open.keys()]) drop(key)
    },
  }
}
