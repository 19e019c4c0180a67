import { describe, expect, it } from 'vitest'
import type { Target } from '../api/talos-operation.ts'
import type { Answer, Step, Verdict } from './kind.ts'
import { YES, no, unknown, wait } from './kind.ts'
import { iso } from './ledger.ts'
import { nextStep } from './steps.ts'
import { operation, world } from './samples.ts'
import { podFacts } from './world.ts'

const NOW = Date.UTC(2026, 8, 1, 8)
const at = (secondsAgo: number): string => iso(NOW - secondsAgo * 1000)

type Draft = Partial<Omit<Step, 'done' | 'guard'>> & {
  readonly name: string
  readonly done?: Answer
  readonly may?: Verdict
  readonly acts?: boolean
}
const step = ({ name, done = no('it is not done'), may, acts = true, ...rest }: Draft): Step => ({
  name,
  summary: name,
  done: () => done,
  ...(may ? { guard: () => may } : {}),
  ...(acts ? { act: { long: false, disruptive: true, describe: () => name, run: async () => ({ ok: true, value: undefined }) } } : {}),
  failure: 'InternalError',
  ...rest,
})

const next = (steps: readonly Step[], target: Partial<Target> = {}, seen: Parameters<typeof world>[0] = {}) => {
  const full: Target = { name: 'wk-1', role: 'worker', phase: 'Running', stepStartedAt: at(10), ...target }
  const answer = nextStep(steps, { operation: operation({ machines: [full] }), target: full, world: world({ now: NOW, ...seen }) })
  return 'step' in answer ? { ...answer, step: answer.step.name } : answer
}

describe('the next step', () => {
  it('is the first that is not done', () => {
    expect(next([step({ name: 'a', done: YES }), step({ name: 'b' }), step({ name: 'c' })])).toMatchObject({ is: 'enter', step: 'b' })
  })

  it('is acted on once it is the recorded one, because only then its clock runs', () => {
    expect(next([step({ name: 'a' })], { step: 'a' })).toMatchObject({ is: 'act', step: 'a' })
  })

  it('is none when all are done', () => {
    expect(next([step({ name: 'a', done: YES }), step({ name: 'b', done: YES })], { step: 'b' })).toEqual({ is: 'done' })
  })

  it('goes back to an earlier one that is undone again', () => {
    expect(next([step({ name: 'a' }), step({ name: 'b' })], { step: 'b' })).toMatchObject({ is: 'enter', step: 'a' })
  })

  it('does not go back because an earlier one cannot be told now: the machine is away', () => {
    expect(next([step({ name: 'a', done: unknown('away') }), step({ name: 'b', acts: false })], { step: 'b' })).toMatchObject({
      is: 'wait',
      step: 'b',
    })
  })

  it('does not fail by an earlier one while its own act is on the way: what is seen may be half of that', () => {
    const failed: Answer = { is: 'failed', reason: 'ConfigChangedByOthers', message: 'somebody else has written it' }
    const steps = [step({ name: 'a', done: failed }), step({ name: 'b', deadlineMs: () => 60_000 })]
    const running = [{ target: 'wk-1', step: 'b', progress: '' }]
    expect(next(steps, { step: 'b' }, { running })).toMatchObject({ is: 'wait', step: 'b' })
    expect(next(steps, { step: 'b' })).toMatchObject({ is: 'fail', step: 'a', reason: 'ConfigChangedByOthers' })
    const overdue = { step: 'b', stepStartedAt: at(90) }
    expect(next(steps, overdue, { running, watchedMs: 90_000 })).toMatchObject({ is: 'fail', step: 'b' })
    const elsewhere = [{ target: 'wk-1', step: 'c', progress: '' }]
    expect(next(steps, { step: 'b' }, { running: elsewhere })).toMatchObject({ is: 'fail', step: 'a' })
  })

  it('asks for what it needs to know before it tells why it has failed', () => {
    const overdue = step({
      name: 'b',
      needs: () => [{ what: 'pods', node: 'wk-1' }],
      deadlineMs: () => 5000,
      failure: ({ world: seen }) => (podFacts(seen, 'wk-1').ok ? 'DrainBlocked' : 'DrainTimeout'),
    })
    expect(next([step({ name: 'a', done: unknown('away') }), overdue], { step: 'b' })).toEqual({
      is: 'look',
      needs: [{ what: 'pods', node: 'wk-1' }],
    })
  })

  it('is none only when all of them can be told: a machine that went away again after it was back is waited for, as long as the last step has', () => {
    const steps = [step({ name: 'a', done: unknown('away') }), step({ name: 'b', done: YES, deadlineMs: () => 60_000 })]
    expect(next(steps, { step: 'b' })).toMatchObject({ is: 'wait', step: 'b', why: 'b: away' })
    expect(next(steps, { step: 'b', stepStartedAt: at(61) })).toMatchObject({
      is: 'fail',
      step: 'b',
      message: expect.stringContaining('away'),
    })
  })

  it('fails when an answer says that it can never be done', () => {
    const done: Answer = { is: 'failed', reason: 'BootedOldVersion', message: 'it fell back' }
    expect(next([step({ name: 'a', done })], { step: 'a' })).toMatchObject({
      is: 'fail',
      reason: 'BootedOldVersion',
      message: 'it fell back',
    })
  })

  it('leaves out steps that do not exist for this target', () => {
    expect(next([step({ name: 'a', applies: () => false }), step({ name: 'b' })])).toMatchObject({ is: 'enter', step: 'b' })
  })
})

describe('a milestone', () => {
  const drain = step({ name: 'drain' })
  it('whose evidence is there makes what came before it history', () => {
    expect(next([drain, step({ name: 'reboot', done: YES, milestone: true }), step({ name: 'verify' })], { step: 'reboot' })).toMatchObject(
      { is: 'enter', step: 'verify' },
    )
  })

  it('that was intended is not gone behind, even when what came before looks undone', () => {
    expect(
      next([drain, step({ name: 'reboot', milestone: true, settleMs: () => 60_000 })], { step: 'reboot', actedAt: at(5) }),
    ).toMatchObject({ is: 'wait', step: 'reboot' })
  })

  it('that was not intended yet lets an earlier step be done again', () => {
    expect(next([drain, step({ name: 'reboot', milestone: true })], { step: 'reboot' })).toMatchObject({ is: 'enter', step: 'drain' })
  })

  it('whose evidence has to hold for a while is held there, also where its act is not on the way', () => {
    const off = step({ name: 'shutdown', done: YES, milestone: true, stableMs: () => 120_000 })
    const steps = [drain, off, step({ name: 'next' })]
    expect(next(steps, { step: 'shutdown' })).toMatchObject({ is: 'hold', step: 'shutdown', since: NOW })
    expect(next(steps, { step: 'shutdown', stableSince: at(60) })).toMatchObject({ is: 'hold', step: 'shutdown' })
    expect(next(steps, { step: 'shutdown', stableSince: at(120) })).toMatchObject({ is: 'enter', step: 'next' })
    expect(next(steps, { step: 'next' })).toMatchObject({ is: 'act', step: 'next' })
  })

  it('behind us stays behind when the machine cannot be asked any more', () => {
    expect(
      next(
        [
          drain,
          step({ name: 'reboot', done: unknown('away'), milestone: true }),
          step({ name: 'verify', done: unknown('away'), acts: false }),
        ],
        { step: 'verify' },
      ),
    ).toMatchObject({ is: 'wait', step: 'verify' })
  })
})

describe('an act', () => {
  it('is given again only after its effect had time to show', () => {
    const steps = [step({ name: 'a', settleMs: () => 30_000 })]
    expect(next(steps, { step: 'a', actedAt: at(29) })).toMatchObject({ is: 'wait' })
    expect(next(steps, { step: 'a', actedAt: at(30) })).toMatchObject({ is: 'act' })
  })

  it('is not given while it runs beside the queue; its last words are shown', () => {
    expect(next([step({ name: 'a' })], { step: 'a' }, { running: [{ target: 'wk-1', step: 'a', progress: '50 %' }] })).toMatchObject({
      is: 'wait',
      why: 'a: 50 %',
    })
  })

  it('is not given where nobody can tell whether it is needed, nor is its guard asked', () => {
    expect(
      next([step({ name: 'a', done: unknown('it does not answer'), may: { may: 'no', reason: 'EtcdAlarm', message: 'no' } })], {
        step: 'a',
      }),
    ).toMatchObject({ is: 'wait', why: 'a: it does not answer' })
  })

  it('is not given before the time that a bad answer asked for; the answer is shown', () => {
    const target = { step: 'a', retryAt: at(-1), fault: '503 from the registry' }
    expect(next([step({ name: 'a' })], target)).toMatchObject({
      is: 'wait',
      why: 'a: it is not done; the last try: 503 from the registry',
      forMs: 1000,
    })
    expect(next([step({ name: 'a' })], { ...target, retryAt: at(0) })).toMatchObject({ is: 'act' })
  })

  it('waits for its guard, in its words', () => {
    expect(next([step({ name: 'a', may: wait('etcd has no leader', 'EtcdUnhealthy') })], { step: 'a' })).toMatchObject({
      is: 'wait',
      why: 'a: etcd has no leader',
    })
  })

  it('is given up at once when its guard says never', () => {
    expect(next([step({ name: 'a', may: { may: 'no', reason: 'EtcdAlarm', message: 'CORRUPT' } })], { step: 'a' })).toMatchObject({
      is: 'fail',
      reason: 'EtcdAlarm',
      message: 'CORRUPT',
    })
  })

  it('asks for the facts of its guard only when it is due', () => {
    const steps = [step({ name: 'a', guardNeeds: () => [{ what: 'etcd' }], settleMs: () => 60_000 })]
    expect(next(steps, { step: 'a' })).toEqual({ is: 'look', needs: [{ what: 'etcd' }] })
    expect(next(steps, { step: 'a', actedAt: at(1) })).toMatchObject({ is: 'wait' })
  })

  it('waits until its guard has allowed it long enough, seen twice', () => {
    const steps = [step({ name: 'a', may: YES, guardStableMs: () => 2000 })]
    expect(next(steps, { step: 'a' })).toMatchObject({ is: 'hold', since: NOW, forMs: 2000 })
    expect(next(steps, { step: 'a', stableSince: at(1) })).toMatchObject({ is: 'hold', since: NOW - 1000, forMs: 1000 })
    expect(next(steps, { step: 'a', stableSince: at(2) })).toMatchObject({ is: 'act' })
    expect(next(steps, { step: 'a', stableSince: at(2) }, { watchedMs: 0 })).toMatchObject({ is: 'hold', forMs: 2000 })
  })
})

describe('what has to hold for a while', () => {
  const steps = [step({ name: 'a', done: YES, stableMs: () => 20_000, acts: false })]
  it('is entered, held, and done only when it was seen twice that far apart', () => {
    expect(next(steps)).toMatchObject({ is: 'enter', step: 'a' })
    expect(next(steps, { step: 'a' })).toMatchObject({ is: 'hold', since: NOW })
    expect(next(steps, { step: 'a', stableSince: at(19) })).toMatchObject({ is: 'hold', forMs: 1000 })
    expect(next(steps, { step: 'a', stableSince: at(20) })).toEqual({ is: 'done' })
  })

  it('is looked at often meanwhile, so that what happens in between is seen', () => {
    expect(next(steps, { step: 'a', stableSince: at(0) })).toMatchObject({ is: 'hold', forMs: 2000 })
    const soak = [step({ name: 'a', done: YES, stableMs: () => 3_600_000, acts: false })]
    expect(next(soak, { step: 'a', stableSince: at(60) })).toMatchObject({ is: 'hold', forMs: 15_000 })
  })

  it('counts only what is in sight: a look right after a blind time is the first one', () => {
    expect(next(steps, { step: 'a', stableSince: at(60) }, { watchedMs: 0 })).toMatchObject({
      is: 'hold',
      since: NOW - 60_000,
      forMs: 2000,
    })
    expect(next(steps, { step: 'a', stableSince: at(60) }, { watchedMs: 19_500 })).toMatchObject({ is: 'hold', forMs: 500 })
    expect(next(steps, { step: 'a', stableSince: at(60) }, { watchedMs: 20_000 })).toEqual({ is: 'done' })
  })

  it('does not begin a long time anew for each moment in which nothing was seen; its end has to be in sight', () => {
    const soak = [step({ name: 'a', done: YES, stableMs: () => 3_600_000, acts: false })]
    expect(next(soak, { step: 'a', stableSince: at(3600) }, { watchedMs: 19_000 })).toMatchObject({ is: 'hold', forMs: 1000 })
    expect(next(soak, { step: 'a', stableSince: at(3600) }, { watchedMs: 20_000 })).toEqual({ is: 'done' })
  })

  it('need not hold anew once a later step is the recorded one', () => {
    expect(next([...steps, step({ name: 'b' })], { step: 'b' })).toMatchObject({ is: 'act', step: 'b' })
  })
})

describe('a deadline', () => {
  it('runs from the moment when the step became current, acted or not', () => {
    const steps = [step({ name: 'a', acts: false, deadlineMs: () => 60_000, failure: 'NodeNotReady', remedy: 'Look at the kubelet.' })]
    expect(next(steps, { step: 'a', stepStartedAt: at(59) })).toMatchObject({ is: 'wait', until: NOW + 1000, forMs: 1000 })
    expect(next(steps, { step: 'a', stepStartedAt: at(60) })).toMatchObject({
      is: 'fail',
      reason: 'NodeNotReady',
      message: 'wk-1: a did not end within 1m: it is not done. Look at the kubelet.',
    })
  })

  it('names what the guard was waiting for', () => {
    const steps = [step({ name: 'a', may: wait('etcd has no leader', 'EtcdUnhealthy'), deadlineMs: () => 60_000 })]
    expect(next(steps, { step: 'a', stepStartedAt: at(61) })).toMatchObject({ is: 'fail', reason: 'EtcdUnhealthy' })
  })

  it('that passes while the act would be due fails; it is not given once more', () => {
    expect(next([step({ name: 'a', deadlineMs: () => 60_000 })], { step: 'a', stepStartedAt: at(61) })).toMatchObject({ is: 'fail' })
  })

  it('is not over for an act that runs until the act was in sight for as long: the clock may have been set', () => {
    const steps = [step({ name: 'a', deadlineMs: () => 60_000 })]
    const running = [{ target: 'wk-1', step: 'a', progress: '' }]
    const target = { step: 'a', stepStartedAt: at(3600), actedAt: at(3600) }
    expect(next(steps, target, { running, watchedMs: 5_000 })).toMatchObject({ is: 'wait', forMs: 2000 })
    expect(next(steps, target, { running, watchedMs: 60_000 })).toMatchObject({ is: 'fail' })
  })

  it('is none where the step has none', () => {
    expect(next([step({ name: 'a', acts: false })], { step: 'a', stepStartedAt: at(999_999) })).toMatchObject({
      is: 'wait',
      until: undefined,
    })
  })
})
