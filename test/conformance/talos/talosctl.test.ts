// The real talosctl and what only simulated machines do: upgrades, reboots, and what containers have not. What it prints for both kinds of machines
// is compared in recorded.test.ts.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Machines, startMachines } from '../../machines-on-the-wire.ts'
import { countInvocations, hasTalosctl, type Ran, talosctl as run, talosctlOn } from './talosctl.ts'

const VERSION = 'v1.12.5'
const NEWER = 'ghcr.io/siderolabs/installer:v1.12.6'

let home: string
let machines: Machines

countInvocations()

/** Addresses as if the machines stood in 10.5.0.0/24, control planes from .11 on. */
const renamed = (text: string): string => text.replaceAll(machines.address(0).replace(/\.\d+$/, ''), '10.5.0')

async function talosctl(...args: string[]): Promise<Ran> {
  const { code, out, err } = await run(home, args)
  return { code, out: renamed(out), err: renamed(err) }
}

/** A printed table as rows of cells, whatever the widths. */
const rows = (text: string): string[][] =>
  text
    .trimEnd()
    .split('\n')
    .map(line => line.trim().split(/\s{2,}/))
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
  await writeFile(join(home, 'admin'), await machines.talosconfig())
}
async function stopCluster(): Promise<void> {
  await machines.close()
  await rm(home, { recursive: true, force: true })
}

describe.skipIf(!hasTalosctl)('talosctl looks at machines', () => {
  beforeAll(() => startCluster(1))
  afterAll(stopCluster)

  test('every type there is: as a table, as YAML, as JSON, and watched', { timeout: 240_000 }, async () => {
    const { out: definitions } = await talosctl('-n', node(0), 'get', 'rd')
    const [, ...types] = rows(definitions).map(row => row[3]!)
    expect(types).toContain('systeminformations.hardware.talos.dev')
    const count = (text: string, part: RegExp): number => text.match(part)?.length ?? 0
    for (const type of types) {
      const watching = talosctlOn(home, ['-n', node(0), 'get', type, '--watch'])
      const forms = [[], ['-o', 'yaml'], ['-o', 'json']]
      const answers = await Promise.all(forms.map(more => talosctl('-n', node(0), 'get', type, ...more)))
      expect(answers.map(({ code, err }) => `${type} ${code} ${err}`)).toEqual(forms.map(() => `${type} 0 `))
      const [table, yaml, json] = answers.map(({ out }) => out) as [string, string, string]
      const there = rows(table).length - 1
      expect([type, count(yaml, /^metadata:$/gm), count(json, /^ {4}"metadata": \{$/gm)]).toEqual([type, there, there])
      await vi.waitFor(() => expect(rows(watching.seen()).length).toBeGreaterThan(there), 10_000)
      await watching.stop()
    }
  })

  test('what a container has not: hardware, and services for it', async () => {
    const spec = async (type: string) => (await talosctl('-n', node(0), 'get', type, '-o', 'yaml')).out.split('\nspec:')[1]
    expect(await spec('systeminformation')).toContain(`uuid: ${machines.world.machine(0).uuid}\n`)
    expect(await spec('securitystate')).toContain('selinuxState: enabled, permissive\n')
    const { out } = await talosctl('-n', node(3), 'get', 'services')
    const services = rows(out).map(row => row.slice(3).join(' '))
    for (const id of ['auditd', 'syslogd', 'udevd']) expect(services).toContain(`${id} 1 true true false`)
    expect(services).toContain('dashboard 1 true false true')
  })

  test('what is in the world is what is told', async () => {
    const spec = async (type: string) => (await talosctl('-n', node(0), 'get', type, '-o', 'yaml')).out.split('\nspec:')[1]
    expect(await spec('versions')).toBe(`\n    version: ${VERSION}\n`)
    expect(await spec('etcdmembers')).toBe(`\n    memberID: ${machines.world.member(0).id}\n`)
    expect(await spec('identities')).toBe(`\n    nodeId: ${machines.world.machine(0).nodeID}\n`)
    expect(await spec('machineconfig')).toContain(' |\n    version: v1alpha1\n')
    const members = rows((await talosctl('-n', node(0), 'etcd', 'members')).out)
    expect(members.slice(1).map(row => row[1])).toEqual([0, 1, 2].map(i => machines.world.member(i).id))
    const status = rows((await talosctl('-n', node(0), 'etcd', 'status')).out)
    expect([status[1]![1], status[1]![4]]).toEqual([machines.world.member(0).id, machines.world.etcd.leader()])
  })

  test('leadership moves', async () => {
    const was = machines.world.etcd.leader()
    const leading = [0, 1, 2].find(i => machines.world.member(i).id === was)!
    expect(await talosctl('-n', node(leading), 'etcd', 'forfeit-leadership')).toEqual({ code: 0, out: '', err: '' })
    expect(machines.world.etcd.leader()).not.toBe(was)
  })
})

describe.skipIf(!hasTalosctl)('talosctl acts on machines', () => {
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
    const watching = talosctlOn(home, ['-n', node(4), 'get', 'machinestatus', '-w'])
    await vi.waitFor(() => expect(watching.seen()).toContain('running'), 10_000)
    const rebooted = await talosctl('-n', node(4), 'reboot', '--wait', '--timeout', '50s')
    await watching.stop()
    expect(rebooted.err).toContain('"10.5.0.15": events check condition met')
    expect(rebooted).toMatchObject({ code: 0, err: expect.stringContaining('"10.5.0.15": post check passed') as string })
    const [head, first, second] = rows(renamed(watching.seen()))
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
    const events = talosctlOn(home, ['-n', node(1), 'events', '--tail', '-1'])
    await vi.waitFor(() => expect(events.seen()).toContain('machine.MachineStatusEvent'), 10_000)
    await events.stop()
  })
})
