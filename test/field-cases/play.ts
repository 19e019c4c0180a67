// Plays a case in the invented cluster: once as told, and again with the controller killed on its way. Both must end the same.
import { expect, vi } from 'vitest'
import { ANNOTATION } from '../../src/api/names.ts'
import type { OperationStatus } from '../../src/api/talos-operation.ts'
import { createStory, NAMESPACE, type Process, type Story, type StoryOptions } from '../../src/storm/story.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { runningSlot } from '../../src/world/slots.ts'
import { watchAlways, type Allowed, type Watch } from './always.ts'

export type Run = Story &
  Watch & {
    readonly status: () => OperationStatus
    /** Until it is completed, or paused for anything but the lock; and three minutes more, in which nothing may happen that should not. */
    readonly settled: (limitMs?: number) => Promise<void>
    /** Asks for a new try, as `ichor operation resume` does, until it has begun. */
    readonly resume: () => Promise<void>
    /** The controller that runs now, and another one in its place. */
    readonly process: () => Process
    readonly restart: () => void
  }

export type Case = {
  readonly cluster?: StoryOptions
  /** The rest of `spec`, besides the kind. */
  readonly spec: Readonly<Partial<Record<'talos' | 'node' | 'kubernetes' | 'config', Readonly<Record<string, unknown>>>>> &
    Readonly<Record<string, unknown>>
  readonly allowed?: Allowed
  /** Before the operation is created, with the machines discovered. */
  readonly arrange?: (run: Run) => void | Promise<void>
  /** From the creation to the end; default: until it is completed or paused. */
  readonly drive?: (run: Run) => Promise<void>
}

// A whole rollout, several times over: seconds where the machine is busy with other tests.
vi.setConfig({ testTimeout: 60_000 })

export const NAME = 'up'
const KINDS = ['node', 'kubernetes', 'config'] as const

/** How it ended, as far as it must not depend on when a controller died. */
export type End = {
  readonly phase: string | undefined
  readonly reason: string | undefined
  readonly machines: readonly string[]
}

export type Played = { readonly run: Run; readonly end: End }

/** Kills the controller at the call number `at` of those that change something, and starts another one ten seconds later. */
const kill = ({ world, process, restart }: Run, at: number): void => {
  let seen = 0
  world.calls.intercept(call => {
    if (call.client !== process().ports.client.name || !call.changes || ++seen !== at) return undefined
    process().kill()
    world.schedule.after(10_000, restart)
    return { do: 'silence', when: at % 2 === 0 ? 'after' : 'before' }
  })
}

const isSettled = ({ phase, failureReason }: OperationStatus): boolean =>
  phase === 'Completed' || phase === 'Cancelled' || (phase === 'Paused' && failureReason !== 'ClusterLockHeld')

export const play = async (told: Case, death?: number): Promise<Played & { readonly changes: number }> => {
  const story = createStory(told.cluster)
  const watch = watchAlways(story, { ...told.allowed, ...(death === undefined ? {} : { deaths: 1 }) }, told.cluster?.self?.pod)
  const status = (): OperationStatus => story.operation(NAME)?.status ?? {}
  const settled = async (limitMs?: number): Promise<void> => {
    await story.until('it has settled', () => isSettled(status()), limitMs)
    await story.pass(180_000)
  }
  const resume = async (): Promise<void> => {
    const before = status().lastRetry
    story.edit(NAME, { annotations: { [ANNOTATION.retry]: 'true' } })
    await story.until('the new try has begun', () => status().lastRetry !== before)
  }
  let process = story.start('ichor-0')
  let started = 0
  const restart = (): void => {
    process.kill()
    process = story.start(`ichor-${++started}`)
  }
  const run: Run = { ...story, ...watch, status, settled, resume, process: () => process, restart }
  const { machines } = story.world
  await story.until(
    'the machines are known',
    () => story.world.store.list(ICHOR.machines, NAMESPACE).items.filter(m => 'status' in m).length >= machines.length,
  )
  await told.arrange?.(run)
  const before = changesBy(story)
  if (death !== undefined) kill(run, death)
  story.create({ name: NAME, spec: { kind: KINDS.find(kind => told.spec[kind]) ?? 'talos', ...told.spec } })
  await (told.drive ?? (() => settled()))(run)
  const wrong = watch.verdict()
  if (wrong.length > 0) throw new Error(`${death === undefined ? '' : `killed at change ${death}: `}${wrong.join('\n')}\n${story.tell()}`)
  return { run, end: endOf(run), changes: changesBy(story) - before }
}

/** The image that each machine was installed from in the end, as the machines saw it. */
export const installedFrom = ({ world }: Run): readonly (string | undefined)[] =>
  world.machines.map(m => world.journal.of('installed', m.name).at(-1)?.detail)

const changesBy = (story: Story): number =>
  [...story.world.calls.counts()].filter(([name]) => CHANGES.has(name)).reduce((sum, [, count]) => sum + count, 0)
const CHANGES = new Set(
  ['writeOperationStatus', 'changeOperation', 'createLease', 'replaceLease', 'event', 'writeMachineStatus', 'writeClusterStatus']
    .map(name => `home.${name}`)
    .concat(['pull', 'install', 'upgrade', 'reboot', 'forfeitLeadership', 'setInstallImage'].map(name => `talos.${name}`))
    .concat(['setComponentImage', 'pullForPods', 'applyConfiguration'].map(name => `talos.${name}`))
    .concat(['shutdown', 'reset', 'restartService', 'defragment', 'disarmAlarms', 'leaveEtcd', 'removeMember'].map(name => `talos.${name}`))
    .concat(['cordon', 'uncordon', 'evict', 'deletePod', 'deleteNode', 'applyManifests'].map(name => `kube.${name}`)),
)

const endOf = ({ world, status }: Run): End => {
  const { phase, failureReason, machines = [] } = status()
  return {
    phase,
    reason: failureReason,
    machines: world.machines.map(m => {
      const target = machines.find(t => t.node === m.name)
      const { version, schematic } = runningSlot(m.disk)
      const node = world.store.get(RESOURCE.nodes, '', m.name)
      const cordoned = (node?.spec as { unschedulable?: boolean } | undefined)?.unschedulable === true
      return `${m.name} ${version}${schematic ? ` ${schematic.slice(0, 8)}` : ''} ${target?.phase ?? 'untouched'}${cordoned ? ' cordoned' : ''}`
    }),
  }
}

/** Plays it, then again so many times with a death of the controller somewhere between its begin and its end. */
export const playWithDeaths = async (told: Case, deaths = 3): Promise<Played> => {
  const whole = await play(told)
  for (let i = 1; i <= deaths; i++) {
    const at = Math.max(1, Math.round((whole.changes * i) / (deaths + 1)))
    const { end } = await play(told, at)
    expect(end, `killed at change ${at} of ${whole.changes}`).toEqual(whole.end)
  }
  return whole
}

export const messages = ({ status }: Run): string => [status().message, ...(status().machines ?? []).map(t => t.message)].join('\n')
