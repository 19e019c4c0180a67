import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../api/names.ts'
import type { OperationStatus, Target } from '../api/talos-operation.ts'
import type { Story, StoryOptions } from '../storm/story.ts'
import { createStory } from '../storm/story.ts'
import { RESOURCE, change } from '../world/objects.ts'
import { ICHOR } from '../world/ports/home.ts'

/** What an operation that stops does for several machines at once. */

const MINUTE = 60_000
const NAME = 'up'
const HELD = { name: 'db', budget: { minAvailable: 1 }, on: [2] }

type Stopping = Story & {
  readonly status: () => OperationStatus
  readonly target: (machine: string) => Target | undefined
  readonly happened: (what: string, machine: string) => number
  readonly isMarked: (machine: string) => boolean
  readonly pause: () => void
}

/** One control plane and three workers, which are upgraded two at a time. */
const stopping = async (spec: object, options: StoryOptions = {}): Promise<Stopping> => {
  const story = createStory({ controlPlanes: 1, workers: 3, homeOutside: true, ...options })
  story.start()
  const known = () => story.world.store.list(ICHOR.machines).items
  await story.until('machines are discovered', () => known().length === 4 && known().every(m => m['status'] !== undefined))
  story.create({
    name: NAME,
    spec: { kind: 'talos', maxUnavailable: 2, acknowledge: ['api-outage'], talos: { version: 'v1.13.9' }, ...spec },
  })
  const status = (): OperationStatus => story.operation(NAME)?.status ?? {}
  return {
    ...story,
    status,
    target: machine => status().machines?.find(t => t.node === machine),
    happened: (what, machine) => story.world.journal.of(what, machine).length,
    isMarked: machine => story.world.store.get(RESOURCE.nodes, '', machine)?.metadata.annotations?.[ANNOTATION.cordonedBy] !== undefined,
    pause: () => story.edit(NAME, { spec: { paused: true } }),
  }
}

/** wk-1 is down for twelve minutes, and the pods of wk-2 are held by a budget. */
const oneDownOneHeld = async (spec: object = {}): Promise<Stopping> => {
  const story = await stopping(spec, { workloads: [HELD] })
  story.world.fault('wk-1', { firmwareMs: 12 * MINUTE })
  await story.until(
    'wk-1 is down, and wk-2 is drained',
    () => story.happened('down', 'wk-1') === 1 && story.target('wk-2')?.step === 'drain',
  )
  return story
}

describe('while one machine reboots for long', () => {
  it('a pause goes on draining another, which is done first', async () => {
    const story = await oneDownOneHeld()
    story.pause()
    await story.pass(MINUTE)
    story.world.store.remove(RESOURCE.budgets, 'default', 'db')
    await story.until('wk-2 is done', () => story.target('wk-2')?.phase === 'Completed', 10 * MINUTE)
    expect(story.isMarked('wk-2')).toBe(false)
    expect(story.target('wk-1')?.step).toBe('reboot')
    await story.until('it is paused', () => story.status().phase === 'Paused')
    expect(story.target('wk-1')?.phase).toBe('Completed')
    expect(story.status().lastFailure).toBeUndefined()
    expect(story.happened('install-began', 'wk-3')).toBe(0)
  })

  it('a pause says of each machine that is open what it waits for', async () => {
    const story = await oneDownOneHeld()
    story.pause()
    await story.pass(MINUTE)
    expect(story.target('wk-1')?.message).toMatch(/^pausing, finishing wk-1: wk-1: reboot: /)
    expect(story.target('wk-2')?.message).toMatch(
      /^pausing, finishing wk-2: wk-2: drain: pod default\/db-.* is held by PodDisruptionBudget db/,
    )
  })

  it('a pause closes one that is not committed', async () => {
    const story = await stopping({})
    story.world.fault('wk-1', { firmwareMs: 12 * MINUTE })
    const { address } =
      story.world.machine('wk-2').addresses[0] === undefined ? { address: '' } : { address: story.world.machine('wk-2').addresses[0] }
    story.world.calls.intercept(({ name, target }) =>
      name === 'pull' && target === address ? { do: 'fail', when: 'before', fault: { kind: 'busy', message: '503' } } : undefined,
    )
    await story.until('wk-1 is down, and wk-2 pulls', () => story.happened('down', 'wk-1') === 1 && story.target('wk-2')?.step === 'pull')
    story.pause()
    await story.until('wk-2 is closed', () => story.target('wk-2')?.phase === 'Pending', MINUTE)
    expect(story.target('wk-1')?.step).toBe('reboot')
  })

  it('a failure gives its cordon back to one that has failed and is well', async () => {
    const story = await oneDownOneHeld({ drain: { timeout: '2m' } })
    await story.until('wk-2 has failed', () => story.target('wk-2')?.phase === 'Failed')
    await story.until('its cordon is lifted', () => !story.isMarked('wk-2'), MINUTE)
    expect(story.target('wk-1')?.step).toBe('reboot')
    await story.until('wk-1 is done', () => story.target('wk-1')?.phase === 'Completed')
  })

  it('a cancel carries each to its end, and neither waits for the other', async () => {
    const story = await oneDownOneHeld()
    story.edit(NAME, { spec: { cancelled: true } })
    await story.pass(MINUTE)
    story.world.store.remove(RESOURCE.budgets, 'default', 'db')
    await story.until('wk-2 is done', () => story.target('wk-2')?.phase === 'Completed', 10 * MINUTE)
    expect(story.target('wk-1')?.step).toBe('reboot')
    await story.until('it has ended', () => story.status().phase === 'Cancelled')
    expect(story.target('wk-1')?.phase).toBe('Completed')
  })
})

it('one that failed and stays dead does not keep another from its cordon back', async () => {
  const story = await stopping({ timeouts: { reboot: '5m' } })
  story.world.fault('wk-1', { rebootNeverEnds: true })
  story.world.fault('wk-2', { rebootNeverEnds: true })
  await story.until('both have failed', () => ['wk-1', 'wk-2'].every(name => story.target(name)?.phase === 'Failed'))
  await story.pass(2 * MINUTE)
  expect(story.isMarked('wk-2')).toBe(true)
  story.world.fault('wk-2', { rebootNeverEnds: false })
  story.world.powerOff('wk-2')
  story.world.powerOn('wk-2')
  await story.until('the cordon of wk-2 is lifted', () => !story.isMarked('wk-2'), 10 * MINUTE)
  expect(story.isMarked('wk-1')).toBe(true)
  expect(story.target('wk-1')?.message).toContain('its cordon stays')
})

describe('a machine whose cordon could not be lifted as the operation paused', () => {
  /** wk-1 is cordoned and drained for a reboot that has not begun. */
  const draining = async (): Promise<Stopping> => {
    const story = await stopping(
      { kind: 'node', talos: undefined, node: { action: 'reboot', machine: 'wk-1' } },
      { workloads: [{ name: 'db', budget: { minAvailable: 1 }, on: [1] }] },
    )
    await story.until('it is drained', () => story.target('wk-1')?.step === 'drain' && story.isMarked('wk-1'))
    return story
  }
  const isPaused = (story: Stopping) => (): boolean => story.status().phase === 'Paused' && story.target('wk-1')?.phase === 'Pending'
  const finalizers = (story: Stopping): number => story.operation(NAME)?.metadata.finalizers.length ?? 0

  it('has it back once Kubernetes answers again', async () => {
    const story = await draining()
    const mend = story.world.calls.intercept(({ port }) =>
      port === 'kube' ? { do: 'fail', when: 'before', fault: { kind: 'unreachable', message: 'no route' } } : undefined,
    )
    story.pause()
    await story.until('it is paused', isPaused(story), MINUTE)
    await story.pass(5 * MINUTE)
    expect(story.isMarked('wk-1')).toBe(true)
    expect(finalizers(story)).toBe(1)
    mend()
    await story.until('the cordon is lifted', () => !story.isMarked('wk-1'), MINUTE)
    await story.until('the finalizer is gone', () => finalizers(story) === 0, MINUTE)
    expect(isPaused(story)()).toBe(true)
    expect(story.happened('uncordon', 'wk-1')).toBe(1)
  })

  it.each<[string, object, (story: Stopping) => void, string]>([
    ['paused', {}, story => story.pause(), 'Paused'],
    ['paused, and then cancelled', { spec: { cancelled: true } }, story => story.pause(), 'Cancelled'],
  ])('has it back once its Node is Ready again: %s', async (_, then, stop, phase) => {
    const story = await draining()
    story.world.blackHole('wk-1', true)
    await story.pass(2 * MINUTE)
    stop(story)
    await story.until('it is paused', isPaused(story), MINUTE)
    await story.pass(MINUTE)
    expect(story.isMarked('wk-1')).toBe(true)
    expect(story.target('wk-1')?.message).toContain('it is not healthy, so its cordon stays')
    story.edit(NAME, then)
    story.world.blackHole('wk-1', false)
    await story.until('the cordon is lifted', () => !story.isMarked('wk-1'), 5 * MINUTE)
    await story.until('the finalizer is gone', () => finalizers(story) === 0, MINUTE)
    expect(story.status().phase).toBe(phase)
  })

  it('is left to another operation that works on it meanwhile', async () => {
    const story = await draining()
    story.world.blackHole('wk-1', true)
    await story.pass(2 * MINUTE)
    story.pause()
    await story.until('it is paused', isPaused(story), MINUTE)
    const mine = story.operation(NAME)?.metadata.uid
    // Only a hand gets another there while this one holds the lock.
    change(story.world.store, RESOURCE.leases, 'ichor-system', 'ichor-home', now => ({
      ...now,
      spec: { ...(now['spec'] as object), holderIdentity: '' },
    }))
    story.create({
      name: 'other',
      spec: { kind: 'node', node: { action: 'reboot', machine: 'wk-1' }, drain: { policy: 'wait', timeout: '30m' } },
    })
    story.world.blackHole('wk-1', false)
    const other = (): Target | undefined => story.operation('other')?.status.machines?.[0]
    await story.until('the other is at it', () => other()?.phase === 'Running', 10 * MINUTE)
    await story.pass(5 * MINUTE)
    expect(story.world.store.get(RESOURCE.nodes, '', 'wk-1')?.metadata.annotations?.[ANNOTATION.cordonedBy]).toBe(mine)
  })
})
