import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../api/names.ts'
import type { Kind } from '../core/kind.ts'
import { MINUTE, restartStory } from '../storm/restart-story.ts'
import { restartKind } from '../storm/restart-kind.ts'
import { CLUSTER, NAMESPACE } from '../storm/story.ts'
import { registerCluster } from '../world/ports/connections.ts'
import { ICHOR } from '../world/ports/home.ts'

const HOUR = 60 * MINUTE
/** Where the stories begin. */
const START = Date.UTC(2026, 8, 1, 8)
const iso = (ms: number): string => new Date(ms).toISOString()

describe('the conditions', () => {
  it('say in every phase what kstatus, Flux and `kubectl wait` expect', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', { installer: { exitCode: 1, lines: ['no'], times: 1 } })
    story.restart('a', { paused: true })
    await story.until('it is paused', () => story.status('a').phase === 'Paused')
    expect(story.conditions('a')).toBe('none')
    story.edit('a', { spec: { paused: false } })
    await story.until('it runs', () => story.open('a').length > 0)
    expect(story.conditions('a')).toBe('Reconciling')
    await story.until('it failed', () => story.status('a').phase === 'Paused')
    expect(story.conditions('a')).toBe('Stalled')
    // The generation moves on although nothing else does.
    story.edit('a', { spec: { paused: true } })
    await story.until('the new generation is answered', () => story.conditions('a') === 'Stalled', MINUTE)
    story.edit('a', { spec: { paused: false }, annotations: { [ANNOTATION.retry]: 'true' } })
    await story.untilDone('a')
    expect(story.conditions('a')).toBe('Ready Finished')
    story.edit('a', { spec: { override: true } })
    await story.until('the new generation is answered', () => story.conditions('a') === 'Ready Finished', MINUTE)
  })
})

describe('a refusal', () => {
  it('leaves no lock and no touch; override turned on later runs the checks anew and names who', async () => {
    const story = await restartStory()
    story.restart('a', { restart: { forbidden: true } })
    await story.until('it is refused', () => story.status('a').phase === 'Paused')
    expect(story.status('a')).toMatchObject({ failureReason: 'PreflightRefused', message: 'It is forbidden.' })
    expect(story.conditions('a')).toBe('Stalled')
    expect(story.holder()).toBe('')
    await story.pass(10 * MINUTE)
    expect(story.world.calls.counts().get('talos.pull')).toBeUndefined()
    story.edit('a', { spec: { override: true }, annotations: { [ANNOTATION.overrideBy]: 'jane' } })
    await story.untilDone('a')
    expect(story.events('a').filter(e => e.startsWith('Overridden'))).toEqual(['Overridden: jane overrode Forbidden.'])
    expect(story.status('a').preflight?.refusals).toMatchObject([{ rule: 'Forbidden', overridden: true }])
  })

  it('is checked again by a retry', async () => {
    const story = await restartStory()
    story.restart('a', { restart: { forbidden: true } })
    await story.until('it is refused', () => story.status('a').phase === 'Paused')
    const first = story.status('a').preflight?.checkedAt
    await story.pass(5000)
    story.edit('a', { annotations: { [ANNOTATION.retry]: 'true' } })
    await story.until(
      'it is refused anew',
      () => story.status('a').phase === 'Paused' && story.status('a').preflight?.checkedAt !== first,
      MINUTE,
    )
    expect(story.operation('a')?.metadata.annotations[ANNOTATION.retry]).toBeUndefined()
  })
})

describe('before its start', () => {
  it('startAfter waits without the lock', async () => {
    const story = await restartStory()
    story.restart('a', { startAfter: iso(START + 2 * HOUR) })
    await story.pass(HOUR)
    expect(story.status('a')).toMatchObject({ phase: 'Pending', waiting: { until: iso(START + 2 * HOUR) } })
    expect(story.holder()).toBe('')
    await story.untilDone('a')
    expect(story.status('a').startedAt).toBe(iso(START + 2 * HOUR))
  })

  it('outside a maintenance window nothing begins; what is open when it closes is carried to its end', async () => {
    const story = await restartStory({ cluster: { maintenanceWindows: [{ schedule: '0 10,11 * * *', duration: '2m', timeZone: 'UTC' }] } })
    story.restart('a')
    await story.pass(MINUTE)
    expect(story.status('a').message).toBe('Outside the maintenance windows of home; the next one opens at 2026-09-01T10:00:00.000Z.')
    await story.until('the first machine is done', () => story.target('a', 'cp-1')?.phase === 'Completed')
    expect(story.world.journal.of('install-began')[0]?.at).toBeGreaterThanOrEqual(START + 2 * HOUR)
    await story.pass(30 * MINUTE)
    expect(story.world.journal.of('install-began').length).toBe(1)
    expect(story.status('a').message).toContain(
      'wk-1 is next. Outside the maintenance windows of home; the next one opens at 2026-09-01T11:00:00.000Z.',
    )
    expect(story.finalizers('a')).toEqual([])
    await story.untilDone('a')
    expect(story.world.journal.of('install-began')[1]?.at).toBeGreaterThanOrEqual(START + 3 * HOUR)
  })

  it('a machine that does not answer when a window opens has its time from there', async () => {
    const story = await restartStory({
      cluster: { maintenanceWindows: [{ schedule: '0 10 * * *', duration: '1h', timeZone: 'UTC' }] },
      workers: 1,
    })
    story.restart('a')
    await story.until('the first machine is done', () => story.target('a', 'cp-1')?.phase === 'Completed')
    story.world.blackHole('wk-1', true)
    await story.pass(5 * MINUTE)
    expect(story.status('a').phase).toBe('Running')
    story.world.blackHole('wk-1', false)
    await story.untilDone('a')
  })

  it('ignoreWindows goes past them', async () => {
    const story = await restartStory({ cluster: { maintenanceWindows: [{ schedule: '0 10 * * *', duration: '2m', timeZone: 'UTC' }] } })
    story.restart('a', { ignoreWindows: true })
    await story.untilDone('a')
    expect(story.world.schedule.now()).toBeLessThan(START + 2 * HOUR)
  })
})

describe('what cannot be looked at', () => {
  it('an unknown cluster is refused with the names that there are, and checked again on a retry', async () => {
    const story = await restartStory()
    story.restart('a', { clusterRef: { name: 'hone' } })
    await story.until('it is refused', () => story.status('a').phase === 'Paused')
    expect(story.status('a')).toMatchObject({
      failureReason: 'PreflightRefused',
      message: `There is no TalosCluster hone in namespace ${NAMESPACE} (there are: ${CLUSTER}).`,
    })
    story.edit('a', { annotations: { [ANNOTATION.retry]: 'true' } })
    await story.until('the request is gone', () => story.operation('a')?.metadata.annotations[ANNOTATION.retry] === undefined, MINUTE)
    expect(story.status('a').failureReason).toBe('PreflightRefused')
  })

  it('a cluster that was deleted under a running operation does not keep it from being deleted', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('the installer runs', () => story.world.journal.of('install-began').length === 1)
    story.world.store.remove(ICHOR.clusters, NAMESPACE, CLUSTER)
    await story.until('it says what is half done', () => story.status('a').failureReason === 'UnfinishedOperation', MINUTE)
    expect(story.status('a').message).toMatch(/There is no TalosCluster .* half done and cannot be looked at/)
    story.remove('a')
    await story.until('it is gone', () => story.operation('a') === undefined, MINUTE)
  })

  it('a cluster that was deleted under a running operation and created again is gone on with', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('the installer runs', () => story.world.journal.of('install-began').length === 1)
    story.world.store.remove(ICHOR.clusters, NAMESPACE, CLUSTER)
    await story.until('it says what is half done', () => story.status('a').failureReason === 'UnfinishedOperation', MINUTE)
    registerCluster(story.world, { namespace: NAMESPACE, name: CLUSTER })
    story.edit('a', { annotations: { [ANNOTATION.retry]: 'true' } })
    await story.until('it is completed', () => story.status('a').phase === 'Completed')
  })

  it('a cluster that was deleted between two machines is checked again when it is there again', async () => {
    const story = await restartStory()
    story.restart('a')
    await story.until('the first is opened', () => story.open('a').length > 0)
    story.edit('a', { spec: { paused: true } })
    await story.until('it is paused', () => story.status('a').phase === 'Paused')
    const { checkedAt } = story.status('a').preflight ?? {}
    story.world.store.remove(ICHOR.clusters, NAMESPACE, CLUSTER)
    await story.until('it is refused', () => story.status('a').failureReason === 'PreflightRefused')
    // Whatever it is that has its name now: the checks have to say again that it may be done to it.
    registerCluster(story.world, { namespace: NAMESPACE, name: CLUSTER })
    story.edit('a', { spec: { paused: false }, annotations: { [ANNOTATION.retry]: 'true' } })
    await story.until('a machine is opened', () => story.open('a').length > 0)
    expect(story.status('a').preflight).toMatchObject({ refusals: [] })
    expect(Date.parse(story.status('a').preflight?.checkedAt ?? '')).toBeGreaterThan(Date.parse(checkedAt ?? ''))
    await story.untilDone('a')
  })

  it('a kind that throws stops only its own operation, with an id, and rests', async () => {
    const [stage] = restartKind.stages
    const [first, ...others] = stage?.steps ?? []
    if (!stage || !first) throw new Error('no steps')
    const broken: Kind = {
      ...restartKind,
      name: 'broken',
      block: 'broken',
      stages: [
        {
          ...stage,
          steps: [
            {
              ...first,
              done: () => {
                throw new Error('no such thing')
              },
            },
            ...others,
          ],
        },
      ],
    }
    const errors: string[] = []
    const story = await restartStory({ kinds: [restartKind, broken], hear: (level, message) => level === 'error' && errors.push(message) })
    story.create({ name: 'b', spec: { kind: 'broken', broken: {} } })
    await story.until('it stopped', () => story.status('b').failureReason === 'InternalError')
    expect(story.status('b').message).toMatch(/^E-[0-9a-z]+: no such thing$/)
    const writes = story.world.calls.counts().get('home.writeOperationStatus')
    await story.pass(30 * MINUTE)
    expect(story.world.calls.counts().get('home.writeOperationStatus')).toBe(writes)
    expect(errors.length).toBeLessThan(5)
    story.restart('a')
    await story.untilDone('a')
    story.remove('b')
    await story.until('it can be deleted', () => story.operation('b') === undefined, MINUTE)
  })
})

describe('after its end', () => {
  it('ttlAfterFinished deletes it; without, it stays', async () => {
    const story = await restartStory()
    story.restart('a', { ttlAfterFinished: '2h' })
    await story.untilDone('a')
    story.restart('b')
    await story.untilDone('b')
    await story.pass(1.5 * HOUR)
    expect(story.operation('a')).toBeDefined()
    await story.pass(HOUR)
    expect(story.operation('a')).toBeUndefined()
    expect(story.operation('b')).toBeDefined()
  })

  it('minReadySeconds lies between one machine and the next', async () => {
    const story = await restartStory()
    story.restart('a', { minReadySeconds: 300 })
    await story.untilDone('a')
    const uncordoned = story.world.journal.of('uncordon', 'cp-1')[0]?.at ?? 0
    const next = story.world.journal.of('install-began', 'wk-1')[0]?.at ?? 0
    expect(next - uncordoned).toBeGreaterThanOrEqual(300_000)
  })
})
