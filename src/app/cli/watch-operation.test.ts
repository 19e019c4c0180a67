import { beforeEach, describe, expect, it } from 'vitest'
import type { Bench } from './test-bench.ts'
import { bench, failure, minutes, putCluster, putOperation, until } from './test-bench.ts'

let world: Bench
beforeEach(() => {
  world = bench()
})

const cluster = (name: string) => putCluster(world, name)
const operation = (name: string, more?: Parameters<typeof putOperation>[2]) => putOperation(world, name, more)

describe('watching', () => {
  const running = {
    phase: 'Running',
    machines: [
      { name: 'cp-1', role: 'controlplane', phase: 'Running', step: 'drain', stepStartedAt: minutes(-1) },
      { name: 'wk-1', role: 'worker', phase: 'Pending' },
    ],
  }

  it('writes a line for each change where the output is no terminal, and ends with 0 when it is Completed', async () => {
    operation('a', { status: running })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.out.length > 0)
    world.pass(30_000)
    world.change('talosoperations', 'a', o => (o.status.machines[0].step = 'install'))
    world.change('talosoperations', 'a', o => (o.status.history = []))
    world.lose('connection refused; again in 1 s')
    world.lose('connection refused; again in 2 s')
    world.change('talosoperations', 'a', o => (o.status.waiting = { for: 'etcd to be healthy', since: minutes(0.25), until: minutes(5.5) }))
    world.change('talosoperations', 'a', o => {
      o.status = {
        ...o.status,
        phase: 'Completed',
        waiting: undefined,
        startedAt: minutes(-2),
        completedAt: minutes(0.5),
        machines: o.status.machines.map((m: object) => ({ ...m, phase: 'Completed' })),
      }
    })
    expect(await run).toBe(0)
    expect(world.out).toEqual([
      '14:00:00 cp-1: Running, step drain',
      '14:00:00 Running: cp-1 in step drain since 13:59:00 UTC (1m)',
      '14:00:30 cp-1: Running, step install',
      '14:00:30 no sight of it, connecting again: connection refused; again in 1 s',
      '14:00:30 connected again',
      '14:00:30 Waiting for etcd to be healthy, since 14:00:15 UTC (15s), until 14:05:30 UTC (5m left), on cp-1 (step install)',
      '14:00:30 cp-1: Completed',
      '14:00:30 wk-1: Completed',
      '14:00:30 Completed: 2 of 2 machines done in 2m 30s.',
    ])
    expect(world.err).toEqual([])
  })

  it('says when a stage begins, and not that its machines are pending again', async () => {
    const machine = (name: string, phase: string) => ({ name, role: 'worker', phase })
    const status = (stage: string, number: number, ...machines: object[]) => ({
      phase: 'Running',
      message: 'm',
      stage,
      progress: { done: 0, skipped: 0, total: 2, stage: number, stages: 7, summary: '' },
      machines,
    })
    operation('a', { status: status('pull', 1, machine('wk-1', 'Completed'), machine('wk-2', 'Completed')) })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.out.length > 0)
    world.change('talosoperations', 'a', o => (o.status = status('kubelet', 6, machine('wk-1', 'Pending'), machine('wk-2', 'Pending'))))
    world.change('talosoperations', 'a', o => (o.status = { ...o.status, phase: 'Completed', stage: undefined, message: 'all done.' }))
    expect(await run).toBe(0)
    expect(world.out).toEqual([
      '14:00:00 stage 1 of 7, pull: 0 of 2 done',
      '14:00:00 Running: m',
      '14:00:00 stage 6 of 7, kubelet: 0 of 2 done',
      '14:00:00 Completed: all done.',
    ])
    world.change('talosoperations', 'a', o => (o.status = status('kubelet', 6, machine('wk-1', 'Pending'))))
    await world.run('operation', 'get', 'a')
    expect(world.out).toContain(`Progress  [${'-'.repeat(24)}] stage 6 of 7, kubelet: 0 of 2 done`)
  })

  it.each([
    ['Cancelled', { phase: 'Cancelled' }, 4],
    ['failed', failure, 4],
    [
      'refused',
      {
        phase: 'Paused',
        failureReason: 'PreflightRefused',
        preflight: { refusals: [{ rule: 'skew', message: 'skips v1.14', overridable: true, overridden: false }] },
      },
      3,
    ],
  ])('ends when it is %s', async (_, status, code) => {
    operation('a', { status })
    expect(await world.run('operation', 'watch', 'a')).toBe(code)
  })

  it('goes on while the operation waits for the lock, is paused by a person or is about to retry', async () => {
    operation('a', { status: { phase: 'Paused', failureReason: 'ClusterLockHeld' } })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.out.length === 1)
    world.change('talosoperations', 'a', o => {
      o.spec.paused = true
      o.status = { phase: 'Paused' }
    })
    world.change('talosoperations', 'a', o => {
      o.spec.paused = false
      o.status = failure
      o.metadata.annotations = { 'ichor.maesh.dev/retry': 'true' }
    })
    expect(world.out.length).toBeGreaterThan(2)
    world.remove('talosoperations', 'a')
    expect(await run).toBe(4)
    expect(world.err).toEqual(['Operation a was deleted.'])
  })

  it('goes on after a failure until the other open machines are finished', async () => {
    const machines = [
      { name: 'wk-1', role: 'worker', phase: 'Failed', step: 'install' },
      { name: 'wk-2', role: 'worker', phase: 'Running', step: 'reboot', stepStartedAt: minutes(-1) },
    ]
    operation('a', { status: { ...failure, machines } })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.out.length > 2)
    expect(world.out.at(-1)).toContain('Still finishing wk-2 in step reboot')
    world.change('talosoperations', 'a', o => (o.status.machines[1].phase = 'Completed'))
    expect(await run).toBe(4)
    expect(world.out).toContainEqual(expect.stringContaining('Nothing advances until it is resumed.'))
  })

  it('does not repeat a wait that was told just now, although another came between', async () => {
    const wait = (name: string, since: number) => ({ for: `${name}: pull: ${since} % of 128 MiB`, since: minutes(since / 60) })
    operation('a', { status: { ...running, waiting: wait('wk-1', 0) } })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.out.length > 0)
    for (let turn = 1; turn < 6; turn++) {
      world.pass(2000)
      world.change('talosoperations', 'a', o => (o.status.waiting = wait(turn % 2 ? 'wk-2' : 'wk-1', turn)))
    }
    expect(world.out.filter(line => line.includes('Waiting'))).toHaveLength(2)
    world.pass(60_000)
    world.change('talosoperations', 'a', o => (o.status.waiting = wait('wk-1', 70)))
    expect(world.out.filter(line => line.includes('Waiting'))).toHaveLength(3)
    world.change('talosoperations', 'a', o => (o.status = failure))
    expect(await run).toBe(4)
  })

  it('leaves the operation alone on Ctrl-C, and says how to look again', async () => {
    operation('a', { status: running })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.out.length > 0)
    world.interrupt()
    expect(await run).toBe(130)
    expect(world.writes).toEqual([])
    expect(world.err).toEqual(['Stopped watching. The operation goes on; look again with: ichor operation watch a -n ichor-system'])
  })

  it('stops watching when the time is up', async () => {
    operation('a', { status: running })
    const run = world.run('operation', 'watch', 'a', '--timeout', '1m')
    await until(() => world.out.length > 0)
    world.pass(59_000)
    world.pass(1000)
    expect(await run).toBe(5)
  })

  it('draws one picture again and again on a terminal, and marks it stale while the server is away', async () => {
    world.isLive = true
    operation('a', { status: running })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.raw.length > 0)
    const height = world.raw[0]!.split('\n').length - 1
    world.pass(1000)
    expect(world.raw.at(-1)).toMatch(new RegExp(`^\\x1b\\[${height}A\\r\\x1b\\[0J`))
    expect(world.raw.at(-1)).toContain('cp-1 in step drain since 13:59:00 UTC (1m 1s)')
    expect(world.raw.at(-1)).not.toContain('watch it')
    world.lose('connection refused')
    expect(world.raw.at(-1)).toContain('Stale since 14:00:01 UTC, connecting again: connection refused')
    world.change('talosoperations', 'a', o => (o.status = { phase: 'Completed' }))
    expect(world.raw.at(-1)).not.toContain('Stale')
    expect(await run).toBe(0)
    expect(world.out).toEqual([])
  })

  it.each([
    ['watch', 'a'],
    ['resume', 'a', '--wait'],
    ['cancel', 'a', '--wait', '--yes'],
  ])('ends where a namesake has come between two sights: %s', async (...words) => {
    operation('a', { status: running, spec: { paused: true } })
    const run = world.run('operation', ...words)
    await until(() => world.out.length > 1)
    const metadata = { name: 'a', uid: 'another' }
    world.put('talosoperations', { metadata, spec: { clusterRef: { name: 'home' } }, status: { phase: 'Completed' } })
    expect(await run).toBe(4)
    expect(world.err.at(-1)).toBe('Operation a was deleted.')
  })

  it('waits after an upgrade was started', async () => {
    cluster('home')
    const run = world.run('upgrade', 'talos', 'v1.13.9', '--yes', '--wait')
    await until(() => world.out.length > 1)
    world.change('talosoperations', 'talos-1-13-9', o => (o.status = failure))
    expect(await run).toBe(4)
  })
})
