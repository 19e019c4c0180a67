import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../../src/api/names.ts'
import { NAMESPACE } from '../../src/storm/story.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { playWithDeaths, type Run } from './play.ts'

const NEW_ID = 'another0Machine0under0the0same0name00000000'

/** While wk-1 is away it is reset and joins again: another machine for Talos, the same name for Kubernetes. */
const replace = (run: Run, how: 'keeps its Node' | 'gets another Node'): void => {
  const { world } = run
  const stop = world.journal.onEntry(({ what, machine }) => {
    if (what !== 'down' || machine !== 'wk-1') return
    stop()
    run.byHand(() => {
      world.machine('wk-1').nodeID = NEW_ID
      if (how === 'gets another Node') world.userDeleteNode('wk-1')
    })
  })
}

describe('a machine comes back as another one of its name [B048 kubernetes-sigs/cluster-api#13530]', () => {
  it.each(['keeps its Node', 'gets another Node'] as const)('and %s: that is said, and only our own cordon is lifted', async how => {
    const { run, end } = await playWithDeaths({ spec: { talos: { version: 'v1.13.9' } }, arrange: run => replace(run, how) }, 3)
    expect(end).toMatchObject({ phase: 'Paused', reason: 'MachineAmbiguous' })
    expect(end.machines.slice(3)).toEqual(['wk-1 v1.13.9 Failed', 'wk-2 v1.13.5 Pending'])
    expect(run.status().message).toMatch(new RegExp(`^wk-1 was replaced while it was away: another machine .*${NEW_ID}`))
    const node = run.world.store.get(RESOURCE.nodes, '', 'wk-1')
    expect((node?.spec as { unschedulable?: boolean } | undefined)?.unschedulable).toBeUndefined()
    expect(node?.metadata.annotations?.[ANNOTATION.cordonedBy]).toBeUndefined()
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toHaveLength(1)
  })

  it("a person's cordon on the new Node stays", async () => {
    const { end } = await playWithDeaths(
      {
        spec: { talos: { version: 'v1.13.9' } },
        arrange: run => {
          replace(run, 'gets another Node')
          run.world.journal.onEntry(({ what, machine }) => {
            if (what === 'node-boot' && machine === 'wk-1') run.world.userCordon('wk-1')
          })
        },
      },
      2,
    )
    expect(end.machines[3]).toBe('wk-1 v1.13.9 Failed cordoned')
  })

  it('what the message advises leads out: the new machine is taken as it is', async () => {
    const { run } = await playWithDeaths(
      {
        spec: { talos: { version: 'v1.13.9' } },
        arrange: run => replace(run, 'keeps its Node'),
        drive: async run => {
          await run.settled()
          const [, old = ''] = /Delete TalosMachine (\S+),/.exec(run.status().message ?? '') ?? []
          expect(run.world.store.remove(ICHOR.machines, NAMESPACE, old).ok).toBe(true)
          run.edit('up', { spec: { cancelled: true } })
          await run.settled()
          expect(run.status().phase).toBe('Cancelled')
          run.create({ name: 'again', spec: { kind: 'talos', talos: { version: 'v1.13.9' } } })
          await run.until('the other one is done', () => run.operation('again')?.status.phase === 'Completed')
        },
      },
      1,
    )
    const targets = run.operation('again')?.status.machines ?? []
    expect(targets.map(t => [t.node, t.phase])).toContainEqual(['wk-1', 'Skipped'])
    expect(targets.map(t => [t.node, t.phase])).toContainEqual(['wk-2', 'Completed'])
  })

  it('and its TalosMachine is deleted while it is powered off: the cordon of ours does not stay on the other one', async () => {
    const { run, end } = await playWithDeaths(
      {
        spec: { kind: 'node', node: { machine: 'wk-1', action: 'shutdown' } },
        arrange: run => {
          replace(run, 'keeps its Node')
          const stop = run.world.journal.onEntry(({ what, machine }) => {
            if (what !== 'down' || machine !== 'wk-1') return
            stop()
            run.byHand(() => {
              for (const { metadata } of run.world.store.list(ICHOR.machines).items)
                if (metadata.name.startsWith('wk-1-')) run.world.store.remove(ICHOR.machines, NAMESPACE, metadata.name)
            })
            run.world.schedule.after(60_000, () => run.byHand(() => run.world.powerOn('wk-1')))
          })
        },
      },
      2,
    )
    expect(end).toMatchObject({ phase: 'Paused', reason: 'MachineAmbiguous' })
    expect(run.status().message).toMatch(/ Cancel this operation, and start another one/)
    expect(run.world.store.get(RESOURCE.nodes, '', 'wk-1')?.metadata.annotations?.[ANNOTATION.cordonedBy]).toBeUndefined()
  })
})
