import { describe, expect, it } from 'vitest'
import { RESOURCE } from '../../src/world/objects.ts'
import { requestReboot } from '../../src/world/reboot.ts'
import type { Run } from './play.ts'
import { messages, play, playWithDeaths } from './play.ts'

const node = (action: string, machine: string, more: object = {}) => ({ node: { action, machine, ...more } })
const accepted = { acknowledge: ['no-fault-tolerance'] }
const MINUTE = 60_000
const calls = ({ world }: Run, ...names: readonly string[]) =>
  world.calls
    .log()
    .filter(c => c.port === 'talos' && names.includes(c.name))
    .map(c => `${c.name} ${world.at(c.target)?.name ?? c.target}`)

describe('a control plane is taken out, and no other [B070 siderolabs/talos#3340]', () => {
  it('it leaves by itself: nobody else is asked to leave, to be wiped or to lose its data', async () => {
    const { run, end } = await playWithDeaths(
      { spec: { ...node('reset', 'cp-3', { rebootAfter: true }), ...accepted }, allowed: { away: ['cp-3'] } },
      4,
    )
    expect(end.phase).toBe('Completed')
    expect(new Set(calls(run, 'leaveEtcd', 'reset', 'removeMember'))).toEqual(new Set(['leaveEtcd cp-3', 'reset cp-3']))
    expect(run.world.journal.of('wiped').map(e => e.machine)).toEqual(['cp-3'])
    expect(run.world.etcd.members().map(m => m.name)).toEqual(['cp-1', 'cp-2'])
  })

  it('with its own etcd unwell it is taken out by its id, through a healthy one', async () => {
    const { run, end } = await play({
      cluster: { controlPlanes: 4 },
      spec: node('reset', 'cp-4', { rebootAfter: true }),
      allowed: { away: ['cp-4'] },
      arrange: async run => {
        run.world.sicken('cp-4', true)
        await run.pass(2 * MINUTE)
      },
    })
    expect(end.phase).toBe('Completed')
    expect(calls(run, 'leaveEtcd')).toEqual([])
    expect(calls(run, 'removeMember')).toHaveLength(1)
    expect(run.world.etcd.members().map(m => m.name)).toEqual(['cp-1', 'cp-2', 'cp-3'])
  })
})

describe('the last control plane stays [B072 siderolabs/talos#1768, siderolabs/talos#2095]', () => {
  it.each([[{}], [accepted], [{ ...accepted, override: true }]])('whatever is accepted: %j', async more => {
    const { run, end } = await play({ cluster: { controlPlanes: 1 }, spec: { ...node('reset', 'cp-1'), ...more } })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    expect(messages(run)).toContain('the only control plane')
    expect(run.world.journal.of('reset-requested')).toEqual([])
  })
})

describe('a leave whose answer was lost [B074 siderolabs/talos#10040]', () => {
  it.each(['before', 'after'] as const)('%s its effect: it is looked whether it has left', async when => {
    const { run, end } = await play({
      spec: { ...node('reset', 'cp-3', { rebootAfter: true }), ...accepted },
      allowed: { away: ['cp-3'] },
      arrange: ({ world }) =>
        world.calls.next({ name: 'leaveEtcd' }, { do: 'fail', when, fault: { kind: 'unreachable', message: 'connection reset' } }),
    })
    expect(end.phase).toBe('Completed')
    expect(calls(run, 'leaveEtcd', 'removeMember')).toHaveLength(when === 'before' ? 2 : 1)
    expect(run.world.etcd.members().map(m => m.name)).toEqual(['cp-1', 'cp-2'])
  })
})

describe('a slow defragmentation [B078 etcd-io/etcd#17318]', () => {
  it('takes its 70 seconds, once, whoever dies meanwhile', async () => {
    const bloat = ({ world }: Run): void => {
      const member = world.member('cp-1')
      member.dbSize = member.dbSizeInUse * 4
    }
    const { run, end } = await playWithDeaths(
      {
        cluster: { durations: { etcdDefrag: [70_000, 70_000] } },
        spec: node('etcd-defrag', 'cp-1'),
        arrange: bloat,
        allowed: { attempts: 2 },
      },
      2,
    )
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('etcd-defragmented').map(e => e.machine)).toEqual(['cp-1'])
  })
})

describe('a machine that never joined [B141 siderolabs/talos#5342, siderolabs/talos#9582]', () => {
  it('has no Node, so nothing is drained, and it is wiped all the same', async () => {
    const { run, end } = await play({
      spec: node('reset', 'wk-2', { rebootAfter: true }),
      allowed: { undrained: true },
      arrange: ({ world }) => void world.store.remove(RESOURCE.nodes, '', 'wk-2'),
    })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('wiped').map(e => e.machine)).toEqual(['wk-2'])
    expect(run.status().preflight?.notes?.join(' ')).toContain('no Node')
  })
})

describe('a machine that does not stop [B144 siderolabs/talos#12599, siderolabs/talos#10174]', () => {
  it('is said to do so in bounded time; another operation may have the lock then', async () => {
    const { run, end } = await play({
      spec: node('shutdown', 'wk-1'),
      allowed: { keepsCordon: ['wk-1'] },
      arrange: ({ world }) => world.fault('wk-1', { stopPodsMs: Infinity }),
      drive: async run => {
        await run.settled()
        run.create({ name: 'other', spec: { kind: 'node', ...node('restart-service', 'cp-1', { service: 'kubelet' }) } })
        await run.until('the other is refused or done', () => ['Completed', 'Paused'].includes(run.operation('other')?.status.phase ?? ''))
      },
    })
    expect(end.reason).toBe('MachineDidNotStop')
    expect(run.status().lastFailure).toMatchObject({ step: 'shutdown' })
    expect(run.operation('other')?.status.phase).toBe('Completed')
  })
})

describe('reboot', () => {
  it('happens once, whenever the controller dies', async () => {
    const { run, end } = await playWithDeaths({ spec: node('reboot', 'cp-2') }, 6)
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('reboot-requested')).toHaveLength(1)
    // Not of what else the kind can do.
    const started = run.events('up').filter(event => event.startsWith('Started: '))
    expect(started).toEqual([
      'Started: The machine is set aside, rebooted and looked at until it is back. Checks passed and the cluster lock is held.',
    ])
  })

  it('by somebody else, while it is drained, is the reboot that was asked for', async () => {
    const { run, end } = await play({
      cluster: { workloads: [{ name: 'db', budget: { minAvailable: 1 }, on: [3] }] },
      spec: node('reboot', 'wk-1'),
      arrange: run => {
        const stop = run.world.journal.onEntry(({ what, machine }) => {
          if (what !== 'evict-refused' || machine !== 'wk-1') return
          stop()
          run.byHand(() => void requestReboot(run.world.site, run.world.machine('wk-1'), 'default'))
        })
      },
    })
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toHaveLength(1)
  })

  it('of the same machine under the same name is refused for an hour, unless again is said', async () => {
    const { run } = await play({
      spec: node('reboot', 'wk-1'),
      allowed: { attempts: 3 },
      drive: async run => {
        const start = (more: object) => run.create({ name: 'up', spec: { kind: 'node', ...node('reboot', 'wk-1'), ...more } })
        const reboots = () => run.world.journal.of('reboot-requested').length
        await run.settled()
        run.remove('up')
        start({})
        await run.until('it is refused', () => run.status().failureReason === 'PreflightRefused')
        expect(messages(run)).toContain('--again')
        run.remove('up')
        start({ again: true })
        await run.settled()
        expect(reboots()).toBe(2)
        run.remove('up')
        await run.pass(61 * MINUTE)
        start({})
        await run.settled()
        expect(reboots()).toBe(3)
      },
    })
    expect(run.status().phase).toBe('Completed')
  })

  it('of a control plane whose own etcd is unwell is refused, and with override its cure', async () => {
    const arrange = async (run: Run): Promise<void> => {
      run.world.sicken('cp-2', true)
      await run.pass(2 * MINUTE)
    }
    const refused = await play({ spec: node('reboot', 'cp-2'), arrange })
    expect(refused.end.reason).toBe('PreflightRefused')
    expect(messages(refused.run)).toContain('with override it is rebooted as it is')
    const cured = await play({
      spec: { ...node('reboot', 'cp-2'), override: true },
      arrange: async run => {
        await arrange(run)
        run.world.journal.onEntry(({ what, machine }) => {
          if (what === 'boot' && machine === 'cp-2') run.world.sicken('cp-2', false)
        })
      },
    })
    expect(cured.end.phase).toBe('Completed')
  })
})

describe('pause and cancel', () => {
  it.each([['paused'], ['cancelled']])('before the act: %s closes the machine and lifts the cordon', async field => {
    const { run } = await play({
      cluster: { workloads: [{ name: 'db', budget: { minAvailable: 1 }, on: [3] }] },
      spec: node('reset', 'wk-1'),
      drive: async run => {
        await run.until('it is drained', () => run.status().machines?.[0]?.step === 'drain')
        run.edit('up', { spec: { [field]: true } })
        await run.until('it stands still', () => ['Paused', 'Cancelled'].includes(run.status().phase ?? ''))
        await run.pass(5 * MINUTE)
      },
    })
    expect(run.world.journal.of('uncordon', 'wk-1')).toHaveLength(1)
    expect(run.world.journal.of('reset-requested')).toEqual([])
  })

  it('after the leave it is carried to its end', async () => {
    const { run } = await play({
      spec: { ...node('reset', 'cp-3', { rebootAfter: true }), ...accepted },
      allowed: { away: ['cp-3'] },
      drive: async run => {
        await run.until('it has left', () => run.world.journal.of('etcd-removed').length > 0)
        run.edit('up', { spec: { cancelled: true } })
        await run.until('it is cancelled', () => run.status().phase === 'Cancelled')
      },
    })
    expect(run.status().machines?.[0]?.phase).toBe('Completed')
    expect(run.world.journal.of('wiped').map(e => e.machine)).toEqual(['cp-3'])
  })
})
