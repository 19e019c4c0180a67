// What talosctl 1.12 shows of the inside of simulated machines: processes, containers, sockets, control groups, files, counters. Beside each answer
// being there, the answers have to agree with each other and with the world.
import { mkdtemp, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Machines, startMachines } from '../../machines-on-the-wire.ts'
import { countInvocations, hasTalosctl, talosctl as run, talosctlOn, type Ran } from './talosctl.ts'

describe.skipIf(!hasTalosctl)('talosctl looks into machines', () => {
  countInvocations()
  let home: string
  let machines: Machines
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'talosctl-'))
    machines = await startMachines({
      ...{ seed: 9, controlPlanes: 3, workers: 1, talos: 'v1.12.5', kubernetes: 'v1.35.4', speed: 50, clusterName: 'home' },
      workloads: [{ name: 'shop', replicas: 2 }],
    })
    await writeFile(join(home, 'admin'), await machines.talosconfig())
  })
  afterAll(async () => {
    await machines.close()
    await rm(home, { recursive: true, force: true })
  })

  const at = (index: number): string => machines.address(index)
  const talosctl = (index: number, ...args: string[]): Promise<Ran> => run(home, ['-n', at(index), ...args])
  /** A printed table as rows by the names of its columns. */
  const table = (text: string): Record<string, string>[] => {
    const [head = '', ...lines] = text.trimEnd().split('\n')
    const names = head.split(/\s{2,}/)
    const starts = names.map((name, column) => (column === 0 ? 0 : head.indexOf(`  ${name}`, head.indexOf(names[column - 1]!)) + 2))
    return lines.map(line => Object.fromEntries(names.map((name, column) => [name, line.slice(starts[column], starts[column + 1]).trim()])))
  }
  const rowsOf = async (index: number, ...args: string[]) => {
    const ran = await talosctl(index, ...args)
    expect(ran).toMatchObject({ code: 0, err: '' })
    return table(ran.out)
  }
  const pidsOf = async (index: number) =>
    new Map((await rowsOf(index, 'processes')).map(({ PID = '', COMMAND = '' }) => [COMMAND.split(' ')[0]!, Number(PID)]))

  /** Each with what it has to print; the exit code is 0. */
  const facts: readonly (readonly [args: string, out: RegExp])[] = [
    ['memory', /TOTAL +USED +FREE[^]*8192/],
    ['mounts', /MOUNTED ON[^]*\/dev\/sda6[^]*\/var\n/],
    ['containers', /system +apid[^]*system +trustd/],
    ['containers -k', /kube-system\/kube-apiserver-cp-1 [^]*SANDBOX_READY[^]*kube-apiserver:v1\.35\.4[^]*CONTAINER_RUNNING/],
    ['stats', /MEMORY\(MB\)[^]*apid +\d+\.\d\d +\d+/],
    ['stats -k', /kube-scheduler-cp-1 +0\.00 +0\n[^]*kube-scheduler:[\da-f]{12} +\d\d\.\d\d +\d+\n/],
    ['processes --sort cpu', /\/usr\/local\/bin\/kube-apiserver/],
    ['netstat', /127\.[\d.]+:2380 +ESTABLISHED/],
    ['netstat -l -t -4', /127\.0\.0\.1:10248 +0\.0\.0\.0:\* +LISTEN/],
    ['netstat -l -x -p -o', /50000 [^]*LISTEN [^]*\/apid +off \(0\.00\/0\/0\)/],
    ['cgroups --preset memory', /├──init [^]*│ +├──kube-system\/kube-apiserver-cp-1 [^]*sandbox[^]*podruntime[^]*etcd[^]*system[^]*trustd/],
    ['cgroups --preset cpu', /CpuWeight[^]*init +79 /],
    ['cgroups --preset io', /sda: .*iB\/.*iB/],
    ['cgroups --preset process', /trustd .*\[trustd\]/],
    ['cgroups --preset psi', /IoPsi10/],
    ['cgroups --preset swap', /SwapCurrent/],
    ['cgroups --preset cpuset', /0-3/],
    ['usage /var', /SIZE +NAME[^]* \.\n/],
    ['usage -a -d 4 /var/lib', /64000000 +etcd\/member\/wal\/\S+\.wal\n/],
    ['list -l /sys/dev/block', /Lrwxrwxrwx[^]*8:0 -> .*\/sda\n/],
    ['list -r -t f /etc', /kubernetes\/kubelet\.yaml/],
    ['list -t d /', / var\n/],
    ['read /proc/uptime', /^\d+\.\d\d \d+\.\d\d\n$/],
    ['read /proc/meminfo', /^MemTotal: +8388608 kB\n/],
    ['read /proc/1/comm', /^init\n$/],
    ['read /proc/bus/pci/devices', /80861237/],
    ['read /system/state/config.yaml', /^version: v1alpha1\n/],
    ['dmesg', /: kern: {2}notice: \[.*Z\]: Linux version 6\.18\.15-talos/],
    ['logs -k kube-system/kube-scheduler-cp-1:kube-scheduler', /^$/],
    ['logs controller-runtime', /^$/],
    ['image list', /registry\.k8s\.io\/kube-apiserver:v1\.35\.4 +sha256:[\da-f]{64}/],
    ['image list --namespace system', /ghcr\.io\/siderolabs\/kubelet:v1\.35\.4[^]*registry\.k8s\.io\/etcd:v3\.6\.8/],
    ['time', /NTP-SERVER/],
    ['inspect dependencies', /^digraph/],
    ['inspect dependencies --with-resources', /machine\b/],
  ]
  test.for(facts)('%s', { timeout: 30_000 }, async ([args, out]) => {
    const ran = await talosctl(0, ...args.split(' '))
    // Each column is followed by blanks.
    expect(ran.out.replaceAll(/ +$/gm, '')).toMatch(out)
    expect(ran).toMatchObject({ code: 0, err: '' })
  })

  /** Each with what it is refused with. */
  const refused: readonly (readonly [args: string, err: string])[] = [
    ['usage /nosuch', 'lstat /nosuch: no such file or directory'],
    ['list /nosuch', 'lstat /nosuch: no such file or directory'],
    ['copy /nosuch nothing', 'lstat /nosuch: no such file or directory'],
    ['copy etc nothing', 'path is not absolute etc'],
    ['restart nosuch', 'container "nosuch" not found'],
    ['restart -k kube-system/nosuch', 'container "kube-system/nosuch" not found'],
    ['restart apid', 'code = Unimplemented desc = the simulation cannot restart apid'],
    ['logs -k kube-system/nosuch', 'container "kube-system/nosuch" not found'],
    ['pcap -i nosuch', 'code = NotFound desc = interface "nosuch" not found'],
    ['pcap -i eth0', 'code = Unimplemented desc = the simulation has no packets to capture'],
    ['netstat kube-system/nosuch', 'pod kube-system/nosuch not found'],
  ]
  test.for(refused)('%s', { timeout: 30_000 }, async ([args, err]) => {
    const ran = await talosctl(0, ...args.split(' '))
    expect(ran.code).not.toBe(0)
    expect(ran.err + ran.out).toContain(err)
  })

  test('containers are the pods that Kubernetes has on the machine, and each is a process', { timeout: 30_000 }, async () => {
    const pods = machines.world.store.list('pods').items.filter(pod => (pod.spec as { nodeName?: string }).nodeName === 'wk-1')
    expect(pods.map(pod => pod.metadata.name.replace(/^(kube-\w+|shop).*/, '$1')).toSorted()).toEqual([
      'kube-flannel',
      'kube-proxy',
      'shop',
      'shop',
    ])
    const containers = await rowsOf(3, 'containers', '-k')
    const sandboxes = containers.filter(({ STATUS }) => STATUS === 'SANDBOX_READY').map(({ ID }) => ID)
    expect(new Set(sandboxes)).toEqual(new Set(pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)))
    const running = new Set((await pidsOf(3)).values())
    const all = (await rowsOf(3, 'processes')).map(({ PID }) => PID)
    expect(containers.map(({ PID }) => PID).filter(pid => !all.includes(pid))).toEqual([])
    expect(all).toHaveLength(new Set(all).size)
    expect(running.has(1)).toBe(true)
  })

  test('sockets belong to processes, and each connection has two ends', { timeout: 60_000 }, async () => {
    const sockets = await Promise.all([0, 1, 2, 3].map(index => rowsOf(index, 'netstat', '-a', '-p')))
    const processes = await Promise.all([0, 1, 2, 3].map(index => rowsOf(index, 'processes')))
    for (const [index, rows] of sockets.entries()) {
      const pids = processes[index]!.map(({ PID }) => PID)
      expect(rows.map(row => row['PID/Program name']!.split('/')[0]).filter(pid => !pids.includes(pid!))).toEqual([])
    }
    const ends = sockets.flat().filter(({ State }) => State === 'ESTABLISHED')
    const pairs = ends.map(row => `${row['Local Address']} ${row['Foreign Address']}`)
    // Three members talk to each other in pairs and both ways, each API server to its member, each kubelet to an API server.
    expect(pairs).toHaveLength(2 * (6 + 3 + 4))
    const others = pairs.map(pair => pair.split(' ').toReversed().join(' '))
    expect(pairs.toSorted()).toEqual(others.toSorted())
    const listening = sockets[3]!.filter(({ State }) => State === 'LISTEN').map(row => row['Local Address'])
    expect(listening).toEqual(expect.arrayContaining([':::50000', ':::10250', '127.0.0.1:10248']))
    expect(listening.filter(one => /:(2379|2380|6443|50001)$/.test(one!))).toEqual([])
  })

  test('a pod has a network of its own, and none of its sockets are the machine’s', { timeout: 30_000 }, async () => {
    const shop = (await rowsOf(3, 'containers', '-k'))
      .map(({ ID = '' }) => ID)
      .find(id => id.startsWith('default/shop') && !id.includes(':'))!
    expect(await talosctl(3, 'netstat', '-a', shop)).toMatchObject({ code: 0, out: '' })
  })

  test('control groups add up to what processes hold', { timeout: 30_000 }, async () => {
    const ran = await talosctl(0, 'cgroups', '--preset', 'memory')
    const sizes = new Map(ran.out.split('\n').map(line => [/[.\w/-]+/.exec(line)?.[0], /(\d+) (MiB|KiB|B)/.exec(line)] as const))
    const mib = (name: string) => Number(sizes.get(name)?.[1])
    expect(Math.abs(mib('podruntime') - mib('etcd') - mib('kubelet') - mib('runtime'))).toBeLessThan(130)
    const [apiserver] = (await rowsOf(0, 'processes')).filter(({ COMMAND }) => COMMAND?.includes('kube-apiserver'))
    const held = (Number(apiserver!['RESMEM']!.split(' ')[0]) * 1e6) / 1024 ** 2
    expect(Math.abs(mib('kube-apiserver') - held)).toBeLessThan(held * 0.3)
  })

  test('a service that restarts is another process', { timeout: 60_000 }, async () => {
    const before = await pidsOf(1)
    expect((await talosctl(1, 'service', 'kubelet', 'restart')).code).toBe(0)
    expect(await talosctl(1, 'restart', 'trustd')).toMatchObject({ code: 0, err: '' })
    await vi.waitFor(
      () => expect(machines.world.machine(1).services.get('kubelet')).toMatchObject({ state: 'Running', health: 'healthy' }),
      20_000,
    )
    const after = await pidsOf(1)
    const changed = [...before].filter(([name, pid]) => after.get(name) !== pid).map(([name]) => name)
    expect(
      changed.filter(name => ['/trustd', '/usr/local/bin/kubelet', '/apid', '/usr/local/bin/etcd', '/sbin/init'].includes(name)).toSorted(),
    ).toEqual(['/trustd', '/usr/local/bin/kubelet'])
  })

  test('a container of a pod is restarted alone', { timeout: 30_000 }, async () => {
    const name = (row: Record<string, string>) => row['ID']!.replace(/:[\da-f]{12}$/, '').replace('└─ ', '')
    const before = (await rowsOf(3, 'containers', '-k')).filter(row => row['ID']!.includes('shop'))
    const chosen = before.find(row => row['ID']!.includes(':'))!
    // The API tells whole seconds of starts.
    await vi.waitFor(() => expect(machines.world.schedule.now() % 60_000).toBeGreaterThan(2000), 5000)
    expect((await talosctl(3, 'restart', '-k', chosen['ID']!.replace('└─ ', ''))).err).toBe('')
    const after = (await rowsOf(3, 'containers', '-k')).filter(row => row['ID']!.includes('shop'))
    expect(after.map(name)).toEqual(before.map(name))
    const changed = after.filter((row, index) => row['PID'] !== before[index]!['PID'])
    expect(changed.map(name)).toEqual([name(chosen)])
    const [namespace, pod] = name(chosen).split(':')[0]!.split('/')
    expect(machines.world.store.get('pods', namespace!, pod!)?.status).toMatchObject({ containerStatuses: [{ restartCount: 1 }] })
  })

  test('counters only grow', { timeout: 30_000 }, async () => {
    const look = async () => (await rowsOf(2, 'stats')).map(row => Number(row['CPU']))
    const first = await look()
    await vi.waitFor(async () => expect((await look()).every((value, index) => value > first[index]!)).toBe(true), 10_000)
  })

  test('copy brings folders, links and the database of etcd', { timeout: 30_000 }, async () => {
    Object.assign(machines.world.member(0), { dbSize: 3_000_000 })
    expect(await talosctl(0, 'copy', '/sys/dev', join(home, 'dev'))).toMatchObject({ code: 0, err: '' })
    expect(await readlink(join(home, 'dev', 'block', '8:0'))).toMatch(/\/sda$/)
    expect(await talosctl(0, 'copy', '/var/lib/etcd', join(home, 'etcd'))).toMatchObject({ code: 0, err: '' })
    expect((await stat(join(home, 'etcd', 'member', 'snap', 'db'))).size).toBe(Math.ceil(3_000_000 / 4096) * 4096)
    expect(await talosctl(0, 'copy', '/sys/fs/cgroup/kubepods', join(home, 'pods'))).toMatchObject({ code: 0, err: '' })
    expect(await readFile(join(home, 'pods', 'memory.current'), 'utf8')).toMatch(/^\d{8,}\n$/)
  })

  test('dmesg follows', { timeout: 30_000 }, async () => {
    const watching = talosctlOn(home, ['-n', at(1), 'dmesg', '-f'])
    await vi.waitFor(() => expect(watching.seen()).toContain('Linux version'), 10_000)
    expect((await talosctl(1, 'service', 'kubelet', 'restart')).code).toBe(0)
    await vi.waitFor(() => expect(watching.seen()).toMatch(/user: warning: \[.*\]: \[talos\] .*kubelet/), 10_000)
    await watching.stop()
  })

  test('a support bundle is complete', { timeout: 90_000 }, async () => {
    const bundle = join(home, 'support.zip')
    const ran = await run(home, ['-n', `${at(0)},${at(3)}`, 'support', '-v', '-O', bundle])
    expect(ran.code).toBe(0)
    expect(ran.err).toContain(`Support bundle is written to ${bundle}\n`)
    expect(ran.err).not.toContain('Processed with errors')
    const names = new Set((await readFile(bundle)).toString('latin1').match(/127\.[\d.]+\/[\w./:-]+?(?=PK|\0|[^\w./:-])/g))
    for (const index of [0, 3])
      for (const file of ['dmesg.log', 'dependencies.dot', 'mounts', 'devices', 'io', 'processes', 'summary', 'service-logs/kubelet.state'])
        expect(
          [...names].some(name => name.startsWith(`${at(index)}/${file}`)),
          file,
        ).toBe(true)
  })

  test('what was counted begins anew with a boot', { timeout: 60_000 }, async () => {
    const uptime = async () => Number((await talosctl(3, 'read', '/proc/uptime')).out.split(' ')[0])
    const before = await uptime()
    const pids = await pidsOf(3)
    expect((await talosctl(3, 'reboot', '--wait', '--timeout', '50s')).code).toBe(0)
    expect(await uptime()).toBeLessThan(Math.min(before, 36_000))
    await vi.waitFor(() => expect(machines.world.isUp(machines.world.machine(3))).toBe(true), 20_000)
    const after = await pidsOf(3)
    expect(after.get('/sbin/init')).toBe(1)
    expect(after.get('/usr/local/bin/kubelet')).not.toBe(pids.get('/usr/local/bin/kubelet'))
  })
})
