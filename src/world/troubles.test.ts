// What happens to single machines, seen from the world and through its ports.
import { describe, expect, it } from 'vitest'
import type { WorldOptions } from './cluster.ts'
import { createWorld } from './cluster.ts'
import { setConfig } from './configuration.ts'
import { bootstrapEtcd, removeEtcdMember } from './etcd-membership.ts'
import { install, pullImage } from './install.ts'
import { conditionOf, RESOURCE } from './objects.ts'
import { requestReboot } from './reboot.ts'
import { registerCluster } from './ports/connections.ts'
import { openPorts } from './ports/open.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const YEAR = 365 * 24 * HOUR
const IMAGE = 'ghcr.io/siderolabs/installer:v1.13.9'
const KEY = { namespace: 'ichor-system', name: 'home' }

const world = (options: Partial<WorldOptions> = {}) => createWorld({ seed: 3, controlPlanes: 3, workers: 1, ...options })
type World = ReturnType<typeof world>
const pass = (w: World, ms: number) => w.schedule.advanceTo(w.schedule.now() + ms)

/** What a call answers once so much time has passed; undefined where it has not by then. */
const soon = async <T>(w: World, call: Promise<T>, ms: number): Promise<T | undefined> => {
  let answered: T | undefined
  void call.then(value => (answered = value))
  for (let at = 0; at < ms && answered === undefined; at += 100) {
    await new Promise(resolve => setImmediate(resolve))
    pass(w, 100)
  }
  await new Promise(resolve => setImmediate(resolve))
  return answered
}
const talosOf = async (w: World) => {
  registerCluster(w, KEY)
  const { connections } = openPorts(w, { name: 'test' })
  const spec = { talosconfigSecretRef: { name: 'talosconfig', key: 'talosconfig' } }
  const opened = await connections.talos({ apiVersion: 'v1', kind: 'TalosCluster', metadata: KEY, spec } as never)
  if (!opened.ok) throw new Error(opened.fault.message)
  return opened.value
}
const asked = async (w: World, name: string, ms = 15_000) => {
  const talos = await talosOf(w)
  const answer = await soon(w, talos.machine(w.machine(name).addresses[0] ?? ''), ms)
  return answer === undefined ? 'no answer' : answer.ok ? answer.value.hostname : `${answer.fault.kind}: ${answer.fault.message}`
}
type NodeStatus = { addresses: { type: string; address: string }[]; nodeInfo: { systemUUID: string; bootID: string } }
const nodeStatus = (w: World, name: string) => (w.store.get(RESOURCE.nodes, '', name) ?? { status: {} }).status as NodeStatus
const lines = { line: () => {} }

describe('the certificate of a machine', () => {
  it('is for a day, and another one comes at half of it', () => {
    const w = world()
    for (const machine of w.machines) {
      const { certificate } = machine
      expect((certificate?.notAfter ?? 0) - (certificate?.notBefore ?? 0)).toBe(24 * HOUR)
    }
    const first = w.machines.map(({ certificate }) => certificate?.serial ?? 0)
    pass(w, 12 * HOUR)
    expect(w.machines.map(({ certificate }) => (certificate?.serial ?? 0) - 1)).toEqual(first)
    pass(w, 100 * HOUR)
    for (const { certificate } of w.machines) expect(certificate?.notAfter ?? 0).toBeGreaterThan(w.schedule.now() + 11 * HOUR)
  })

  it('of a worker is signed by a control plane’s trustd; with none in reach the worker keeps what it has, until that expires', async () => {
    const w = world()
    expect(w.machine('wk-1').certificate?.signer).toBe('cp-1')
    for (const name of ['cp-1', 'cp-2', 'cp-3']) w.powerOff(name)
    const { serial } = w.machine('wk-1').certificate ?? { serial: 0 }
    pass(w, 11 * HOUR)
    expect(w.machine('wk-1').certificate?.serial).toBe(serial)
    pass(w, 14 * HOUR)
    expect(w.machine('wk-1').certificate?.serial).toBe(serial)
    expect(w.journal.of('certificate-expired', 'wk-1')).toHaveLength(1)
    for (const name of ['cp-1', 'cp-2', 'cp-3']) w.powerOn(name)
    pass(w, 10 * MINUTE)
    expect(w.machine('wk-1').certificate?.serial).toBe(serial + 1)
    expect(await asked(w, 'wk-1')).toBe('wk-1')
  })

  it('of a worker that boots while no control plane is there does not come, and its API with it', () => {
    const w = world()
    for (const name of ['cp-1', 'cp-2', 'cp-3']) w.powerOff(name)
    w.powerOff('wk-1')
    w.powerOn('wk-1')
    pass(w, 20 * MINUTE)
    expect(w.machine('wk-1').apid).toBe(false)
    expect(w.machine('wk-1').services.get('apid')?.state).toBe('Waiting')
    for (const name of ['cp-1', 'cp-2', 'cp-3']) w.powerOn(name)
    pass(w, 15 * MINUTE)
    expect(w.away()).toEqual([])
  })

  it('is made anew for names that the configuration adds', () => {
    const w = world()
    const machine = w.machine('cp-1')
    const before = machine.certificate
    setConfig(w.site, machine, machine.config.replace('certSANs: []', 'certSANs:\n        - api.example.com'))
    expect(machine.certificate?.hosts).toContain('api.example.com')
    expect(machine.certificate?.serial).toBe((before?.serial ?? 0) + 1)
    expect(before?.hosts).toEqual(['10.5.0.2', '127.0.0.1', 'cp-1'])
  })
})

describe('a wrong clock', () => {
  it('ahead: clients take the certificate of a control plane for one that is not valid yet', async () => {
    const w = world()
    w.setClock('cp-2', HOUR)
    expect(await asked(w, 'cp-2')).toMatch(/^unreachable: .*certificate is not yet valid/)
    w.setClock('cp-2', 0)
    expect(await asked(w, 'cp-2')).toBe('cp-2')
  })

  it('two days behind: for one that has expired', async () => {
    const w = world()
    w.setClock('cp-2', -48 * HOUR)
    expect(await asked(w, 'cp-2')).toMatch(/^unreachable: .*certificate has expired/)
  })

  it('ten years ahead on a worker: its certificate is signed by a right clock, but the client’s has expired for it', async () => {
    const w = world()
    w.setClock('wk-1', 10 * YEAR)
    expect(await asked(w, 'wk-1')).toMatch(/^unauthenticated: .*tls: expired certificate/)
  })

  it('without a time server a machine waits for the time after its boot, and says so', () => {
    const w = world()
    w.fault('cp-3', { timeNeverSyncs: true })
    expect(w.isUp(w.machine('cp-3'))).toBe(true)
    requestReboot(w.site, w.machine('cp-3'), 'default')
    pass(w, 10 * MINUTE)
    const machine = w.machine('cp-3')
    expect(machine.stage).toBe('booting')
    expect(w.unmet(machine)).toContain('time: time is not synced')
    expect(machine.services.get('etcd')?.state).toBe('Waiting')
    expect(bootstrapEtcd(w.site, machine)).toMatchObject({ code: 'FailedPrecondition', message: 'time is not in sync yet' })
    w.fault('cp-3', { timeNeverSyncs: false })
    pass(w, 5 * MINUTE)
    expect(w.isUp(machine)).toBe(true)
  })
})

describe('a slow machine', () => {
  it('answers late, or too late', async () => {
    const w = world()
    w.fault('cp-1', { slowMs: 3000 })
    const begun = w.schedule.now()
    expect(await asked(w, 'cp-1')).toBe('cp-1')
    expect(w.schedule.now() - begun).toBeGreaterThanOrEqual(3000)
    w.fault('cp-1', { slowMs: 60_000 })
    expect(await asked(w, 'cp-1')).toMatch(/^unreachable: .*deadline of 10s exceeded/)
  })

  it('does what it was asked, although its answer comes too late', async () => {
    const w = world()
    w.fault('wk-1', { slowMs: 60_000 })
    const talos = await talosOf(w)
    const answer = await soon(w, talos.reboot('10.5.0.5', 'default'), 15_000)
    expect(answer?.ok).toBe(false)
    expect(w.journal.of('reboot-requested', 'wk-1')).toHaveLength(1)
  })
})

describe('a full disk', () => {
  it('lets no image in, and its Node says why', () => {
    const w = world()
    const machine = w.machine('wk-1')
    w.fault('wk-1', { diskFull: true })
    const answers: unknown[] = []
    pullImage(w.site, machine, IMAGE, { ...lines, end: answer => answers.push(answer) })
    pass(w, MINUTE)
    expect(answers).toMatchObject([{ ok: false, code: 'Unknown', message: expect.stringContaining('no space left on device') }])
    expect(conditionOf(w.nodes.of(machine), 'DiskPressure')).toMatchObject({ status: 'True', reason: 'KubeletHasDiskPressure' })
    w.fault('wk-1', { diskFull: false })
    pullImage(w.site, machine, IMAGE, { ...lines, end: answer => answers.push(answer) })
    pass(w, MINUTE)
    expect(answers[1]).toMatchObject({ ok: true })
    expect(conditionOf(w.nodes.of(machine), 'DiskPressure')?.status).toBe('False')
  })

  it.each([
    ['v1.13.8', 1],
    ['v1.13.5', 1],
  ])('of boot files fails the installer on %s; what runs goes on', (talos, exitCode) => {
    const w = world({ talos })
    const machine = w.machine('wk-1')
    w.fault('wk-1', { bootPartitionFull: true })
    pullImage(w.site, machine, IMAGE, { ...lines, end: () => {} })
    pass(w, MINUTE)
    const outcomes: unknown[] = []
    install(w.site, machine, IMAGE, { ...lines, end: outcome => outcomes.push(outcome) })
    pass(w, 2 * MINUTE)
    expect(outcomes).toMatchObject([
      { ok: true, value: { exitCode, lines: expect.arrayContaining([expect.stringMatching(/no space left/)]) } },
    ])
    expect(w.isUp(machine)).toBe(true)
    requestReboot(w.site, machine, 'default')
    pass(w, 10 * MINUTE)
    expect(w.isUp(machine)).toBe(true)
    expect(w.journal.of('boot', 'wk-1').at(-1)?.detail).toMatch(new RegExp(`^${talos} `))
  })
})

describe('etcd that has filled up', () => {
  it('raises the alarm on all members; nothing can be written, everything can be read, and health sees nothing', async () => {
    const w = world()
    w.etcd.fill()
    expect(w.etcd.alarms().map(({ alarm }) => alarm)).toEqual(['NOSPACE', 'NOSPACE', 'NOSPACE'])
    const view = w.etcd.view(w.machine('cp-1'))
    expect(view).toMatchObject({ ok: true, value: { status: { dbSize: 2 * 1024 ** 3 }, service: { healthy: true } } })
    registerCluster(w, KEY)
    const { connections } = openPorts(w, { name: 'test' })
    const spec = { talosconfigSecretRef: { name: 'talosconfig', key: 'talosconfig' } }
    const kube = await connections.kube({ apiVersion: 'v1', kind: 'TalosCluster', metadata: KEY, spec } as never)
    if (!kube.ok) throw new Error(kube.fault.message)
    const read = await soon(w, kube.value.nodes(), 5000)
    if (!read?.ok || !read.value[0]) throw new Error('no nodes')
    const cordoned = await soon(w, kube.value.cordon(read.value[0], 'uid'), 5000)
    expect(cordoned).toMatchObject({ ok: false, fault: { kind: 'busy', message: expect.stringContaining('database space exceeded') } })
  })

  it('disarming alone does not help: who is full says so again. Defragmented first, it does', () => {
    const w = world()
    w.etcd.fill()
    w.etcd.disarm()
    pass(w, 1000)
    expect(w.etcd.alarms()).toHaveLength(3)
    for (const member of w.etcd.members()) member.dbSize = member.dbSizeInUse
    w.etcd.disarm()
    pass(w, MINUTE)
    expect(w.etcd.alarms()).toEqual([])
    expect(w.etcd.isFull()).toBe(false)
  })

  it('follows the quota of the configuration, and lets members go', () => {
    const w = world({ etcdQuotaBytes: 1024 ** 3 })
    w.etcd.fill()
    expect(w.member('cp-2').dbSize).toBe(1024 ** 3)
    expect(removeEtcdMember(w.site, w.member('cp-3').id)).toMatchObject({ ok: true })
  })
})

describe('addresses', () => {
  it('of which a machine has two are both its own: it answers on both, and all learn of both', async () => {
    const w = world({ addresses: index => [`10.5.0.${index + 2}`, `fd00::${index + 2}`] })
    const talos = await talosOf(w)
    for (const address of ['10.5.0.3', 'fd00::3'])
      expect(await soon(w, talos.machine(address), 5000)).toMatchObject({ ok: true, value: { hostname: 'cp-2', address } })
    expect(nodeStatus(w, 'cp-2').addresses).toEqual([
      { type: 'InternalIP', address: '10.5.0.3' },
      { type: 'InternalIP', address: 'fd00::3' },
      { type: 'Hostname', address: 'cp-2' },
    ])
    expect(w.member('cp-2').peerURLs).toEqual(['https://10.5.0.3:2380', 'https://[fd00::3]:2380'])
    expect(w.machine('cp-2').certificate?.hosts).toEqual(expect.arrayContaining(['10.5.0.3', 'fd00::3']))
  })

  it('of IPv6 alone carry a whole cluster through a reboot', () => {
    const w = world({ addresses: index => `fd00::${index + 2}` })
    expect(w.machine('cp-1').config).toContain('endpoint: https://[fd00::2]:6443')
    requestReboot(w.site, w.machine('cp-1'), 'default')
    pass(w, 10 * MINUTE)
    expect(w.away()).toEqual([])
  })

  it('may be others after a reboot: Node, discovery, certificate and etcd follow, and nobody answers at the old one', async () => {
    const w = world()
    w.readdress('cp-2', ['10.5.0.77'], 'next boot')
    expect(w.machine('cp-2').addresses).toEqual(['10.5.0.3'])
    requestReboot(w.site, w.machine('cp-2'), 'default')
    pass(w, 10 * MINUTE)
    expect(await asked(w, 'cp-2')).toBe('cp-2')
    const talos = await talosOf(w)
    expect(await soon(w, talos.machine('10.5.0.3'), 15_000)).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
    expect(nodeStatus(w, 'cp-2').addresses[0]?.address).toBe('10.5.0.77')
    expect(await soon(w, talos.members('10.5.0.2'), 5000)).toMatchObject({
      value: expect.arrayContaining([expect.objectContaining({ hostname: 'cp-2', addresses: ['10.5.0.77'] })]),
    })
    expect(w.member('cp-2').peerURLs).toEqual(['https://10.5.0.77:2380'])
    expect(w.away()).toEqual([])
  })

  it('may come beside the old one while the machine runs', () => {
    const w = world()
    w.readdress('cp-1', ['10.5.0.2', '10.6.0.2'])
    expect(w.machine('cp-1').certificate?.hosts).toContain('10.6.0.2')
    expect(w.member('cp-1').peerURLs).toEqual(['https://10.5.0.2:2380', 'https://10.6.0.2:2380'])
    // Its Node has one of each family.
    pass(w, MINUTE)
    expect(nodeStatus(w, 'cp-1').addresses.map(({ address }) => address)).toEqual(['10.5.0.2', 'cp-1'])
  })

  it('that replace those of a running machine have its kubelet start anew, and tell them', () => {
    const w = world()
    w.readdress('wk-1', ['10.6.0.5', 'fd00::5'])
    expect(w.machine('wk-1').services.get('kubelet')?.state).toBe('Preparing')
    pass(w, MINUTE)
    expect(nodeStatus(w, 'wk-1').addresses.map(({ address }) => address)).toEqual(['10.6.0.5', 'fd00::5', 'wk-1'])
    expect(w.isUp(w.machine('wk-1'))).toBe(true)
  })
})

describe('machines that cannot be told apart', () => {
  it('of one host name write one Node: who booted last has it', () => {
    const w = world({ workers: 2, names: index => (index < 3 ? `cp-${index + 1}` : 'wk') })
    const bootOf = () => nodeStatus(w, 'wk').nodeInfo.bootID
    for (const index of [3, 4, 3]) {
      requestReboot(w.site, w.machine(index), 'default')
      pass(w, 10 * MINUTE)
      expect(bootOf()).toBe(w.machine(index).bootID)
    }
    // A fault is of one of them, not of the name.
    w.fault(4, { slowMs: 100 })
    expect(w.faults.of(w.machine(3)).slowMs).toBe(0)
  })

  it('a control plane that joins under the name of a member puts that one out of etcd', () => {
    const w = world({ controlPlanes: 5, hostnames: index => (index === 4 ? 'cp-1' : `cp-${index + 1}`) })
    w.loseEtcdData('cp-5')
    pass(w, 15 * MINUTE)
    expect(w.etcd.memberOf(w.machine('cp-1'))).toBeUndefined()
    expect(w.etcd.memberOf(w.machine('cp-5'))).toBeDefined()
    expect(w.machine('cp-1').services.get('etcd')?.state).toBe('Waiting')
  })

  it.each(['00000000-0000-0000-0000-000000000000', '4c4c4544-0000-2010-8020-80c04f202020'])('all may have the UUID %s', async uuid => {
    const w = world({ uuids: () => uuid })
    const talos = await talosOf(w)
    for (const { addresses, name } of w.machines)
      expect(await soon(w, talos.machine(addresses[0] ?? ''), 5000)).toMatchObject({ value: { uuid, hostname: name } })
    expect(nodeStatus(w, 'cp-1').nodeInfo.systemUUID).toBe(uuid)
  })
})

describe('control planes', () => {
  it.each([1, 2, 3, 4, 5])('%i of them come back one after the other', count => {
    const w = world({ controlPlanes: count, workers: 0 })
    for (const machine of w.machines) {
      requestReboot(w.site, machine, 'default')
      pass(w, 10 * MINUTE)
      expect(w.away()).toEqual([])
      expect(w.api.available()).toBe(true)
    }
  })
})

describe('an etcd that does not start', () => {
  it('is started again and again, so that the boot ends when what kept it does', () => {
    const w = world()
    const machine = w.machine('cp-2')
    w.faults.of(machine).etcdNeverStarts = true
    w.powerOff('cp-2')
    w.powerOn('cp-2')
    pass(w, 10 * MINUTE)
    expect(machine.stage).toBe('booting')
    w.faults.of(machine).etcdNeverStarts = false
    pass(w, 2 * MINUTE)
    expect(machine.stage).toBe('running')
    expect(w.etcd.memberOf(machine)?.running).toBe(true)
  })
})
