// The table of docs/operations.md, played: each row is a moment in the life of an operation, each column a request, each cell what comes of it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../src/api/names.ts'
import { kinds } from '../src/kinds/registry.ts'
import type { RestartStory } from '../src/storm/restart-story.ts'
import { MINUTE, holderOf, restartStory } from '../src/storm/restart-story.ts'
import { CLUSTER, NAMESPACE } from '../src/storm/story.ts'
import { RESOURCE, change, ensure } from '../src/world/objects.ts'
import { ICHOR } from '../src/world/ports/home.ts'

const text = readFileSync(join(import.meta.dirname, '..', 'docs', 'operations.md'), 'utf8')
const tableIn = (mark: string): readonly (readonly string[])[] =>
  (text.split(`<!-- ${mark} -->`)[1] ?? '')
    .trim()
    .split('\n')
    .map(line =>
      line
        .split('|')
        .slice(1, -1)
        .map(cell => cell.trim()),
    )
const [head = [], , ...rows] = tableIn('played')

const quick = {
  durations: { reboot: [20_000, 30_000], pull: [5000, 8000], install: [10_000, 15_000], stopPods: [500, 1500], nodeReady: [3000, 6000] },
} as const

const step = (story: RestartStory): string | undefined => story.target('a', 'cp-1')?.step
const failing = (story: RestartStory): Promise<void> => story.until('it failed', () => story.status('a').phase === 'Paused')
const broken = (story: RestartStory): void => story.world.fault('cp-1', { installer: { exitCode: 1, lines: ['no'], times: 1 } })
const installing = async (story: RestartStory): Promise<void> => {
  story.restart('a')
  await story.until('the installer runs', () => story.world.journal.of('install-began').length === 1)
}
const installFailed = async (story: RestartStory): Promise<void> => {
  broken(story)
  story.restart('a')
  await failing(story)
}
/** Another one that holds the lock and keeps it. */
const holdBy = async (story: RestartStory, name: string): Promise<void> => {
  story.restart(name)
  await story.until('it is at work', () => story.holder() === holderOf(name) && story.open(name).length > 0)
  story.edit(name, { spec: { paused: true } })
  await story.until('it is paused', () => story.status(name).phase === 'Paused' && story.open(name).length === 0)
}
const refusePulls = (story: RestartStory, kind: 'busy' | 'notFound', times: number): void =>
  story.world.calls.next({ name: 'pull', times }, { do: 'fail', when: 'before', fault: { kind, message: 'the registry refuses' } })

/** Brings operation `a` into the state that the row names. */
const moments: Readonly<Record<string, (story: RestartStory) => Promise<void>>> = {
  // The request comes within the same instant.
  'was just created, no controller has seen it': async story => void story.restart('a'),
  '`Pending`: waits for `startAfter`': async story => {
    story.restart('a', { startAfter: new Date(story.world.schedule.now() + 600 * MINUTE).toISOString() })
    await story.until('it waits', () => story.status('a').waiting !== undefined)
  },
  '`Paused` by its operator before it began': async story => {
    story.restart('a', { paused: true })
    await failing(story)
  },
  '`Paused`, `ClusterLockHeld`: stands in the queue': async story => {
    await holdBy(story, 'first')
    story.restart('a')
    await failing(story)
  },
  '`Paused`, `PreflightRefused`': async story => {
    story.restart('a', { restart: { forbidden: true } })
    await failing(story)
  },
  '`Running`: pulls the image': async story => {
    story.restart('a')
    await story.until('it pulls', () => step(story) === 'fetch' && story.target('a', 'cp-1')?.actedAt !== undefined)
  },
  '`Running`: a step is tried again and again': async story => {
    refusePulls(story, 'busy', 6)
    story.restart('a')
    await story.until('it is refused', () => story.target('a', 'cp-1')?.fault !== undefined)
  },
  '`Running`: the installer is at work': installing,
  '`Running`: the machine is down': async story => {
    story.restart('a')
    await story.until('it is down', () => story.world.journal.of('down').length === 1)
  },
  '`Running`: waits for the machine to be ready': async story => {
    story.restart('a')
    await story.until('it waits', () => step(story) === 'back')
  },
  '`Running`: waits `minReadySeconds`': async story => {
    story.restart('a', { minReadySeconds: 60 })
    await story.until('it waits', () => step(story) === 'soak')
  },
  '`Running`: between two machines, the next one does not answer': async story => {
    story.restart('a')
    await story.until('the first is nearly done', () => step(story) === 'back')
    story.world.powerOff('wk-1')
    story.world.schedule.after(8 * MINUTE, () => story.world.powerOn('wk-1'))
    await story.until('the next is waited for', () => story.target('a', 'cp-1')?.phase === 'Completed')
    await story.pass(MINUTE)
  },
  '`Running`: between two machines, waits for a health gate': async story => {
    const { store, schedule } = story.world
    const say = (health: string): void => {
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'storage', name: 'health' }, data: { health } }
      ensure(store, RESOURCE.configMaps, object)
      store.update(RESOURCE.configMaps, object)
    }
    say('OK')
    const objectRef = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'storage', name: 'health' }
    const healthGates = [{ name: 'storage', objectRef, expr: 'object.data.health == "OK"', stableFor: '10s' }]
    change(store, ICHOR.clusters, NAMESPACE, CLUSTER, object => ({ ...object, spec: { ...(object['spec'] as object), healthGates } }))
    story.restart('a')
    await story.until('the first is nearly done', () => step(story) === 'back')
    say('WARN')
    schedule.after(8 * MINUTE, () => say('OK'))
    await story.until('the gate is waited for', () => story.status('a').waiting?.for.startsWith('gate storage (WARN)') === true)
  },
  '`Running`, asked to pause: finishes a machine': async story => {
    await installing(story)
    story.edit('a', { spec: { paused: true } })
    await story.until('it says so', () => story.status('a').message?.startsWith('pausing, finishing cp-1') === true)
  },
  '`Paused` by its operator, with the lock': story => holdBy(story, 'a'),
  '`Paused`: a step failed that commits to nothing': async story => {
    refusePulls(story, 'notFound', 1)
    story.restart('a')
    await failing(story)
  },
  '`Paused`: the install failed': installFailed,
  '`Paused`: a step failed, and its operator paused it': async story => {
    await installFailed(story)
    story.edit('a', { spec: { paused: true } })
    await story.pass(1000)
  },
  '`Paused`: a step failed, and another took the lock': async story => {
    await installFailed(story)
    await holdBy(story, 'b')
    await story.until('it knows', () => story.status('a').lock === undefined)
  },
  'is cancelled, and finishes a machine': async story => {
    await installing(story)
    story.edit('a', { spec: { cancelled: true } })
    await story.pass(1000)
  },
  'is deleted, and finishes a machine': async story => {
    await installing(story)
    story.remove('a')
    await story.pass(1000)
  },
  '`Completed`': async story => {
    story.restart('a')
    await story.untilDone('a')
    await story.pass(5000)
  },
  '`Cancelled`': async story => {
    story.restart('a', { cancelled: true })
    await story.until('it is', () => story.status('a').phase === 'Cancelled')
  },
}

const requests: Readonly<Record<string, (story: RestartStory) => void>> = {
  'nothing is asked': () => {},
  pause: story => story.edit('a', { spec: { paused: true } }),
  resume: story => story.edit('a', { spec: { paused: false } }),
  '`retry=true`': story => story.edit('a', { annotations: { [ANNOTATION.retry]: 'true' } }),
  '`retry=yes`': story => story.edit('a', { annotations: { [ANNOTATION.retry]: 'yes' } }),
  cancel: story => story.edit('a', { spec: { cancelled: true } }),
  delete: story => story.remove('a'),
}

type Seen = ReturnType<typeof look>
const look = (story: RestartStory) => {
  const { phase, failureReason, lastRetry } = story.status('a')
  return {
    is: story.operation('a') === undefined ? 'gone' : `${phase ?? 'new'}${failureReason === undefined ? '' : ` ${failureReason}`}`,
    reboots: story.world.journal.of('reboot-requested').map(e => e.machine),
    installs: story.world.journal.of('install-began').length,
    retry: story.operation('a')?.metadata.annotations[ANNOTATION.retry],
    lastRetry,
    open: story.open('a').length,
    holds: story.holder() === holderOf('a'),
    finalizers: story.finalizers('a').length,
  }
}

/** It came to rest there, did no more than it had done, and holds nothing back. */
const stoppedAs = (is: string, now: Seen, before: Seen): void => {
  expect(now).toMatchObject({ is, open: 0, finalizers: 0 })
  expect(now.reboots).toEqual(before.reboots)
  expect(now.installs).toBe(before.installs)
  if (is !== 'Paused') expect(now.holds).toBe(false)
}
/** The same, after the machine that was open is done. */
const finishedAs = (is: string, now: Seen): void => {
  expect(now).toMatchObject({ is, open: 0, finalizers: 0, reboots: ['cp-1'], installs: 1, holds: is === 'Paused' })
}

/** What a cell says, as it can be seen some time later. */
const outcomes: Readonly<Record<string, (now: Seen, before: Seen, story: RestartStory) => void | Promise<void>>> = {
  'goes on': now => expect(now).toMatchObject({ is: 'Completed', reboots: ['cp-1', 'wk-1'], open: 0, finalizers: 0, holds: false }),
  stays: (now, before) => expect({ ...now, retry: before.retry, lastRetry: before.lastRetry }).toEqual(before),
  pauses: (now, before, story) => {
    stoppedAs('Paused', now, before)
    expect(story.operation('a')?.status.message).toMatch(/^Paused by the operator/)
    expect(now.holds).toBe(before.holds)
  },
  'finishes it, pauses': now => finishedAs('Paused', now),
  ends: (now, before) => stoppedAs('Cancelled', now, before),
  'finishes it, ends': now => finishedAs('Cancelled', now),
  goes: (now, before) => stoppedAs('gone', now, before),
  'finishes it, goes': now => finishedAs('gone', now),
  'checks again': (now, before) => {
    expect(now).toMatchObject({ is: 'Paused PreflightRefused', retry: undefined, lastRetry: expect.any(String) })
    expect(before.lastRetry).toBeUndefined()
  },
  'runs the step again': now => {
    expect(now).toMatchObject({ is: 'Completed', reboots: ['cp-1', 'wk-1'], retry: undefined, lastRetry: expect.any(String) })
  },
  'is kept': async (now, before, story) => {
    expect(now).toEqual({ ...before, retry: 'true' })
    story.edit('a', { spec: { paused: false } })
    await story.untilDone('a')
  },
  queues: async (now, before, story) => {
    expect(now).toMatchObject({ is: 'Paused ClusterLockHeld', reboots: before.reboots, retry: undefined, lastRetry: expect.any(String) })
    story.edit('b', { spec: { paused: false } })
    await story.untilDone('b', 'a')
  },
}

const LOOKS_AT_MS = 20 * MINUTE

describe('what is asked of an operation', () => {
  it('is told for every moment, request and outcome that there is, and for no other', () => {
    expect(head.slice(1)).toEqual(Object.keys(requests))
    expect(rows.map(([moment]) => moment)).toEqual(Object.keys(moments))
    const words = new Set(rows.flatMap(row => row.slice(1)))
    expect([...words].filter(word => word !== '—').toSorted()).toEqual(Object.keys(outcomes).toSorted())
  })

  describe.each(rows)('%s', (moment = '', ...cells) => {
    it.each(cells.map((word, i) => [head[i + 1] ?? '', word] as const))('%s: %s', async (request, word) => {
      const story = await restartStory(quick)
      await moments[moment]?.(story)
      const before = look(story)
      requests[request]?.(story)
      const atRest = () => ['Completed', 'Cancelled', 'gone'].includes(look(story).is)
      const end = story.world.schedule.now() + LOOKS_AT_MS
      await story.until('it has come to rest', () => atRest() || story.world.schedule.now() >= end, LOOKS_AT_MS + MINUTE)
      await story.pass(MINUTE)
      const now = look(story)
      await outcomes[word === '—' ? (cells[0] ?? '') : word]?.(now, before, story)
      if (word !== '—' || now.is === 'gone') return
      if (request === '`retry=true`') expect(now).toMatchObject({ retry: undefined, lastRetry: before.lastRetry })
      if (request === '`retry=yes`') expect(now).toMatchObject({ retry: 'yes', lastRetry: before.lastRetry })
    })
  })
})

describe('where a machine is carried to its end', () => {
  const [, , ...told] = tableIn('committing')
  const inTicks = (cell = ''): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word)

  it.each(kinds.map(kind => kind.name))('kind %s: every step that commits is named, and no other', name => {
    const own = told.filter(([kind]) => inTicks(kind).includes(name))
    for (const stage of kinds.find(kind => kind.name === name)?.stages ?? []) {
      const commits = stage.steps.filter(step => step.commits).map(step => step.name)
      const row = own.find(([, what = '']) => what.split(', ').includes(stage.name)) ?? own.find(([, what]) => what === 'every component')
      expect([stage.name, ...inTicks(row?.[2])]).toEqual([stage.name, ...commits])
    }
  })
})
