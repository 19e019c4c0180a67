import { describe, expect, it } from 'vitest'
import { stateOf } from '../../src/core/operation-state.ts'
import { summarize } from '../../src/core/summary.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { NAME, play, playWithDeaths, type Run } from './play.ts'

const spec = { talos: { version: 'v1.13.9' } }
const MINUTE = 60_000

describe('a firmware that tests itself for a long time [B059 siderolabs/talos#4626]', () => {
  const slow = (minutes: number) => ({ arrange: ({ world }: Run) => world.fault('wk-1', { firmwareMs: minutes * MINUTE }) })

  it('18 minutes are waited for as things are; nobody reboots it a second time to help', async () => {
    const { run, end } = await playWithDeaths({ spec, ...slow(18) })
    expect(end.phase).toBe('Completed')
    expect(run.status().lastFailure).toBeUndefined()
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toHaveLength(1)
  })

  it('a longer time is waited for where that was said', async () => {
    const { run, end } = await playWithDeaths({ spec: { ...spec, timeouts: { reboot: '40m' } }, ...slow(36) }, 2)
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toHaveLength(1)
  })

  it('without that it ends after 30 minutes, and a retry only looks', async () => {
    const { run, end } = await play({
      spec,
      ...slow(36),
      allowed: { away: ['wk-1'] },
      drive: async run => {
        await run.settled()
        expect(run.status()).toMatchObject({ phase: 'Paused', failureReason: 'RebootTimeout' })
        expect(run.status().message).toMatch(/^wk-1: reboot did not end within 30m/)
        await run.pass(10 * MINUTE)
        await run.resume()
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toHaveLength(1)
  })

  it.each(['0s', '0', '0m'])('a limit of %s is none that could be meant', async reboot => {
    await expect(play({ spec: { ...spec, timeouts: { reboot } } })).rejects.toThrow(/reboot|duration|time/i)
  })
})

describe('a failure, and nothing in the manifest that has to change [B064 home-operations/tuppr#178, rancher/system-upgrade-controller#315]', () => {
  const cluster = { workloads: [{ name: 'db', budget: { minAvailable: 1 }, on: [4] }] }
  const blocked = { cluster, spec: { ...spec, drain: { timeout: '2m' } } }
  const unblock = ({ world }: Run): void => void world.store.remove(RESOURCE.budgets, 'default', 'db')

  it('a second try begins when it is asked for, and knows what is done', async () => {
    const { run, end } = await play({
      ...blocked,
      drive: async run => {
        await run.settled()
        const { machines, history } = run.status()
        expect(run.status().failureReason).toBe('DrainBlocked')
        expect(history?.map(h => h.message)).not.toContain('retry asked for')
        unblock(run)
        await run.resume()
        const ended = (name: string) => run.status().machines?.find(t => t.node === name)
        for (const name of ['cp-1', 'cp-2', 'cp-3', 'wk-1']) expect(ended(name)).toEqual(machines?.find(t => t.node === name))
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.status().history?.map(h => h.message)).toContain('retry asked for')
    expect(run.status().lastRetry).toBeDefined()
    expect(run.status().lastFailure?.reason).toBe('DrainBlocked')
    for (const { name } of run.world.machines) expect(run.world.journal.of('install-began', name), name).toHaveLength(1)
  })

  it('the identical manifest applied again does nothing, and what does is told', async () => {
    const { run } = await play({
      ...blocked,
      drive: async run => {
        await run.settled()
        unblock(run)
        const before = JSON.stringify(run.status())
        const calls = run.world.calls.log().filter(call => call.changes).length
        run.edit(NAME, { spec: {} })
        await run.pass(30 * MINUTE)
        expect(JSON.stringify(run.status())).toBe(before)
        expect(run.world.calls.log().filter(call => call.changes && call.port !== 'home')).toHaveLength(
          run.world.calls
            .log()
            .slice(0, calls)
            .filter(call => call.changes && call.port !== 'home').length,
        )
      },
    })
    const operation = run.operation(NAME)
    if (!operation) throw new Error('it is there')
    const told = summarize(operation, run.world.schedule.now())
    expect(told.state).toBe('failed')
    expect(told.commands.map(c => c.purpose).join()).toContain('run the failed step again')
  })
})

describe('a worker fails after the control planes [B082 siderolabs/omni#2373]', () => {
  const told = {
    spec,
    arrange: ({ world }: Run) => world.fault('wk-1', { installer: { exitCode: 1, lines: ['failed to write'], times: Infinity } }),
  }
  const mixed = [
    'cp-1 v1.13.9 Completed',
    'cp-2 v1.13.9 Completed',
    'cp-3 v1.13.9 Completed',
    'wk-1 v1.13.5 Failed',
    'wk-2 v1.13.5 Pending',
  ]
  /** Nothing that leads back: no roll-back, no installer of the version before, no reboot of what is done. */
  const neverBack = ({ world }: Run): void => {
    expect([...world.calls.counts().keys()].filter(name => /roll-?back/i.test(name))).toEqual([])
    expect(world.journal.entries().filter(e => e.detail.includes('v1.13.5') && /pull|install|upgrade/.test(e.what))).toEqual([])
    for (const name of ['cp-1', 'cp-2', 'cp-3']) expect(world.journal.of('down', name), name).toHaveLength(1)
  }

  it('and everything stays where it is: the mixture is legal, and is explained', async () => {
    const { run, end } = await playWithDeaths({
      ...told,
      drive: async run => {
        await run.settled()
        await run.pass(6 * 60 * MINUTE)
      },
    })
    expect(end).toEqual({ phase: 'Paused', reason: 'InstallFailed', machines: mixed })
    expect(run.status().message).toContain('The machine still runs v1.13.5, wanted v1.13.9.')
    expect(run.status().progress).toMatchObject({ done: 3, total: 5 })
    neverBack(run)
  })

  it.each([
    ['paused', { paused: true }, 'Paused'],
    ['cancelled', { cancelled: true }, 'Cancelled'],
  ] as const)('it can still be %s', async (_, change, phase) => {
    const { run, end } = await play({
      ...told,
      drive: async run => {
        await run.settled()
        run.edit(NAME, { spec: change })
        await run.pass(10 * MINUTE)
      },
    })
    expect(end.phase).toBe(phase)
    const operation = run.operation(NAME)
    if (!operation) throw new Error('it is there')
    expect(stateOf(operation)).toBe(phase === 'Cancelled' ? 'cancelled' : 'failed')
    neverBack(run)
  })
})
