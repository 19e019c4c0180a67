import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../../src/api/names.ts'
import type { OperationStatus } from '../../src/api/talos-operation.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { NAME, play, playWithDeaths, type Run } from './play.ts'

const spec = { talos: { version: 'v1.13.9' } }
const onWorker1 = { name: 'db', replicas: 1, budget: { minAvailable: 1 }, on: [3] }

describe('a budget that is never met [B040 siderolabs/talos#9882]', () => {
  const told = { cluster: { workloads: [onWorker1] }, spec: { ...spec, drain: { timeout: '2m' } } }

  it('ends the drain with the name of pod and budget; the machine is given back and not rebooted', async () => {
    const { run, end } = await playWithDeaths(told)
    expect(end).toEqual({
      phase: 'Paused',
      reason: 'DrainBlocked',
      machines: [
        'cp-1 v1.13.9 Completed',
        'cp-2 v1.13.9 Completed',
        'cp-3 v1.13.9 Completed',
        'wk-1 v1.13.5 Failed',
        'wk-2 v1.13.5 Pending',
      ],
    })
    expect(run.status().message).toMatch(
      /^wk-1: drain did not end within 2m: pod default\/db-\w+-\w+ is held by PodDisruptionBudget db \(allowed disruptions 0\)/,
    )
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toEqual([])
    expect(run.world.journal.of('pulled', 'wk-2')).toEqual([])
  })

  it('only the policy force goes past it, after the timeout', async () => {
    const { run, end } = await playWithDeaths(
      { ...told, spec: { ...spec, drain: { policy: 'force', timeout: '2m' } }, allowed: { deletes: true } },
      3,
    )
    expect(end.phase).toBe('Completed')
    const [first] = run.world.journal.of('pod-deleted')
    const [cordon] = run.world.journal.of('cordon', 'wk-1')
    expect((first?.at ?? 0) - (cordon?.at ?? 0)).toBeGreaterThan(119_000)
  })
})

describe('nobody could ask for an eviction while the time of the drain went by', () => {
  const MINUTE = 60_000
  const spec = { talos: { version: 'v1.13.9' }, drain: { policy: 'force', timeout: '1m' } }
  const web = { name: 'web', replicas: 2, budget: { maxUnavailable: 1 }, on: [3, 4] }
  /** When wk-1 has entered its drain, and before it has asked for anything. */
  const atItsDrain = (run: Run, act: () => void): void => {
    let isDone = false
    run.world.store.watch(ICHOR.operations, undefined, ({ object }) => {
      const { machines = [] } = (object['status'] ?? {}) as OperationStatus
      const target = machines.find(t => t.node === 'wk-1')
      if (isDone || target?.step !== 'drain' || target.firstActedAt !== undefined) return
      isDone = true
      act()
    })
  }

  it.each([
    [
      'the controller was gone',
      (run: Run) => {
        run.process().kill()
        run.world.schedule.after(3 * MINUTE, run.restart)
      },
    ],
    ['the API was away', (run: Run) => run.world.apiOutage(3 * MINUTE)],
    [
      'the machine did not answer',
      ({ world }: Run) => {
        world.fault('wk-1', { slowMs: 20_000 })
        world.schedule.after(3 * MINUTE, () => world.fault('wk-1', { slowMs: 0 }))
      },
    ],
  ])('%s: with the policy force, pods are evicted all the same', async (_, trouble) => {
    const { run, end } = await play({ cluster: { workloads: [web] }, spec, arrange: run => atItsDrain(run, () => trouble(run)) })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('pod-deleted')).toEqual([])
    expect(run.world.journal.of('evicted').length).toBeGreaterThan(0)
  })
})

describe('pods that may run on a cordoned Node', () => {
  // As network operators and CSI controllers are deployed: with two nodes, each is the only one for its pod.
  const operator = {
    name: 'operator',
    namespace: 'kube-system',
    replicas: 2,
    graceSeconds: 2,
    tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }],
    on: [3, 4],
  }
  const told = { cluster: { workloads: [operator] }, spec: { ...spec, drain: { timeout: '2m' } }, allowed: { putBack: ['operator'] } }

  it('are evicted once; those that are put back in their place go with the machine', async () => {
    const { run, end } = await playWithDeaths(told)
    expect(end.phase).toBe('Completed')
    for (const name of ['wk-1', 'wk-2']) {
      const evicted = run.world.journal.of('evicted', name).filter(e => e.detail.startsWith('kube-system/operator-'))
      expect(evicted.length, name).toBeGreaterThan(0)
      expect(evicted.length, name).toBeLessThan(4)
    }
  })

  it('nor are they deleted again and again with the policy force', async () => {
    const { run, end } = await play({ ...told, spec: { ...spec, drain: { policy: 'force', timeout: '1m' } } })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('pod-deleted')).toEqual([])
  })

  it('keep their budget as long as they are evicted', async () => {
    const { run, end } = await play({ ...told, cluster: { workloads: [{ ...operator, budget: { maxUnavailable: 0 } }] } })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'DrainBlocked' })
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toEqual([])
  })
})

describe('volumes of pods that stay', () => {
  const logs = { name: 'logs', namespace: 'kube-system', daemon: true, volume: true }
  const db = { name: 'db', volume: true, graceSeconds: 2, on: [3] }

  it('are not waited for: they stay attached as long as their pods are there; those of the pods that go are', async () => {
    const { run, end } = await playWithDeaths({
      cluster: { workloads: [logs, db] },
      spec: { ...spec, drain: { timeout: '2m' } },
      allowed: { attached: ['pv-kube-system-logs-'] },
    })
    expect(end.phase).toBe('Completed')
    const [detached] = run.world.journal.of('detached', 'wk-1').filter(e => e.detail.includes('-db-'))
    const [reboot] = run.world.journal.of('reboot-requested', 'wk-1')
    expect(detached?.at).toBeLessThan(reboot?.at ?? 0)
  })

  it('and where nobody can tell whose they are, only for a while', async () => {
    const said = new Set<string>()
    const { run, end } = await play({
      cluster: { workloads: [logs] },
      spec: { ...spec, drain: { timeout: '10m' } },
      allowed: { attached: ['pv-kube-system-logs-'] },
      arrange: ({ world }) => {
        for (const { metadata } of world.store.list(RESOURCE.volumes).items) world.store.remove(RESOURCE.volumes, '', metadata.name)
        world.store.watch(ICHOR.operations, undefined, ({ object }) =>
          said.add((object['status'] as OperationStatus | undefined)?.message ?? ''),
        )
      },
    })
    expect(end.phase).toBe('Completed')
    const [cordon] = run.world.journal.of('cordon', 'wk-1')
    const [reboot] = run.world.journal.of('reboot-requested', 'wk-1')
    expect((reboot?.at ?? 0) - (cordon?.at ?? 0)).toBeGreaterThanOrEqual(2 * 60_000)
    expect([...said].join('\n')).toMatch(
      /wk-1: drain: volumes are still attached, and may be of pods that stay: csi-pv-kube-system-logs-\S+; confirming/,
    )
  })
})

describe("somebody else's cordon [B046 rancher/system-upgrade-controller#341, siderolabs/talos-controller-manager#31]", () => {
  it('stays, and the status says that it was there before', async () => {
    const { run, end } = await playWithDeaths({ spec, arrange: ({ world }) => world.userCordon('wk-2') })
    expect(end.phase).toBe('Completed')
    expect(end.machines.at(-1)).toBe('wk-2 v1.13.9 Completed cordoned')
    expect(run.status().machines?.find(t => t.node === 'wk-2')?.before?.cordoned).toBe(true)
  })

  const whileAway = (run: Run, act: () => void): void => {
    run.world.journal.onEntry(entry => {
      if (entry.machine === 'wk-1' && entry.what === 'down') act()
    })
  }

  it('stays too when it comes while the machine is away', async () => {
    const { end } = await playWithDeaths(
      {
        spec: { ...spec, drain: { policy: 'skip' } },
        allowed: { undrained: true },
        arrange: run => whileAway(run, () => run.world.userCordon('wk-1')),
      },
      3,
    )
    expect(end.machines.at(-2)).toBe('wk-1 v1.13.9 Completed cordoned')
  })

  it('and when a person takes ours over by removing its mark', async () => {
    const { end } = await play({
      spec,
      arrange: run =>
        whileAway(run, () => {
          run.world.userCordon('wk-1')
          const node = run.world.store.get(RESOURCE.nodes, '', 'wk-1')
          if (!node) throw new Error('wk-1 has a Node')
          const { [ANNOTATION.cordonedBy]: _, ...annotations } = node.metadata.annotations ?? {}
          run.world.store.update(RESOURCE.nodes, { ...node, metadata: { ...node.metadata, annotations } })
        }),
    })
    expect(end.machines.at(-2)).toBe('wk-1 v1.13.9 Completed cordoned')
  })
})

describe('a single node, and Ichor on it [B054 home-operations/tuppr#310, home-operations/tuppr#65]', () => {
  const self = { namespace: 'ichor-system', pod: 'ichor-0', node: 'cp-1' }
  const cluster = { controlPlanes: 1, workers: 0, self, workloads: [{ name: 'ichor-0', namespace: 'ichor-system', bare: true, on: [0] }] }

  it('is not drained; the pod goes with its machine and goes on when it is back', async () => {
    const { run, end } = await playWithDeaths({
      cluster,
      spec: { ...spec, acknowledge: ['api-outage'] },
      allowed: { apiOutage: true, undrained: true },
    })
    expect(end).toEqual({ phase: 'Completed', reason: undefined, machines: ['cp-1 v1.13.9 Completed'] })
    expect(run.status().preflight?.notes?.join()).toContain(
      'Single node: it is neither cordoned nor drained, and the Kubernetes API is away while it reboots.',
    )
    expect(run.world.calls.counts().get('kube.evict')).toBeUndefined()
    expect(run.world.calls.counts().get('kube.cordon')).toBeUndefined()
  })

  it('dies with its machine and is started by it: one install, one reboot', async () => {
    const { run, end } = await play({
      cluster,
      spec: { ...spec, acknowledge: ['api-outage'] },
      allowed: { apiOutage: true, undrained: true },
      arrange: run => {
        run.world.journal.onEntry(({ what }) => {
          if (what === 'down') run.process().kill()
          if (what === 'node-boot') run.restart()
        })
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('install-began')).toHaveLength(1)
    expect(run.world.journal.of('down')).toHaveLength(1)
  })

  it('without a word on the outage it is refused', async () => {
    const { run, end } = await play({ cluster, spec })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    expect(run.status().preflight?.refusals.map(r => r.rule)).toEqual(['QuorumWouldBeLost'])
    expect(run.status().message).toContain('--acknowledge api-outage')
    expect(run.operation(NAME)?.status.machines).toBeUndefined()
  })
})
