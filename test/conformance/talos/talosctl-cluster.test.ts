// What talosctl 1.12 does beside upgrades, of simulated machines on disks: the cluster's health, its etcd from end to end, small facts, credentials.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Machines, startMachines } from '../../machines-on-the-wire.ts'
import { countInvocations, hasTalosctl, type Ran, talosctl as run } from './talosctl.ts'

countInvocations()

describe.skipIf(!hasTalosctl)('talosctl and a cluster', () => {
  let home: string
  let machines: Machines
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'talosctl-'))
    machines = await startMachines({
      ...{ seed: 5, controlPlanes: 3, workers: 1, talos: 'v1.12.5', kubernetes: 'v1.35.4', speed: 50, clusterName: 'home' },
    })
    await writeFile(join(home, 'admin'), await machines.talosconfig())
    for (const member of machines.world.etcd.members()) Object.assign(member, { dbSize: 400_000, dbSizeInUse: 200_000 })
  })
  afterAll(async () => {
    await machines.close()
    await rm(home, { recursive: true, force: true })
  })

  const at = (index: number): string => machines.address(index)
  const talosctl = (index: number, ...args: string[]): Promise<Ran> => run(home, ['-n', at(index), ...args])
  const cells = (text: string): string[][] =>
    text
      .trimEnd()
      .split('\n')
      .map(line => line.trim().split(/\s{2,}/))

  /** Each with what it has to print; the exit code is 0. */
  const facts: readonly (readonly [args: string, out: RegExp])[] = [
    ['time', /NTP-SERVER[^]*time\.cloudflare\.com/],
    ['memory', /TOTAL[^]*8192/],
    ['mounts', /MOUNTED ON[^]*\/var/],
    ['containers', /apid[^]*trustd/],
    ['stats', /MEMORY[^]*apid/],
    ['processes', /\/usr\/local\/bin\/etcd/],
    ['list /etc', /hostname\n[^]*os-release/],
    ['list -r /proc', /sys\/kernel\/random\/boot_id/],
    ['list -l /etc', /-rw-r--r--[^]*hostname/],
    ['read /etc/os-release', /VERSION_ID=v1\.12\.5/],
    ['inspect dependencies', /digraph[^]*MachineStatuses\.runtime\.talos\.dev/],
    ['image list', /IMAGE +DIGEST/],
    ['image default', /registry\.k8s\.io\/etcd/],
    ['config info', /Roles: +os:admin/],
    ['etcd downgrade validate 3.5', /downgrade validate success, cluster version 3\.6/],
    ['etcd downgrade enable 3.5', /downgrade enable success, cluster version 3\.6/],
    ['etcd downgrade cancel', /downgrade cancel success, cluster version 3\.6/],
    ['service kubelet restart', /Service "kubelet" restarted/],
  ]
  test.for(facts)('%s', { timeout: 30_000 }, async ([args, out]) => {
    expect(await talosctl(0, ...args.split(' '))).toEqual({
      code: 0,
      out: expect.stringMatching(out) as string,
      err: expect.any(String) as string,
    })
  })

  /** Each with what it is refused with. */
  const refused: readonly (readonly [index: number, args: string, err: string])[] = [
    [0, 'etcd downgrade validate 3.4', 'code = InvalidArgument desc = etcd downgrade is only supported to 3.5 and later versions'],
    [0, 'etcd downgrade enable 3.6', 'invalid downgrade target version'],
    [3, 'etcd downgrade validate 3.5', 'code = Unimplemented desc = etcd downgrade validate is only available on control plane nodes'],
    [0, 'list /nosuch', 'no such file or directory'],
    [0, 'copy /nosuch folder', 'no such file or directory'],
    [0, 'kubeconfig -', 'k8s API server CA config is not set'],
    [3, 'kubeconfig -', 'code = Unimplemented desc = kubeconfig is only available on control plane nodes'],
    [3, 'config new never', "code = FailedPrecondition desc = client configuration (talosconfig) can't be generated on worker nodes"],
    [0, 'service kubelet stop', 'service "kubelet" doesn\'t support stop operation via API'],
  ]
  test.for(refused)('%i %s', { timeout: 30_000 }, async ([index, args, err]) => {
    const ran = await talosctl(index, ...args.split(' '))
    expect(ran.code).not.toBe(0)
    expect(ran.err + ran.out).toContain(err)
  })

  test('config new gives another role, of the machines’ authority', { timeout: 30_000 }, async () => {
    expect((await talosctl(0, 'config', 'new', '--roles', 'os:reader', '--crt-ttl', '1h', join(home, 'reader'))).code).toBe(0)
    const text = await readFile(join(home, 'reader'), 'utf8')
    expect(text).toContain('context: reader@home')
    const as = (...args: string[]) => talosctl(0, '--talosconfig', join(home, 'reader'), '-e', at(0), ...args)
    expect((await as('get', 'members')).code).toBe(0)
    expect((await as('etcd', 'defrag')).err).toContain('code = PermissionDenied desc = not authorized')
  })

  test('copy brings files', { timeout: 30_000 }, async () => {
    expect((await talosctl(3, 'copy', '/etc', join(home, 'etc'))).code).toBe(0)
    expect(await readFile(join(home, 'etc', 'hostname'), 'utf8')).toBe('wk-1\n')
  })

  const waited = (text: string): string[] => [...text.matchAll(/^waiting for (.*): (?:OK|SKIP)$/gm)].map(([, name]) => name!)

  test('health, asked of a control plane and of a worker', { timeout: 60_000 }, async () => {
    await vi.waitFor(() => expect(machines.world.machines.every(machines.world.isUp)).toBe(true), 10_000)
    const well = await talosctl(0, 'health', '--wait-timeout', '40m')
    expect(well.code).toBe(0)
    expect(well.err).toMatch(/^discovered nodes: \["127\.[^\]]*"\]\nwaiting for etcd to be healthy: \.\.\.\n/)
    expect(waited(well.err)).toHaveLength(16)
    expect(waited(well.err).slice(-3)).toEqual([
      'kube-proxy to report ready',
      'coredns to report ready',
      'all k8s nodes to report schedulable',
    ])
    const worker = await talosctl(3, 'health', '--wait-timeout', '5s')
    expect(worker.code).toBe(1)
    expect(worker.err).toContain('waiting for etcd to be healthy: rpc error: code = PermissionDenied desc = no request forwarding\n')
    expect(worker.err).toContain('healthcheck error: rpc error: code = DeadlineExceeded desc = context deadline exceeded')
  })

  test('health says what is amiss, and nothing of a machine that is silent', { timeout: 60_000 }, async () => {
    machines.world.userCordon('wk-1')
    const cordoned = await talosctl(0, 'health', '--wait-timeout', '10s')
    machines.world.userUncordon('wk-1')
    expect(cordoned.code).toBe(1)
    expect(cordoned.err).toContain('waiting for all k8s nodes to report schedulable: some nodes are not schedulable: [wk-1]')
    machines.world.powerOff(2)
    const dead = await talosctl(0, 'health', '--wait-timeout', '10s')
    machines.world.powerOn(2)
    expect(waited(dead.err)).toEqual([])
    expect(dead.err.split('\n').slice(1, 3)).toEqual([
      'waiting for etcd to be healthy: ...',
      'waiting for etcd to be healthy: rpc error: code = DeadlineExceeded desc = context deadline exceeded',
    ])
    await vi.waitFor(() => expect(machines.world.isUp(machines.world.machine(2))).toBe(true), 20_000)
  })

  test('a member leaves, comes back as a learner, and votes again', { timeout: 60_000 }, async () => {
    const members = async () => {
      const [, ...rows] = cells((await talosctl(0, 'etcd', 'members')).out)
      return new Set(rows.map(row => row[2]))
    }
    expect((await talosctl(2, 'etcd', 'leave')).code).toBe(0)
    expect(await members()).toEqual(new Set(['cp-1', 'cp-2']))
    expect(cells((await talosctl(2, 'service', 'etcd')).out).slice(2, 5)).toEqual([
      ['STATE', 'Finished'],
      ['HEALTH', 'Fail'],
      ['LAST HEALTH MESSAGE', 'service not running'],
    ])
    expect((await talosctl(2, 'reboot', '--wait', '--timeout', '50s')).code).toBe(0)
    await vi.waitFor(() => expect(machines.world.member(2).isLearner).toBe(false), 20_000)
    expect(await members()).toEqual(new Set(['cp-1', 'cp-2', 'cp-3']))
  })

  test('a snapshot is taken, all data are lost, and the cluster is recovered from it', { timeout: 90_000 }, async () => {
    const { world } = machines
    const taken = await talosctl(0, 'etcd', 'snapshot', join(home, 'db'))
    expect(taken).toMatchObject({
      code: 0,
      out: expect.stringMatching(/etcd snapshot saved to .*snapshot info: hash \w+, revision \d+/s) as string,
    })
    const size = (await readFile(join(home, 'db'))).length
    expect(size % 512).toBe(32)
    for (const index of [0, 1, 2]) world.loseEtcdData(index)
    await vi.waitFor(
      () => expect([0, 1, 2].map(i => world.machine(i).services.get('etcd')?.state)).toEqual(Array(3).fill('Preparing')),
      20_000,
    )
    await writeFile(join(home, 'bad'), Buffer.alloc(100_000, 'x'))
    expect(await talosctl(0, 'bootstrap', '--recover-from', join(home, 'bad'))).toMatchObject({ code: 1, err: 'invalid database\n' })
    const recovered = await talosctl(0, 'bootstrap', '--recover-from', join(home, 'db'))
    expect(recovered.err + recovered.out).toContain('recovering from snapshot')
    expect(recovered.code).toBe(0)
    await vi.waitFor(() => expect(world.etcd.members().filter(m => m.machine && !m.isLearner)).toHaveLength(3), 40_000)
    expect((await talosctl(1, 'bootstrap')).err).toContain('code = AlreadyExists desc = etcd data directory is not empty')
  })
})
