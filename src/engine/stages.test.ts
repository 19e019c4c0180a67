// An operation of several stages: each goes over its own machines when the one before is through.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Kind, Stage } from '../core/kind.ts'
import { YES, kind, no, wait } from '../core/kind.ts'
import { openTargets, receiptOf } from '../core/ledger.ts'
import { timing } from '../core/timing.ts'
import { CLUSTER, NAMESPACE, createStory } from '../storm/story.ts'
import type { OperationStatus } from '../api/talos-operation.ts'
import { talosOperation } from '../api/talos-operation.ts'
import { openPorts } from '../world/ports/open.ts'
import { ICHOR } from '../world/ports/home.ts'
import { planOperation } from './plan.ts'

const acts: string[] = []

/** Touches every machine of a role once; the receipt says so. */
const touching = (name: string, role: 'controlplane' | 'worker' | undefined, applies?: Stage['applies']): Stage => ({
  name,
  summary: '',
  ...(applies ? { applies } : {}),
  orderNeeds: () => [],
  order: (_, world) =>
    world.machines
      .filter(m => role === undefined || m.spec.role === role)
      .map(m => ({ name: m.metadata.name, role: m.spec.role, ...(m.status.hostname ? { hostname: m.status.hostname } : {}) })),
  turn: ({ operation }) => (openTargets(operation.status).length > 0 ? wait('another machine is open') : YES),
  open: () => ({ open: { goal: {} } }),
  steps: [
    {
      name: 'touch',
      summary: '',
      done: ({ target }) => (receiptOf(target, 'touch') ? YES : no('it is not touched')),
      act: {
        long: true,
        disruptive: true,
        describe: () => `touching for ${name}`,
        run: (_, { target, operation }) => {
          acts.push(`${name} ${target.hostname} after ${operation.status.stages?.map(s => s.name).join('+') ?? 'nothing'}`)
          return Promise.resolve({ ok: true as const, value: { receipt: 'touched' } })
        },
      },
      stableMs: () => 1000,
      failure: 'InternalError',
    },
  ],
  abandon: [],
  preview: ({ target }) => ({ from: 'here', to: name, loses: [target.role] }),
  outcome: () => `touched for ${name}`,
})

const waves: Kind = kind({
  name: 'waves',
  block: 'waves',
  summary: 'Goes over the machines in waves.',
  spec: z.object({ short: z.boolean().default(false).meta({ description: 'Leaves the second wave out.' }) }),
  checkNeeds: () => [],
  checks: () => ({ found: {}, refusals: [], notes: [] }),
  stages: [
    touching('first', 'controlplane'),
    touching('second', 'worker', ({ spec }) => !(spec['waves'] as { readonly short?: boolean }).short),
    touching('third', undefined),
  ],
})

const told = async () => {
  acts.length = 0
  const story = createStory({ kinds: [waves], controlPlanes: 1, workers: 1, homeOutside: true })
  const process = story.start()
  await story.until('machines are known', () => story.world.store.list(ICHOR.machines).items.filter(m => 'status' in m).length === 2)
  return { ...story, process }
}

describe('stages', () => {
  it('go over their machines one stage after the other, and what is over is kept as numbers', async () => {
    const story = await told()
    story.create({ name: 'w', spec: { kind: 'waves', waves: {} } })
    await story.until('it is completed', () => story.operation('w')?.status.phase === 'Completed')
    expect(acts).toEqual([
      'first cp-1 after nothing',
      'second wk-1 after first',
      'third cp-1 after first+second',
      'third wk-1 after first+second',
    ])
    const status: OperationStatus = story.operation('w')?.status ?? {}
    expect(status.message).toBe('first: 1 machine done; second: 1 machine done; third: 2 machines done.')
    expect(status.machines?.map(m => m.message?.replace(/ in .*/, ''))).toEqual(['touched for third', 'touched for third'])
    expect(status.history?.map(h => h.message)).toContain('second, order: wk-1')
  })

  it('are counted, and what is left of them is told when it is paused or cancelled', async () => {
    const story = await told()
    story.create({ name: 'w', spec: { kind: 'waves', waves: {} } })
    await story.until('the second stage', () => story.operation('w')?.status.stage === 'second')
    expect(story.operation('w')?.status.progress).toMatchObject({ stage: 2, stages: 3, total: 1, summary: '0/1, stage 2/3' })
    story.edit('w', { spec: { paused: true } })
    await story.until('it is paused', () => story.operation('w')?.status.phase === 'Paused')
    expect(story.operation('w')?.status.message).toMatch(/^Paused by the operator; stage 2 of 3, second: [01] of 1 machines were done\./)
    story.edit('w', { spec: { cancelled: true } })
    await story.until('it is cancelled', () => story.operation('w')?.status.phase === 'Cancelled')
    expect(story.operation('w')?.status.message).toMatch(/; stage 2 of 3, second: [01] of 1 machines were done\. Not begun: third\.$/)
  })

  it('one that does not apply is left out', async () => {
    const story = await told()
    story.create({ name: 'w', spec: { kind: 'waves', waves: { short: true } } })
    await story.until('it is completed', () => story.operation('w')?.status.phase === 'Completed')
    expect(acts).toEqual(['first cp-1 after nothing', 'third cp-1 after first', 'third wk-1 after first'])
  })

  it('a new controller goes on in the stage that was reached', async () => {
    const story = await told()
    story.create({ name: 'w', spec: { kind: 'waves', waves: {} } })
    await story.until('the second stage', () => story.operation('w')?.status.stage === 'second')
    story.process.kill()
    story.start('ichor-1')
    await story.until('it is completed', () => story.operation('w')?.status.phase === 'Completed')
    expect(acts.filter(a => a.startsWith('first'))).toHaveLength(1)
  })

  it('a stage that nobody knows stops the operation, and it can be cancelled', async () => {
    const story = await told()
    story.create({ name: 'w', spec: { kind: 'waves', waves: {} } })
    await story.until('it runs', () => story.operation('w')?.status.stage === 'first')
    const object = story.world.store.get(ICHOR.operations, NAMESPACE, 'w')
    if (!object) throw new Error('it is gone')
    story.world.store.update(ICHOR.operations, { ...object, status: { ...(object['status'] as object), stage: 'ninth' } })
    await story.until('it stopped', () => story.operation('w')?.status.failureReason === 'InternalError')
    expect(story.operation('w')?.status.message).toContain('kind waves has no stage ninth')
    story.edit('w', { spec: { cancelled: true } })
    await story.until('it is cancelled', () => story.operation('w')?.status.phase === 'Cancelled')
  })

  it('a plan names the machines of every stage', async () => {
    const story = await told()
    const ports = openPorts(story.world, { name: 'planner', operation: talosOperation([waves]) })
    const spec = talosOperation([waves]).spec.parse({ clusterRef: { name: CLUSTER }, kind: 'waves', waves: {} }) as never
    const plan = await planOperation({ ...ports, timing: timing(), self: undefined }, waves, NAMESPACE, 'w', spec)
    expect(plan.ok && plan.value.order.map(m => `${m.stage} ${m.name} ${m.to}`)).toEqual([
      'first cp-1 first',
      'second wk-1 second',
      'third cp-1 third',
      'third wk-1 third',
    ])
  })
})

describe('a stage that knows no machine', () => {
  const picky: Kind = kind({
    ...waves,
    stages: [
      {
        ...touching('only', undefined),
        order: (operation, world) =>
          touching('only', undefined)
            .order(operation, world)
            .filter(({ name }) => world.machines.some(m => m.metadata.name === name && m.metadata.labels['picked'] === 'yes')),
      },
    ],
  })
  const begun = async () => {
    const story = createStory({ kinds: [picky], controlPlanes: 1, workers: 0, homeOutside: true })
    story.start()
    const machines = () => story.world.store.list(ICHOR.machines).items
    await story.until('the machine is known', () => machines().some(m => 'status' in m))
    story.create({ name: 'w', spec: { kind: 'waves', waves: {} } })
    const status = (): OperationStatus => story.operation('w')?.status ?? {}
    await story.until('it waits', () => status().waiting !== undefined)
    return { story, status, machines }
  }

  it('is not done: it waits, and goes on when there is one', async () => {
    const { story, status, machines } = await begun()
    expect(status()).toMatchObject({
      phase: 'Running',
      message: 'There is no TalosMachine that only could be done to; they are looked for again',
    })
    const [machine] = machines()
    if (!machine) throw new Error('there is no machine')
    story.world.store.update(ICHOR.machines, { ...machine, metadata: { ...machine.metadata, labels: { picked: 'yes' } } })
    await story.until('it is done', () => status().phase === 'Completed')
    expect(status().progress).toMatchObject({ done: 1 })
  })

  it('stops after a quarter of an hour', async () => {
    const { story, status } = await begun()
    await story.until('it stops', () => status().phase === 'Paused')
    expect(status()).toMatchObject({ failureReason: 'MachineUnreachable' })
    expect(status().message).toContain('(for 15m)')
  })
})
