// The real talosctl judges the simulated machines. What it prints is held against what it printed for real machines of Talos 1.12.1.
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createTalosCa } from '../../../src/adapters/pki/talos-pki.ts'
import { type Machines, startMachines } from '../../machines-on-the-wire.ts'
import { realPart } from '../../real/parts.ts'

const part = await realPart('talosctl')
const program = 'path' in part ? part.path : ''

const VERSION = 'v1.12.5'
const NEWER = 'ghcr.io/siderolabs/installer:v1.12.6'

let home: string
let machines: Machines
const configs: Record<string, string> = {}

type Ran = { readonly code: number; readonly out: string; readonly err: string }

/** Addresses as if the machines stood in 10.5.0.0/24, control planes from .11 on. */
const renamed = (text: string): string => text.replaceAll(machines.address(0).replace(/\.\d+$/, ''), '10.5.0')

function talosctl(...args: string[]): Promise<Ran> {
  return as('admin', ...args)
}
function as(who: string, ...args: string[]): Promise<Ran> {
  const environment = { ...process.env, HOME: home, TALOSCONFIG: configs[who]! }
  return new Promise(resolve => {
    execFile(program, args, { env: environment, timeout: 60_000 }, (error, out, err) => {
      resolve({ code: error ? Number(error.code ?? -1) : 0, out: renamed(out), err: renamed(err) })
    })
  })
}

/** A printed table as rows of cells, whatever the widths. */
const rows = (text: string): string[][] =>
  text
    .trimEnd()
    .split('\n')
    .map(line => line.trim().split(/\s{2,}/))
const withoutTimes = (text: string): string => text.replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, 'TIME')
const node = (index: number): string => machines.address(index)

async function startCluster(speed: number): Promise<void> {
  home = await mkdtemp(join(tmpdir(), 'talosctl-'))
  machines = await startMachines({
    seed: 5,
    controlPlanes: 3,
    workers: 2,
    talos: VERSION,
    kubernetes: 'v1.34.2',
    speed,
    clusterName: 'home',
  })
  const write = async (who: string, text: string) => {
    configs[who] = join(home, who)
    await writeFile(configs[who], text)
  }
  await write('admin', await machines.talosconfig())
  await write('reader', await machines.talosconfig({ roles: ['os:reader'] }))
  await write('operator', await machines.talosconfig({ roles: ['os:operator'] }))
  await write('foreign', await machines.talosconfig({ signedBy: await createTalosCa({ from: new Date(Date.now() - 3_600_000) }) }))
  await write('worker', await machines.talosconfig({ endpoints: [machines.address(3)] }))
}
async function stopCluster(): Promise<void> {
  await machines.close()
  await rm(home, { recursive: true, force: true })
}

describe.skipIf('missing' in part)('talosctl looks at machines', () => {
  beforeAll(() => startCluster(1))
  afterAll(stopCluster)

  test('version, of one machine and of several', async () => {
    const server = (address: string) => [
      ...[
        ['NODE:', address],
        ['Tag:', VERSION],
        ['SHA:', 'simulated'],
        ['Built:'],
        ['Go version:', 'none'],
        ['OS/Arch:', 'linux/amd64'],
        ['Enabled:', 'RBAC'],
      ],
    ]
    const one = await talosctl('-n', node(0), 'version')
    expect(one.code).toBe(0)
    expect(rows(one.out.split('Server:\n')[1]!)).toEqual(server('10.5.0.11'))
    const two = await talosctl('-n', `${node(0)},${node(3)}`, 'version')
    const parts = two.out.split('Server:\n')[1]!.split(/(?=\tNODE:)/)
    expect(new Set(parts.map(rows))).toEqual(new Set([server('10.5.0.11'), server('10.5.0.14')]))
  })

  test('get members', async () => {
    const { out, code } = await talosctl('-n', node(0), 'get', 'members')
    expect(code).toBe(0)
    const member = (name: string, type: string, address: string) => [
      '10.5.0.11',
      'cluster',
      'Member',
      name,
      '1',
      name,
      type,
      `Talos (${VERSION})`,
      `["${address}"]`,
    ]
    expect(rows(out)).toEqual([
      ['NODE', 'NAMESPACE', 'TYPE', 'ID', 'VERSION', 'HOSTNAME', 'MACHINE TYPE', 'OS', 'ADDRESSES'],
      member('cp-1', 'controlplane', '10.5.0.11'),
      member('cp-2', 'controlplane', '10.5.0.12'),
      member('cp-3', 'controlplane', '10.5.0.13'),
      member('wk-1', 'worker', '10.5.0.14'),
      member('wk-2', 'worker', '10.5.0.15'),
    ])
    const single = await talosctl('-n', node(3), 'get', 'member', 'cp-2', '-o', 'yaml')
    expect(withoutTimes(single.out)).toBe(
      [
        ...[
          'node: 10.5.0.14',
          'metadata:',
          '    namespace: cluster',
          '    type: Members.cluster.talos.dev',
          '    id: cp-2',
          '    version: 1',
        ],
        ...['    owner: cluster.MemberController', '    phase: running', '    created: TIME', '    updated: TIME', 'spec:'],
        ...[
          `    nodeId: ${machines.world.machine(1).nodeID}`,
          '    addresses:',
          '        - 10.5.0.12',
          '    hostname: cp-2',
          '    machineType: controlplane',
        ],
        ...[`    operatingSystem: Talos (${VERSION})`, '    controlPlane:', '        port: 6443', ''],
      ].join('\n'),
    )
  })

  test('get machinestatus as table, YAML and JSON', async () => {
    const table = await talosctl('-n', node(0), 'get', 'machinestatus')
    expect(rows(table.out)).toEqual([
      ['NODE', 'NAMESPACE', 'TYPE', 'ID', 'VERSION', 'STAGE', 'READY'],
      ['10.5.0.11', 'runtime', 'MachineStatus', 'machine', '1', 'running', 'true'],
    ])
    const yaml = await talosctl('-n', node(0), 'get', 'machinestatus', '-o', 'yaml')
    expect(withoutTimes(yaml.out)).toBe(
      [
        ...[
          'node: 10.5.0.11',
          'metadata:',
          '    namespace: runtime',
          '    type: MachineStatuses.runtime.talos.dev',
          '    id: machine',
          '    version: 1',
        ],
        ...['    owner: runtime.MachineStatusController', '    phase: running', '    created: TIME', '    updated: TIME', 'spec:'],
        ...['    stage: running', '    status:', '        ready: true', '        unmetConditions: []', ''],
      ].join('\n'),
    )
    const json = await talosctl('-n', node(0), 'get', 'ms', '-o', 'json')
    expect(JSON.parse(withoutTimes(json.out))).toEqual({
      metadata: {
        ...{ created: 'TIME', id: 'machine', namespace: 'runtime', owner: 'runtime.MachineStatusController', phase: 'running' },
        ...{ type: 'MachineStatuses.runtime.talos.dev', updated: 'TIME', version: 1 },
      },
      node: '10.5.0.11',
      spec: { stage: 'running', status: { ready: true, unmetConditions: [] } },
    })
  })

  test('get services, and what types there are', { timeout: 30_000 }, async () => {
    const { out } = await talosctl('-n', node(1), 'get', 'services')
    const services = rows(out).map(row => row.slice(3).join(' '))
    expect(services[0]).toBe('ID VERSION RUNNING HEALTHY HEALTH UNKNOWN')
    for (const id of ['apid', 'containerd', 'cri', 'etcd', 'kubelet', 'machined', 'trustd'])
      expect(services).toContain(`${id} 1 true true false`)
    expect(services).toContain('dashboard 1 true false true')

    const rd = await talosctl('-n', node(0), 'get', 'rd')
    const types = Object.fromEntries(rows(rd.out).map(row => [row[3], row[5]]))
    expect(types).toMatchObject({
      ID: 'ALIASES',
      'etcdmembers.etcd.talos.dev': 'etcdmember em ems',
      'extensionstatuses.runtime.talos.dev': 'extensions extensionstatus es',
      'hostnamestatuses.net.talos.dev': 'hostname hostnamestatus hs',
      'imagecacheconfigs.cri.talos.dev': 'imagecacheconfig icc iccs',
      'machineconfigs.config.talos.dev': 'machineconfig mc mcs',
      'machinestatuses.runtime.talos.dev': 'machinestatus ms',
      'members.cluster.talos.dev': 'member',
      'metakeys.runtime.talos.dev': 'meta metakey mk mks',
      'namespaces.meta.cosi.dev': 'ns namespace',
      'networkstatuses.net.talos.dev': 'netstatus netstatuses networkstatus ns',
      'nodeips.kubernetes.talos.dev': 'nodeip nip nips',
      'resourcedefinitions.meta.cosi.dev': 'api-resources resourcedefinition rd rds',
      'services.v1alpha1.talos.dev': 'svc service',
      'staticpodstatuses.kubernetes.talos.dev': 'podstatus staticpodstatus sps',
      'systeminformations.hardware.talos.dev': 'systeminformation systeminformation si sis',
    })
    const ids = Object.keys(types).filter(id => id !== 'ID')
    const listed = await Promise.all(ids.map(id => talosctl('-n', node(0), 'get', id)))
    expect(listed.map(({ code, err }, at) => `${ids[at]} ${code} ${err}`)).toEqual(ids.map(id => `${id} 0 `))
  })

  test('small resources', async () => {
    const spec = async (type: string) => (await talosctl('-n', node(0), 'get', type, '-o', 'yaml')).out.split('\nspec:')[1]
    expect(await spec('versions')).toBe(`\n    version: ${VERSION}\n`)
    expect(await spec('machinetype')).toBe(' controlplane\n')
    expect(await spec('etcdmembers')).toBe(`\n    memberID: ${machines.world.member(0).id}\n`)
    expect(await spec('nodenames')).toBe('\n    nodename: cp-1\n    hostnameVersion: "1"\n    skipNodeRegistration: false\n')
    expect(await spec('networkstatus')).toBe(
      '\n    addressReady: true\n    connectivityReady: true\n    hostnameReady: true\n    etcFilesReady: true\n',
    )
    expect(await spec('systeminformation')).toContain(`uuid: ${machines.world.machine(0).uuid}\n`)
    expect(await spec('machineconfig')).toContain(' |\n    version: v1alpha1\n')
    const pods = await talosctl('-n', node(0), 'get', 'staticpodstatus')
    expect(rows(pods.out).map(row => [row[3], row[5]])).toEqual([
      ['ID', 'READY'],
      ['kube-system/kube-apiserver-cp-1', 'True'],
      ['kube-system/kube-controller-manager-cp-1', 'True'],
      ['kube-system/kube-scheduler-cp-1', 'True'],
    ])
    expect((await talosctl('-n', node(3), 'get', 'staticpodstatus')).out.trim().split('\n')).toHaveLength(1)
  })

  test('what is not there', async () => {
    expect(await talosctl('-n', node(0), 'get', 'nosuch')).toMatchObject({
      code: 1,
      err: 'rpc error: code = NotFound desc = resource "nosuch" is not registered\n',
    })
    expect((await talosctl('-n', node(0), 'get', 'bootids')).err).toContain('resource "bootids" is not registered')
    expect((await talosctl('-n', node(0), 'get', 'members', 'nosuch')).err).toContain(
      "rpc error: code = NotFound desc = resource Members.cluster.talos.dev(cluster/nosuch@undefined) doesn't exist",
    )
    expect((await talosctl('-n', node(0), 'get', 'members', '--namespace', 'nosuch')).err).toContain(
      'code = PermissionDenied desc = namespace "nosuch" is not supported',
    )
    expect(await talosctl('-n', node(0), 'service', 'nosuch')).toMatchObject({
      code: 1,
      err: 'service "nosuch" is not registered on any nodes\n',
    })
    expect((await talosctl('-n', node(0), 'read', '/nosuch')).err).toBe(
      'error reading: rpc error: code = NotFound desc = stat /nosuch: no such file or directory\n',
    )
    expect((await talosctl('-n', node(0), 'logs', 'nosuch')).err).toContain('log "nosuch" was not registered')
    expect((await talosctl('-n', node(0), 'rollback')).err).toContain('code = Unimplemented')
  })

  test('services', async () => {
    const list = await talosctl('-n', `${node(0)},${node(3)}`, 'services')
    const services = rows(list.out)
    expect(services[0]).toEqual(['NODE', 'SERVICE', 'STATE', 'HEALTH', 'LAST CHANGE', 'LAST EVENT'])
    expect(services.filter(row => row[1] === 'etcd')).toEqual([
      ['10.5.0.11', 'etcd', 'Running', 'OK', expect.stringMatching(/ago$/) as string, 'Health check successful'],
    ])
    expect(services.filter(row => row[1] === 'kubelet').map(row => row[0])).toEqual(['10.5.0.11', '10.5.0.14'])
    const one = await talosctl('-n', node(0), 'service', 'etcd')
    expect(rows(one.out).slice(0, 4)).toEqual([
      ['NODE', '10.5.0.11'],
      ['ID', 'etcd'],
      ['STATE', 'Running'],
      ['HEALTH', 'OK'],
    ])
    expect(one.out).toMatch(/EVENTS {3}\[Running\]: Health check successful \(\S+ ago\)\n/)
  })

  test('etcd members, status and alarms', async () => {
    const members = await talosctl('-n', node(0), 'etcd', 'members')
    expect(rows(members.out)).toEqual([
      ['NODE', 'ID', 'HOSTNAME', 'PEER URLS', 'CLIENT URLS', 'LEARNER'],
      ...[0, 1, 2].map(i => [
        '10.5.0.11',
        machines.world.member(i).id,
        `cp-${i + 1}`,
        `https://10.5.0.1${i + 1}:2380`,
        `https://10.5.0.1${i + 1}:2379`,
        'false',
      ]),
    ])
    const status = await talosctl('-n', [0, 1, 2].map(node).join(','), 'etcd', 'status')
    const [head, ...each] = rows(status.out)
    expect(head).toEqual([
      'NODE',
      'MEMBER',
      'DB SIZE',
      'IN USE',
      'LEADER',
      'RAFT INDEX',
      'RAFT TERM',
      'RAFT APPLIED INDEX',
      'LEARNER',
      'PROTOCOL',
      'STORAGE',
      'ERRORS',
    ])
    expect(new Set(each.map(row => [row[0], row[1], row[4], row[8], row[9]]))).toEqual(
      new Set([0, 1, 2].map(i => [`10.5.0.1${i + 1}`, machines.world.member(i).id, machines.world.etcd.leader(), 'false', '3.6.8'])),
    )
    expect(await talosctl('-n', node(0), 'etcd', 'alarm', 'list')).toEqual({ code: 0, out: '', err: '' })
    expect((await talosctl('-n', node(3), 'etcd', 'members')).err).toContain(
      '* 10.5.0.14: rpc error: code = Unimplemented desc = member list is only available on control plane nodes',
    )
    const was = machines.world.etcd.leader()
    const leading = [0, 1, 2].find(i => machines.world.member(i).id === was)!
    expect(await talosctl('-n', node(leading), 'etcd', 'forfeit-leadership')).toEqual({ code: 0, out: '', err: '' })
    expect(machines.world.etcd.leader()).not.toBe(was)
  })

  test('who may do what, and where to', async () => {
    const denied = '* 10.5.0.11: rpc error: code = PermissionDenied desc = not authorized'
    expect(await as('reader', '-n', node(0), 'reboot', '--wait=false')).toMatchObject({
      code: 1,
      err: expect.stringContaining(denied) as string,
    })
    expect(machines.world.machine(0).stage).toBe('running')
    const secret = await as('reader', '-n', node(0), 'get', 'machineconfig')
    expect(secret.code).toBe(1)
    expect(secret.out).toBe('NODE   NAMESPACE   TYPE   ID   VERSION\n')
    expect(secret.err).toContain('rpc error: code = PermissionDenied desc = not authorized')
    expect((await as('reader', '-n', node(0), 'get', 'members')).code).toBe(0)
    const patch = '{"machine":{"nodeLabels":{"a":"b"}}}'
    expect((await as('operator', '-n', node(0), 'patch', 'mc', '-p', patch)).err).toContain(
      '10.5.0.11: rpc error: code = PermissionDenied desc = not authorized',
    )
    expect((await as('foreign', '-n', node(0), 'version')).err).toContain('x509: certificate signed by unknown authority')
    expect(await as('worker', '-n', node(3), 'version')).toMatchObject({ code: 0 })
    expect((await as('worker', '-n', node(0), 'version')).err).toBe(
      'error getting version: rpc error: code = PermissionDenied desc = no request forwarding\n',
    )
  })

  test('a machine that does not exist beside one that does', async () => {
    const nobody = node(0).replace(/\.\d+$/, '.99')
    const both = await talosctl('-n', `${node(0)},${nobody}`, 'version')
    expect(both.code).toBe(0)
    const text = both.out + both.err
    expect(text).toContain('WARNING: 1 error occurred')
    expect(text).toContain('* 10.5.0.99: rpc error: code = Unavailable desc = connection error')
    expect(both.out).toMatch(/NODE:\s+10\.5\.0\.11/)
    expect((await talosctl('-n', 'nosuch.example', 'version')).err).toContain('code = Unavailable desc = dns: A record lookup error')
    const endpoints = await talosctl('-e', `${nobody},${node(1)}`, '-n', node(1), 'version')
    expect(endpoints.code).toBe(0)
  })
})

describe.skipIf('missing' in part)('talosctl acts on machines', () => {
  beforeAll(() => startCluster(60))
  afterAll(stopCluster)

  const bootID = async (index: number) => (await talosctl('-n', node(index), 'read', '/proc/sys/kernel/random/boot_id')).out

  test('patch sets the install image without a reboot', async () => {
    const image = (name: string) => JSON.stringify({ machine: { install: { image: name } } })
    const dry = await talosctl('-n', node(0), 'patch', 'mc', '--dry-run', '-p', image(NEWER))
    expect(dry.err).toContain('Applied configuration without a reboot (skipped in dry-run).')
    const real = await talosctl('-n', node(0), 'patch', 'mc', '-p', image(NEWER))
    expect(real).toMatchObject({ code: 0, err: expect.stringContaining('Applied configuration without a reboot') as string })
    expect(machines.world.machine(0).config).toContain(NEWER)
    const { out } = await talosctl('-n', node(0), 'get', 'machineconfig')
    expect(rows(out).map(row => [row[3], row[4]])).toEqual([
      ['ID', 'VERSION'],
      ['persistent', '2'],
      ['v1alpha1', '2'],
    ])
    expect((await talosctl('-n', node(0), 'patch', 'mc', '-p', image(NEWER))).err).toContain('Apply was skipped: no changes detected.')
  })

  test('a watch shows a reboot, which talosctl waits for', { timeout: 60_000 }, async () => {
    const before = await bootID(4)
    const watching = spawn(program, ['-n', node(4), 'get', 'machinestatus', '-w'], {
      env: { ...process.env, HOME: home, TALOSCONFIG: configs['admin'] },
    })
    let seen = ''
    watching.stdout.on('data', (chunk: Buffer) => (seen += chunk.toString()))
    await vi.waitFor(() => expect(seen).toContain('running'), 10_000)
    const rebooted = await talosctl('-n', node(4), 'reboot', '--wait', '--timeout', '50s')
    watching.kill('SIGINT')
    expect(rebooted.err).toContain('"10.5.0.15": events check condition met')
    expect(rebooted).toMatchObject({ code: 0, err: expect.stringContaining('"10.5.0.15": post check passed') as string })
    const [head, first, second] = rows(renamed(seen))
    expect(head).toEqual(['NODE', '*', 'NAMESPACE', 'TYPE', 'ID', 'VERSION', 'STAGE', 'READY'])
    expect(first).toEqual(['10.5.0.15', '+', 'runtime', 'MachineStatus', 'machine', '1', 'running', 'true'])
    // A change has a blank where what is new has a plus.
    expect(second).toEqual(['10.5.0.15', 'runtime', 'MachineStatus', 'machine', '2', 'rebooting', 'true'])
    expect(await bootID(4)).not.toBe(before)
  })

  test('upgrade, the way of before 1.13, end to end', { timeout: 90_000 }, async () => {
    const missing = await talosctl('-n', node(3), 'upgrade', '--image', 'ghcr.io/siderolabs/installer:v1.12.99', '--timeout', '50s')
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining('error validating installer image') as string })
    expect(machines.world.machine(3).stage).toBe('running')

    const upgraded = await talosctl('-n', node(3), 'upgrade', '--image', NEWER, '--wait', '--timeout', '55s')
    expect(upgraded.err).toContain('phase: drain action: START')
    expect(upgraded.err).toContain('task: upgrade action: STOP')
    expect(upgraded).toMatchObject({ code: 0, err: expect.stringContaining('"10.5.0.14": post check passed') as string })
    const { out } = await talosctl('-n', node(3), 'version')
    expect(out).toMatch(/Tag:\s+v1\.12\.6/)
    const members = rows((await talosctl('-n', node(0), 'get', 'members')).out)
    expect(members.filter(row => row[3] === 'wk-1').map(row => row[7])).toEqual(['Talos (v1.12.6)'])
  })

  test('image pull, dmesg, logs and events', async () => {
    expect(await talosctl('-n', node(1), 'image', 'pull', NEWER)).toEqual({ code: 0, out: '', err: '' })
    expect((await talosctl('-n', node(1), 'image', 'pull', 'ghcr.io/siderolabs/installer:v1.12.99')).err).toContain(
      '* 10.5.0.12: rpc error: code = NotFound desc = ',
    )
    expect((await talosctl('-n', node(1), 'dmesg')).out).toMatch(/^10\.5\.0\.12: user: warning: \[\S+Z\]: \[talos\] pulled: /m)
    expect((await talosctl('-n', node(1), 'logs', 'machined')).out).toContain('10.5.0.12: [talos] ')
    const events = spawn(program, ['-n', node(1), 'events', '--tail', '-1'], {
      env: { ...process.env, HOME: home, TALOSCONFIG: configs['admin'] },
    })
    let seen = ''
    events.stdout.on('data', (chunk: Buffer) => (seen += chunk.toString()))
    await vi.waitFor(() => expect(seen).toContain('machine.MachineStatusEvent'), 10_000)
    events.kill('SIGINT')
  })
})
