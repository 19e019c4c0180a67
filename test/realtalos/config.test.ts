// Operations of kind `config` on real machines: typed as people type them, carried out by the controller as a process, which is killed in the middle. What
// was done is asked of the machines themselves, with talosctl, and of their own Kubernetes.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { addresses, machine, type MachineName, state } from './cluster.ts'
import { type Bench, CLUSTER, get, ichor, lockHolder, operation, startIchor, talos } from './ichor.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 600_000 })
const eventually = <T>(check: () => T | Promise<T>, timeout = 300_000) => vi.waitFor(check, { timeout, interval: 500 })
const names = ['cp-1', 'cp-2', 'cp-3', 'wk-1'] as const satisfies readonly MachineName[]

type NodeObject = { readonly metadata: { readonly labels: Readonly<Record<string, string>> } }
const label = async (name: MachineName, key: string): Promise<string | undefined> =>
  (await get<NodeObject>('node', name)).metadata.labels[key]

/** The machine configuration as talosctl shows it: what runs, or with `persistent` what the next boot takes. */
const configuration = async (name: MachineName, id: 'v1alpha1' | 'persistent' = 'v1alpha1'): Promise<string> =>
  talos('-n', addresses[name], 'get', 'machineconfig', id, '-o', 'yaml')
/** How often the configuration that runs was written since the machine booted. */
const writes = async (name: MachineName): Promise<number> => Number(/version: (\d+)/.exec(await configuration(name))?.[1])

const patchFile = (name: string, patch: object): string => {
  const path = join(state, `${name}.yaml`)
  writeFileSync(path, JSON.stringify(patch))
  return path
}
const labels = (entries: Readonly<Record<string, string>>) => ({ machine: { nodeLabels: entries } })
const rollout = (name: string, patch: object, ...more: readonly string[]) =>
  ichor('config', 'rollout', '-f', patchFile(name, patch), '--name', name, ...more)

let bench: Bench
beforeAll(async () => {
  bench = await startIchor()
  await eventually(async () => {
    const { status } = await get<{ status: { machines?: { summary?: string } } }>('taloscluster', CLUSTER)
    expect(status.machines?.summary).toBe('4/4')
  })
})
afterAll(() => bench?.close())

test('a plan shows what changes on each machine, and writes to none', async () => {
  const before = await Promise.all(names.map(writes))
  const { stdout } = await rollout('plan', labels({ 'example.org/planned': 'yes' }), '--plan')
  expect(stdout).toContain('+        example.org/planned: "yes"')
  for (const name of names) expect(stdout).toContain(name)
  expect(await Promise.all(names.map(writes))).toEqual(before)
})

test('in the mode try, over a kill -9 of the controller: each machine is written once, and Kubernetes sees it', async () => {
  const waiting = rollout('tried', labels({ 'example.org/tried': 'yes' }), '--yes', '--wait')
  await eventually(async () => expect(await label('wk-1', 'example.org/tried')).toBe('yes'))
  await bench.kill()
  await bench.start()
  await waiting
  for (const name of names) {
    expect(await label(name, 'example.org/tried')).toBe('yes')
    for (const id of ['v1alpha1', 'persistent'] as const)
      expect((await configuration(name, id)).match(/example\.org\/tried/g)).toHaveLength(1)
  }
  expect(await lockHolder()).toBe('')
})

test('in the mode no-reboot, and the second time there is nothing to do', async () => {
  const patch = labels({ 'example.org/at-once': 'yes' })
  const some = ['--machines', 'cp-1,wk-1', '--mode', 'no-reboot', '--yes']
  await rollout('at-once', patch, ...some, '--wait')
  for (const name of ['cp-1', 'wk-1'] as const) expect(await label(name, 'example.org/at-once')).toBe('yes')
  await expect(rollout('at-once-again', patch, ...some)).rejects.toMatchObject({ code: 3 })
})

test('in the mode staged: it waits on the disk, and what runs is as it was', async () => {
  await rollout('later', labels({ 'example.org/later': 'yes' }), '--mode', 'staged', '--machines', 'wk-1', '--yes', '--wait')
  expect(await configuration('wk-1', 'persistent')).toContain('example.org/later')
  expect(await configuration('wk-1')).not.toContain('example.org/later')
  expect(await label('wk-1', 'example.org/later')).toBeUndefined()
  // Over what waits there, no change at once is written, which would undo it.
  await expect(
    rollout('over-it', labels({ 'example.org/over': 'yes' }), '--mode', 'no-reboot', '--machines', 'wk-1', '--yes'),
  ).rejects.toMatchObject({
    code: 3,
    stderr: expect.stringContaining('ConfigPending') as string,
  })
  // Another one for that boot is made of it.
  const { stdout } = await rollout('later-too', labels({ 'example.org/too': 'yes' }), '--mode', 'staged', '--machines', 'wk-1', '--plan')
  expect(stdout).toContain('+        example.org/too: "yes"')
  // A change at once takes its place: what waited is gone.
  const instead = JSON.stringify(labels({ 'example.org/instead': 'yes' }))
  await talos('-n', addresses['wk-1'], 'patch', 'machineconfig', '--mode', 'no-reboot', '--patch', instead)
  expect(await configuration('wk-1', 'persistent')).not.toContain('example.org/later')
})

test('a trial of somebody else goes on: nothing is staged over it, nor is the machine shown anything', async () => {
  const tried = JSON.stringify(labels({ 'example.org/on-trial': 'yes' }))
  await talos('-n', addresses['wk-1'], 'patch', 'machineconfig', '--mode', 'try', '--timeout', '45s', '--patch', tried)
  const later = labels({ 'example.org/after-it': 'yes' })
  await expect(rollout('over-a-trial', later, '--mode', 'staged', '--machines', 'wk-1', '--yes')).rejects.toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/ConfigPending.*on trial/s) as string,
  })
  expect(await configuration('wk-1')).toContain('example.org/on-trial')
  await eventually(async () => expect(await configuration('wk-1')).not.toContain('example.org/on-trial'))
})

test('in the mode reboot: a machine in a container does not reboot, and nothing is written', async () => {
  const before = await Promise.all(names.map(writes))
  await expect(rollout('rebooted', labels({ 'example.org/rebooted': 'yes' }), '--mode', 'reboot', '--yes')).rejects.toMatchObject({
    code: 3,
    stderr: expect.stringContaining('ContainerMode') as string,
  })
  expect(await Promise.all(names.map(writes))).toEqual(before)
})

describe('a configuration that breaks a machine', () => {
  test('is put back by Talos itself, and the rollout stops there', async () => {
    // The canary's kubelet ends with a flag that it does not know.
    await rollout('broken', { machine: { kubelet: { extraArgs: { 'no-such-flag': 'yes' } } } }, '--yes')
    await eventually(
      async () => expect((await operation('broken')).status).toMatchObject({ phase: 'Paused', failureReason: 'ConfigRejected' }),
      600_000,
    )
    const { status } = await operation('broken')
    expect(status.machines?.filter(one => one.phase === 'Failed').map(one => one.hostname)).toEqual(['wk-1'])
    for (const name of names) expect(await configuration(name)).not.toContain('no-such-flag')
    await ichor('operation', 'cancel', 'broken', '--yes')
    await eventually(async () => expect(await lockHolder()).toBe(''))
    // In a container its kubelet may hang in its end for minutes; a boot is what it had last.
    await machine('kill', 'wk-1')
    await machine('start', 'wk-1')
    await eventually(async () => expect(await talos('-n', addresses['wk-1'], 'service', 'kubelet')).toMatch(/HEALTH +OK/))
  })

  test('a field that there is not is refused with the nearest name, and nothing is written', async () => {
    const before = await Promise.all(names.map(writes))
    await expect(rollout('misspelt', { machine: { nodeLabel: { a: 'b' } } }, '--yes')).rejects.toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/UnknownField.*nodeLabels/s) as string,
    })
    expect(await Promise.all(names.map(writes))).toEqual(before)
  })
})
