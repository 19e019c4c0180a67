import type { Violation } from './checker.ts'
import { checkers } from './checkers/all.ts'
import { hasSettled } from './checkers/end.ts'
import { waitsForWindow } from './checkers/explained.ts'
import { troubles } from './faults/all.ts'
import { mendMachines } from './faults/machines.ts'
import { create } from './faults/people.ts'
import { isOfAHand } from './faults/status.ts'
import type { Draft, Plan, Strike } from './plan.ts'
import { setUpSources } from './patch-sources.ts'
import { examine, planBefore } from './planning.ts'
import { watchScene } from './scene.ts'
import { OWN_POD, setUp, worldOf } from './setting.ts'
import type { Stage } from './stage.ts'
import { createStage } from './stage.ts'
import { createStory } from './story.ts'
import { isGarbled } from './checkers/words.ts'
import { tellRun } from './tell.ts'
import { createWeather, inWeather } from './weather.ts'
import { ICHOR } from '../world/ports/home.ts'
import { isStopped } from '../core/ledger.ts'

/** What came of one run. */
export type Run = {
  readonly plan: Plan
  /** In the order in which they were found; a run ends with the first moment that has one. */
  readonly violations: readonly Violation[]
  readonly stage: Stage
  readonly text: () => string
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** How long, all troubles over, an operation may need until it rests. */
const LIVENESS_MS = 6 * HOUR

export type StormOptions = {
  /** Plays along once the stage stands, before the first operation is created. */
  readonly arrange?: (stage: Stage) => void
  /** The one checker that looks; all where absent. */
  readonly only?: string
}

/** Plays a plan to its end, or to its first violation. The same plan is played the same every time. */
export const playPlan = async (plan: Plan, options: StormOptions = {}): Promise<Run> => {
  const { shape } = plan
  const { setting = {} } = shape
  const set = worldOf(setting, shape)
  const weather = createWeather()
  const violations: Violation[] = []
  const errors: string[] = []
  const isEdited = plan.strikes.some(s => s.family === 'status')
  const story = createStory({
    seed: plan.seed,
    controlPlanes: shape.controlPlanes,
    workers: shape.workers,
    talos: shape.talos,
    kubernetes: shape.kubernetes,
    scale: shape.haste,
    homeOutside: shape.homeOutside,
    ...set,
    workloads: [...shape.workloads, ...set.workloads],
    wrap: ports => inWeather(ports, weather),
    hear: (level, message) => {
      if (level === 'error' && !(isEdited && isOfAHand(message))) errors.push(message)
    },
  })
  const { world } = story
  const { schedule } = world
  const begin = schedule.now()
  const stage = createStage(plan, story, weather)
  const scene = watchScene(stage)
  const endings: (() => void)[] = []
  for (const checker of checkers) {
    if (checker.kinds && !checker.kinds.includes(plan.kind)) continue
    if (options.only !== undefined && options.only !== checker.name) continue
    const object = (what: string): void => void violations.push({ checker: checker.name, at: schedule.now() - begin, what })
    const atTheEnd = checker.post(scene, object)
    if (atTheEnd) endings.push(atTheEnd)
  }
  const isOver = (): boolean => violations.length > 0 || errors.length > 0
  const run = (): Run => ({
    plan,
    stage,
    violations: [...violations, ...errors.map(what => ({ checker: 'no-internal-error', at: schedule.now() - begin, what }))],
    text: () => tellRun(stage, violations),
  })
  const pass = (ms: number): Promise<void> => passUnless(story, ms, isOver)

  const known = (): boolean => {
    const found = world.store.list(ICHOR.machines).items
    return found.length === world.machines.length && found.every(m => m['status'] !== undefined)
  }
  if (setting.oddities?.early) for (const { name } of plan.operations) create(stage, name)
  await story.until('the machines are known', () => known() || isOver(), 10 * MINUTE)
  // Lists that are stale are older than that, but not out of the middle of it.
  if (plan.strikes.some(s => s.family === 'stale')) await pass(MINUTE)
  stage.byHand(undefined, () => setUp(story, setting))
  // Long ago: whatever was restarted by it runs again.
  if (setting.oddities?.written) await pass(5 * MINUTE)
  if (plan.kind === 'config') setUpSources(world)
  // Its pod is evicted, and so its process ends; another comes up elsewhere.
  world.journal.onEntry(({ what, detail }) => {
    if (what === 'pod-gone' && detail === `${OWN_POD.namespace}/${OWN_POD.pod}` && stage.replicas[0]) stage.kill(stage.replicas[0], 3000)
  })
  options.arrange?.(stage)
  /** A person asks, and hears the answer while all goes on; says whether it has come. */
  const ask = (what: string, question: () => Promise<string | undefined>): (() => boolean) => {
    let isTold = false
    question()
      .then(told => {
        isTold = true
        if (told !== undefined) stage.note(told)
      })
      .catch((error: unknown) => errors.push(`${what} failed: ${String(error)}`))
    return () => isTold
  }
  /** A person asks, and sees the answer before anything else is done. */
  const asks = async (what: string, question: () => Promise<string | undefined>): Promise<void> => {
    const isTold = ask(what, question)
    await story.until(`${what} is told`, () => isTold() || isOver(), 10 * MINUTE)
  }
  const asksWhatIsWrong = (): Promise<void> =>
    asks('what is wrong', async () => {
      const found = await examine(story)
      // What the metrics tell.
      for (const { process } of stage.replicas) if (process.controller.queue().depth < 0) errors.push('a queue is shorter than empty')
      errors.push(...found.filter(isGarbled))
      return found.length > 0 ? `${found.length} things are said to be wrong` : undefined
    })
  const planned = async (draft: Draft): Promise<string | undefined> => {
    const told = await planBefore(story, draft)
    return told && (told.ok ? `the plan refuses ${told.value.refusals.length} times` : `no plan: ${told.fault.message}`)
  }
  const others = plan.considered?.map(({ spec, at }, index) => ({ at, draft: { name: `other-${index}`, spec } })) ?? []
  const before = others.filter(({ at }) => at === undefined).map(({ draft }) => draft)
  for (const draft of [...before, ...(plan.isPlanned ? plan.operations : [])]) await asks('the plan', () => planned(draft))
  for (const { name } of plan.operations) create(stage, name)
  const { endAll } = fall(stage, plan.strikes)
  for (const { at, draft } of others) if (at !== undefined) schedule.after(at, () => void ask('the plan', () => planned(draft)))

  const isQuiet = (): boolean => stage.operations().every(o => hasSettled(o, stage.operations())) && stage.operations().length > 0
  const until = schedule.now() + plan.horizonMs
  // Where all is over before the last strike has fallen, the rest of the troubles would trouble nobody.
  let quietSince = Infinity
  while (!isOver() && schedule.now() < until) {
    await pass(Math.min(20_000, until - schedule.now()))
    quietSince = isQuiet() ? Math.min(quietSince, schedule.now()) : Infinity
    if (schedule.now() - quietSince > 2 * MINUTE) break
  }
  if (plan.isPlanned && !isOver()) await asksWhatIsWrong()
  endAll()
  await mend(stage, pass, isOver)
  const limit = schedule.now() + LIVENESS_MS
  let resumed = 0
  let lookedAfter = schedule.now()
  const unsettled = () => stage.operations().filter(o => !hasSettled(o, stage.operations()))
  while (!isOver()) {
    await pass(10_000)
    if (unsettled().length > 0) {
      // What went wrong only now, as the only control plane that was powered off, is seen by whoever comes by next.
      if (schedule.now() - lookedAfter > HOUR) {
        await mend(stage, pass, isOver)
        lookedAfter = schedule.now()
      }
      if (schedule.now() < limit) continue
      // Where the operations are kept on the cluster itself, and its API came to its end by what was asked for, nobody can be told any more.
      if (plan.kind === 'config' && !world.homeOutside && !world.api.available()) break
      for (const { metadata, status } of unsettled().filter(o => !waitsForWindow(o, plan)))
        violations.push({
          checker: 'liveness',
          at: schedule.now() - begin,
          what: `${metadata.name} has not settled: ${status.phase} ${status.message}`,
        })
      break
    }
    const stuck = stage.operations().filter(o => isStopped(o.status) || o.spec.paused)
    if (plan.resumes && stuck.length > 0 && resumed < 2) {
      if (resumed === 0) await asksWhatIsWrong()
      resumed++
      for (const { metadata } of stuck) {
        stage.note(`a person resumes ${metadata.name}`)
        stage.ask(metadata.name, { paused: false, retry: 'by hand' })
      }
      await mend(stage, pass, isOver)
      continue
    }
    // What comes late, a cordon given back or an operation created once more, is waited for as well.
    await pass(2 * MINUTE)
    if (unsettled().length === 0) break
  }
  if (!isOver()) for (const end of endings) end()
  for (const replica of stage.replicas) replica.process.kill()
  return run()
}

/** Everything that was wrong is put right, and so are the machines that were on their way into trouble. */
const mend = async (stage: Stage, pass: (ms: number) => Promise<void>, isOver: () => boolean): Promise<void> => {
  for (const replica of stage.replicas) {
    if (replica.isFrozen) replica.process.thaw()
    replica.isFrozen = false
  }
  const { world } = stage.story
  const { aloof } = stage.plan.shape.setting?.oddities ?? {}
  const isAllWell = (): boolean =>
    world.machines.every(
      m => m.config === '' || (world.isUp(m) && (m.index === aloof || world.store.get('nodes', '', m.name) !== undefined)),
    )
  for (let round = 0; round < 12 && !isOver(); round++) {
    mendMachines(stage)
    if (round > 0 && isAllWell()) return
    await pass(MINUTE)
  }
}

/** Plans the strikes. The answer ends those that last. */
const fall = (stage: Stage, strikes: readonly Strike[]): { readonly endAll: () => void } => {
  const { schedule, calls } = stage.story.world
  const ends = new Set<() => void>()
  let isPast = false
  const strike = (one: Strike): void => {
    if (isPast) return
    const end = troubles[one.family].strike(stage, one)
    if (!end) return
    ends.add(end)
    const over = (): void => {
      if (ends.delete(end)) end()
    }
    if (one.forMs !== undefined) schedule.after(one.forMs, over)
  }
  const byCall = new Map<number, Strike[]>()
  for (const one of strikes) {
    if ('at' in one.when) schedule.after(one.when.at, () => strike(one))
    else byCall.set(one.when.call, [...(byCall.get(one.when.call) ?? []), one])
  }
  let count = 0
  calls.intercept(call => {
    if (call.changes) for (const one of byCall.get(++count) ?? []) strike(one)
    return undefined
  })
  return {
    endAll: () => {
      isPast = true
      for (const end of [...ends]) end()
      ends.clear()
      stage.note('the storm is over')
    },
  }
}

/** Lets so much time pass, unless something is found on the way. */
const passUnless = async (story: Stage['story'], ms: number, isOver: () => boolean): Promise<void> => {
  const end = story.world.schedule.now() + ms
  let isThere = false
  story.world.schedule.at(end, () => {
    isThere = true
  })
  await story.until('time has passed', () => isThere || isOver(), ms + 1)
}
