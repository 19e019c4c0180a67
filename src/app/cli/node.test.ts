import { beforeEach, describe, expect, it } from 'vitest'
import { node } from '../../kinds/node/node.ts'
import type { Bench } from './test-bench.ts'
import { bench, putCluster, putOperation } from './test-bench.ts'

let world: Bench
beforeEach(() => {
  world = bench([node])
  putCluster(world, 'home')
  for (const name of ['cp-1', 'wk-1', 'WK_2.lan'])
    world.put('talosmachines', {
      metadata: { name: `m-${name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-')}` },
      spec: { clusterRef: { name: 'home' } },
      status: { hostname: name },
    })
})

const created = (name: string) => world.objects.get(`talosoperations/ichor-system/${name}`)

describe('node', () => {
  it.each([
    [['reboot', 'wk-1', '--mode', 'powercycle'], 'node-reboot-wk-1', { machine: 'wk-1', action: 'reboot', mode: 'powercycle' }],
    [['shutdown', 'WK_2.lan'], 'node-shutdown-wk-2-lan', { machine: 'WK_2.lan', action: 'shutdown' }],
    [
      ['restart-service', 'talosmachine/wk-1', '--service', 'kubelet'],
      'node-restart-service-wk-1',
      { machine: 'wk-1', action: 'restart-service', service: 'kubelet' },
    ],
    [['etcd-defrag', 'cp-1'], 'node-etcd-defrag-cp-1', { machine: 'cp-1', action: 'etcd-defrag' }],
    [['forfeit-leadership', 'cp-1'], 'node-forfeit-leadership-cp-1', { machine: 'cp-1', action: 'forfeit-leadership' }],
  ])('%j', async (args, name, block) => {
    expect(await world.run('node', ...args, '--yes')).toBe(0)
    expect(created(name)?.spec).toEqual({ clusterRef: { name: 'home' }, kind: 'node', node: block })
  })

  it('again, drain and consent are flags of it as of any operation', async () => {
    await world.run('node', 'reboot', 'cp-1', '--again', '--acknowledge', 'api-outage', '--drain-policy', 'skip', '--yes')
    expect(created('node-reboot-cp-1')?.spec).toMatchObject({ again: true, acknowledge: ['api-outage'], drain: { policy: 'skip' } })
  })

  it('the same once more is another operation, unless the first still runs', async () => {
    putOperation(world, 'node-reboot-wk-1', { status: { phase: 'Running' } })
    expect(await world.run('node', 'reboot', 'wk-1', '--yes')).toBe(1)
    putOperation(world, 'node-reboot-wk-1', { status: { phase: 'Completed' } })
    expect(await world.run('node', 'reboot', 'wk-1', '--yes')).toBe(0)
    expect(world.writes).toEqual(['create talosoperations node-reboot-wk-1-2'])
  })

  it.each([
    ['no machine', ['reboot']],
    ['no such action', ['explode', 'wk-1']],
    ['no service', ['restart-service', 'wk-1', '--yes']],
    ['a service that Talos lets nobody restart', ['restart-service', 'wk-1', '--service', 'apid', '--yes']],
    ['a flag of another action', ['reboot', 'wk-1', '--wipe', 'disk', '--yes']],
    ['a mode that there is not', ['reboot', 'wk-1', '--mode', 'gently', '--yes']],
  ])('%s is a wrong command', async (_, args) => {
    expect(await world.run('node', ...args)).toBe(2)
    expect(world.writes).toEqual([])
  })
})

describe('node reset', () => {
  it('asks for the name of the cluster, and --yes is no answer', async () => {
    expect(await world.run('node', 'reset', 'wk-1', '--yes')).toBe(2)
    expect(world.err.join('\n')).toContain('--confirm home')
    expect(world.writes).toEqual([])
  })

  it('begins when it is typed', async () => {
    world.canAsk = true
    world.answers = ['home']
    expect(await world.run('node', 'reset', 'wk-1', '--wipe', 'disk', '--reboot-after')).toBe(0)
    expect(created('node-reset-wk-1')?.spec).toMatchObject({ node: { action: 'reset', machine: 'wk-1', wipe: 'disk', rebootAfter: true } })
  })

  it.each([
    ['typed wrongly', ['away'], []],
    ['another name in the flag', [], ['--confirm', 'away']],
  ])('does not with %s', async (_, answers, flags) => {
    world.canAsk = true
    world.answers = [...answers]
    expect(await world.run('node', 'reset', 'wk-1', ...flags)).toBe(2)
    expect(world.writes).toEqual([])
  })

  it('takes the flag for the answer', async () => {
    expect(await world.run('node', 'reset', 'wk-1', '--confirm', 'home')).toBe(0)
  })
})
