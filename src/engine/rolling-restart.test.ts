import { describe, expect, it } from 'vitest'
import type { RestartStory } from '../storm/restart-story.ts'
import { MINUTE, restartStory } from '../storm/restart-story.ts'
import type { Process } from '../storm/story.ts'
import { createStory } from '../storm/story.ts'
import { postWatchmen } from '../storm/watchmen.ts'
import type { PortCall } from '../world/calls.ts'

/** From SIGTERM to the next leader. */
const HANDOVER_MS = 2_000

const discovered = (story: Pick<RestartStory, 'world' | 'until'>): Promise<void> =>
  story.until(
    'machines are discovered',
    () => story.world.store.list('talosmachines.ichor.maesh.dev').items.length === story.world.machines.length,
  )

/** Two replicas; the one that leads is told to stop when it makes that call. */
const stoppedAt = async (story: RestartStory, isMoment: (call: PortCall) => boolean, isDark = false) => {
  const first = story.start('ichor-0')
  await discovered(story)
  const second = story.start('ichor-1')
  await story.pass(5_000)
  let asked: number | undefined
  let led: number | undefined
  const late: string[] = []
  story.world.calls.intercept(call => {
    if (led === undefined && second.controller.isLeading()) led = call.at
    if (led !== undefined && call.client === 'ichor-0' && call.changes) late.push(call.name)
    if (call.client !== 'ichor-0') return undefined
    if (asked === undefined && isMoment(call)) {
      asked = call.at
      void first.controller.stop()
    }
    return isDark && asked !== undefined && call.port === 'talos' ? { do: 'silence', when: 'after' } : undefined
  })
  story.restart('a')
  await story.until('it is told to stop', () => asked !== undefined)
  await story.until('the other leads', () => second.controller.isLeading(), MINUTE)
  return { tookMs: story.world.schedule.now() - (asked ?? 0), late }
}

describe('SIGTERM', () => {
  it.each<[string, (call: PortCall) => boolean]>([
    ['while it checks', call => call.name === 'writeOperationStatus'],
    ['while the installer runs', call => call.name === 'install'],
    ['at the call that reboots', call => call.name === 'reboot'],
    ['at the cordon', call => call.name === 'cordon'],
  ])('%s hands over within two seconds, and nothing is done twice', async (_, isMoment) => {
    const story = await restartStory({ unled: true })
    const { tookMs, late } = await stoppedAt(story, isMoment)
    expect(tookMs).toBeLessThanOrEqual(HANDOVER_MS)
    await story.untilDone('a')
    expect(late).toEqual([])
    expect(story.world.journal.of('reboot-requested').map(e => e.machine)).toEqual(['cp-1', 'wk-1'])
    expect(story.world.journal.of('installed').map(e => e.machine)).toEqual(['cp-1', 'wk-1'])
  })

  it('lets the pass act that has just written its intention: the next leader would wait for an effect that never comes', async () => {
    const story = await restartStory({ unled: true })
    const isIntended = (call: PortCall): boolean => call.name === 'lease' && story.open('a').some(t => t.step === 'reboot' && t.actedAt)
    const { tookMs, late } = await stoppedAt(story, isIntended)
    expect(tookMs).toBeLessThanOrEqual(HANDOVER_MS)
    const [reboot] = story.world.journal.of('reboot-requested')
    expect(story.world.schedule.now() - (reboot?.at ?? 0)).toBeLessThanOrEqual(HANDOVER_MS)
    await story.untilDone('a')
    expect(late).toEqual([])
    expect(story.world.journal.of('reboot-requested').map(e => e.machine)).toEqual(['cp-1', 'wk-1'])
  })

  it('does not wait for a pass that hangs on a machine that never answers', async () => {
    const story = await restartStory({ unled: true })
    const { tookMs, late } = await stoppedAt(story, call => call.name === 'reboot', true)
    expect(tookMs).toBeLessThanOrEqual(HANDOVER_MS)
    await story.untilDone('a')
    expect(late).toEqual([])
    expect(story.world.journal.of('reboot-requested').map(e => e.machine)).toEqual(['cp-1', 'wk-1'])
  })
})

/** A new version of the Deployment: one replica after the other is told to stop and another started in its place, again and again. */
const rollOver = (story: ReturnType<typeof createStory>, everyMs: number) => {
  const replicas: Process[] = ['ichor-0', 'ichor-1', 'ichor-2'].map(story.start)
  const { after } = story.world.schedule
  let [started, handovers, most] = [replicas.length, 0, 0]
  const replace = (left: number): void => {
    const oldest = replicas.shift()
    replicas.push(story.start(`ichor-${started++}`))
    if (oldest?.controller.isLeading()) handovers++
    void oldest?.controller.stop().then(oldest.kill)
    after(left > 1 ? 10_000 : everyMs, () => replace(left > 1 ? left - 1 : replicas.length))
  }
  after(everyMs, () => replace(replicas.length))
  story.world.calls.intercept(() => {
    most = Math.max(most, replicas.filter(r => r.controller.isLeading()).length)
    return undefined
  })
  return { handovers: () => handovers, most: () => most }
}

const sum = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((a, b) => a + b, 0)

describe('three replicas, restarted one after the other', () => {
  it.each([45_000, 72_000, 111_000, 164_000])('every %i ms: the rollout costs no act and no duplicate', async everyMs => {
    const story = createStory({ controlPlanes: 3, workers: 2 })
    const watchmen = postWatchmen(story.world)
    const rolling = rollOver(story, everyMs)
    await discovered(story)
    story.create({ name: 'up', spec: { kind: 'talos', talos: { version: 'v1.13.9' } } })
    await story.until('it is completed', () => story.operation('up')?.status.phase === 'Completed')
    expect(rolling.handovers()).toBeGreaterThanOrEqual(5)
    expect(rolling.most()).toBe(1)
    expect(watchmen.counts('reboot-requested')).toEqual(Object.fromEntries(story.world.machines.map(m => [m.name, 1])))
    // The word of an installer that ends while its listener leaves is lost; it is run again, into the same slot.
    expect(sum(watchmen.counts('installed')) - story.world.machines.length).toBeLessThanOrEqual(rolling.handovers())
    expect(watchmen.complaints()).toEqual([])
    expect(story.operation('up')?.status.lastFailure).toBeUndefined()
  })
})
