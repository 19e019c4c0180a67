import { describe, expect, it } from 'vitest'
import type { OperationStatus } from '../../src/api/talos-operation.ts'
import { NAMESPACE } from '../../src/storm/story.ts'
import { versionOf } from '../../src/world/machine.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import type { Run } from './play.ts'
import { messages, play, playWithDeaths } from './play.ts'

const MINUTE = 60_000
const spec = { talos: { version: 'v1.13.9' } }
const changes = ({ world }: Run): readonly string[] =>
  world.calls
    .log()
    .filter(c => c.port === 'talos' && ['leaveEtcd', 'removeMember', 'reset', 'forfeitLeadership'].includes(c.name))
    .map(c => c.name)
const touched = ({ world }: Run, machine: string): readonly string[] =>
  [...world.journal.of('pulled', machine), ...world.journal.of('install-began', machine), ...world.journal.of('cordon', machine)].map(
    e => e.what,
  )

describe('a control plane came back old, and is no member of etcd any more [B068 siderolabs/talos#9153, siderolabs/talos#9789]', () => {
  it('no other is touched: it would cost the quorum; what would mend it is told and not done', async () => {
    const { run, end } = await play({
      spec,
      allowed: { away: ['cp-2'], keepsCordon: ['cp-2'] },
      arrange: ({ world }) => {
        const stop = world.journal.onEntry(({ what, machine }) => {
          if (what !== 'down' || machine !== 'cp-2') return
          stop()
          world.fault('cp-2', { bootsOldSlot: 1 })
          world.etcd.removeMember(world.member('cp-2').id)
        })
      },
    })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'EtcdUnhealthy' })
    expect(messages(run)).toMatch(
      /cp-2: .* came back with v1\.13\.5.*it is no member of etcd: cp-1, cp-3 list cp-1, cp-3\..*wipe EPHEMERAL of this machine alone/,
    )
    expect(changes(run)).not.toContain('reset')
    expect(versionOf(run.world.machine('cp-2'))).toBe('v1.13.5')
    expect(run.world.etcd.members()).toHaveLength(2)
    expect(run.status().machines?.map(t => `${t.node} ${t.phase}`)).toEqual(
      expect.arrayContaining(['cp-1 Completed', 'cp-2 Failed', 'cp-3 Pending']),
    )
    expect(touched(run, 'cp-3')).toEqual([])
  })
})

describe('members that were removed long ago are there again [B076 etcd-io/etcd#20967, k3s-io/k3s#13485]', () => {
  it('are named, and nobody removes them or goes on because three of five are well', async () => {
    const { run, end } = await play({
      cluster: { talos: 'v1.10.9', kubernetes: 'v1.33.1', workers: 1 },
      spec: { talos: { version: 'v1.11.6' } },
      arrange: ({ world }) => {
        const stop = world.journal.onEntry(({ what }) => {
          if (what !== 'boot') return
          stop()
          world.schedule.after(20_000, () => {
            world.etcd.addMember('old-1', 'https://10.9.9.1:2380', undefined)
            world.etcd.addMember('old-2', 'https://10.9.9.2:2380', undefined)
          })
        })
      },
    })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'EtcdUnhealthy' })
    expect(messages(run)).toContain('2 etcd members, ')
    for (const member of run.world.etcd.members().filter(m => m.machine === undefined)) expect(messages(run)).toContain(member.id)
    expect(changes(run)).toEqual([])
    expect(run.status().machines?.map(t => t.phase)).toEqual(['Failed', 'Pending', 'Pending', 'Pending'])
    expect(['cp-1', 'cp-2', 'cp-3', 'wk-1'].filter(name => touched(run, name).length > 0)).toHaveLength(1)
  })
})

describe('the lock of upgrades in etcd outlives the machine that held it [B080 siderolabs/talos#4525]', () => {
  const cluster = { talos: 'v1.12.4', kubernetes: 'v1.34.1' }
  const locked = {
    do: 'fail',
    when: 'before',
    fault: { kind: 'precondition', message: 'failed to acquire the upgrade mutex: locked' },
  } as const
  const isUpgradeOf = (run: Run, name: string) => (call: { readonly name: string; readonly target: string }) =>
    call.name === 'upgrade' && run.world.at(call.target)?.name === name

  it('for two minutes: it is tried again, and said why', async () => {
    const { run, end } = await playWithDeaths(
      {
        cluster,
        spec: { talos: { version: 'v1.12.5' } },
        arrange: run => {
          let until = 0
          run.world.calls.intercept(call => {
            if (!isUpgradeOf(run, 'cp-2')(call)) return undefined
            until ||= run.world.schedule.now() + 2 * MINUTE
            return run.world.schedule.now() < until ? locked : undefined
          })
        },
        drive: async run => {
          await run.until('the refusal is told', () => (run.status().message ?? '').includes('upgrade mutex: locked'))
          expect(run.status()).toMatchObject({ phase: 'Running', waiting: { for: expect.stringContaining('locked') } })
          await run.settled()
        },
      },
      3,
    )
    expect(end.phase).toBe('Completed')
    expect(run.world.journal.of('upgrade-requested', 'cp-2')).toHaveLength(1)
  })

  it('for ever: it is not tried for ever', async () => {
    const { run, end } = await play({
      cluster,
      spec: { talos: { version: 'v1.12.5' } },
      arrange: run => void run.world.calls.intercept(call => (isUpgradeOf(run, 'cp-2')(call) ? locked : undefined)),
    })
    expect(end.phase).toBe('Paused')
    expect(messages(run)).toContain('locked')
    expect(touched(run, 'cp-3')).toEqual([])
  })
})

describe('several are reset at once, a control plane among them [B139 freed-dev-llc/turing-rk1-cluster#49]', () => {
  const isOver = ({ phase, failureReason }: OperationStatus = {}): boolean =>
    phase === 'Completed' || (phase === 'Paused' && failureReason !== 'ClusterLockHeld')
  const reset = (run: Run, machine: string, more: object): void =>
    void run.create({
      name: machine,
      spec: { kind: 'node', node: { action: 'reset', machine, ...more }, acknowledge: ['no-fault-tolerance'] },
    })
  const known = ({ world }: Run): readonly unknown[] =>
    world.store.list(ICHOR.machines, NAMESPACE).items.map(m => (m['status'] as { hostname?: string }).hostname)
  /** How many were being wiped, or on their way to it, at once. */
  const mostAtOnce = (run: Run): (() => number) => {
    let most = 0
    run.world.store.watch(ICHOR.operations, undefined, () => {
      const open = run.names().flatMap(name => run.operation(name)?.status.machines?.filter(t => t.phase === 'Running') ?? [])
      most = Math.max(most, open.length)
    })
    return () => most
  }

  it.each([
    ['seen in maintenance', { rebootAfter: true }],
    ['silent', {}],
  ])('each is reached directly, and the next begins when the one before was %s', async (_what, more) => {
    const names = ['cp-2', 'wk-1', 'wk-2']
    const asked = new Set<string>()
    let most = (): number => 0
    const { run } = await play({
      arrange: run => {
        most = mostAtOnce(run)
        run.world.calls.intercept(({ name, target }) => {
          asked.add(`${name} ${run.world.at(target)?.name}`)
          return undefined
        })
      },
      cluster: { workers: 3 },
      spec: { node: { action: 'reset', machine: 'cp-2', ...more }, acknowledge: ['no-fault-tolerance'] },
      allowed: { away: names },
      drive: async run => {
        // The worst order: the control plane first.
        for (const machine of ['wk-1', 'wk-2']) {
          await run.pass(1_000)
          reset(run, machine, more)
        }
        await run.until('all are reset', () => [...run.names()].every(name => isOver(run.operation(name)?.status)), 60 * MINUTE)
      },
    })
    const statuses = [run.status(), run.operation('wk-1')?.status, run.operation('wk-2')?.status]
    expect(statuses.map(s => s?.phase)).toEqual(['Completed', 'Completed', 'Completed'])
    expect(run.world.journal.of('wiped').map(e => e.machine)).toEqual(names)
    for (const name of names) expect([...asked]).toEqual(expect.arrayContaining([`reset ${name}`, `maintenance ${name}`]))
    for (const status of statuses) expect(status?.machines?.[0]?.message).toContain('reset, and no more in the cluster')
    expect(run.world.etcd.members().map(m => m.name)).toEqual(['cp-1', 'cp-3'])
    expect(most()).toBe(1)
    expect(known(run)).toEqual(expect.arrayContaining(names))
  })

  it('control planes as well, one after the other, down to as few as may be', async () => {
    let most = (): number => 0
    const { run } = await play({
      cluster: { controlPlanes: 5 },
      spec: { node: { action: 'reset', machine: 'cp-2' } },
      allowed: { away: ['cp-2', 'cp-3'] },
      arrange: run => void (most = mostAtOnce(run)),
      drive: async run => {
        reset(run, 'cp-3', {})
        await run.until('both are reset', () => run.names().every(name => isOver(run.operation(name)?.status)), 60 * MINUTE)
      },
    })
    expect([run.status().phase, run.operation('cp-3')?.status.phase]).toEqual(['Completed', 'Completed'])
    expect(run.world.etcd.members().map(m => m.name)).toEqual(['cp-1', 'cp-4', 'cp-5'])
    expect(most()).toBe(1)
  })

  it('what was not seen to be wiped is not taken for gone: the next one waits, and says for whom', async () => {
    const { run } = await play({
      cluster: { workers: 3 },
      spec: { node: { action: 'reset', machine: 'wk-1', rebootAfter: true } },
      allowed: { away: ['wk-1'], keepsCordon: ['wk-1'] },
      arrange: ({ world }) => {
        const stop = world.journal.onEntry(({ what }) => {
          if (what !== 'wiped') return
          stop()
          world.blackHole('wk-1', true)
        })
      },
      drive: async run => {
        await run.until('the first has the lock', () => run.status().machines !== undefined)
        reset(run, 'wk-2', { rebootAfter: true })
        await run.until('the first is given up', () => isOver(run.status()), 60 * MINUTE)
        expect(run.status()).toMatchObject({ phase: 'Paused', failureReason: 'RebootTimeout' })
        await run.until(
          'the second waits for it',
          () => run.operation('wk-2')?.status.message?.includes('wk-1 not ready') === true,
          10 * MINUTE,
        )
        await run.until('and gives up too', () => isOver(run.operation('wk-2')?.status), 60 * MINUTE)
        expect(run.operation('wk-2')?.status).toMatchObject({ phase: 'Paused', failureReason: 'NodeNotReady' })
      },
    })
    expect(run.world.journal.of('wiped').map(e => e.machine)).toEqual(['wk-1'])
  })

  it('an upgrade of the rest is not kept by what is left of them', async () => {
    const { run } = await play({
      cluster: { controlPlanes: 5 },
      spec: { node: { action: 'reset', machine: 'cp-2' } },
      allowed: { away: ['cp-2'] },
      drive: async run => {
        await run.until('it is reset', () => isOver(run.status()), 60 * MINUTE)
        run.create({ name: 'talos', spec: { kind: 'talos', ...spec } })
        await run.until('the rest is upgraded', () => isOver(run.operation('talos')?.status))
      },
    })
    expect(run.operation('talos')?.status).toMatchObject({ phase: 'Completed', progress: { done: 6, skipped: 0 } })
    expect(known(run)).toContain('cp-2')
  })
})
