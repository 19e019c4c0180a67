import { beforeEach, describe, expect, it } from 'vitest'
import type { Bench } from '../../src/app/cli/test-bench.ts'
import { bench, failure, minutes, putCluster, putOperation, until } from '../../src/app/cli/test-bench.ts'
import { node } from '../../src/kinds/node/node.ts'

let world: Bench
beforeEach(() => {
  world = bench()
  putCluster(world, 'home')
})

const document = (): any => JSON.parse(world.out.join('\n'))
const running = {
  phase: 'Running',
  machines: [{ name: 'wk-1', role: 'worker', phase: 'Running', step: 'drain', stepStartedAt: minutes(-1) }],
}
const completed = {
  phase: 'Completed',
  completedAt: minutes(0.5),
  startedAt: minutes(-2),
  machines: [{ name: 'wk-1', role: 'worker', phase: 'Completed' }],
  progress: { done: 1, skipped: 0, total: 1, summary: '1/1' },
}

describe('what a program reads is a document [B173 siderolabs/talos#6177]', () => {
  it.each([0, 1, 3])('a list of %i', async count => {
    for (let i = 0; i < count; i++) putOperation(world, `op-${i}`, { status: running })
    expect(await world.run('operation', 'list', '-o', 'json')).toBe(0)
    const { apiVersion, kind, items } = document()
    expect({ apiVersion, kind, count: items.length }).toEqual({ apiVersion: 'v1', kind: 'List', count })
    for (const item of items) {
      expect(Object.keys(item).toSorted()).toEqual(['apiVersion', 'kind', 'metadata', 'spec', 'status'])
      expect([item.apiVersion, item.kind]).toEqual(['ichor.maesh.dev/v1alpha1', 'TalosOperation'])
    }
    expect(world.err).toEqual([])
  })

  it('one of its kind', async () => {
    putOperation(world, 'op', { status: failure })
    expect(await world.run('operation', 'get', 'op', '-o', 'json')).toBe(0)
    expect(document()).toMatchObject({ kind: 'TalosOperation', metadata: { name: 'op' }, status: { failureReason: 'InstallFailed' } })
  })

  it('that is waited for: the way there on standard error, the end as the one document', async () => {
    const run = world.run('upgrade', 'talos', 'v1.13.9', '--yes', '--wait', '-o', 'json')
    await until(() => world.err.some(line => line.includes('created')))
    world.change('talosoperations', 'talos-1-13-9', o => (o.status = running))
    world.change('talosoperations', 'talos-1-13-9', o => (o.status = completed))
    expect(await run).toBe(0)
    expect(document()).toMatchObject({ kind: 'TalosOperation', status: { phase: 'Completed' } })
    expect(world.err.join('\n')).toContain('wk-1: Running, step drain')
  })

  it('and what is watched is one to a line', async () => {
    world.isLive = true
    putOperation(world, 'op', { status: running })
    const run = world.run('operation', 'watch', 'op', '-o', 'json')
    await until(() => world.out.length > 0)
    world.change('talosoperations', 'op', o => (o.status = completed))
    expect(await run).toBe(0)
    expect(world.out.map(line => JSON.parse(line).status.phase)).toEqual(['Running', 'Completed'])
    expect(world.raw).toEqual([])
  })

  it.each([
    ['no such object', ['operation', 'get', 'absent', '-o', 'json'], 'error', 1],
    ['a wrong command', ['operation', 'list', '--nonsense', '-o', 'json'], 'usage', 2],
    ['a wrong version', ['upgrade', 'talos', '1.13.9', '--yes', '--output=json'], 'usage', 2],
  ])('%s is one, too', async (_, argv, reason, code) => {
    expect(await world.run(...argv)).toBe(code)
    expect(world.out).toEqual([])
    const { error } = JSON.parse(world.err.join('\n'))
    expect(error).toMatchObject({ reason, code, message: expect.stringMatching(/\w{4}/), hints: expect.any(Array) })
    expect(error.message).not.toMatch(/^error/)
  })
})

describe('a phase that only a newer version knows [B175 velero-io/velero#5964, openeverest/openeverest#2580]', () => {
  const conditions = (finished: boolean, ready: boolean) =>
    Object.entries({ Finished: finished, Ready: ready }).map(([type, holds]) => ({
      type,
      status: holds ? 'True' : 'False',
      reason: 'x',
      message: 'x',
      lastTransitionTime: minutes(0),
    }))

  it.each([
    ['and a good one', true, 0],
    ['and no good one', false, 4],
  ])('is an end where its condition says so, %s', async (_, ready, code) => {
    putOperation(world, 'op', { status: running })
    const run = world.run('operation', 'watch', 'op')
    await until(() => world.out.length > 0)
    world.change(
      'talosoperations',
      'op',
      o => (o.status = { phase: 'Superseded', message: 'Another one took over.', conditions: conditions(true, ready) }),
    )
    expect(await run).toBe(code)
    expect(world.out.join('\n')).toContain('Superseded: Another one took over.')
  })

  it('is none where it does not: the watch goes on, and shows it as it is', async () => {
    putOperation(world, 'op', { status: { ...running, phase: 'Rewinding', conditions: conditions(false, false) } })
    const run = world.run('operation', 'watch', 'op')
    await until(() => world.out.length > 0)
    world.change('talosoperations', 'op', o => (o.status = completed))
    expect(await run).toBe(0)
    world.out.length = 0
    putOperation(world, 'other', { status: { phase: 'Rewinding', message: 'Back to the snapshot.', conditions: conditions(false, false) } })
    expect(await world.run('operation', 'get', 'other')).toBe(0)
    expect(world.out.join('\n')).toContain('Rewinding: Back to the snapshot.')
  })
})

describe('one status has one text [B177 argoproj/argo-rollouts#1391, argoproj/argo-rollouts#4112]', () => {
  it.each([
    ['completed', completed, 0],
    ['failed', failure, 4],
    ['cancelled', { phase: 'Cancelled' }, 4],
  ])('whether it is watched or looked at once: %s', async (_, status, code) => {
    putOperation(world, 'op', { status: running })
    const run = world.run('operation', 'watch', 'op')
    await until(() => world.out.length > 0)
    world.change('talosoperations', 'op', o => (o.status = status))
    expect(await run).toBe(code)
    const watched = world.out.splice(0)
    expect(await world.run('operation', 'get', 'op')).toBe(0)
    const headline = (world.out[1] ?? '').replace(/^\S /, '')
    expect(headline).toMatch(/\w{6}/)
    if (code === 0) expect(watched.at(-1)?.replace(/^[\d:]{8} /, '')).toBe(headline)
    else expect(watched.join('\n')).toContain(headline)
  })

  it.each([
    ['--wait=false', ['upgrade', 'talos', 'v1.13.9', '--yes', '--wait=false']],
    ['--wait false', ['upgrade', 'talos', 'v1.13.9', '--yes', '--wait', 'false']],
    ['a word behind the name', ['operation', 'watch', 'op', 'false']],
  ])('%s is a wrong command, and no page of help', async (_, argv) => {
    putOperation(world, 'op', { status: running })
    expect(await world.run(...argv)).toBe(2)
    expect(world.out).toEqual([])
    expect(world.err[0]).toMatch(/^error: .*(false|too many)/)
    expect(world.writes).toEqual([])
  })
})

describe('several targets where one is meant [B181 siderolabs/talos#7283, siderolabs/talos#5636]', () => {
  beforeEach(() => {
    world = bench([node])
    putCluster(world, 'home')
    putCluster(world, 'edge')
    for (const name of ['wk-1', 'cp-1', 'cp-2'])
      world.put('talosmachines', { metadata: { name }, spec: { clusterRef: { name: 'home' }, address: '10.0.0.5', role: 'worker' } })
  })

  it.each([
    ['two machines', ['node', 'reset', 'cp-1', 'cp-2', '--cluster', 'home', '--confirm', 'home']],
    ['the same machine twice', ['node', 'reset', 'cp-1', 'cp-1', '--cluster', 'home', '--confirm', 'home']],
    ['two clusters', ['node', 'reboot', 'wk-1', '--cluster', 'home', '--cluster', 'edge', '--yes']],
    ['the same cluster twice', ['node', 'reboot', 'wk-1', '--cluster', 'home', '--cluster', 'home', '--yes']],
    ['a machine from an empty variable', ['node', 'reboot', '', '--cluster', 'home', '--yes']],
    ['a cluster from an empty variable', ['node', 'reboot', 'wk-1', '--cluster', '', '--yes']],
    ['a namespace from an empty variable', ['-n', '', 'node', 'reboot', 'wk-1', '--cluster', 'home', '--yes']],
    ['no cluster of two', ['node', 'reboot', 'wk-1', '--yes']],
  ])('%s: a wrong command, and nothing is created', async (_, argv) => {
    expect(await world.run(...argv)).toBe(2)
    expect(world.writes).toEqual([])
    expect(world.err[0]).toMatch(/^error: /)
  })

  it('what may be given again and again still may', async () => {
    const argv = [
      'node',
      'reboot',
      'wk-1',
      '--cluster',
      'home',
      '--yes',
      '--acknowledge',
      'api-outage',
      '--acknowledge',
      'no-fault-tolerance',
    ]
    expect(await world.run(...argv)).toBe(0)
    expect(world.objects.get('talosoperations/ichor-system/node-reboot-wk-1')?.spec).toMatchObject({
      acknowledge: ['api-outage', 'no-fault-tolerance'],
    })
  })
})
