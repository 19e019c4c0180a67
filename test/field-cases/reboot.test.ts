import { describe, expect, it } from 'vitest'
import { leaseName } from '../../src/api/names.ts'
import { CLUSTER, NAMESPACE } from '../../src/storm/story.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { requestReboot } from '../../src/world/reboot.ts'
import { play, playWithDeaths } from './play.ts'

const spec = { talos: { version: 'v1.13.9' } }

describe('the install is done, the reboot was never sent [B056 home-operations/tuppr#575]', () => {
  it('a new controller sends only the reboot', async () => {
    const { run, end } = await play({
      spec,
      arrange: run => {
        const stop = run.world.journal.onEntry(({ what, machine }) => {
          if (what !== 'cordon' || machine !== 'wk-1') return
          stop()
          run.process().kill()
          run.world.schedule.after(60_000, run.restart)
        })
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('install-began', 'wk-1')).toHaveLength(1)
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toHaveLength(1)
  })

  it('a drain that timed out in between does not install again when it is retried', async () => {
    const { run, end } = await play({
      cluster: { workloads: [{ name: 'db', budget: { minAvailable: 1 }, on: [3] }] },
      spec: { ...spec, drain: { timeout: '2m' } },
      drive: async run => {
        await run.settled()
        expect(run.status().failureReason).toBe('DrainBlocked')
        run.world.store.remove(RESOURCE.budgets, 'default', 'db')
        await run.resume()
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('install-began', 'wk-1')).toHaveLength(1)
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toHaveLength(1)
  })
})

describe('a machine hangs in its shutdown [B060 siderolabs/talos#11775, siderolabs/talos#10174]', () => {
  it('is given its time, asked once, and named with its stage and the way out; a power cycle and a retry end it well', async () => {
    const { run, end } = await play({
      spec,
      allowed: { keepsCordon: [] },
      arrange: ({ world }) => world.fault('wk-1', { stopPodsMs: Infinity }),
      drive: async run => {
        await run.settled()
        expect(run.status()).toMatchObject({ phase: 'Paused', failureReason: 'RebootTimeout' })
        expect(run.status().message).toMatch(/^wk-1: reboot did not end within 30m[^:]*: .*rebooting.*talosctl reboot --mode force/)
        expect(run.world.journal.of('reboot-requested', 'wk-1')).toHaveLength(1)
        expect(run.world.journal.of('pulled', 'wk-2')).toEqual([])
        run.byHand(() => void requestReboot(run.world.site, run.world.machine('wk-1'), 'force'))
        await run.pass(300_000)
        await run.resume()
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('install-began', 'wk-1')).toHaveLength(1)
  })

  it('ends by itself when the machine recovers in time', async () => {
    const { run, end } = await playWithDeaths({ spec, arrange: ({ world }) => world.fault('wk-1', { stopPodsMs: 20 * 60_000 }) }, 3)
    expect(end.phase).toBe('Completed')
    expect(run.status().lastFailure).toBeUndefined()
  })

  it('the lock is not held for ever: another operation may take it over', async () => {
    await play({
      spec,
      allowed: { keepsCordon: ['wk-1'], away: ['wk-1'] },
      arrange: ({ world }) => world.fault('wk-1', { stopPodsMs: Infinity }),
      drive: async run => {
        await run.settled()
        run.create({ name: 'next', spec: { kind: 'talos', talos: { version: 'v1.13.9' } } })
        await run.until('the next one is judged', () => run.operation('next')?.status.preflight !== undefined)
        await run.pass(60_000)
        // It is refused because wk-1 is not well, and not because of a lock.
        expect(run.operation('next')?.status).toMatchObject({ phase: 'Paused', failureReason: 'PreflightRefused' })
        expect(run.world.store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))).toBeDefined()
      },
    })
  })
})
