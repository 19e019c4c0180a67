// An upgrade of Kubernetes, asked for with the CLI as people type it, carried out by the controller as a process of its own: machines on the wire, and
// the Kubernetes API once as the world plays it and once as it is.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { at } from '../../src/adapters/kube/json.ts'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { imageVersion } from '../../src/core/component-image.ts'
import { CLUSTER, NAMESPACE, startCluster, type ClusterOnTheWire, type Process } from '../cluster-on-the-wire.ts'
import { realParts } from '../real/parts.ts'

const ichor = join(import.meta.dirname, '..', '..', 'bin', 'ichor')
const LONG = 240_000
const eventually = <T>(check: () => T | Promise<T>, timeout = LONG - 5_000) => vi.waitFor(check, { timeout, interval: 20 })
const servers = await realParts('etcd', 'kube-apiserver')

describe.each([
  { api: 'as the world plays it', isReal: false },
  { api: 'as it is', isReal: true },
])('ichor upgrade kubernetes, with the API $api', ({ isReal }) => {
  let cluster: ClusterOnTheWire
  let controller: Process
  let from = ''
  let to = ''
  const run = (...args: readonly string[]) =>
    promisify(execFile)(ichor, [...args, '--kubeconfig', cluster.kubernetes.kubeconfigPath, '-n', NAMESPACE], {
      env: { ...process.env, ICHOR_SOURCE: '1' },
    })

  beforeAll(async () => {
    if (isReal && 'missing' in servers) return
    cluster = await startCluster({ controlPlanes: 3, workers: 2, from: 'v1.13.5', speed: 100, realApiServer: isReal })
    if (cluster.kubernetes.needsCrds) await run('install', '--crds-only')
    await cluster.register()
    controller = await cluster.startController({ identity: 'ichor-0' })
    await eventually(async () => {
      const found = await cluster.client.get(RESOURCE.talosCluster, { namespace: NAMESPACE, name: CLUSTER })
      const status = (found.ok ? found.value['status'] : {}) as { machines?: { summary?: string } }
      expect(status.machines?.summary).toBe('5/5')
    })
    from = cluster.world.site.kubernetes()
    to = from.replace(/\d+$/, patch => String(Number(patch) + 1))
  }, LONG)
  afterAll(() => cluster?.close())

  it.skipIf(isReal && 'missing' in servers)(
    'says what would happen, stage by stage, and does nothing',
    async () => {
      const { stdout } = await run('upgrade', 'kubernetes', to, '--plan')
      expect(stdout).toContain(`Plan: kubernetes ${to} on cluster ${CLUSTER}, 5 of 5 machines`)
      expect(stdout).toMatch(new RegExp(`kube-apiserver +cp-1 +controlplane +${from} +${to} +one of 3 API servers`))
      expect(stdout).toMatch(new RegExp(`manifests +cp-1 +controlplane +${from} +${to} +kube-proxy, one pod after the other`))
      expect(cluster.world.journal.of('component-image')).toEqual([])
    },
    LONG,
  )

  it.skipIf(isReal && 'missing' in servers)(
    'goes through over a kill -9 of the controller, and everything has the version',
    async () => {
      const waiting = run('upgrade', 'kubernetes', to, '--yes', '--wait')
      await eventually(() => expect(cluster.world.journal.of('component-image', 'cp-2').length).toBeGreaterThan(0))
      await controller.kill('SIGKILL')
      await cluster.startController({ identity: 'ichor-0' })
      await waiting
      for (const machine of cluster.world.machines) {
        expect(imageVersion(machine.kubeletRun.image)).toBe(to)
        for (const pod of machine.pods.values()) expect(imageVersion(pod.image)).toBe(to)
      }
      for (const { name } of cluster.world.machines) {
        const own = cluster.world.journal.of('component-image', name).map(e => e.detail)
        expect(new Set(own).size).toBe(own.length)
      }
      const proxy = await cluster.client.get(RESOURCE.daemonSet, { namespace: 'kube-system', name: 'kube-proxy' })
      expect(proxy.ok && JSON.stringify(at(proxy.value, 'spec', 'template'))).toContain(`registry.k8s.io/kube-proxy:${to}`)
      expect(cluster.faults).toEqual([])
    },
    LONG,
  )

  it.skipIf(isReal && 'missing' in servers)(
    'finds nothing to do the second time',
    async () => {
      await expect(run('upgrade', 'kubernetes', to, '--yes')).rejects.toMatchObject({
        code: 3,
        stderr: expect.stringContaining('there is nothing to do on cluster'),
      })
    },
    LONG,
  )
})
