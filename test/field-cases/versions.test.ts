import { describe, expect, it } from 'vitest'
import { bench, putCluster } from '../../src/app/cli/test-bench.ts'
import { talosOperation, type OperationSpec } from '../../src/api/talos-operation.ts'
import { timing } from '../../src/core/timing.ts'
import { planOperation, type Plan } from '../../src/engine/plan.ts'
import { talos } from '../../src/kinds/talos/talos.ts'
import type { Result } from '../../src/ports/fault.ts'
import { CLUSTER, createStory, NAMESPACE } from '../../src/storm/story.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { openPorts } from '../../src/world/ports/open.ts'
import { installOther } from '../../src/world/joined.ts'
import { runningSlot } from '../../src/world/slots.ts'
import { messages, play, playWithDeaths, type Run } from './play.ts'

describe('a version without its v [B001 siderolabs/talos#7697]', () => {
  it('is refused where it is created, with the form that is meant', () => {
    const story = createStory()
    expect(() => story.create({ name: 'up', spec: { kind: 'talos', talos: { version: '1.13.9' } } })).toThrow(
      /leading v and three numbers, like v1.13.9/,
    )
    expect(story.world.store.list(ICHOR.operations).items).toEqual([])
  })

  it('is refused by the CLI before anything is sent', async () => {
    const terminal = bench()
    putCluster(terminal, 'home')
    expect(await terminal.run('upgrade', 'talos', '1.13.9', '--yes')).not.toBe(0)
    expect(terminal.err.join('\n')).toMatch(/"1\.13\.9".*\bv1\.13\.9/)
    expect(terminal.writes).toEqual([])
  })

  it('and with it, what is there already is not touched', async () => {
    const { run, end } = await play({ cluster: { talos: 'v1.13.9' }, spec: { talos: { version: 'v1.13.9' } } })
    expect(end.phase).toBe('Completed')
    expect(run.status().progress).toMatchObject({ done: 0, skipped: 5 })
    expect(run.world.journal.of('pulled')).toEqual([])
  })
})

describe('a silent downgrade [B009 cozystack/talm#219, siderolabs/omni#1945]', () => {
  const cluster = { talos: 'v1.12.6', kubernetes: 'v1.34.1' }

  it('is refused, naming both versions, and no machine is touched', async () => {
    const { run, end } = await playWithDeaths({ cluster, spec: { talos: { version: 'v1.10.5' } } }, 3)
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    const refusals = run.status().preflight?.refusals ?? []
    const downgrade = refusals.find(r => r.rule === 'DowngradeRefused')?.message ?? ''
    for (const name of ['cp-1', 'cp-2', 'cp-3', 'wk-1', 'wk-2']) expect(downgrade).toContain(`${name} v1.12.6`)
    expect(downgrade).toMatch(/^v1\.10\.5 is older than what runs: .*Choose a version that is not older/)
    expect(run.world.journal.of('reboot-requested')).toEqual([])
  })

  it('an older image beside the new version is no way around it', async () => {
    const { run, end } = await play({ cluster, spec: { talos: { version: 'v1.12.7', image: 'ghcr.io/siderolabs/installer:v1.10.5' } } })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    expect(messages(run)).toMatch(/v1\.10\.5.*v1\.12\.7|v1\.12\.7.*v1\.10\.5/)
  })

  it('only a person who says so goes back, and then it is observed', async () => {
    const { run, end } = await play({ cluster, spec: { talos: { version: 'v1.12.5' }, override: true } })
    expect(end.phase).toBe('Completed')
    expect(end.machines).toEqual(['cp-1', 'cp-2', 'cp-3', 'wk-1', 'wk-2'].map(name => `${name} v1.12.5 Completed`))
    expect(run.status().preflight?.refusals.every(r => r.overridden)).toBe(true)
  })
})

describe('a machine that joins while the others are upgraded', () => {
  /** wk-2 is installed anew while cp-1 is upgraded, and its TalosMachine of before is deleted: it is found as another one. */
  const joins = async ({ world, status, until, byHand }: Run, version: string): Promise<void> => {
    await until('the first is worked on', () => status().machines?.[0]?.phase === 'Running')
    byHand(() => {
      world.powerOff('wk-2')
      installOther(world.machine('wk-2'), version, 'another0Machine0under0the0same0name00000000')
      const [old] = world.store.list(ICHOR.machines, NAMESPACE).items.filter(m => m.metadata.name.startsWith('wk-2-'))
      world.store.remove(ICHOR.machines, NAMESPACE, old?.metadata.name ?? '')
      world.powerOn('wk-2')
    })
  }
  const installed = ({ world }: Run): number => world.journal.of('install-began', 'wk-2').length

  it('by a Talos from which none goes there is left as it is, and named', async () => {
    const { run, end } = await play({
      spec: { talos: { version: 'v1.13.9' } },
      drive: async run => {
        await joins(run, 'v1.11.6')
        await run.settled(3_600_000)
      },
    })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'VersionMismatch' })
    expect(run.status().message).toMatch(/^wk-2 runs v1\.11\.6 by now\. From Talos v1\.11\.6 to v1\.13\.9 a minor is skipped/)
    expect(installed(run)).toBe(0)
    expect(end.machines.slice(0, 4).every(m => m.endsWith('v1.13.9 Completed'))).toBe(true)
  })

  it('by a Talos from which one goes there is upgraded as the last', async () => {
    const { run, end } = await play({
      spec: { talos: { version: 'v1.13.9' } },
      drive: async run => {
        await joins(run, 'v1.12.11')
        await run.settled(3_600_000)
      },
    })
    expect(end.phase).toBe('Completed')
    expect(installed(run)).toBe(1)
    expect(runningSlot(run.world.machine('wk-2').disk).version).toBe('v1.13.9')
  })
})

describe('a plan while a machine is down [B062 scality/metalk8s#2237]', () => {
  it('says so, and writes nothing', async () => {
    const story = createStory()
    story.start()
    await story.until('the machines are known', () => story.world.store.list(ICHOR.machines).items.filter(m => 'status' in m).length === 5)
    story.world.powerOff('wk-2')
    await story.pass(90_000)
    const definition = talosOperation([talos])
    const spec = definition.spec.parse({ clusterRef: { name: CLUSTER }, kind: 'talos', talos: { version: 'v1.13.9' } }) as OperationSpec
    const observer = { ...openPorts(story.world, { name: 'plan', operation: definition }), timing: timing(), self: undefined }
    let plan: Result<Plan> | undefined
    void planOperation(observer, talos, NAMESPACE, 'up', spec).then(made => (plan = made))
    await story.until('the plan is there', () => plan !== undefined)
    const refusals = plan?.ok ? plan.value.refusals : []
    expect(refusals.map(r => r.rule)).toContain('MachineUnreachable')
    expect(refusals.find(r => r.rule === 'MachineUnreachable')?.message).toMatch(/^wk-2 \(10\.5\.0\.6\) does not answer: /)
    const calls = story.world.calls.log().filter(call => call.client === 'plan')
    expect(calls.length).toBeGreaterThan(10)
    expect(calls.filter(call => call.changes)).toEqual([])
  })

  it('refuses the run as the plan did, and holds no lock', async () => {
    const { run, end } = await playWithDeaths(
      { spec: { talos: { version: 'v1.13.9' } }, arrange: ({ world }) => world.powerOff('wk-2'), allowed: { away: ['wk-2'] } },
      3,
    )
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    expect(run.status().message).toMatch(/wk-2 \(10\.5\.0\.6\) does not answer/)
  })
})
