import { beforeEach, describe, expect, it } from 'vitest'
import { config } from '../../kinds/config/config.ts'
import type { Bench } from './test-bench.ts'
import { bench, putCluster } from './test-bench.ts'

let world: Bench
beforeEach(() => {
  world = bench([config])
  putCluster(world, 'home')
  for (const name of ['cp-1', 'wk-1', 'wk-2'])
    world.put('talosmachines', { metadata: { name: `m-${name}` }, spec: { clusterRef: { name: 'home' } }, status: { hostname: name } })
  world.files.set('dns.yaml', 'machine:\n  sysctls: {}\n')
  world.files.set('clock.yaml', 'apiVersion: v1alpha1\nkind: TimeSyncConfig\n')
})

const created = (name = 'config-rollout') => world.objects.get(`talosoperations/ichor-system/${name}`)
const inline = (name: string) => ({ inline: world.files.get(name) })

describe('config rollout', () => {
  it('takes patches from files, in their order', async () => {
    expect(await world.run('config', 'rollout', '-f', 'dns.yaml', '--file', 'clock.yaml', '--mode', 'staged', '--yes')).toBe(0)
    expect(created()?.spec).toEqual({
      clusterRef: { name: 'home' },
      kind: 'config',
      config: { mode: 'staged', patches: [inline('dns.yaml'), inline('clock.yaml')] },
    })
    expect(world.out).toEqual(['talosoperation.ichor.maesh.dev/config-rollout created'])
  })

  it.each<[string, string, object]>([
    ['hosts', 'wk-1,m-wk-2,wk-1', { names: ['m-wk-1', 'm-wk-2'] }],
    [
      'labels',
      'rack=1,site!=berlin',
      { matchLabels: { rack: '1' }, matchExpressions: [{ key: 'site', operator: 'NotIn', values: ['berlin'] }] },
    ],
    ['both', 'cp-1,rack=1', { names: ['m-cp-1'], matchLabels: { rack: '1' } }],
    ['a role', 'controlplane', { matchLabels: { 'ichor.maesh.dev/role': 'controlplane' } }],
    ['a role with labels', 'worker,rack=1', { matchLabels: { rack: '1', 'ichor.maesh.dev/role': 'worker' } }],
  ])('on some machines only: %s', async (_, machines, machineSelector) => {
    expect(await world.run('config', 'rollout', '-f', 'dns.yaml', '--machines', machines, '--yes')).toBe(0)
    expect(created()?.spec).toEqual({
      clusterRef: { name: 'home' },
      kind: 'config',
      machineSelector,
      config: { patches: [inline('dns.yaml')] },
    })
  })

  it('on the machine that is called as a role, where there is one', async () => {
    world.put('talosmachines', { metadata: { name: 'worker' }, spec: { clusterRef: { name: 'home' } } })
    expect(await world.run('config', 'rollout', '-f', 'dns.yaml', '--machines', 'worker', '--yes')).toBe(0)
    expect(created()?.spec).toMatchObject({ machineSelector: { names: ['worker'] } })
  })

  it.each<[string, string[], number, RegExp]>([
    ['no file', [], 2, /required option '-f, --file <path>'/],
    ['a file that is not there', ['-f', 'nothing.yaml'], 1, /nothing\.yaml/],
    ['an empty file', ['-f', 'dns.yaml', '-f', 'empty.yaml'], 2, /^error: empty\.yaml is empty$/],
    ['a file that is too long', ['-f', 'long.yaml'], 2, /^error: long\.yaml is too long: it may have 32768 characters\./],
    ['too many files', Array.from({ length: 9 }, () => ['-f', 'dns.yaml']).flat(), 2, /^error: --file: 9 files are more than the 8 /],
    ['a mode that there is not', ['-f', 'dns.yaml', '--mode', 'gently'], 2, /no-reboot, reboot, staged, try/],
    ['a machine that there is not', ['-f', 'dns.yaml', '--machines', 'wk-9'], 1, /wk-9/],
    ['no name between commas', ['-f', 'dns.yaml', '--machines', 'wk-1,,wk-2'], 2, /--machines "wk-1,,wk-2": must be names or labels/],
    ['a role beside a name', ['-f', 'dns.yaml', '--machines', 'worker,cp-1'], 2, /worker stands for all machines of that role/],
    ['a label without a key', ['-f', 'dns.yaml', '--machines', '=1'], 2, /must be names or labels/],
  ])('%s', async (_, args, exit, says) => {
    world.files.set('empty.yaml', '')
    world.files.set('long.yaml', 'x'.repeat(32_769))
    expect(await world.run('config', 'rollout', ...args, '--yes')).toBe(exit)
    expect(world.err.join('\n')).toMatch(says)
    expect(world.writes).toEqual([])
  })

  it('takes a patch from standard input, and calls patches by their files where they are refused', async () => {
    world.files.set('-', 'machine:\n  sysctl: {}\n')
    const message = 'patch 2, line 2, machine.sysctl: there is no such field. patch 1 and 3 are not of ours.'
    world.plan = {
      ...{ cluster: 'home', kind: 'config', found: {}, order: [] },
      refusals: [{ rule: 'UnknownField', message, overridable: false }],
      notes: ['patch 1, line 2: ignored by Talos.'],
    }
    expect(await world.run('config', 'rollout', '-f', 'dns.yaml', '-f', '-', '--plan')).toBe(3)
    expect(world.out).toContain(
      'Refused: UnknownField: standard input, line 2, machine.sysctl: there is no such field. dns.yaml and 3 are not of ours.',
    )
    expect(world.out).toContain('Note: dns.yaml, line 2: ignored by Talos.')
    world.plan = undefined
    expect(await world.run('config', 'rollout', '-f', '-', '--yes')).toBe(0)
    expect(created()?.spec).toMatchObject({ config: { patches: [inline('-')] } })
    expect(await world.run('config', 'rollout', '-f', '-', '-f', '-', '--yes')).toBe(2)
  })

  it('shows what changes on which machines, the same once', async () => {
    const diff = '--- the main document\n+++ the main document\n@@ -1,1 +1,2 @@ machine\n machine:\n+    sysctls: {}\n'
    const turn = { stage: 'try', from: 'a', to: 'b', loses: [] }
    world.plan = {
      ...{ cluster: 'home', kind: 'config', found: {}, refusals: [], notes: [] },
      order: [
        { ...turn, name: 'wk-1', role: 'worker', diff },
        { ...turn, name: 'cp-1', role: 'controlplane', diff: diff.replace('sysctls', 'sysfs') },
        { ...turn, name: 'wk-2', role: 'worker', diff },
      ],
    }
    expect(await world.run('config', 'rollout', '-f', 'dns.yaml', '--plan')).toBe(0)
    const said = world.out.join('\n')
    expect(said).toContain('What changes on wk-1, wk-2:\n--- the main document\n')
    expect(said).toContain('What changes on cp-1:\n')
    expect(said.split('+    sysctls: {}')).toHaveLength(2)
    expect(world.writes).toEqual([])
  })
})
