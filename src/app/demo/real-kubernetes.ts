import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { kubeClient } from '../../adapters/kube/client.ts'
import { loadKubeConfig } from '../../adapters/kube/kubeconfig.ts'
import { openTransport } from '../../adapters/kube/transport.ts'
import type { World } from '../../world/cluster.ts'
import { systemClock } from '../system-clock.ts'
import { writeKubeconfig } from './credentials.ts'
import { CLUSTER, NAMESPACE } from './demo-world.ts'
import { followApiServer, type KubernetesSide } from './kubernetes.ts'
import { startMirror } from './mirror.ts'

/** A part of the repository that is not shipped: it builds and starts the real API server, for the tests as well. */
type RealPart = typeof import('../../../test/real/kube-apiserver.ts')

/** A real kube-apiserver with a real etcd; the world's cluster is mirrored to it. Throws one sentence where it cannot be had. */
export const realKubernetes = async (world: World, folder: string, failed: (error: unknown) => void): Promise<KubernetesSide> => {
  const server = await (await realPart()).startKubeApiserver()
  const kubeconfigPath = join(folder, 'kubeconfig')
  const user = { name: 'admin', token: server.tokens.admin }
  writeKubeconfig({ path: kubeconfigPath, cluster: CLUSTER, namespace: NAMESPACE, url: server.url, caPem: server.caPem, user })
  const stopFollowing = followApiServer(world, { up: () => server.restart(), down: () => server.kill() }, failed)

  const config = await loadKubeConfig({ kubeconfigPath })
  if (!config.ok) throw new Error(config.fault.message)
  const transport = openTransport({ config: config.value, clock: systemClock, userAgent: 'ichor-demo' })
  const client = kubeClient(transport, { fieldManager: 'ichor-demo' })
  const mirror = startMirror(world, client, failed)
  const close = async () => {
    mirror.stop()
    transport.close()
    await stopFollowing()
    await server.stop()
  }
  try {
    await mirror.ready
    const version = await client.version()
    return {
      url: server.url,
      about: `a real kube-apiserver${version.ok ? `, ${version.value}` : ''}`,
      kubeconfigPath,
      admin: undefined,
      needsCrds: true,
      etcd: { kill: () => server.killEtcd(), restart: () => server.restartEtcd() },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

const realPart = async (): Promise<RealPart> => {
  // Looked up when it is asked for, so that no bundle carries it.
  const path = join(import.meta.dirname, '..', '..', '..', 'test', 'real', 'kube-apiserver.ts')
  if (!existsSync(path)) throw new Error('--kube-apiserver works in a checkout of the repository only: the real API server is built there')
  return (await import(pathToFileURL(path).href)) as RealPart
}
