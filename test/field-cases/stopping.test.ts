import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../../src/api/names.ts'
import { NAMESPACE } from '../../src/storm/story.ts'
import type { JournalEntry } from '../../src/world/journal.ts'
import { RESOURCE, change } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { runningSlot } from '../../src/world/slots.ts'
import { NAME, play, type Run } from './play.ts'

const spec = { talos: { version: 'v1.13.9' } }
const pause = (run: Run, paused: boolean): void => run.edit(NAME, { spec: { paused } })
/** Lets it go on, until it does. */
const goOn = async (run: Run): Promise<void> => {
  pause(run, false)
  await run.until('it goes on', () => run.status().phase === 'Running')
}
const isPaused = (run: Run) => (): boolean => run.status().phase === 'Paused' && run.status().failureReason === undefined
const happened = (run: Run, what: string, machine?: string): readonly JournalEntry[] => run.world.journal.of(what, machine)
const once = (run: Run): void => {
  for (const machine of run.world.machines) {
    expect(happened(run, 'reboot-requested', machine.name), machine.name).toHaveLength(1)
    expect(runningSlot(machine.disk).version).toBe('v1.13.9')
  }
}

describe('conflicts on the writes of status and Nodes [B160 kubernetes-sigs/controller-runtime#1464]', () => {
  it('half of all writes meet another’s for two minutes: nothing fails for it, and nobody’s words are lost', async () => {
    const { run, end } = await play({
      spec,
      drive: async run => {
        const { store, schedule } = run.world
        const until = schedule.now() + 120_000
        let touches = 0
        run.world.calls.intercept(({ changes, port, name, target, n }) => {
          if (!changes || schedule.now() > until || n % 2 === 0) return undefined
          if (port === 'kube' && (name === 'cordon' || name === 'uncordon'))
            change(store, RESOURCE.nodes, '', target, now => ({
              ...now,
              metadata: { ...now.metadata, labels: { ...now.metadata.labels, 'example.com/touched': String(++touches) } },
            }))
          if (name === 'writeOperationStatus' || name === 'changeOperation')
            change(store, ICHOR.operations, NAMESPACE, NAME, now => ({
              ...now,
              metadata: { ...now.metadata, annotations: { ...now.metadata.annotations, 'example.com/note': String(++touches) } },
            }))
          return undefined
        })
        await run.settled()
        expect(touches).toBeGreaterThan(10)
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.status().lastFailure).toBeUndefined()
    expect(run.operation(NAME)?.metadata.annotations['example.com/note']).toBeDefined()
    once(run)
  })

  it('a pause that comes between a look and a write is not erased', async () => {
    let isAsked = false
    const { run } = await play({
      spec,
      drive: async run => {
        run.world.calls.intercept(({ name }) => {
          if (name !== 'writeOperationStatus' || isAsked || happened(run, 'pulled').length === 0) return undefined
          isAsked = true
          pause(run, true)
          return undefined
        })
        await run.until('it is paused', isPaused(run))
        await run.pass(600_000)
        expect(happened(run, 'reboot-requested').length).toBeLessThanOrEqual(1)
        await goOn(run)
        await run.settled()
      },
    })
    expect(run.operation(NAME)?.spec.paused).toBe(false)
    once(run)
  })
})

describe('a pause that does not stop what runs [B162 NVIDIA/nodewright#351, kubernetes/client-go#487, numaproj/numaplane#829]', () => {
  const wk1 = 'wk-1'
  it.each<[string, 'given back' | 'finished', (run: Run) => boolean]>([
    ['while the image is pulled', 'given back', run => run.status().machines?.some(m => m.node === wk1 && m.step === 'pull') === true],
    ['in the middle of the install', 'finished', run => happened(run, 'install-began', wk1).length > 0],
    ['in the middle of the drain', 'finished', run => happened(run, 'cordon', wk1).length > 0],
    ['in the middle of the reboot', 'finished', run => happened(run, 'down', wk1).length > 0],
  ])('%s: the machine is %s', async (_, what, moment) => {
    const { run } = await play({
      cluster: { workloads: [{ name: 'web', on: [3] }] },
      spec,
      drive: async run => {
        await run.until('the moment has come', () => moment(run))
        pause(run, true)
        await run.until('it is paused', isPaused(run))
        const target = run.status().machines?.find(m => m.node === wk1)
        expect(target?.phase).toBe(what === 'finished' ? 'Completed' : 'Pending')
        const changed: string[] = []
        run.world.calls.intercept(({ changes, port, name }) => {
          if (isPaused(run)() && changes && (port === 'talos' || port === 'kube')) changed.push(name)
          return undefined
        })
        const words = run.status().message
        await run.pass(3_600_000)
        expect(changed).toEqual([])
        expect(run.status().message).toBe(words)
        expect(words).toContain('The cluster lock is kept.')
        const node = run.world.store.get(RESOURCE.nodes, '', wk1)
        expect((node?.spec as { unschedulable?: boolean } | undefined)?.unschedulable ?? false).toBe(false)
        await goOn(run)
        await run.settled()
      },
    })
    once(run)
  })

  it('for longer than a drain may take: the time of the drain stands still', async () => {
    const { run, end } = await play({
      cluster: { workloads: [{ name: 'db', budget: { minAvailable: 1 }, on: [3] }] },
      spec: { ...spec, drain: { timeout: '5m' } },
      drive: async run => {
        await run.until('it stands before the worker', () => run.status().machines?.find(m => m.node === wk1)?.step === 'pull')
        pause(run, true)
        await run.until('it is paused', isPaused(run))
        await run.pass(3_600_000)
        await goOn(run)
        await run.until('it drains', () => run.status().machines?.find(m => m.node === wk1)?.step === 'drain')
        await run.pass(120_000)
        run.world.store.remove(RESOURCE.budgets, 'default', 'db')
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.status().lastFailure).toBeUndefined()
  })

  it('and a cluster that changes meanwhile: what is there at the resume counts', async () => {
    const { run, end } = await play({
      spec,
      drive: async run => {
        await run.until('the first is done', () => run.status().machines?.some(m => m.phase === 'Completed') === true)
        pause(run, true)
        await run.until('it is paused', isPaused(run))
        run.world.store.remove(ICHOR.machines, NAMESPACE, run.status().machines?.find(m => m.node === 'wk-2')?.name ?? '')
        await run.pass(600_000)
        await goOn(run)
        await run.settled()
      },
    })
    // Discovery finds the machine again, because it still answers.
    expect(end.phase).toBe('Completed')
    once(run)
  })
})

describe('one bad operation takes the whole controller down [B164 banzaicloud/koperator#245]', () => {
  it.each<[string, object]>([
    ['a step that is none', { machines: [{ name: 'wk-1', role: 'worker', phase: 'Running', step: 'no-such-step' }] }],
    ['a machine that is none', { machines: [{ name: 'nowhere', role: 'worker', phase: 'Running', step: 'install' }] }],
    ['nothing where a name belongs', { machines: [{}] }],
    ['a phase of another version', { phase: 'Exploding' }],
    [
      'times that are none',
      { machines: [{ name: 'wk-1', role: 'worker', phase: 'Running', step: 'install', stepStartedAt: 'yesterday' }] },
    ],
  ])('status says %s: this one stops or mends itself, others go on, and it can be deleted', async (_, poison) => {
    const { run, end } = await play({
      spec,
      cluster: { hear: () => {} },
      arrange: run => {
        run.create({ name: 'bad', spec: { kind: 'talos', ...spec, paused: true } })
        change(run.world.store, ICHOR.operations, NAMESPACE, 'bad', now => ({
          ...now,
          status: { phase: 'Running', message: 'As a person wrote it.', ...poison },
        }))
      },
      drive: async run => {
        await run.until('the other is completed', () => run.status().phase === 'Completed')
        run.remove('bad')
        await run.until('the bad one is gone', () => run.operation('bad') === undefined, 3_600_000)
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.operation(NAME)?.metadata.annotations[ANNOTATION.retry]).toBeUndefined()
    once(run)
  })
})
