import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startKubeApiserver, type RealKubeApiserver } from './kube-apiserver.ts'
import { realPart, realParts } from './parts.ts'

const servers = await realParts('etcd', 'kube-apiserver')
const kubectl = await realPart('kubectl')

describe.skipIf('missing' in servers)('a real kube-apiserver', () => {
  let server: RealKubeApiserver
  beforeAll(async () => {
    server = await startKubeApiserver()
  }, 120_000)
  afterAll(() => server?.stop())

  it('says its version', async () => {
    const { status, body } = await server.request({ path: '/version' })
    expect(status).toBe(200)
    expect(body.gitVersion).toMatch(/^v1\.\d+\.\d+$/)
  })

  it('knows the three roles', async () => {
    const asks = async (role: 'admin' | 'operator' | 'viewer', verb: string, resource: string) => {
      const review = await server.request({
        role,
        path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        method: 'POST',
        body: { spec: { resourceAttributes: { group: 'ichor.maesh.dev', namespace: 'default', verb, resource } } },
      })
      return review.body.status.allowed
    }
    expect(await asks('viewer', 'list', 'talosoperations')).toBe(true)
    expect(await asks('viewer', 'create', 'talosoperations')).toBe(false)
    expect(await asks('operator', 'create', 'talosoperations')).toBe(true)
    expect(await asks('operator', 'override', 'talosoperations')).toBe(false)
    expect(await asks('admin', 'override', 'talosoperations')).toBe(true)
  })

  it.skipIf('missing' in kubectl)('answers kubectl', async () => {
    const { path } = kubectl as { path: string }
    const { stdout } = await promisify(execFile)(path, [
      '--kubeconfig',
      server.kubeconfigPath('admin'),
      'get',
      'namespace',
      'default',
      '-o',
      'name',
    ])
    expect(stdout).toBe('namespace/default\n')
  })

  it('keeps its data over a crash and a restart', async () => {
    const made = await server.request({ path: '/api/v1/namespaces', method: 'POST', body: { metadata: { name: 'kept' } } })
    await server.kill()
    await expect(server.request({ path: '/version' })).rejects.toThrow('ECONNREFUSED')
    await server.restart()
    const kept = await server.request({ path: '/api/v1/namespaces/kept' })
    expect(kept.body.metadata.uid).toBe(made.body.metadata.uid)
  }, 60_000)

  it('waits for an etcd that is killed while it starts', async () => {
    const restarted = server.restart()
    await server.killEtcd()
    await server.restartEtcd()
    await restarted
    expect((await server.request({ path: '/readyz' })).status).toBe(200)
  }, 60_000)

  it('leaves nothing when it stops', async () => {
    const another = await startKubeApiserver()
    const folder = dirname(another.kubeconfigPath('admin'))
    expect(existsSync(folder)).toBe(true)
    await another.stop()
    expect(existsSync(folder)).toBe(false)
  }, 60_000)
})
