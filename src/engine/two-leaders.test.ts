import { describe, expect, it } from 'vitest'
import { MINUTE, restartStory } from '../storm/restart-story.ts'
import type { StoryOptions } from '../storm/story.ts'
import { createStory } from '../storm/story.ts'
import { postWatchmen } from '../storm/watchmen.ts'
import type { PortCall } from '../world/calls.ts'
import { runningSlot } from '../world/slots.ts'

const quick: StoryOptions = {
  durations: {
    reboot: [3000, 6000],
    pull: [1000, 3000],
    install: [1000, 4000],
    stopPods: [500, 1500],
    staticPods: [1000, 3000],
    registerNode: [1000, 3000],
    nodeReady: [500, 1500],
  },
}

/** Two replicas; the one that leads is frozen at the k-th call that is worth it, and thaws later, in the middle of what the other does. */
const frozenAt = async (k: number, napMs = MINUTE, isWorthIt: (call: PortCall, before: PortCall | undefined) => boolean = () => true) => {
  const story = await restartStory({ ...quick, unled: true })
  const first = story.start('ichor-0')
  await story.until('machines are discovered', () => story.world.store.list('talosmachines.ichor.maesh.dev').items.length === 2)
  const second = story.start('ichor-1')
  let [n, isFrozen, both] = [0, false, 0]
  let last: PortCall | undefined
  story.world.calls.intercept(call => {
    if (call.port === 'talos' && call.changes && first.controller.isLeading() && second.controller.isLeading()) both++
    if (call.client !== 'ichor-0' || isFrozen) return undefined
    const before = last
    last = call
    if (!isWorthIt(call, before) || ++n !== k) return undefined
    isFrozen = true
    first.freeze()
    story.world.schedule.after(napMs, first.thaw)
    return undefined
  })
  story.restart('a')
  await story.untilDone('a')
  return { story, both, isFrozen }
}

describe('two replicas', () => {
  it('one frozen past its lease at any of its calls, and awake again in the middle of the other’s work: nothing is done twice', async () => {
    const wrong: string[] = []
    for (let k = 1; k <= 200; k += 3) {
      const { story, both, isFrozen } = await frozenAt(k)
      if (both > 0) wrong.push(`${k}: both led while one acted`)
      if (!isFrozen) wrong.push(`${k}: never froze`)
      for (const machine of story.world.machines) {
        const reboots = story.world.journal.of('reboot-requested', machine.name).length
        if (reboots !== 1) wrong.push(`${k}: ${machine.name} was rebooted ${reboots} times`)
        if (runningSlot(machine.disk).version !== 'v1.13.9') wrong.push(`${k}: ${machine.name} was not upgraded`)
      }
    }
    expect(wrong).toEqual([])
  }, 60_000)

  it('one frozen between its intention and its act, for longer than the other waits for the effect: the fence before the act holds', async () => {
    const wrong: string[] = []
    // Right after the intention the lock is read; what comes next is the act itself.
    const isFence = (call: PortCall, before: PortCall | undefined): boolean =>
      call.name === 'lease' && before?.name === 'writeOperationStatus' && call.at === before.at
    for (let k = 1; k <= 24; k++) {
      const { story } = await frozenAt(k, 7 * MINUTE, isFence)
      await story.pass(8 * MINUTE)
      for (const machine of story.world.machines) {
        const reboots = story.world.journal.of('reboot-requested', machine.name).length
        if (reboots !== 1) wrong.push(`${k}: ${machine.name} was rebooted ${reboots} times`)
      }
    }
    expect(wrong).toEqual([])
  }, 60_000)

  it.each([21, 22, 23, 24])(
    'seed %i: three that freeze and thaw at will upgrade five machines, one reboot each',
    async seed => {
      const story = createStory({ seed, controlPlanes: 3, workers: 2 })
      const watchmen = postWatchmen(story.world)
      const { random, after } = { random: story.world.schedule.random, after: story.world.schedule.after }
      for (const name of ['ichor-0', 'ichor-1', 'ichor-2']) {
        const process = story.start(name)
        const nap = (): void => {
          process.freeze()
          after(random.between(1000, 40_000), () => {
            process.thaw()
            after(random.between(1000, 180_000), nap)
          })
        }
        after(random.between(10_000, 180_000), nap)
      }
      await story.until('machines are discovered', () => story.world.store.list('talosmachines.ichor.maesh.dev').items.length === 5)
      story.create({ name: 'up', spec: { kind: 'talos', talos: { version: 'v1.13.9' } } })
      await story.until('it is completed', () => story.operation('up')?.status.phase === 'Completed')
      expect(watchmen.complaints()).toEqual([])
      expect(watchmen.counts('reboot-requested')).toEqual({ 'cp-1': 1, 'cp-2': 1, 'cp-3': 1, 'wk-1': 1, 'wk-2': 1 })
    },
    30_000,
  )

  it('hands over at once when one is stopped in good order', async () => {
    const story = await restartStory({ unled: true })
    const first = story.start('ichor-0')
    await story.until('it leads', () => first.controller.isLeading())
    const second = story.start('ichor-1')
    await story.pass(10_000)
    expect(second.controller.isLeading()).toBe(false)
    void first.controller.stop()
    await story.until('the other leads', () => second.controller.isLeading(), 4000)
    expect(first.controller.isLeading()).toBe(false)
  })
})

describe('an outage of the Kubernetes API', () => {
  it.each([20, 70, 200])(
    'of %i virtual seconds at any time delays, and no more',
    async seconds => {
      const wrong: string[] = []
      for (let at = 0; at < 200; at += 17) {
        const story = await restartStory({ ...quick, homeOutside: false })
        story.restart('a')
        story.world.schedule.after(at * 1000, () => story.world.apiOutage(seconds * 1000))
        await story.untilDone('a')
        for (const machine of story.world.machines) {
          const reboots = story.world.journal.of('reboot-requested', machine.name).length
          if (reboots !== 1) wrong.push(`at ${at}s: ${machine.name} was rebooted ${reboots} times`)
        }
      }
      expect(wrong).toEqual([])
    },
    30_000,
  )

  it('lets nothing new begin: no call changes a machine while status cannot be written', async () => {
    const story = await restartStory({ ...quick, homeOutside: false })
    const during: string[] = []
    story.restart('a')
    await story.until('the image is pulled', () => story.world.journal.of('pulled').length === 1)
    story.world.apiOutage(3 * MINUTE)
    const end = story.world.schedule.now() + 3 * MINUTE
    story.world.calls.intercept(call => {
      if (call.port === 'talos' && call.changes && call.at < end) during.push(call.name)
      return undefined
    })
    await story.untilDone('a')
    expect(during).toEqual([])
  })

  it('and conflicts at every other write of status change nothing but time', async () => {
    const story = await restartStory(quick)
    story.restart('a')
    story.world.schedule.after(0, function again() {
      story.world.faults.statusConflicts = 2
      story.world.schedule.after(900, again)
    })
    await story.untilDone('a')
    expect(story.world.journal.of('installed').length).toBe(2)
    expect(story.world.journal.of('reboot-requested').length).toBe(2)
  })
})
