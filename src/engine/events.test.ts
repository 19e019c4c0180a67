import { describe, expect, it } from 'vitest'
import type { HomeEvent } from '../ports/home.ts'
import { createStory, NAMESPACE, type StoryOptions } from '../storm/story.ts'

const MINUTE = 60_000

/** A controller whose Events are counted where they are written, before anything makes one of several. */
const overheard = async (options: StoryOptions = {}) => {
  const events: HomeEvent[] = []
  const story = createStory({
    controlPlanes: 3,
    workers: 2,
    talos: 'v1.13.5',
    ...options,
    wrap: ports => ({
      ...ports,
      home: {
        ...ports.home,
        event: event => {
          events.push(event)
          return ports.home.event(event)
        },
      },
    }),
  })
  story.start()
  await story.pass(MINUTE)
  const upgrade = (name: string, spec: object = {}) =>
    story.create({ name, spec: { kind: 'talos', talos: { version: 'v1.13.9' }, ...spec } })
  const since = async (ms: number): Promise<readonly string[]> => {
    const before = events.length
    await story.pass(ms)
    return events.slice(before).map(({ reason, message }) => `${reason}: ${message}`)
  }
  return { story, upgrade, since, events }
}

describe('Events', () => {
  it('none for a drain that a budget holds up, however often it is tried', async () => {
    const { story, upgrade, since } = await overheard({
      workloads: [{ name: 'web', namespace: 'shop', replicas: 2, budget: { maxUnavailable: 0 } }],
    })
    upgrade('up', { drain: { timeout: '3h' } })
    await story.until('the drain waits', () => /drain/.test(story.operation('up')?.status.waiting?.for ?? ''))
    await story.pass(MINUTE)
    expect(await since(30 * MINUTE)).toEqual([])
    expect(story.operation('up')?.status.waiting?.for).toMatch(/drain/)
  })

  it('none while one waits for another, and none of what was told before when it goes on', async () => {
    const { story, upgrade, since, events } = await overheard()
    upgrade('first')
    await story.until('it runs', () => story.operation('first')?.status.phase === 'Running')
    story.edit('first', { spec: { paused: true } })
    await story.until('it is paused', () => story.operation('first')?.status.phase === 'Paused')
    upgrade('second')
    await story.until('it is queued', () => story.operation('second')?.status.failureReason === 'ClusterLockHeld')
    await story.pass(MINUTE)
    expect(await since(120 * MINUTE)).toEqual([])
    story.edit('first', { spec: { paused: false } })
    await story.until('both are done', () => ['first', 'second'].every(name => story.operation(name)?.status.phase === 'Completed'))
    for (const name of ['first', 'second']) {
      const own = events.filter(({ regarding }) => regarding.name === name).map(({ reason, message }) => `${reason}: ${message}`)
      // The pause gave the first machine back, so its second turn is one more change.
      const again = name === 'first' ? ['MachineStarted: cp-1 is being worked on.'] : []
      expect(own.filter((text, index) => own.indexOf(text) < index)).toEqual(again)
      expect(own[0]).toMatch(/^Accepted/)
      expect(own.at(-1)).toMatch(/^Completed/)
    }
  })

  it('one for a failure, and none while it stands there', async () => {
    const { story, upgrade, since } = await overheard()
    story.world.registry.remove(':v1.13.9')
    upgrade('up')
    await story.until('it fails', () => story.operation('up')?.status.failureReason !== undefined)
    await story.pass(MINUTE)
    expect(story.events('up').filter(text => text.startsWith('ImageNotFound'))).toHaveLength(1)
    expect(await since(120 * MINUTE)).toEqual([])
    expect(story.operation('up')?.metadata.namespace).toBe(NAMESPACE)
  })

  it('none for an API that is away and comes back', async () => {
    const { story, upgrade, since } = await overheard()
    upgrade('up')
    await story.until('it is done', () => story.operation('up')?.status.phase === 'Completed')
    story.world.apiOutage(5 * MINUTE)
    expect(await since(30 * MINUTE)).toEqual([])
  })
})
