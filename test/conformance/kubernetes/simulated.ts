// kubesim with our own resources, as the conformance suite and other tests start it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKubernetesCa, createKubernetesClient, createKubernetesServer, validFor } from '../../../src/adapters/pki/talos-pki.ts'
import type { ResourceDefinition } from '../../../src/api/schema.ts'
import type { ServedKubernetes, ServeOptions } from '../../../src/kubesim/server.ts'
import { serveKubernetes } from '../../../src/kubesim/server.ts'
import type { Store } from '../../../src/world/store.ts'
import { createStore } from '../../../src/world/store.ts'

export type Simulated = ServedKubernetes & {
  readonly store: Store
  readonly caPem: string
  readonly tokens: Readonly<Record<'admin' | 'viewer', string>>
  /** A certificate of the group system:masters. */
  readonly client: { readonly crt: string; readonly key: string }
  readonly kubeconfigPath: (role: 'admin' | 'viewer') => string
  readonly stop: () => Promise<void>
}

export async function startSimulated(resources: readonly ResourceDefinition[], more: Partial<ServeOptions> = {}): Promise<Simulated> {
  const from = new Date()
  const validity = validFor(from, 24)
  const ca = await createKubernetesCa({ from })
  const server = await createKubernetesServer({ ca, commonName: 'kube-apiserver', hosts: ['127.0.0.1', 'localhost'], validity })
  const client = await createKubernetesClient({ ca, user: 'masha', groups: ['system:masters'], validity })
  const store = more.store ?? createStore({ now: Date.now, random: Math.random })
  const served = await serveKubernetes({
    resources,
    tls: { certPem: server.crt, keyPem: server.key, clientCaPem: ca.crt },
    tokens: { 'an-admin': { user: 'admin', groups: ['system:masters'] }, 'a-viewer': { user: 'viewer', groups: ['ichor-viewers'] } },
    host: '127.0.0.1',
    port: 0,
    version: () => 'v1.35.4',
    ...more,
    store,
  })
  const folder = mkdtempSync(join(tmpdir(), 'ichor-kubesim-'))
  const tokens = { admin: 'an-admin', viewer: 'a-viewer' }
  for (const role of ['admin', 'viewer'] as const) {
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server: served.url, 'certificate-authority-data': Buffer.from(ca.crt).toString('base64') } }],
      users: [{ name: role, user: { token: tokens[role] } }],
      contexts: [{ name: role, context: { cluster: 'test', user: role, namespace: 'default' } }],
      'current-context': role,
    }
    writeFileSync(join(folder, role), JSON.stringify(config), { mode: 0o600 })
  }
  return {
    ...served,
    store,
    caPem: ca.crt,
    tokens,
    client,
    kubeconfigPath: role => join(folder, role),
    stop: async () => {
      await served.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
