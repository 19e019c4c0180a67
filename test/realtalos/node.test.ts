// Operations of kind `node` on real machines: typed as people type them, carried out by the controller as a process, which is killed; while machines
// are killed, cut off and brought back. Lock, gate and drain look at a real Lease, a real etcd, real Nodes and real pods.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { leaseName } from '../../src/api/names.ts'
import { openClient } from '../cluster-on-the-wire.ts'
import { openKube } from '../../src/adapters/kube/kube.ts'
import { talosConnection } from '../../src/adapters/talos/connection.ts'
import { realClock } from '../scripted-talos.ts'
import { addresses, machine, type MachineName, officialTalosconfig, valueOf } from './cluster.ts'
import { fragment, members } from './etcd-by-hand.ts'
import {
  applied,
  type Bench,
  CLUSTER,
  get,
  ichor,
  kubectl,
  lockHolder,
  machines,
  NAMESPACE,
  operation,
  startIchor,
  talos,
} from './ichor.ts'

// Machines die and come back, and none of that is quick on a busy machine.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })
const eventually = <T>(check: () => T | Promise<T>, timeout = 240_000) => vi.waitFor(check, { timeout, interval: 500 })
const names = ['cp-1', 'cp-2', 'cp-3', 'wk-1'] as const
const controlPlanes = ['cp-1', 'cp-2', 'cp-3'] as const
const holder = (name: string): string => `ichor-controller/op/${NAMESPACE}/${name}`

/** The control plane that leads etcd, by talosctl. */
async function leader(): Promise<(typeof controlPlanes)[number]> {
  const all = await members()
  const ids = new Set(Object.values(all).map(member => member.leader))
  expect(ids.size).toBe(1)
  return controlPlanes.find(name => ids.has(all[addresses[name]]?.id ?? ''))!
}

/** How often Talos has started the kubelet of this machine since it booted, as far as it remembers. */
const kubeletStarts = async (name: MachineName): Promise<number> =>
  (await talos('-n', addresses[name], 'service', 'kubelet')).match(/Started task kubelet/g)?.length ?? 0

const isWhole = () =>
  eventually(async () => {
    const { status } = await get<{ status: { machines?: { summary?: string } } }>('taloscluster', CLUSTER)
    expect(status.machines?.summary).toBe('4/4')
  })
const isCompleted = (name: string, timeout?: number) =>
  eventually(async () => expect((await operation(name)).status).toMatchObject({ phase: 'Completed' }), timeout)
/** The step at which the one machine of the operation is. */
const isAt = (name: string, step: string) =>
  eventually(async () => expect((await operation(name)).status.machines?.[0]).toMatchObject({ step }))
const isFree = () => eventually(async () => expect(await lockHolder()).toBe(''))

let bench: Bench
beforeAll(async () => {
  bench = await startIchor()
  await isWhole()
})
afterAll(() => bench?.close())

test('what Ichor says of each machine is what talosctl and kubectl say', async () => {
  await eventually(async () => {
    const known = await machines()
    expect(Object.keys(known).toSorted()).toEqual(names)
    const etcd = await members()
    for (const name of names) {
      const [address, node] = [addresses[name], await get<NodeObject>('node', name)]
      const status = JSON.parse(await talos('-n', address, 'get', 'machinestatus', '-o', 'json')) as { spec: { stage: string } }
      expect(known[name]).toMatchObject({
        spec: { address, role: name === 'wk-1' ? 'worker' : 'controlplane' },
        status: {
          hostname: name,
          nodeName: node.metadata.name,
          bootID: (await talos('-n', address, 'read', '/proc/sys/kernel/random/boot_id')).trim(),
          talosVersion: /Tag: +(v[\d.]+)/.exec((await talos('-n', address, 'version')).split('Server:')[1]!)![1],
          kubeletVersion: node.status.nodeInfo.kubeletVersion,
          stage: status.spec.stage,
        },
      })
      expect(known[name]?.status.etcdMemberID).toBe(etcd[address]?.id)
      expect(known[name]?.status.bootID).toBe(node.status.nodeInfo.bootID)
    }
  })
})
type NodeObject = {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly unschedulable?: boolean }
  readonly status: { readonly nodeInfo: { readonly kubeletVersion: string; readonly bootID: string } }
}

test('static pods are told from those that can be evicted, and since when they run', async () => {
  const client = await openClient(process.env.KUBECONFIG!)
  try {
    const kube = openKube(client)
    const same = async (name: (typeof controlPlanes)[number]): Promise<void> => {
      const pods = valueOf(await kube.podsOn(name))
      for (const component of ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']) {
        const pod = pods.find(each => each.name === `${component}-${name}`)
        const told = await kubectl('get', 'pod', `${component}-${name}`, '-n', 'kube-system', '-o', STARTED)
        expect(pod).toMatchObject({ mirror: true, ready: true, startedAt: Date.parse(told) })
      }
    }
    // The two that elect a leader start again where they lost it, as after an API server that was away.
    for (const name of controlPlanes) await vi.waitFor(() => same(name), { timeout: 120_000, interval: 1000 })
  } finally {
    client.close()
  }
}, 300_000)
const STARTED = 'jsonpath={.status.containerStatuses[0].state.running.startedAt}'

test('a machine in a container is neither rebooted nor shut down, and has no partitions to wipe', async () => {
  for (const [action, confirmed] of [
    ['reboot', ['--yes']],
    ['shutdown', ['--yes']],
    ['reset', ['--confirm', CLUSTER]],
  ] as const)
    await expect(ichor('node', action, 'wk-1', ...confirmed)).rejects.toMatchObject({
      code: 3,
      stderr: expect.stringContaining('ContainerMode: wk-1 runs in container mode') as string,
    })
})

test('a watch tells of a change of stage', async () => {
  const connection = valueOf(talosConnection({ talosconfig: officialTalosconfig(), clock: realClock }))
  const told: string[] = []
  const before = await kubeletStarts('wk-1')
  const stop = connection.watch(addresses['wk-1'], what => told.push(what))
  try {
    await eventually(() => expect(told).toEqual(['changed']))
    await talos('-n', addresses['wk-1'], 'service', 'kubelet', 'restart')
    await eventually(() => expect(told.length).toBeGreaterThan(1))
    await eventually(async () => expect(await kubeletStarts('wk-1')).toBe(before + 1))
    expect(told).not.toContain('ended')
  } finally {
    stop()
    connection.destroy()
  }
})

// Where the controller dies between Talos' stop of the kubelet and its start, nobody starts it: it is asked for again, and has started once all the same.
test('the kubelet of a worker is started once more, over a kill -9 of the controller', async () => {
  const before = await kubeletStarts('wk-1')
  const ended = ichor('node', 'restart-service', 'wk-1', '--service', 'kubelet', '--name', 'kubelet', '--yes', '--wait')
  await eventually(async () => expect((await operation('kubelet')).status.machines?.[0]?.actedAt).toBeDefined())
  await bench.kill()
  await bench.start()
  await ended
  expect(await kubeletStarts('wk-1')).toBe(before + 1)
  await isFree()
})

describe('the leadership of etcd', () => {
  test('moves; a control plane that is cut off holds it up, others wait for the lock, and all goes on when it is back', async () => {
    const first = await leader()
    const other = controlPlanes.find(name => name !== first)!
    const ended = ichor('node', 'forfeit-leadership', first, '--name', 'forfeit', '--yes', '--wait')
    await isAt('forfeit', 'rejoin')
    await machine('cut', other)
    try {
      await eventually(async () => {
        const { status } = await operation('forfeit')
        expect(status).toMatchObject({ phase: 'Running', lock: { holder: holder('forfeit') } })
        expect(status.message).toMatch(new RegExp(`etcd condition \\d+ on ${other}`))
      })
      await ichor('node', 'restart-service', 'wk-1', '--service', 'kubelet', '--name', 'second', '--yes', '--no-plan')
      await eventually(async () => {
        const { status } = await operation('second')
        expect(status).toMatchObject({ phase: 'Paused', failureReason: 'ClusterLockHeld' })
        expect(status.message).toContain(`held by ${holder('forfeit')}`)
      })
      expect(await lockHolder()).toBe(holder('forfeit'))
      await bench.kill()
      await bench.start()
      expect((await operation('forfeit')).status.phase).toBe('Running')
    } finally {
      await machine('heal', other)
    }
    await ended
    await isCompleted('second')
    expect(await leader()).not.toBe(first)
    await isFree()
    expect((await get<{ spec: { leaseTransitions: number } }>('lease', leaseName(CLUSTER))).spec.leaseTransitions).toBeGreaterThan(0)
  })
})

describe('the database of etcd', () => {
  test('is not touched while a control plane is dead, and is defragmented when it is back', async () => {
    await fragment()
    await eventually(async () => {
      for (const { size, inUse } of Object.values(await members())) expect(inUse).toBeLessThan(size / 2)
    })
    const leads = await leader()
    const [target, dead] = [leads, controlPlanes.find(name => name !== leads)!]
    const { id, size } = (await members())[addresses[target]]!
    const before = (await machines())[dead]!.status.bootID

    await machine('kill', dead)
    try {
      await eventually(async () =>
        expect(ichor('node', 'etcd-defrag', target, '--plan')).rejects.toMatchObject({
          code: 3,
          stdout: expect.stringMatching(new RegExp(`etcd condition \\d+ on ${dead}`)) as string,
        }),
      )
      await ichor('node', 'etcd-defrag', target, '--name', 'defrag', '--yes', '--no-plan')
      await eventually(async () => {
        const { status } = await operation('defrag')
        expect(status).toMatchObject({ phase: 'Paused', failureReason: 'PreflightRefused' })
        expect(status.message).toContain(dead)
      })
      expect(await lockHolder()).toBe('')
      expect((await members([addresses[target]]))[addresses[target]]!.size).toBeGreaterThanOrEqual(size)
    } finally {
      await machine('start', dead)
    }
    await eventually(async () => {
      await ichor('node', 'etcd-defrag', target, '--plan')
    })
    const resumed = ichor('operation', 'resume', 'defrag', '--wait')
    await isAt('defrag', 'rejoin')
    await bench.kill()
    await bench.start()
    await resumed

    const after = await members()
    expect(after[addresses[target]]!.size).toBeLessThan(size / 2)
    expect(after[addresses[target]]!.id).toBe(id)
    await expect(ichor('node', 'etcd-defrag', target, '--name', 'needless', '--yes')).rejects.toMatchObject({
      code: 3,
      stderr: expect.stringContaining('there is little to gain') as string,
    })
    // It gave the leadership away first.
    expect(await leader()).not.toBe(target)
    await eventually(async () => {
      const known = (await machines())[dead]!
      expect(known.status.bootID).not.toBe(before)
      expect(known.status.bootID).toBe((await talos('-n', addresses[dead], 'read', '/proc/sys/kernel/random/boot_id')).trim())
    })
    await isFree()
  })
})

describe('a worker', () => {
  const labels = { app: 'guarded' }
  const namespace = 'default'
  const pods = async (): Promise<readonly string[]> => {
    const told = await kubectl('get', 'pods', '-n', namespace, '-l', 'app=guarded', '-o', 'jsonpath={.items[*].spec.nodeName}')
    return told.split(' ')
  }

  afterAll(() => kubectl('delete', 'deployment/guarded', 'poddisruptionbudget/guarded', '-n', namespace, '--ignore-not-found'))

  test('is drained as its budget allows, reset, and out of the cluster', async () => {
    await applied({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'guarded', namespace },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            terminationGracePeriodSeconds: 1,
            containers: [{ name: 'pause', image: 'registry.k8s.io/pause:3.10' }],
            affinity: {
              nodeAffinity: {
                preferredDuringSchedulingIgnoredDuringExecution: [
                  {
                    weight: 100,
                    preference: { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['wk-1'] }] },
                  },
                ],
              },
            },
          },
        },
      },
    })
    const budget = (minAvailable: number) =>
      applied({
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name: 'guarded', namespace },
        spec: { minAvailable, selector: { matchLabels: labels } },
      })
    await budget(1)
    await eventually(async () => expect(await pods()).toEqual(['wk-1']))
    await kubectl('rollout', 'status', 'deployment/guarded', '-n', namespace, '--timeout=120s', '--request-timeout=0')

    await expect(ichor('node', 'reset', 'wk-1', '--wipe', 'disk', '--yes')).rejects.toMatchObject({ code: 2 })
    const ended = ichor('node', 'reset', 'wk-1', '--wipe', 'disk', '--name', 'reset', '--confirm', CLUSTER, '--wait')
    // The budget holds it, and that is said.
    await eventually(async () => {
      const { status } = await operation('reset')
      expect(status.machines?.[0]).toMatchObject({ step: 'drain' })
      expect(status.message).toMatch(/PodDisruptionBudget guarded|budget guarded/)
    })
    const { spec } = await get<NodeObject>('node', 'wk-1')
    expect(spec.unschedulable).toBe(true)
    expect(await lockHolder()).toBe(holder('reset'))
    expect(await pods()).toEqual(['wk-1'])
    await bench.kill()
    await budget(0)
    await bench.start()
    await eventually(async () => {
      const [only, ...more] = await pods()
      expect(more).toEqual([])
      expect(controlPlanes).toContain(only)
    })
    await ended

    expect(await kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}')).toBe('cp-1 cp-2 cp-3')
    await expect(talos('-n', addresses['wk-1'], 'version')).rejects.toThrow()
    await isFree()
    await eventually(async () => {
      const known = (await machines())['wk-1']!
      expect(known.status.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ status: 'Unknown', reason: 'Unreachable' })
    })
  })

  test('that wiped nothing, as one in a container does, is what it was when it is started again', async () => {
    await machine('start', 'wk-1')
    await eventually(async () => expect((await get<NodeObject>('node', 'wk-1')).spec.unschedulable).toBeUndefined())
    await isWhole()
  })
})
