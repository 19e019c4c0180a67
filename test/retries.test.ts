// What a retry knows of the tries before it, and of each machine.
import { describe, expect, it } from 'vitest'
import { RESOURCE } from '../src/world/objects.ts'
import { play, type Run } from './field-cases/play.ts'

const MINUTE = 60_000
const node = (run: Run, name: string) => run.world.store.get(RESOURCE.nodes, '', name)

describe('two machines that came back with the old version', () => {
  const cluster = { controlPlanes: 1, workers: 2 }
  const spec = { talos: { version: 'v1.13.9' }, maxUnavailable: 2, acknowledge: ['api-outage'] }

  it.each([
    ['wk-1', 'wk-2'],
    ['wk-2', 'wk-1'],
  ])('%s before %s: one retry tries both', async (first, second) => {
    const { run, end } = await play({
      cluster,
      spec,
      allowed: { attempts: 2, apiOutage: true },
      arrange: ({ world }) => {
        world.fault(first, { failedBoots: 1 })
        world.fault(second, { failedBoots: 1, firmwareMs: 2 * MINUTE })
      },
      drive: async run => {
        await run.settled()
        expect(run.status().machines?.map(t => t.failure?.reason)).toEqual([undefined, 'BootedOldVersion', 'BootedOldVersion'])
        await run.resume()
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    for (const name of [first, second]) expect(run.world.journal.of('install-began', name), name).toHaveLength(2)
  })
})

describe('a machine that was never asked', () => {
  it('to wipe itself is not wiped by its silence, however often that is resumed', async () => {
    const { run, end } = await play({
      spec: { node: { action: 'reset', machine: 'wk-1' }, drain: { policy: 'skip' } },
      allowed: { away: ['wk-1'], undrained: true },
      drive: async run => {
        const target = () => run.status().machines?.[0]
        const goesDark = run.world.calls.intercept(({ name }) => {
          if (name === 'event' && target()?.phase === 'Running') run.byHand(() => run.world.blackHole('wk-1', true))
          return undefined
        })
        await run.until('it is opened', () => target()?.phase === 'Running')
        goesDark()
        await run.settled(2 * 60 * MINUTE)
        expect([target()?.step, run.status().failureReason]).toEqual(['reset', 'RebootTimeout'])
        expect(run.status().message).toContain('It was not asked to wipe itself yet')
        await run.resume()
        await run.settled(2 * 60 * MINUTE)
        // Nothing was done to it, so it waits for its turn again, in which it would have to answer.
        expect(run.status().failureReason).toBe('MachineUnreachable')
        expect(node(run, 'wk-1')).toBeDefined()
        run.byHand(() => run.world.blackHole('wk-1', false))
        await run.pass(2 * MINUTE)
        await run.resume()
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('wiped').map(e => e.machine)).toEqual(['wk-1'])
    expect(node(run, 'wk-1')).toBeUndefined()
  })
})

describe('an act that hangs, and is resumed', () => {
  it.each(['reset', 'shutdown'])('is not done by one look that gets no answer: %s', async action => {
    const { run, end } = await play({
      spec: { node: { action, machine: 'wk-1' } },
      allowed: { away: ['wk-1'], keepsCordon: ['wk-1'] },
      arrange: ({ world }) => world.fault('wk-1', { stopPodsMs: Infinity }),
      drive: async run => {
        await run.settled(2 * 60 * MINUTE)
        expect(run.status().failureReason).toBe('MachineDidNotStop')
        await run.resume()
        await run.pass(MINUTE)
        run.byHand(() => run.world.blackHole('wk-1', true))
        await run.pass(MINUTE)
        run.byHand(() => run.world.blackHole('wk-1', false))
        await run.pass(5 * MINUTE)
        expect(run.status().phase).toBe('Running')
        expect(node(run, 'wk-1')).toBeDefined()
        run.byHand(() => run.world.powerOff('wk-1'))
        await run.settled()
      },
    })
    // Off by hand is all that can be seen: it has been silent for two minutes, after it was asked.
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('wiped')).toEqual([])
  })
})

describe('a machine to which only our own way is cut', () => {
  it.each(['reset', 'shutdown'])('is not taken for one that has gone: %s', async action => {
    const { run, end } = await play({
      spec: { node: { action, machine: 'wk-1' } },
      allowed: { away: ['wk-1'], keepsCordon: ['wk-1'] },
      arrange: ({ world }) => world.fault('wk-1', { stopPodsMs: 20 * MINUTE }),
      drive: async run => {
        await run.until('it was asked', () => run.world.journal.of(`${action}-requested`, 'wk-1').length > 0)
        const [address] = run.world.machine('wk-1').addresses
        const until = run.world.schedule.now() + 10 * MINUTE
        run.world.calls.intercept(({ port, target }) =>
          port === 'talos' && target === address && run.world.schedule.now() < until
            ? { do: 'fail', when: 'before', fault: { kind: 'unreachable', message: `${address}: timeout` } }
            : undefined,
        )
        await run.pass(9 * MINUTE)
        expect([run.status().phase, run.status().machines?.[0]?.step]).toEqual(['Running', action])
        await run.settled(2 * 60 * MINUTE)
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of(action === 'reset' ? 'wiped' : 'down').map(e => e.machine)).toContain('wk-1')
  })
})
