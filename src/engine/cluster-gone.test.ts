// A TalosCluster is deleted, and created again, while an operation stands there failed.
import { expect, it } from 'vitest'
import { ANNOTATION } from '../api/names.ts'
import { SYSCTL, applied, begun, resume, settled, status } from '../storm/config-story.ts'
import { MINUTE, restartStory } from '../storm/restart-story.ts'
import { CLUSTER, NAMESPACE } from '../storm/story.ts'
import { registerCluster } from '../world/ports/connections.ts'
import { RESOURCE, change, ensure } from '../world/objects.ts'
import { ICHOR } from '../world/ports/home.ts'

it('an operation that failed keeps its failure and its finalizer, gives back what it took, and can be retried', async () => {
  const story = await restartStory({ workers: 2 })
  story.world.fault('wk-1', { rebootNeverEnds: true })
  story.restart('a')
  await story.until('a failed', () => story.status('a').failureReason === 'RebootTimeout')
  const before = story.status('a')
  story.world.store.remove(ICHOR.clusters, NAMESPACE, CLUSTER)
  await story.pass(5 * MINUTE)
  expect(story.status('a')).toMatchObject({
    failureReason: 'RebootTimeout',
    message: before.message,
    preflight: before.preflight,
    machines: before.machines,
  })
  expect(story.finalizers('a')).toHaveLength(1)

  // It is back, and the cordon that was kept because the machine was away is lifted, without anybody's word.
  const node = () => story.world.store.get('nodes', '', 'wk-1')
  const isCordoned = () => (node()?.['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable === true
  expect(isCordoned()).toBe(true)
  story.world.fault('wk-1', { rebootNeverEnds: false })
  story.world.powerOff('wk-1')
  story.world.powerOn('wk-1')
  await story.pass(10 * MINUTE)
  registerCluster(story.world, { namespace: NAMESPACE, name: CLUSTER })
  await story.until('its cordon is lifted', () => !isCordoned(), 5 * MINUTE)
  expect(story.status('a').failureReason).toBe('RebootTimeout')
  story.edit('a', { annotations: { [ANNOTATION.retry]: 'true' } })
  await story.untilDone('a')
})

it('an operation that had gone over machines stays pinned to what it gave those', async () => {
  const patch = (text: string) => ({ data: { 'a.yaml': text } })
  const story = await begun({}, { mode: 'no-reboot', patches: [{ configMapKeyRef: { name: 'patches', key: 'a.yaml' } }] }, { paused: true })
  ensure(story.world.store, RESOURCE.configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'patches', namespace: NAMESPACE },
    ...patch(SYSCTL),
  })
  story.edit('op', { spec: { paused: false } })
  await story.until('the first machine is done', () => status(story).machines?.some(t => t.phase === 'Completed') === true)
  story.edit('op', { spec: { paused: true } })
  await story.until('it is paused', () => status(story).phase === 'Paused')
  const before = applied(story)
  const { pins } = status(story).preflight ?? {}
  expect(Object.keys(pins ?? {})).toEqual(['ConfigMap/patches/a.yaml'])
  story.world.store.remove(ICHOR.clusters, NAMESPACE, CLUSTER)
  story.edit('op', { spec: { paused: false } })
  await story.until('it is refused', () => status(story).failureReason === 'PreflightRefused')
  change(story.world.store, RESOURCE.configMaps, NAMESPACE, 'patches', map => ({ ...map, ...patch(SYSCTL.replace('65535', '4096')) }))
  registerCluster(story.world, { namespace: NAMESPACE, name: CLUSTER })
  await resume(story)
  await settled(story)
  expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'ConfigChangedByOthers', preflight: { pins, refusals: [] } })
  expect(status(story).message).toContain('holds another patch than when this operation began')
  expect(applied(story)).toEqual(before)
  change(story.world.store, RESOURCE.configMaps, NAMESPACE, 'patches', map => ({ ...map, ...patch(SYSCTL) }))
  await resume(story)
  await settled(story)
  expect(status(story).phase).toBe('Completed')
})
