import { describe, expect, it } from 'vitest'
import { planOperation } from './plan.ts'
import { timing } from '../core/timing.ts'
import { restartKind } from '../storm/restart-kind.ts'
import { restartStory } from '../storm/restart-story.ts'
import { CLUSTER, NAMESPACE } from '../storm/story.ts'
import { talosOperation } from '../api/talos-operation.ts'
import type { HealthGate, TalosClusterSpec } from '../api/talos-cluster.ts'
import { change } from '../world/objects.ts'
import { ICHOR } from '../world/ports/home.ts'
import { openPorts } from '../world/ports/open.ts'

const plan = async (spec: object, cluster: Partial<TalosClusterSpec> = {}) => {
  const story = await restartStory()
  story.restart('holder')
  await story.until('it holds the lock', () => story.open('holder').length > 0)
  change(story.world.store, ICHOR.clusters, NAMESPACE, CLUSTER, object => ({
    ...object,
    spec: { ...(object['spec'] as object), ...cluster },
  }))
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

  const gate: HealthGate = {
    name: 'switch',
    objectRef: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'hands-off' },
    expr: 'object.data.maintenance == "allowed"',
    stableFor: '1m',
  }
  it('says which health gate does not hold now, and refuses one that never can', async () => {
    expect(await plan({}, { healthGates: [gate] })).toMatchObject({
      ok: true,
      value: {
        refusals: [],
        notes: ['Health gate switch does not hold now (ConfigMap default/hands-off does not exist); the next machine waits until it does.'],
      },
    })
    const message = `Health gate switch of TalosCluster ${CLUSTER}: its expression cannot be read: line 1, column 13: found = but expecting end of input.`
    expect(await plan({}, { healthGates: [{ ...gate, expr: 'object.data = 1' }] })).toMatchObject({
      ok: true,
      value: { refusals: [{ rule: 'HealthGateInvalid', message, overridable: false }], notes: [] },
    })
  })

  it('of an unknown cluster says which there are', async () => {
    expect(await plan({ clusterRef: { name: 'hone' } })).toMatchObject({
      ok: false,
      fault: { message: `There is no TalosCluster hone in namespace ${NAMESPACE} (there are: ${CLUSTER}).` },
    })
  })
})
