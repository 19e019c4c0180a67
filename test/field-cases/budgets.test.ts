import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../../src/api/names.ts'
import { NAMESPACE } from '../../src/storm/story.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { play, playWithDeaths, type Run } from './play.ts'

const spec = { talos: { version: 'v1.13.9' }, drain: { timeout: '2m' } }
const MINUTE = 60_000

/** The Nodes that Ichor has cordoned now. */
const cordoned = ({ world }: Run): readonly string[] =>
  world.store
    .list(RESOURCE.nodes)
    .items.filter(n => n.metadata.annotations?.[ANNOTATION.cordonedBy] !== undefined)
    .map(n => n.metadata.name)

/** From the cordon to the uncordon of a machine, the first time. */
const cordonMs = ({ world }: Run, name: string): number => {
  const [cordon] = world.journal.of('cordon', name)
  const [uncordon] = world.journal.of('uncordon', name)
  if (!cordon || !uncordon) throw new Error(`${name} was not cordoned and uncordoned`)
  return uncordon.at - cordon.at
}

describe('one worker after the other fails [B042 kubernetes-sigs/kubespray#6545, mysticaltech/terraform-hcloud-kube-hetzner#1507]', () => {
  it('and after each failure nothing stays cordoned; never two at once', async () => {
    let most = 0
    const stuck = ['wk-1', 'wk-2', 'wk-3']
    const { run, end } = await play({
      cluster: { workers: 3, workloads: stuck.map((name, i) => ({ name: `db-${name}`, budget: { minAvailable: 1 }, on: [3 + i] })) },
      spec,
      arrange: run => {
        run.world.store.watch(RESOURCE.nodes, undefined, () => (most = Math.max(most, cordoned(run).length)))
      },
      drive: async run => {
        for (const name of stuck) {
          await run.settled()
          expect(run.status()).toMatchObject({ phase: 'Paused', failureReason: 'DrainBlocked' })
          expect(run.status().message).toMatch(new RegExp(`^${name}: drain did not end within 2m: pod default/db-${name}-`))
          expect(cordoned(run)).toEqual([])
          run.world.store.remove(RESOURCE.budgets, 'default', `db-${name}`)
          await run.resume()
        }
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    expect(most).toBe(1)
    for (const name of stuck) expect(run.world.journal.of('install-began', name), name).toHaveLength(1)
  })
})

describe('a pod under two budgets [B044 istio/istio#23075]', () => {
  const alsoCover = ({ world }: Run, name: string): void =>
    void world.store.create(RESOURCE.budgets, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace: 'default' },
      spec: { minAvailable: 0, selector: { matchLabels: { app: 'mesh' } } },
    })
  const told = {
    cluster: { workloads: [{ name: 'mesh', budget: { minAvailable: 0 }, on: [3] }] },
    arrange: (run: Run) => alsoCover(run, 'every-app'),
  }

  it('is told with both, after a few tries and not at the end of the time; the machine is given back', async () => {
    const { run, end } = await playWithDeaths({ ...told, spec: { talos: spec.talos } })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'DrainBlocked' })
    expect(end.machines.slice(3)).toEqual(['wk-1 v1.13.5 Failed', 'wk-2 v1.13.5 Pending'])
    expect(run.status().message).toMatch(
      /^wk-1: drain cannot end: pod default\/mesh-\w+-\w+ is covered by 2 PodDisruptionBudgets \((every-app, mesh|mesh, every-app)\)/,
    )
    expect(cordonMs(run, 'wk-1')).toBeLessThan(3 * MINUTE)
    expect(run.world.calls.counts().get('kube.evict')).toBeLessThan(15)
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toEqual([])
  })

  it('also where one of them allows nothing: never is it said that this one holds it, which to widen would not help', async () => {
    const said = new Set<string>()
    const { run } = await play({
      cluster: { workloads: [{ name: 'mesh', budget: { minAvailable: 1 }, on: [3] }] },
      spec,
      arrange: run => {
        told.arrange(run)
        run.world.store.watch(ICHOR.operations, undefined, ({ object }) =>
          said.add((object['status'] as { message?: string } | undefined)?.message ?? ''),
        )
      },
    })
    expect(run.status().message).toContain('is covered by 2 PodDisruptionBudgets')
    expect([...said].filter(text => text.includes('is held by'))).toEqual([])
  })

  it('goes on when one of them is gone', async () => {
    const { end } = await play({
      ...told,
      spec,
      drive: async run => {
        await run.settled()
        run.world.store.remove(RESOURCE.budgets, 'default', 'every-app')
        await run.resume()
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
  })
})

describe('a storage system that never lets go [B050 longhorn/longhorn#12821, longhorn/longhorn#7873, ionfury/homelab#1648, mitchross/talos-argocd-proxmox#2268]', () => {
  const manager = { name: 'instance-manager-x', namespace: 'storage-system', budget: { minAvailable: 1 }, on: [3] }
  const budgetOf = ({ world }: Run) => world.store.get(RESOURCE.budgets, 'storage-system', manager.name)

  it('is named as one; its pod is not deleted and its budget is not touched', async () => {
    let before: unknown
    const { run, end } = await playWithDeaths({
      cluster: { workloads: [manager] },
      spec,
      arrange: run => ((before = budgetOf(run)?.spec), undefined),
    })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'DrainBlocked' })
    expect(run.status().message).toMatch(
      /^wk-1: drain did not end within 2m: pod storage-system\/instance-manager-x-\S+ is held by PodDisruptionBudget instance-manager-x \(allowed disruptions 0\); it belongs to a storage system, .*drain policy/,
    )
    expect(run.world.calls.counts().get('kube.deletePod')).toBeUndefined()
    expect(budgetOf(run)?.spec).toEqual(before)
  })

  it('of any other budget nothing of the kind is said', async () => {
    const { run } = await play({ cluster: { workloads: [{ name: 'db', budget: { minAvailable: 1 }, on: [3] }] }, spec })
    expect(run.status().message).not.toContain('storage')
  })

  const machineOf = ({ world }: Run, node: string) => {
    const found = world.store.list(ICHOR.machines, NAMESPACE).items.find(m => m.metadata.name.startsWith(`${node}-`))
    if (!found) throw new Error(`${node} has a TalosMachine`)
    return found
  }

  it.each([
    [
      'held back by its annotation, the machine is left out',
      {},
      (run: Run) => {
        const machine = machineOf(run, 'wk-1')
        const annotations = { ...machine.metadata.annotations, [ANNOTATION.upgradeHold]: 'its only replica is there' }
        run.world.store.update(ICHOR.machines, { ...machine, metadata: { ...machine.metadata, annotations } })
      },
      'wk-1 v1.13.5 Skipped',
    ],
    [
      'a selector leaves it out',
      { machineSelector: { matchExpressions: [{ key: 'storage', operator: 'DoesNotExist', values: [] }] } },
      (run: Run) => {
        const machine = machineOf(run, 'wk-1')
        const labels = { ...machine.metadata.labels, storage: 'only-replica' }
        run.world.store.update(ICHOR.machines, { ...machine, metadata: { ...machine.metadata, labels } })
      },
      'wk-1 v1.13.5 untouched',
    ],
  ])('%s, and the others go on', async (_, more, arrange, left) => {
    const { run, end } = await play({ cluster: { workloads: [manager] }, spec: { ...spec, ...more }, arrange })
    expect(end.phase).toBe('Completed')
    expect(end.machines.slice(3)).toEqual([left, 'wk-2 v1.13.9 Completed'])
    expect(run.world.journal.of('evict-refused')).toEqual([])
  })
})
