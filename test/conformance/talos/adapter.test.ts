// The same questions and acts, once through the world's own port and once over the wire with the adapter: the answers have to be the same.
import { describe, expect, test, vi } from 'vitest'
import type { LongCall } from '../../../src/ports/talos.ts'
import type { Machine } from '../../../src/world/machine.ts'
import type { Machines } from '../../machines-on-the-wire.ts'
import { startDoors } from './doors.ts'

vi.setConfig({ testTimeout: 30_000 })

const SCHEMATIC = '376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'

const call = (): LongCall & { readonly lines: string[] } => {
  const lines: string[] = []
  return { lines, progress: line => lines.push(line), cancellation: { cancelled: false, onCancel: () => () => {} } }
}

describe.each(['v1.12.5', 'v1.13.5', 'v1.14.0-rc.1'])('Talos %s', version => {
  const factory = { talos: version, schematic: SCHEMATIC, extensions: ['iscsi-tools'], kubernetes: 'v1.34.2' }

  test('what machines, members and etcd say', async () => {
    const { machines, wire, port } = await startDoors({ ...factory, etcdQuotaBytes: 8 * 1024 ** 3 })
    expect(await wire.members(machines.address(3))).toEqual(await port.members(machines.address(3)))
    expect(await wire.machine(machines.address(0))).toEqual(await port.machine(machines.address(0)))
    // What a worker says of etcd's quota means nothing.
    const worker = await port.machine(machines.address(3))
    if (!worker.ok) throw new Error(worker.fault.message)
    expect(await wire.machine(machines.address(3))).toMatchObject({
      ok: true,
      value: { ...worker.value, etcdQuotaBytes: expect.any(Number) as number },
    })
    machines.world.etcd.raiseAlarm(machines.world.member(1).id, 'NOSPACE')
    expect(await wire.etcd(machines.address(1))).toEqual(await port.etcd(machines.address(1)))
    const [onWorker, inPort] = [await wire.etcd(machines.address(3)), await port.etcd(machines.address(3))]
    expect([onWorker.ok, inPort.ok]).toEqual([false, false])
    if (!onWorker.ok && !inPort.ok) expect(onWorker.fault.kind).toBe(inPort.fault.kind)
  })

  test('the programs of Kubernetes, and other images for them', async () => {
    const { machines, wire, port } = await startDoors({ ...factory, speed: 200 })
    const { world } = machines
    const [cp, wk] = [machines.address(0), machines.address(3)]
    // Talos asks a kubelet for its pods now and then; the world's own port sees them as they are.
    await vi.waitFor(async () => expect(await wire.components(cp)).toEqual(await port.components(cp)), 10_000)
    expect(await wire.components(wk)).toEqual(await port.components(wk))
    expect(await wire.manifests(cp)).toEqual(await port.manifests(cp))
    expect(await wire.manifests(wk)).toEqual({ ok: true, value: [] })
    expect(await wire.lastWords(cp, 'kube-scheduler')).toEqual({ ok: true, value: [] })

    const image = 'registry.k8s.io/kube-scheduler:v1.34.3'
    expect(await wire.pullForPods(cp, image, call())).toMatchObject({ ok: true })
    expect(await wire.pullForPods(cp, image.replace('v1.34.3', 'v1.34'), call())).toMatchObject({ ok: false, fault: { kind: 'notFound' } })
    for (const component of ['kube-scheduler', 'kube-proxy'] as const)
      expect(await wire.setComponentImage(cp, component, image.replace('kube-scheduler', component))).toEqual({
        ok: true,
        value: undefined,
      })
    expect(await wire.setComponentImage(wk, 'kubelet', 'ghcr.io/siderolabs/kubelet:v1.34.3')).toEqual({ ok: true, value: undefined })
    await vi.waitFor(async () => {
      const components = await wire.components(cp)
      expect(components).toMatchObject({ ok: true, value: { kubeProxy: 'registry.k8s.io/kube-proxy:v1.34.3' } })
      expect(components.ok && components.value.staticPods['kube-scheduler']).toMatchObject({
        ...{ image, rendered: { image, configVersion: '2/1', isProbed: true }, told: { ready: true } },
      })
      expect(await wire.components(wk)).toMatchObject({ ok: true, value: { kubelet: { image: 'ghcr.io/siderolabs/kubelet:v1.34.3' } } })
      expect(world.machine(0).pods.get('kube-scheduler')).toMatchObject({ image, isRunning: true })
    }, 20_000)

    world.site.faults.crashing.set('kube-scheduler:v1.34.4', 'Error: unknown flag: --gone')
    const broken = image.replace('v1.34.3', 'v1.34.4')
    expect(await wire.setComponentImage(cp, 'kube-scheduler', broken)).toEqual({ ok: true, value: undefined })
    await vi.waitFor(async () => {
      const components = await wire.components(cp)
      expect(components.ok && components.value.staticPods['kube-scheduler']?.told).toMatchObject({
        ...{ ready: false, waiting: { reason: 'CrashLoopBackOff' } },
      })
    }, 20_000)
    expect(await wire.lastWords(cp, 'kube-scheduler')).toEqual({ ok: true, value: ['Error: unknown flag: --gone'] })
  })

  test('an upgrade to its end', async () => {
    const { machines, wire } = await startDoors({ ...factory, speed: 200 })
    const address = machines.address(1)
    const target = version === 'v1.14.0-rc.1' ? 'v1.14.0-beta.1' : version.replace(/\.\d+$/, '.6')
    const image = `factory.talos.dev/metal-installer/${SCHEMATIC}:${target}`
    const machine = machines.world.machine(1)
    const before = machine.bootID

    const missing = await wire.pull(address, image.replace(target, 'v1.13.99'), call())
    expect(missing).toMatchObject({ ok: false, fault: { kind: 'notFound' } })
    const pulled = await wire.pull(address, image, call())
    if (!pulled.ok) throw new Error(pulled.fault.message)
    if (version === 'v1.12.5') {
      expect(await wire.upgrade(address, { image: pulled.value, preserve: true, rebootMode: 'default' })).toEqual({
        ok: true,
        value: undefined,
      })
    } else {
      const long = call()
      expect(await wire.install(address, pulled.value, long)).toMatchObject({ ok: true, value: { exitCode: 0 } })
      expect(long.lines.length).toBeGreaterThan(2)
      expect(await wire.reboot(address, 'default')).toEqual({ ok: true, value: undefined })
    }
    await vi.waitFor(() => expect(cameBack(machines, machine, before)).toBe(true), 20_000)
    expect(await wire.machine(address)).toMatchObject({
      ok: true,
      value: { version: target, bootID: machine.bootID, stage: 'running', ready: true },
    })

    expect(await wire.setInstallImage(address, image)).toEqual({ ok: true, value: undefined })
    expect(machine.config).toContain(`image: ${image}\n`)
  })
})

function cameBack({ world }: Machines, machine: Machine, before: string): boolean {
  return machine.bootID !== before && world.isUp(machine)
}

test('leadership moves, and a machine that is off is unreachable', async () => {
  const { machines, wire } = await startDoors({ speed: 200 })
  const { world } = machines
  const was = world.etcd.leader()
  const leading = [0, 1, 2].find(index => world.member(index).id === was)!
  expect(await wire.forfeitLeadership(machines.address(leading))).toEqual({ ok: true, value: undefined })
  expect(world.etcd.leader()).not.toBe(was)
  world.powerOff(3)
  expect(await wire.machine(machines.address(3))).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
})
