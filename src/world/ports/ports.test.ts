import { describe, expect, it } from 'vitest'
import { ANNOTATION, API_VERSION } from '../../api/names.ts'
import type { Cancellation } from '../../ports/clock.ts'
import type { Result } from '../../ports/fault.ts'
import type { LongCall } from '../../ports/talos.ts'
import type { WorldOptions } from '../cluster.ts'
import { createWorld } from '../cluster.ts'
import { RESOURCE } from '../objects.ts'
import { outcome } from '../time.ts'
import { registerCluster, writeTalosconfig } from './connections.ts'
import { ICHOR } from './home.ts'
import { openPorts } from './open.ts'

const KEY = { namespace: 'ichor-system', name: 'home' }
const IMAGE = 'ghcr.io/siderolabs/installer:v1.13.9'
const CP1 = '10.5.0.2'
const WK1 = '10.5.0.5'

const value = <T>(result: Result<T>): T => {
  if (!result.ok) throw new Error(result.fault.message)
  return result.value
}

const open = async (options: Partial<WorldOptions> = {}, name = 'a') => {
  const world = createWorld({ seed: 31, controlPlanes: 3, workers: 2, ...options })
  registerCluster(world, KEY)
  const ports = openPorts(world, { name })
  const run = <T>(promise: Promise<T>) => outcome(world.schedule, promise)
  const cluster = value(await run(ports.home.cluster(KEY)))
  const talos = value(await run(ports.connections.talos(cluster)))
  const kube = value(await run(ports.connections.kube(cluster)))
  return { world, ports, run, cluster, talos, kube }
}

const cancellation = () => {
  const listeners = new Set<() => void>()
  let cancelled = false
  const signal: Cancellation = {
    get cancelled() {
      return cancelled
    },
    onCancel: run => {
      if (cancelled) run()
      else listeners.add(run)
      return () => void listeners.delete(run)
    },
  }
  return {
    signal,
    cancel: () => {
      cancelled = true
      for (const run of listeners) run()
    },
  }
}
const longCall = (): LongCall & { readonly lines: string[] } => {
  const lines: string[] = []
  return { cancellation: cancellation().signal, progress: line => void lines.push(line), lines }
}

describe('the Talos port', () => {
  it('carries an upgrade: pull, install, reboot, and the boot id tells', async () => {
    const { world, run, talos } = await open()
    const before = value(await run(talos.machine(CP1)))
    const call = longCall()
    const pulled = value(await run(talos.pull(CP1, IMAGE, call)))
    expect(pulled).toMatch(/^ghcr\.io\/siderolabs\/installer:v1\.13\.9@sha256:[0-9a-f]{64}$/)
    expect(value(await run(talos.install(CP1, pulled, call))).exitCode).toBe(0)
    expect(call.lines.length).toBeGreaterThan(3)
    expect(value(await run(talos.machine(CP1)))).toMatchObject({ version: 'v1.13.5', bootID: before.bootID, fallbackArmed: true })
    expect(await run(talos.reboot(CP1, 'default'))).toEqual({ ok: true, value: undefined })
    world.schedule.advanceTo(world.schedule.now() + 30_000)
    expect(await run(talos.machine(CP1))).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
    world.schedule.advanceTo(world.schedule.now() + 600_000)
    const after = value(await run(talos.machine(CP1)))
    expect(after).toMatchObject({ version: 'v1.13.9', stage: 'running', ready: true, fallbackArmed: false })
    expect(after.bootID).not.toBe(before.bootID)
  })

  it('of a machine whose network swallows packets answers after its deadline', async () => {
    const { world, run, talos } = await open()
    world.blackHole('cp-1', true)
    const begun = world.schedule.now()
    expect(await run(talos.machine(CP1))).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
    expect(world.schedule.now() - begun).toBe(10_000)
    const call = longCall()
    const installing = talos.pull(WK1, IMAGE, call)
    world.blackHole('wk-1', true)
    expect(await run(installing)).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
  })

  it('names what is wrong as the contract asks', async () => {
    const { world, run, talos } = await open()
    world.registry.remove(':v1.13.9')
    expect(await run(talos.pull(CP1, IMAGE, longCall()))).toMatchObject({ fault: { kind: 'notFound' } })
    expect(await run(talos.upgrade(WK1, { image: IMAGE, preserve: true, rebootMode: 'default' }))).toMatchObject({
      fault: { kind: 'notFound' },
    })
    expect(await run(talos.install(CP1, IMAGE, longCall()))).toMatchObject({ fault: { kind: 'unknown' } })
    expect(await run(talos.etcd(WK1))).toMatchObject({ fault: { kind: 'unsupported' } })
    expect(await run(talos.machine('10.5.0.77'))).toMatchObject({ fault: { kind: 'unreachable' } })
    const old = await open({ talos: 'v1.12.5', kubernetes: 'v1.35.2' })
    expect(await old.run(old.talos.install(CP1, IMAGE, longCall()))).toMatchObject({ fault: { kind: 'unsupported' } })
  })

  it('stops a long call that is cancelled, at once', async () => {
    const { world, run, talos } = await open()
    const { signal, cancel } = cancellation()
    const pulling = talos.pull(CP1, IMAGE, { cancellation: signal, progress: () => {} })
    world.schedule.advanceTo(world.schedule.now() + 1000)
    await undefined
    cancel()
    expect(await run(pulling)).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
    world.schedule.advanceTo(world.schedule.now() + 60_000)
    expect(world.machine('cp-1').images.size).toBe(0)
  })

  it('changes the install image and nothing else', async () => {
    const { world, run, talos } = await open()
    const { bootID } = world.machine('cp-1')
    value(await run(talos.setInstallImage(CP1, IMAGE)))
    expect(value(await run(talos.machine(CP1)))).toMatchObject({ installImage: IMAGE, version: 'v1.13.5', bootID })
  })

  it('spells host names as the machine does; Node, member and host may differ', async () => {
    const { run, talos, kube } = await open({
      names: i => `node-${i}`,
      hostnames: i => `NODE-${i}.Example`,
      memberNames: i => `M${i}`,
      etcdQuotaBytes: 8 * 1024 ** 3,
    })
    expect(value(await run(talos.machine(CP1)))).toMatchObject({
      hostname: 'NODE-0.Example',
      nodename: 'node-0',
      etcdQuotaBytes: 8 * 1024 ** 3,
    })
    expect(value(await run(talos.etcd(CP1))).members.map(m => m.name)).toEqual(['M0', 'M1', 'M2'])
    expect(value(await run(kube.nodes()))[0]?.name).toBe('node-0')
  })
})

describe('credentials', () => {
  it('a Secret that is missing, lacks its key, does not parse, is of another CA, or has expired', async () => {
    const { world, ports, run, cluster } = await open()
    const asked = async () => {
      const result = await run(ports.connections.talos(cluster))
      return result.ok ? 'ok' : result.fault.kind
    }
    const seen: string[] = []
    writeTalosconfig(world, { namespace: KEY.namespace }, { expires: 1 })
    seen.push(await asked())
    writeTalosconfig(world, { namespace: KEY.namespace }, { clusterID: 'another' })
    seen.push(await asked())
    const secret = (data: Record<string, string>) =>
      world.store.update(RESOURCE.secrets, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'talosconfig', namespace: KEY.namespace },
        data,
      })
    secret({ talosconfig: 'bm9uc2Vuc2U=' })
    seen.push(await asked())
    secret({ other: '' })
    seen.push(await asked())
    world.store.remove(RESOURCE.secrets, KEY.namespace, 'talosconfig')
    seen.push(await asked())
    expect(seen).toEqual(['unauthenticated', 'wrongPeer', 'invalid', 'invalid', 'notFound'])
  })

  it('a reader may look and not touch', async () => {
    const { world, ports, run, cluster } = await open()
    writeTalosconfig(world, { namespace: KEY.namespace }, { role: 'os:reader' })
    const talos = value(await run(ports.connections.talos(cluster)))
    expect((await run(talos.etcd(CP1))).ok).toBe(true)
    expect(await run(talos.reboot(CP1, 'default'))).toMatchObject({ fault: { kind: 'forbidden' } })
    expect(world.journal.of('reboot-requested')).toEqual([])
  })
})

describe('the Kubernetes port', () => {
  it('cordons with a mark, by compare-and-swap, and takes back only what it is asked to', async () => {
    const { world, run, kube } = await open()
    const find = async () => value(await run(kube.nodes())).find(n => n.name === 'wk-1')
    const read = await find()
    if (!read) throw new Error('no node')
    expect(await run(kube.cordon(read, 'op-1'))).toEqual({ ok: true, value: undefined })
    expect(await run(kube.cordon(read, 'op-2'))).toMatchObject({ fault: { kind: 'conflict' } })
    const cordoned = await find()
    expect(cordoned).toMatchObject({ unschedulable: true, annotations: { [ANNOTATION.cordonedBy]: 'op-1' } })
    if (!cordoned) throw new Error('no node')
    expect(await run(kube.uncordon(read))).toMatchObject({ fault: { kind: 'conflict' } })
    value(await run(kube.uncordon(cordoned)))
    expect(await find()).toMatchObject({ unschedulable: false, annotations: {} })
    expect(world.journal.of('cordon', 'wk-1')).toHaveLength(1)
  })

  it('leaves a cordon that a person set in place of its own, and takes off the mark that kubectl left', async () => {
    const { world, run, kube } = await open()
    const find = async () => {
      const node = value(await run(kube.nodes())).find(n => n.name === 'wk-1')
      if (!node) throw new Error('no node')
      return node
    }
    value(await run(kube.cordon(await find(), 'op-1')))
    world.userCordon('wk-1')
    expect((await find()).cordonedBy).toBe('op-1')
    world.userUncordon('wk-1')
    world.userCordon('wk-1')
    const theirs = await find()
    expect([theirs.annotations[ANNOTATION.cordonedBy], theirs.cordonedBy]).toEqual(['op-1', undefined])
    value(await run(kube.uncordon(theirs)))
    expect(await find()).toMatchObject({ unschedulable: true, annotations: {} })
    expect(world.journal.of('uncordon', 'wk-1').map(e => e.detail)).toEqual(['by a person'])
  })

  it('sees pods, budgets, volumes and the network', async () => {
    const { run, kube } = await open({
      cilium: { version: '1.18.2', config: { 'routing-mode': 'native' } },
      workloads: [{ name: 'db', volume: true, budget: { minAvailable: 1 }, on: [3] }],
    })
    expect(value(await run(kube.addons()))).toEqual({
      cilium: { version: '1.18.2', config: { 'kube-proxy-replacement': 'true', 'routing-mode': 'native' } },
      kubeProxy: false,
    })
    const on = value(await run(kube.podsOn('wk-1')))
    expect(on.map(pod => pod.ownerKind).toSorted()).toEqual(['DaemonSet', 'ReplicaSet'])
    expect(value(await run(kube.podsOn('cp-1'))).filter(pod => pod.mirror)).toHaveLength(3)
    expect(value(await run(kube.budgets()))).toMatchObject([{ name: 'db', disruptionsAllowed: 0, matchLabels: { app: 'db' } }])
    expect(value(await run(kube.volumeAttachments('wk-1')))).toHaveLength(1)
    const db = on.find(pod => pod.labels.app === 'db')
    if (!db) throw new Error('no pod')
    expect(await run(kube.evict(db))).toMatchObject({
      fault: { kind: 'busy', message: expect.stringContaining('disruption budget db needs 1') },
    })
    expect((await run(kube.deletePod(db))).ok).toBe(true)
    expect((await run(kube.evict({ ...db, uid: 'gone' }))).ok).toBe(true)
  })

  it('answers busy in an outage', async () => {
    const { world, ports, run, kube } = await open()
    world.apiOutage(30_000)
    expect(await run(kube.nodes())).toMatchObject({ fault: { kind: 'busy' } })
    expect(await run(ports.home.cluster(KEY))).toMatchObject({ fault: { kind: 'busy' } })
    world.schedule.advanceTo(world.schedule.now() + 31_000)
    expect((await run(kube.nodes())).ok).toBe(true)
  })
})

describe('the home port', () => {
  const operation = {
    apiVersion: API_VERSION,
    kind: 'TalosOperation',
    metadata: { name: 'op', namespace: 'ichor-system' },
    spec: { clusterRef: { name: 'home' }, kind: 'talos' },
  }
  const OP = { namespace: 'ichor-system', name: 'op' }

  it('writes a status only over what was read', async () => {
    const { world, ports, run } = await open()
    world.store.create(ICHOR.operations, operation)
    const first = value(await run(ports.home.operation(OP)))
    const second = value(await run(ports.home.writeOperationStatus(first, { phase: 'Running' })))
    expect(second.status.phase).toBe('Running')
    expect(second.metadata.generation).toBe(1)
    expect(await run(ports.home.writeOperationStatus(first, { phase: 'Paused' }))).toMatchObject({ fault: { kind: 'conflict' } })
    world.faults.statusConflicts = 1
    expect(await run(ports.home.writeOperationStatus(second, { phase: 'Completed' }))).toMatchObject({ fault: { kind: 'conflict' } })
    expect(value(await run(ports.home.operation(OP))).status.phase).toBe('Running')
  })

  it('changes annotations and finalizers; a deletion waits for the finalizer', async () => {
    const { world, ports, run } = await open()
    world.store.create(ICHOR.operations, operation)
    let op = value(await run(ports.home.operation(OP)))
    op = value(await run(ports.home.changeOperation(op, { annotations: { a: '1', b: '2' }, finalizers: ['f'] })))
    op = value(await run(ports.home.changeOperation(op, { annotations: { a: null } })))
    expect(op.metadata).toMatchObject({ annotations: { b: '2' }, finalizers: ['f'] })
    value(await run(ports.home.deleteOperation(op)))
    op = value(await run(ports.home.operation(OP)))
    expect(op.metadata.deletionTimestamp).toBeDefined()
    value(await run(ports.home.changeOperation(op, { finalizers: [] })))
    expect(await run(ports.home.operation(OP))).toMatchObject({ fault: { kind: 'notFound' } })
  })

  it('of two who want the lock one gets it', async () => {
    const { ports, run } = await open()
    const write = {
      holder: 'x',
      durationSeconds: 30,
      acquireTime: '2026-09-01T08:00:00.000000Z',
      renewTime: '2026-09-01T08:00:00.000000Z',
      transitions: 0,
      annotations: {},
    }
    const key = { namespace: 'ichor-system', name: 'ichor-home' }
    const lease = value(await run(ports.home.createLease(key, write)))
    expect(lease).toMatchObject({ ...write, ...key })
    expect(await run(ports.home.createLease(key, write))).toMatchObject({ fault: { kind: 'alreadyExists' } })
    expect(value(await run(ports.home.replaceLease(lease, { ...write, holder: 'y', transitions: 1 }))).holder).toBe('y')
    expect(await run(ports.home.replaceLease(lease, { ...write, holder: 'z' }))).toMatchObject({ fault: { kind: 'conflict' } })
  })

  it('lists the machines of a cluster, and writes Events', async () => {
    const { world, ports, run } = await open()
    const spec = { clusterRef: { name: 'home' }, address: CP1, role: 'controlplane' } as const
    const machine = value(
      await run(ports.home.createMachine({ namespace: 'ichor-system', name: 'cp-1' }, spec, { labels: {}, annotations: {} })),
    )
    value(await run(ports.home.writeMachineStatus(machine, { stage: 'running' })))
    expect(value(await run(ports.home.machines(KEY)))).toMatchObject([{ spec, status: { stage: 'running' } }])
    expect(value(await run(ports.home.machines({ ...KEY, name: 'other' })))).toEqual([])
    await run(ports.home.event({ regarding: { kind: 'TalosMachine', ...KEY, uid: 'u' }, type: 'Normal', reason: 'Seen', message: 'hello' }))
    expect(world.store.list(RESOURCE.events).items).toMatchObject([{ reason: 'Seen', message: 'hello', type: 'Normal' }])
  })

  it('tells what exists and what changes, until it is stopped', async () => {
    const { world, ports, run } = await open()
    const seen: string[] = []
    const stop = ports.home.watch(['TalosOperation', 'TalosCluster'], (what, key) => void seen.push(`${what} ${key.name}`))
    const second = () => world.schedule.advanceTo(world.schedule.now() + 1000)
    second()
    expect(seen).toEqual(['TalosCluster home'])
    world.store.create(ICHOR.operations, operation)
    second()
    value(await run(ports.home.writeOperationStatus(value(await run(ports.home.operation(OP))), { phase: 'Pending' })))
    second()
    expect(seen).toEqual(['TalosCluster home', 'TalosOperation op', 'TalosOperation op'])
    stop()
    world.store.remove(ICHOR.operations, 'ichor-system', 'op')
    second()
    expect(seen).toHaveLength(3)
  })
})

describe('calls', () => {
  it('a lost reply: the effect is there, the caller does not know', async () => {
    const { world, run, talos } = await open()
    world.calls.next(
      { name: 'reboot', target: WK1 },
      { do: 'fail', when: 'after', fault: { kind: 'unreachable', message: 'reset' }, afterMs: 5000 },
    )
    expect(await run(talos.reboot(WK1, 'default'))).toEqual({ ok: false, fault: { kind: 'unreachable', message: 'reset' } })
    expect(world.journal.of('reboot-requested')).toHaveLength(1)
    world.calls.next({ name: 'reboot' }, { do: 'fail', when: 'before', fault: { kind: 'busy', message: 'later' } })
    expect(await run(talos.reboot(CP1, 'default'))).toMatchObject({ fault: { kind: 'busy' } })
    expect(world.journal.of('reboot-requested')).toHaveLength(1)
  })

  it('death before a call leaves no effect, death after it leaves the effect; neither is answered', async () => {
    for (const when of ['before', 'after'] as const) {
      const { world, ports, talos } = await open()
      const at = world.calls.count() + 1
      world.calls.intercept(call => {
        if (call.n !== at) return undefined
        ports.kill()
        return { do: 'silence', when }
      })
      let answered = false
      void talos.reboot(WK1, 'default').then(() => (answered = true))
      await outcome(world.schedule, new Promise<void>(resolve => void world.schedule.after(600_000, resolve)))
      expect(answered).toBe(false)
      expect(world.journal.of('reboot-requested')).toHaveLength(when === 'after' ? 1 : 0)
    }
  })

  it('a killed process has no effect any more; another one lives on', async () => {
    const { world, ports, run, talos } = await open()
    const other = openPorts(world, { name: 'b' })
    let ticks = 0
    ports.clock.after(1000, () => ticks++)
    other.clock.after(1000, () => ticks++)
    ports.kill()
    void talos.reboot(WK1, 'default')
    expect((await run(other.home.cluster(KEY))).ok).toBe(true)
    world.schedule.advanceTo(world.schedule.now() + 60_000)
    expect(ticks).toBe(1)
    expect(world.journal.of('reboot-requested')).toEqual([])
    expect(world.calls.counts().get('talos.reboot')).toBeUndefined()
    expect(world.calls.log().at(-1)).toMatchObject({ client: 'b', port: 'home', name: 'cluster', changes: false })
  })

  it('counts what goes through', async () => {
    const { world, run, talos } = await open()
    await run(talos.machine(CP1))
    await run(talos.machine(CP1))
    expect(world.calls.counts().get('talos.machine')).toBe(2)
  })
})

describe('any object of the Kubernetes API', () => {
  const main = { apiVersion: 'storage.example/v1', kind: 'StorageCluster', namespace: 'storage', name: 'main' }
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'storageclusters.storage.example' },
    spec: {
      group: 'storage.example',
      scope: 'Namespaced',
      names: { plural: 'storageclusters', kind: 'StorageCluster' },
      versions: [{ name: 'v1', served: true }],
    },
  }

  it('is there by its kind, once its type is served and it exists', async () => {
    const { world, run, kube } = await open()
    expect(await run(kube.object(main))).toMatchObject({ fault: { kind: 'unsupported' } })
    world.store.create(RESOURCE.definitions, definition)
    expect(await run(kube.object(main))).toMatchObject({ fault: { kind: 'notFound' } })
    const { apiVersion, kind, ...metadata } = main
    world.store.create('storageclusters.storage.example', { apiVersion, kind, metadata, status: { health: 'OK' } })
    expect(value(await run(kube.object(main)))).toMatchObject({ status: { health: 'OK' } })
    expect(await run(kube.object({ ...main, namespace: undefined }))).toMatchObject({ fault: { kind: 'invalid' } })
    expect(value(await run(kube.object({ apiVersion: 'v1', kind: 'Node', name: 'wk-1' })))).toMatchObject({ kind: 'Node' })
    expect(await run(kube.object({ apiVersion: 'v1', kind: 'Node', namespace: 'x', name: 'wk-1' }))).toMatchObject({
      fault: { kind: 'invalid' },
    })
  })

  it('cannot be read while the API is away', async () => {
    const { world, run, kube } = await open()
    world.faults.apiDownUntil = world.schedule.now() + 60_000
    expect(await run(kube.object({ apiVersion: 'v1', kind: 'Node', name: 'wk-1' }))).toMatchObject({ fault: { kind: 'busy' } })
  })
})
