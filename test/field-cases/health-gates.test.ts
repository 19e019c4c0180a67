import { describe, expect, it } from 'vitest'
import type { HealthGate } from '../../src/api/talos-cluster.ts'
import { CLUSTER, NAMESPACE } from '../../src/storm/story.ts'
import { RESOURCE, change } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { NAME, play, playWithDeaths, type Run } from './play.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const spec = { talos: { version: 'v1.13.9' } }

const gate: HealthGate = {
  name: 'storage',
  objectRef: { apiVersion: 'storage.example/v1', kind: 'StorageCluster', namespace: 'storage', name: 'main' },
  expr: 'object.status.health == "OK"',
  stableFor: '1m',
}
const cluster = (change: Partial<HealthGate> = {}) => ({ cluster: { healthGates: [{ ...gate, ...change }] } })

const SHELF = 'storageclusters.storage.example'
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: SHELF },
  spec: {
    group: 'storage.example',
    scope: 'Namespaced',
    names: { plural: 'storageclusters', kind: 'StorageCluster' },
    versions: [{ name: 'v1', served: true }],
  },
}
const storage = (health: string | undefined) => ({
  apiVersion: 'storage.example/v1',
  kind: 'StorageCluster',
  metadata: { name: 'main', namespace: 'storage' },
  ...(health === undefined ? {} : { status: { health } }),
})
const say = ({ world }: Run, health: string): void => void change(world.store, SHELF, 'storage', 'main', () => storage(health))
const withStorage =
  (health: string | undefined) =>
  ({ world }: Run): void => {
    world.store.create(RESOURCE.definitions, definition)
    world.store.create(SHELF, storage(health))
  }
const begun = ({ world }: Run, name?: string): readonly number[] => world.journal.of('install-began', name).map(entry => entry.at)
const phaseOf = ({ status }: Run, name: string): string | undefined => status().machines?.find(t => t.hostname === name)?.phase

describe('the pods of a storage system are ready, its data is not [B051 rook/rook#11352, rook/rook#2600]', () => {
  /** From the moment when wk-1 is done: WARN for ten minutes, in which it is OK for five seconds once. */
  const rebuilding = (run: Run): (() => number | undefined) => {
    let done: number | undefined
    const { store, schedule, journal } = run.world
    store.watch(ICHOR.operations, undefined, () => {
      if (journal.of('reboot-requested', 'wk-1').length > 0 && done === undefined) say(run, 'WARN')
      if (done !== undefined || phaseOf(run, 'wk-1') !== 'Completed') return
      done = schedule.now()
      schedule.after(5 * MINUTE, () => say(run, 'OK'))
      schedule.after(5 * MINUTE + 5 * SECOND, () => say(run, 'WARN'))
      schedule.after(10 * MINUTE, () => say(run, 'OK'))
    })
    return () => done
  }

  it('the next machine waits until it has been well for a while, and says for what', async () => {
    let done: () => number | undefined = () => undefined
    const { run, end } = await play({
      cluster: cluster(),
      spec,
      arrange: run => {
        withStorage('OK')(run)
        done = rebuilding(run)
      },
      drive: async run => {
        await run.until('the first worker is done', () => phaseOf(run, 'wk-1') === 'Completed')
        await run.pass(6 * MINUTE + 30 * SECOND)
        expect(run.status()).toMatchObject({
          phase: 'Running',
          message: 'waiting for gate storage (WARN) 6m; wk-2 is next',
          waiting: { for: 'gate storage (WARN); wk-2 is next' },
        })
        expect(run.status().waiting).not.toHaveProperty('until')
        await run.until(
          'it is well, and has to stay so',
          () => run.status().message?.startsWith('waiting for gate storage to hold for 1m') === true,
        )
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    const [second] = begun(run, 'wk-2')
    expect((second ?? 0) - (done() ?? 0)).toBeGreaterThanOrEqual(11 * MINUTE)
    expect((second ?? 0) - (done() ?? 0)).toBeLessThan(13 * MINUTE)
    expect(run.status()).not.toHaveProperty('gates')
  })

  it('also where the controller dies on its way', async () => {
    let run: Run | undefined
    let done: () => number | undefined = () => undefined
    await playWithDeaths(
      {
        cluster: cluster(),
        spec,
        arrange: told => {
          run = told
          withStorage('OK')(told)
          done = rebuilding(told)
        },
        drive: async told => {
          await told.settled()
          expect((begun(told, 'wk-2')[0] ?? 0) - (done() ?? 0)).toBeGreaterThanOrEqual(11 * MINUTE)
        },
      },
      4,
    )
    expect(run).toBeDefined()
  })

  it.each([
    ['its health is not told', undefined, 'gate storage (it has no field status)'],
    ['it is not well', 'ERR', 'gate storage (ERR)'],
  ])('where %s, not even the first machine is begun', async (_what, health, what) => {
    const { run } = await play({
      cluster: cluster(),
      spec,
      arrange: withStorage(health),
      drive: async run => {
        await run.pass(30 * MINUTE)
        expect(run.status()).toMatchObject({ phase: 'Running', message: `waiting for ${what} 29m; cp-1 is next` })
        expect(run.status().preflight?.notes).toContainEqual(expect.stringContaining('Health gate storage does not hold now'))
        expect([begun(run), run.world.journal.of('cordon')]).toEqual([[], []])
        say(run, 'OK')
        await run.settled()
      },
    })
    expect(run.status().phase).toBe('Completed')
  })

  it('an object that does not exist yet is waited for', async () => {
    const { run } = await play({
      cluster: cluster(),
      spec,
      arrange: ({ world }) => void world.store.create(RESOURCE.definitions, definition),
      drive: async run => {
        await run.pass(10 * MINUTE)
        expect(run.status().waiting?.for).toBe('gate storage (StorageCluster storage/main does not exist); cp-1 is next')
        run.world.store.create(SHELF, storage('OK'))
        await run.settled()
      },
    })
    expect(run.status().phase).toBe('Completed')
  })

  it('a machine that is open is not held up by it', async () => {
    const { run } = await play({
      cluster: cluster(),
      spec,
      arrange: withStorage('OK'),
      drive: async run => {
        await run.until('the first installs', () => begun(run).length === 1)
        say(run, 'ERR')
        await run.until('it is done', () => run.status().progress?.done === 1)
        await run.pass(20 * MINUTE)
        expect(begun(run)).toHaveLength(1)
        expect(run.world.store.list(RESOURCE.nodes).items.filter(n => (n['spec'] as { unschedulable?: boolean }).unschedulable)).toEqual([])
        say(run, 'OK')
        await run.settled()
      },
    })
    expect(run.status().phase).toBe('Completed')
  })

  it('where two workers may be away, the second one waits while the first is what makes it unwell', async () => {
    let most = 0
    const { run } = await play({
      cluster: { ...cluster(), workers: 4 },
      spec: { ...spec, maxUnavailable: 2 },
      arrange: run => {
        withStorage('OK')(run)
        const { store, schedule } = run.world
        store.watch(ICHOR.operations, undefined, () => {
          const open = run.status().machines?.filter(t => t.role === 'worker' && t.phase === 'Running').length ?? 0
          most = Math.max(most, open)
          if (open > 0) say(run, 'WARN')
          else schedule.after(30 * SECOND, () => say(run, 'OK'))
        })
      },
    })
    expect(run.status().phase).toBe('Completed')
    expect(most).toBe(1)
  })
})

describe('a gate that does not come to hold', () => {
  it('stops the operation where it has a timeout, and is waited for anew on a retry', async () => {
    const { run } = await play({
      cluster: cluster({ timeout: '20m' }),
      spec,
      arrange: withStorage('WARN'),
      allowed: { attempts: 2 },
      drive: async run => {
        await run.until('it waits', () => run.status().waiting?.until !== undefined)
        await run.settled(21 * MINUTE)
        expect(run.status()).toMatchObject({
          phase: 'Paused',
          failureReason: 'HealthGateTimeout',
          message: 'cp-1 is next, but gate storage does not hold (WARN) after 20m.',
        })
        await run.resume()
        await run.pass(15 * MINUTE)
        expect(run.status().phase).toBe('Running')
        say(run, 'OK')
        await run.settled()
      },
    })
    expect(run.status().phase).toBe('Completed')
  })

  it('is passed by taking it out of the TalosCluster', async () => {
    const { run } = await play({
      cluster: cluster(),
      spec,
      arrange: withStorage('WARN'),
      drive: async run => {
        await run.pass(5 * MINUTE)
        change(run.world.store, ICHOR.clusters, NAMESPACE, CLUSTER, object => ({
          ...object,
          spec: { ...(object['spec'] as object), healthGates: [] },
        }))
        await run.settled()
      },
    })
    expect(run.status().phase).toBe('Completed')
  })

  it.each([
    ['paused', { paused: true }, 'Paused'],
    ['cancelled', { cancelled: true }, 'Cancelled'],
  ])('does not keep the operation from being %s', async (_what, edit, phase) => {
    const { run } = await play({
      cluster: cluster(),
      spec,
      arrange: withStorage('WARN'),
      drive: async run => {
        await run.pass(5 * MINUTE)
        run.edit(NAME, { spec: edit })
        await run.until('it is', () => run.status().phase === phase, MINUTE)
      },
    })
    expect([begun(run), run.status().gates]).toEqual([[], undefined])
  })

  it('holds up every kind, also one that does something to one machine', async () => {
    const { run } = await play({
      cluster: cluster(),
      spec: { node: { action: 'reboot', machine: 'wk-1' } },
      arrange: withStorage('WARN'),
      drive: async run => {
        await run.pass(5 * MINUTE)
        expect(run.status().message).toBe('waiting for gate storage (WARN) 4m; wk-1 is next')
        expect(run.world.journal.of('reboot-requested')).toEqual([])
        say(run, 'OK')
        await run.settled()
      },
    })
    expect(run.status().phase).toBe('Completed')
  })
})

describe('a gate that can never hold refuses the operation, and nothing is touched', () => {
  it.each([
    [
      'a mistake in its expression',
      { expr: 'object.status.health = "OK"' },
      'its expression cannot be read: line 1, column 22: found = but expecting end of input.',
    ],
    ['a name that does not exist', { expr: 'objekt.status.health == "OK"' }, 'line 1, column 1: there is no objekt'],
    [
      'an answer that is neither true nor false',
      { expr: 'object.status.health' },
      'its expression gives a text, which is neither true nor false.',
    ],
    [
      'a type that is not served',
      { objectRef: { ...gate.objectRef, kind: 'StorageClaster' } },
      'the API server knows no StorageClaster in storage.example/v1.',
    ],
    [
      'a namespace that is missing',
      { objectRef: { ...gate.objectRef, namespace: undefined } },
      'a StorageCluster is in a namespace, and none is named.',
    ],
  ])('%s', async (_what, wrong, message) => {
    const { run } = await play({ cluster: cluster(wrong), spec, arrange: withStorage('OK') })
    expect(run.status()).toMatchObject({ phase: 'Paused', failureReason: 'PreflightRefused' })
    expect(run.status().preflight?.refusals).toMatchObject([
      { rule: 'HealthGateInvalid', message: expect.stringContaining(message) as string },
    ])
    expect(run.status().message).toContain('Health gate storage of TalosCluster home')
    expect(begun(run)).toEqual([])
  })
})
