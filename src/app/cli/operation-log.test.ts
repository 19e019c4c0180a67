import { describe, expect, it } from 'vitest'
import { bench, type Bench, failure, minutes, putOperation, until } from './test-bench.ts'

const NAME = 'talos-1-13-9'

const event = (world: Bench, reason: string, message: string, at: number, more: { type?: string; uid?: string; count?: number } = {}) =>
  world.put('events', {
    metadata: { name: `${NAME}.${world.objects.size}` },
    ...{
      involvedObject: {
        kind: 'TalosOperation',
        name: NAME,
        uid: more.uid ?? world.objects.get(`talosoperations/ichor-system/${NAME}`)?.metadata.uid,
      },
      ...{ type: more.type ?? 'Normal', reason, message, count: more.count ?? 1, lastTimestamp: `${minutes(at).slice(0, 19)}Z` },
    },
  })

const stopped = (world: Bench) =>
  putOperation(world, NAME, {
    status: {
      ...failure,
      history: [
        { at: minutes(-10), message: 'accepted' },
        { at: minutes(-9), message: 'took the cluster lock' },
        { at: minutes(-9), message: 'opened cp-1' },
        { at: minutes(-5), message: 'cp-1: v1.13.5 -> v1.13.9 in 4m' },
        { at: minutes(-3), message: 'failed (InstallFailed): no space left on device' },
      ],
    },
  })

describe('ichor operation logs', () => {
  it('tells what the status and the Events remember in the order in which it happened, each once', async () => {
    const world = bench()
    stopped(world)
    event(world, 'Accepted', 'The checks are running.', -10)
    event(world, 'LockTaken', 'Took the cluster lock.', -9)
    event(world, 'MachineStarted', 'cp-1 is being worked on.', -9)
    event(world, 'MachineStarted', 'cp-10 is being worked on.', -9)
    event(world, 'MachineCompleted', 'cp-1 is done: v1.13.5 -> v1.13.9 in 4m.', -5)
    event(world, 'InstallFailed', 'no space left on device', -3, { type: 'Warning', count: 2 })
    event(world, 'Cancelled', 'Of a namesake that was deleted before.', -60, { uid: 'another' })
    expect(await world.run('operation', 'logs', NAME)).toBe(0)
    expect(world.out).toEqual([
      '2026-03-01T13:50:00Z  Accepted: The checks are running.',
      '2026-03-01T13:51:00Z  LockTaken: Took the cluster lock.',
      '2026-03-01T13:51:00Z  MachineStarted: cp-1 is being worked on.',
      '2026-03-01T13:51:00Z  MachineStarted: cp-10 is being worked on.',
      '2026-03-01T13:55:00Z  MachineCompleted: cp-1 is done: v1.13.5 -> v1.13.9 in 4m.',
      '2026-03-01T13:55:00Z  opened cp-2',
      '2026-03-01T13:57:00Z  InstallFailed: no space left on device (2 times)',
    ])
  })

  it('keeps the order of what came within one second', async () => {
    const world = bench()
    const at = (ms: number) => `${minutes(-3).slice(0, 19)}.${String(ms).padStart(3, '0')}Z`
    putOperation(world, NAME, {
      status: {
        phase: 'Running',
        machines: [],
        history: [
          { at: at(100), message: 'accepted' },
          { at: at(200), message: 'order: cp-1' },
          { at: at(300), message: 'opened cp-1' },
        ],
      },
    })
    event(world, 'MachineStarted', 'cp-1 is being worked on.', -3)
    event(world, 'Accepted', 'The checks are running.', -3)
    expect(await world.run('operation', 'logs', NAME)).toBe(0)
    expect(world.out.map(text => text.slice(22))).toEqual([
      'Accepted: The checks are running.',
      'order: cp-1',
      'MachineStarted: cp-1 is being worked on.',
    ])
  })

  it('tells in full what the status has cut short', async () => {
    const world = bench()
    putOperation(world, NAME, {
      status: { ...failure, machines: [], history: [{ at: minutes(-3), message: 'failed (InstallFailed): no space lef…' }] },
    })
    event(world, 'InstallFailed', 'no space left on device', -3, { type: 'Warning' })
    expect(await world.run('operation', 'logs', NAME)).toBe(0)
    expect(world.out).toEqual(['2026-03-01T13:57:00Z  InstallFailed: no space left on device'])
  })

  it('does without Events where they may not be read', async () => {
    const world = bench()
    stopped(world)
    world.faults.set('list events', { kind: 'forbidden', message: 'events is forbidden' })
    expect(await world.run('operation', 'logs', NAME)).toBe(0)
    expect(world.out).toContain('2026-03-01T13:57:00Z  failed (InstallFailed): no space left on device')
    expect(world.err).toEqual([])
  })

  it('says that nothing has happened yet, and which operations there are where there is none of that name', async () => {
    const world = bench()
    putOperation(world, NAME)
    expect(await world.run('operation', 'logs', NAME)).toBe(0)
    expect(world.out).toEqual([])
    expect(world.err).toEqual([`Nothing has happened to operation ${NAME} yet.`])
    expect(await world.run('operation', 'logs', 'other')).not.toBe(0)
    expect(world.err.join('\n')).toContain(`There are: ${NAME}`)
  })

  it('with -f goes on, line by line, until the operation comes to rest', async () => {
    const world = bench()
    const machine = {
      name: 'cp-1',
      role: 'controlplane',
      phase: 'Running',
      startedAt: minutes(-1),
      step: 'install',
      stepStartedAt: minutes(-1),
    }
    putOperation(world, NAME, { status: { phase: 'Running', history: [{ at: minutes(-2), message: 'accepted' }], machines: [machine] } })
    const done = world.run('operation', 'logs', NAME, '-f')
    await until(() => {
      world.pass(1_000)
      return world.out.length === 3
    })
    expect(world.out.map(line => line.slice(22))).toEqual(['accepted', 'opened cp-1', 'cp-1: step install'])
    // Events come after the status that says the same.
    event(world, 'MachineStarted', 'cp-1 is being worked on.', -1)
    world.change('talosoperations', NAME, object => {
      object.status.machines[0] = { ...machine, step: 'reboot', stepStartedAt: minutes(0) }
    })
    await until(() => {
      world.pass(1_000)
      return world.out.length === 4
    })
    world.change('talosoperations', NAME, object => {
      object.status = {
        ...object.status,
        phase: 'Completed',
        completedAt: minutes(1),
        history: [...object.status.history, { at: minutes(1), message: 'All done.' }],
      }
    })
    expect(await done).toBe(0)
    expect(world.out.slice(3).map(line => line.slice(22))).toEqual(['cp-1: step reboot', 'All done.'])
  })

  it('with -f says when it is out of sight, once, and when it is seen again', async () => {
    const world = bench()
    putOperation(world, NAME, { status: { phase: 'Running' } })
    const done = world.run('operation', 'logs', NAME, '-f')
    await new Promise(resolve => setImmediate(resolve))
    world.lose('connection refused; again in 1 s')
    world.lose('connection refused; again in 2 s')
    expect(world.err).toEqual(['No sight of it, connecting again: connection refused; again in 1 s'])
    world.change('talosoperations', NAME, object => (object.status = { phase: 'Completed' }))
    expect(await done).toBe(0)
    expect(world.err.slice(1)).toEqual(['Connected again.'])
  })

  it('with -f leaves on Ctrl-C and says that the operation goes on', async () => {
    const world = bench()
    putOperation(world, NAME, { status: { phase: 'Running' } })
    const done = world.run('operation', 'logs', NAME, '-f')
    await new Promise(resolve => setImmediate(resolve))
    world.interrupt()
    expect(await done).toBe(130)
    expect(world.err.join(' ')).toContain('The operation goes on')
  })
})
