import { describe, expect, it } from 'vitest'
import { planOperation } from './plan.ts'
import { timing } from '../core/timing.ts'
import { restartKind } from '../storm/restart-kind.ts'
import { restartStory } from '../storm/restart-story.ts'
import { CLUSTER, NAMESPACE } from '../storm/story.ts'
import { talosOperation } from '../api/talos-operation.ts'
import { openPorts } from '../world/ports/open.ts'

const plan = async (spec: object) => {
  const story = await restartStory()
  story.restart('holder')
  await story.until('it holds the lock', () => story.open('holder').length > 0)
  const before = story.world.store.list('talosoperations.ichor.maesh.dev').items.map(o => o.metadata.name)
  const definition = talosOperation([restartKind])
  const changes: string[] = []
  story.world.calls.intercept(call => {
    if (call.client === 'planner' && call.changes) changes.push(call.name)
    return undefined
  })
  const parsed = definition.spec.parse({ clusterRef: { name: CLUSTER }, kind: 'restart', restart: {}, ...spec }) as Parameters<
    typeof planOperation
  >[4]
  const answer = await planOperation(
    { ...openPorts(story.world, { name: 'planner', operation: definition }), timing: timing(), self: undefined },
    restartKind,
    NAMESPACE,
    'p',
    parsed,
  )
  expect(story.world.store.list('talosoperations.ichor.maesh.dev').items.map(o => o.metadata.name)).toEqual(before)
  expect(changes).toEqual([])
  return answer
}

describe('a plan', () => {
  it('says the order, what is lost, and who holds the lock, and writes nothing', async () => {
    expect(await plan({})).toMatchObject({
      ok: true,
      value: { refusals: [], order: [{ name: 'cp-1' }, { name: 'wk-1' }], holder: `ichor-controller/op/${NAMESPACE}/holder` },
    })
  })

  it('says what would be refused', async () => {
    expect(await plan({ restart: { forbidden: true } })).toMatchObject({
      ok: true,
      value: { refusals: [{ rule: 'Forbidden', overridable: true }] },
    })
  })

  it('of an unknown cluster says which there are', async () => {
    expect(await plan({ clusterRef: { name: 'hone' } })).toMatchObject({
      ok: false,
      fault: { message: `There is no TalosCluster hone in namespace ${NAMESPACE} (there are: ${CLUSTER}).` },
    })
  })
})
