import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { API_VERSION, LABEL, leaseName } from '../api/names.ts'
import { talosOperation } from '../api/talos-operation.ts'
import type { OperationStatus } from '../api/talos-operation.ts'
import type { Kind, Step } from '../core/kind.ts'
import { YES, kind, no } from '../core/kind.ts'
import { done } from '../ports/fault.ts'
import { createWorld } from '../world/cluster.ts'
import { registerCluster } from '../world/ports/connections.ts'
import { ICHOR } from '../world/ports/home.ts'
import { openPorts } from '../world/ports/open.ts'
import { RESOURCE } from '../world/objects.ts'
import { startController } from './controller.ts'

const NAMESPACE = 'ichor-system'
const WORK_MS = 2_000

/** Work that only takes time, on something that everybody reaches; who is at it at once is told. */
const workKind = (now: () => number) => {
  const atWork = new Map<string, { readonly cluster: string; readonly until: number }>()
  const overlaps: string[] = []
  const work: Step = {
    name: 'work',
    summary: 'Works.',
    done: ({ operation }) => {
      const mine = atWork.get(operation.metadata.uid)
      return mine && now() >= mine.until ? YES : no('it works')
    },
    act: {
      long: false,
      disruptive: true,
      describe: () => 'working',
      run: (_, { operation }) => {
        const { uid, name } = operation.metadata
        const cluster = operation.spec.clusterRef.name
        const others = [...atWork].filter(([other, w]) => other !== uid && w.cluster === cluster && w.until > now())
        if (others.length > 0 || atWork.has(uid)) overlaps.push(`${name} beside ${others.length} others`)
        atWork.set(uid, { cluster, until: now() + WORK_MS })
        return Promise.resolve(done)
      },
    },
    settleMs: () => WORK_MS,
    deadlineMs: () => 60_000,
    failure: 'NodeNotReady',
  }
  const value: Kind = kind({
    name: 'work',
    block: 'work',
    summary: 'Works for a while.',
    spec: z.object({}),
    checkNeeds: () => [],
    checks: () => ({ found: {}, refusals: [], notes: [] }),
    stages: [
      {
        name: 'work',
        summary: 'Once.',
        orderNeeds: () => [],
        order: (_, world) => world.machines.slice(0, 1).map(m => ({ name: m.metadata.name, address: m.spec.address, role: m.spec.role })),
        turn: () => YES,
        open: () => ({ open: { goal: {} } }),
        steps: [work],
        abandon: [],
        preview: () => ({ from: '', to: '', loses: [] }),
      },
    ],
  })
  return { value, overlaps, worked: () => atWork.size }
}

/** So many clusters with so many operations each, in a world of one machine that all clusters know. */
const crowd = (clusters: number, each: number) => {
  const world = createWorld({ seed: 5, controlPlanes: 1, workers: 0, homeOutside: true })
  const { schedule, store } = world
  const { value, overlaps, worked } = workKind(schedule.now)
  const definition = talosOperation([value])
  const names = Array.from({ length: clusters }, (_, i) => `cluster-${i}`)
  for (const name of names) {
    registerCluster(world, { namespace: NAMESPACE, name })
    const address = world.machines[0]?.addresses[0] ?? ''
    store.create(ICHOR.machines, {
      apiVersion: API_VERSION,
      kind: 'TalosMachine',
      metadata: { name: `machine-of-${name}`, namespace: NAMESPACE, labels: { [LABEL.cluster]: name } },
      spec: { clusterRef: { name }, address, role: 'controlplane' },
      status: {},
    })
  }
  const create = (cluster: string, i: number): void => {
    const made = store.create(ICHOR.operations, {
      apiVersion: API_VERSION,
      kind: 'TalosOperation',
      metadata: { name: `${cluster}-op-${i}`, namespace: NAMESPACE, labels: { [LABEL.cluster]: cluster } },
      spec: definition.spec.parse({ clusterRef: { name: cluster }, kind: 'work', work: {} }) as object,
    })
    if (!made.ok) throw new Error(made.fault.message)
  }
  for (let i = 0; i < each; i++) for (const cluster of names) create(cluster, i)

  for (const name of ['ichor-0', 'ichor-1'])
    startController({
      ...openPorts(world, { name }),
      random: schedule.random.next,
      kinds: [value],
      log: { info: () => {}, warn: () => {}, error: () => {} },
      identity: name,
      leaderLease: { namespace: NAMESPACE, name: 'ichor-controller' },
      self: undefined,
    })
  const statuses = (): readonly OperationStatus[] =>
    store.list(ICHOR.operations, NAMESPACE).items.map(o => (o['status'] ?? {}) as OperationStatus)
  const run = async (limitMs: number): Promise<void> => {
    await setImmediate()
    const end = schedule.now() + limitMs
    for (let n = 0; n % 50 !== 0 || statuses().some(s => s.phase !== 'Completed'); n++) {
      const next = schedule.next()
      if (next === undefined || next > end)
        throw new Error(`${statuses().filter(s => s.phase === 'Completed').length} of ${clusters * each} are done`)
      schedule.advanceTo(next)
      await setImmediate()
    }
  }
  const transitions = (cluster: string): number =>
    (store.get(RESOURCE.leases, NAMESPACE, leaseName(cluster))?.['spec'] as { leaseTransitions?: number } | undefined)?.leaseTransitions ??
    -1
  return { world, names, run, overlaps, worked, transitions }
}

describe('many operations', () => {
  it('200 on one cluster go one at a time, each once, the oldest first', async () => {
    const { world, run, overlaps, worked, transitions } = crowd(1, 200)
    await run(3_600_000 * 4)
    expect(overlaps).toEqual([])
    expect(worked()).toBe(200)
    // Each took the lock once, and gave it back: nobody stole, nobody starved.
    expect(transitions('cluster-0')).toBe(199)
    // All were created in one second, so it is the UID that decides, from when all of them stand in the queue.
    const all = world.store
      .list(ICHOR.operations)
      .items.map(o => ({ uid: o.metadata.uid, at: (o['status'] as OperationStatus).completedAt ?? '' }))
    const byEnd = all.toSorted((a, b) => (a.at < b.at ? -1 : 1)).map(o => o.uid)
    expect(byEnd.slice(10)).toEqual(byEnd.slice(10).toSorted())
  }, 300_000)

  it('on 20 clusters at once, one at a time on each, and the clusters do not wait for each other', async () => {
    const { world, run, overlaps, worked, names, transitions } = crowd(20, 5)
    const began = world.schedule.now()
    await run(3_600_000)
    expect(overlaps).toEqual([])
    expect(worked()).toBe(100)
    for (const name of names) expect(transitions(name)).toBe(4)
    // Far less than one after the other.
    expect(world.schedule.now() - began).toBeLessThan(100 * WORK_MS * 2)
  }, 300_000)
})
