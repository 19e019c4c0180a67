import { describe, expect, it } from 'vitest'
import { beginKubelet, endKubelet } from '../../src/world/kubelet.ts'
import { crashApiServer } from '../../src/world/static-pods.ts'
import { messages, play, playWithDeaths, type Run } from './play.ts'

/** Of a control plane whose etcd is well, and not much else. */

const spec = { talos: { version: 'v1.13.9' } }
const closed = (run: Run, hostname: string): boolean => run.status().machines?.find(t => t.hostname === hostname)?.phase === 'Completed'
const touched = ({ world }: Run, name: string): number =>
  world.journal.of('install-began', name).length + world.journal.of('reboot-requested', name).length

describe('a control plane falls ill when it is done, though its etcd is well', () => {
  it.each([
    [
      'its kubelet is gone',
      (run: Run) => run.byHand(() => endKubelet(run.world.site, run.world.machine('cp-1'))),
      /cp-1 is not well: .*kubelet/,
    ],
    [
      'its API server ends again and again',
      (run: Run) => void crashApiServer(run.world.site, run.world.machine('cp-1')),
      /cp-1 is not well: .*kube-apiserver-cp-1/,
    ],
  ])('%s: no other is touched, and it stops with the name of that one', async (_, ail, words) => {
    const { run, end } = await play({
      spec,
      drive: async run => {
        await run.until('cp-1 is done', () => closed(run, 'cp-1'))
        ail(run)
        await run.settled(3_600_000)
      },
    })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'MachineNotReady' })
    expect(messages(run)).toMatch(words)
    expect([touched(run, 'cp-2'), touched(run, 'cp-3')]).toEqual([0, 0])
  })

  it('and goes on when that is over', async () => {
    const { end } = await play({
      spec,
      drive: async run => {
        const cp1 = run.world.machine('cp-1')
        await run.until('cp-1 is done', () => closed(run, 'cp-1'))
        run.byHand(() => endKubelet(run.world.site, cp1))
        await run.until('it waits for cp-1', () => /cp-1 is not well/.test(messages(run)))
        await run.pass(600_000)
        expect(touched(run, 'cp-2')).toBe(0)
        run.byHand(() => beginKubelet(run.world.site, cp1))
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    expect(end.machines.every(m => m.includes('v1.13.9 Completed'))).toBe(true)
  })

  it('between the install of another and its reboot: that one is not rebooted', async () => {
    const { end } = await play({
      spec,
      drive: async run => {
        await run.until('cp-2 is installed', () => run.world.journal.of('install-began', 'cp-2').length > 0)
        const heal = crashApiServer(run.world.site, run.world.machine('cp-1'))
        await run.pass(600_000)
        expect(run.world.journal.of('reboot-requested', 'cp-2')).toEqual([])
        expect(messages(run)).toMatch(/cp-2: reboot: cp-1 is not well/)
        heal()
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
  })
})

describe('a control plane is ill before an operation', () => {
  const ill = (run: Run): void => void crashApiServer(run.world.site, run.world.machine('cp-1'))
  const arrange = async (run: Run): Promise<void> => {
    ill(run)
    await run.pass(30_000)
  }

  it.each([
    ['an upgrade', (name: string) => ({ ...spec, machineSelector: { names: [name] } })],
    ['a reboot', (name: string) => ({ node: { machine: name, action: 'reboot' } })],
    ['a shutdown', (name: string) => ({ node: { machine: name, action: 'shutdown' } })],
    [
      'a reboot into another configuration',
      (name: string) => ({
        machineSelector: { names: [name] },
        config: { mode: 'reboot', patches: [{ inline: 'machine: {sysctls: {a: "1"}}\n' }] },
      }),
    ],
  ])('%s of another one is refused', async (_, of) => {
    const { world } = (await play({ spec })).run
    const name = world.store.list('talosmachines.ichor.maesh.dev').items.find(m => m.metadata.name.startsWith('cp-2-'))?.metadata.name ?? ''
    const { run, end } = await play({ spec: of(name), arrange })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    expect(run.status().preflight?.refusals.map(r => [r.rule, r.machine?.slice(0, 4), r.overridable])).toEqual([
      ['MachineNotReady', 'cp-1', true],
    ])
    expect(run.status().message).toContain('its API server would be missed')
    expect(touched(run, 'cp-2')).toBe(0)
  })

  it('its own reboot is its cure', async () => {
    const { run, end } = await playWithDeaths({ spec: { node: { machine: 'cp-1', action: 'reboot' } }, arrange })
    expect(end.phase).toBe('Completed')
    expect(run.world.unmet(run.world.machine('cp-1'))).toEqual([])
  })
})

describe('a person deletes the Node of a control plane', () => {
  it.each([
    [2, 'cp-2'],
    [3, 'cp-3'],
  ])('of %i, while another is worked on: it is next, and its reboot brings the Node back', async (controlPlanes, next) => {
    const { run, end } = await play({
      cluster: { controlPlanes, workers: 1 },
      spec: { ...spec, ...(controlPlanes < 3 ? { acknowledge: ['api-outage'] } : {}) },
      allowed: { apiOutage: controlPlanes < 3, nodeless: [next] },
      drive: async run => {
        await run.until('the first is worked on', () => run.status().machines?.[0]?.phase === 'Running')
        expect(run.status().machines?.[1]?.hostname).toBe(next)
        run.byHand(() => run.world.userDeleteNode(next))
        await run.settled(3_600_000)
      },
    })
    expect(end.phase).toBe('Completed')
    expect(end.machines.filter(m => !m.endsWith('v1.13.9 Completed'))).toEqual([])
    expect(run.world.nodes.isReady(next)).toBe(true)
  })
})
