import { join } from 'node:path'
import { serveKubernetes } from '../../kubesim/server.ts'
import type { ServedKubernetes } from '../../kubesim/server.ts'
import type { CertificateAndKey } from '../../adapters/pki/talos-pki.ts'
import type { World } from '../../world/cluster.ts'
import { apiServerVersion } from '../../world/api-server.ts'
import { startRights } from '../../api/start-rights.ts'
import { typeOf } from '../../install/installation.ts'
import { policies } from '../../install/policies.ts'
import { kinds } from '../../kinds/registry.ts'
import { resources } from '../resources.ts'
import { makeKubernetesCredentials, writeKubeconfig } from './credentials.ts'
import { CLUSTER, NAMESPACE } from './demo-world.ts'

/** The Kubernetes API of the demo's cluster, as clients see it. */
export type KubernetesSide = {
  readonly url: string
  /** For people: what serves it. */
  readonly about: string
  /** Of an administrator. */
  readonly kubeconfigPath: string
  /** What a machine's kubeconfig holds; undefined where people have a token only. */
  readonly admin: (CertificateAndKey & { readonly server: string; readonly ca: string }) | undefined
  /** Signs what its clients show; undefined where it is a real one's own. */
  readonly authority?: CertificateAndKey
  /** Whether our resource types have to be installed. */
  readonly needsCrds: boolean
  /** Of a real one: its etcd is killed, and started again on the same data. */
  readonly etcd?: { readonly kill: () => Promise<void>; readonly restart: () => Promise<void> }
  readonly close: () => Promise<void>
}

const HOST = '127.0.0.1'
const ADMIN = 'admin'

/** kubesim over the world's own store: what the controller writes is what the machines see. */
export const simulatedKubernetes = async (world: World, folder: string, failed: (error: unknown) => void): Promise<KubernetesSide> => {
  const credentials = await makeKubernetesCredentials(HOST)
  const serve = (port: number): Promise<ServedKubernetes> =>
    serveKubernetes({
      store: world.store,
      resources: resources(),
      tls: { certPem: credentials.server.crt, keyPem: credentials.server.key, clientCaPem: credentials.ca },
      tokens: {},
      host: HOST,
      port,
      version: () => apiServerVersion(world.site),
      storageFault: () => (world.etcd.isFull() ? 'etcdserver: mvcc: database space exceeded' : undefined),
      evict: (namespace, name, { uid }) => {
        const outcome = world.evict(namespace, name, uid)
        if (outcome.ok || outcome.code === 404) return { evicted: true }
        const { message, cause, budget } = outcome
        return { evicted: false, code: outcome.code === 429 ? 429 : 500, message: cause ?? message, ...(budget ? { budget } : {}) }
      },
    })

  let served: ServedKubernetes | undefined = await serve(0)
  const { url, port } = served
  const stopFollowing = followApiServer(
    world,
    {
      up: async () => {
        served ??= await serve(port)
      },
      down: async () => {
        await served?.close()
        served = undefined
      },
    },
    failed,
  )
  // It has one user, who may all: what the policies would let through is what it lets through. They are there to be seen.
  for (const object of policies(startRights(kinds), ADMIN)) {
    const { group, plural } = typeOf(object)
    world.store.create(`${plural}.${group}`, object)
  }
  const kubeconfigPath = join(folder, 'kubeconfig')
  const user = { name: ADMIN, certificate: credentials.admin }
  writeKubeconfig({ path: kubeconfigPath, cluster: CLUSTER, namespace: NAMESPACE, url, caPem: credentials.ca, user })
  return {
    url,
    about: `simulated, as ${apiServerVersion(world.site)}`,
    kubeconfigPath,
    admin: { server: url, ca: credentials.ca, ...credentials.admin },
    authority: credentials.authority,
    needsCrds: false,
    close: async () => {
      await stopFollowing()
      await served?.close()
    },
  }
}

/** With a single control plane the API goes away with its machine. The answer stops it, when the last change has come to its end. */
export const followApiServer = (
  world: World,
  change: { readonly up: () => Promise<void>; readonly down: () => Promise<void> },
  failed: (error: unknown) => void,
): (() => Promise<void>) => {
  // One after the other: it may go and come while it is still closing.
  let last: Promise<void> = Promise.resolve()
  const stop = world.journal.onEntry(({ what }) => {
    if (what === 'api-down') last = last.then(change.down).catch(failed)
    if (what === 'api-up') last = last.then(change.up).catch(failed)
  })
  return () => {
    stop()
    return last
  }
}
