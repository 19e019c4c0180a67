// Actions on one machine, asked for with the CLI as people type it, carried out by the controller as a process of its own on machines on the wire.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { at } from '../../src/adapters/kube/json.ts'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { CLUSTER, NAMESPACE, startCluster, type ClusterOnTheWire, type Process } from '../cluster-on-the-wire.ts'

const ichor = join(import.meta.dirname, '..', '..', 'bin', 'ichor')
const LONG = 120_000
const eventually = <T>(check: () => T | Promise<T>, timeout = LONG - 5_000) => vi.waitFor(check, { timeout, interval: 20 })

let cluster: ClusterOnTheWire
let controller: Process
const run = (...args: readonly string[]) =>
  promisify(execFile)(ichor, [...args, '--kubeconfig', cluster.kubernetes.kubeconfigPath, '-n', NAMESPACE], {
    env: { ...process.env, ICHOR_SOURCE: '1' },
  })
const count = (what: string, machine: string): number => cluster.world.journal.of(what, machine).length

describe('ichor node', () => {
  beforeAll(async () => {
    cluster = await startCluster({ controlPlanes: 3, workers: 2, from: 'v1.13.5', speed: 150 })
    await cluster.register()
    controller = await cluster.startController({ identity: 'ichor-0' })
    await eventually(async () => {
      const found = await cluster.client.get(RESOURCE.talosCluster, { namespace: NAMESPACE, name: CLUSTER })
      const status = (found.ok ? found.value['status'] : {}) as { machines?: { summary?: string } }
      expect(status.machines?.summary).toBe('5/5')
    })
  }, LONG)
  afterAll(() => cluster?.close())

  it(
    'says what would happen, and does nothing',
    async () => {
      const { stdout } = await run('node', 'reboot', 'cp-1', '--plan')
      expect(stdout).toContain('Plan: reboot of cp-1 on cluster')
      expect(stdout).toMatch(/cp-1 +controlplane +running +rebooted +one of 3 API servers and etcd members/)
      expect(count('reboot-requested', 'cp-1')).toBe(0)
    },
    LONG,
  )

  it(
    'refuses a machine that there is not, and names those that there are',
    async () => {
      await expect(run('node', 'reboot', 'wk-9', '--yes')).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/there is no machine "wk-9" in namespace \S+\s+There are: wk-1-\w+ \(wk-1\), .*\(cp-3\)/),
      })
    },
    LONG,
  )

  it(
    'reboots a worker once, over a kill -9 of the controller',
    async () => {
      const waiting = run('node', 'reboot', 'wk-1', '--yes', '--wait')
      await eventually(() => expect(count('reboot-requested', 'wk-1')).toBe(1))
      await controller.kill('SIGKILL')
      await cluster.startController({ identity: 'ichor-0' })
      await waiting
      expect(count('reboot-requested', 'wk-1')).toBe(1)
      const node = await cluster.client.get(RESOURCE.node, { name: 'wk-1' })
      expect(node.ok && at(node.value, 'spec', 'unschedulable')).toBeUndefined()
    },
    LONG,
  )

  it(
    'restarts a kubelet, and moves a leadership',
    async () => {
      await run('node', 'restart-service', 'cp-2', '--service', 'kubelet', '--yes', '--wait')
      expect(count('service-restart', 'cp-2')).toBe(1)
      const { etcd } = cluster.world
      const leader = cluster.world.machines.find(m => etcd.memberOf(m)?.id === etcd.leader())?.name ?? ''
      await run('node', 'forfeit-leadership', leader, '--yes', '--wait')
      expect(etcd.memberOf(cluster.world.machine(leader))?.id).not.toBe(etcd.leader())
    },
    LONG,
  )

  it(
    'takes a control plane out for good, when the name of the cluster was typed',
    async () => {
      const reset = ['node', 'reset', 'cp-3', '--reboot-after', '--acknowledge', 'no-fault-tolerance']
      await expect(run(...reset, '--yes')).rejects.toMatchObject({ code: 2 })
      await run(...reset, '--confirm', CLUSTER, '--wait')
      expect(cluster.world.etcd.members().map(m => m.name)).toEqual(['cp-1', 'cp-2'])
      expect(cluster.world.machine('cp-3').config).toBe('')
      const node = await cluster.client.get(RESOURCE.node, { name: 'cp-3' })
      expect(node).toMatchObject({ ok: false, fault: { kind: 'notFound' } })
      expect(cluster.faults).toEqual([])
    },
    LONG,
  )
})
