import { expect, it } from 'vitest'
import { ANNOTATION, API_VERSION } from '../api/names.ts'
import { CLUSTER, NAMESPACE, createStory } from '../storm/story.ts'
import { ICHOR } from '../world/ports/home.ts'

type Cluster = {
  readonly status?: {
    readonly clusterID?: string
    readonly machines?: { readonly summary: string }
    readonly conditions?: readonly { readonly reason: string; readonly message: string }[]
  }
}

const clusterIn = (story: ReturnType<typeof createStory>, name: string): Cluster =>
  story.world.store.get(ICHOR.clusters, NAMESPACE, name) as unknown as Cluster

it('writes a TalosMachine for each member, and what was seen into the TalosCluster', async () => {
  const story = createStory()
  story.start()
  await story.until('the cluster is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  expect(
    story.world.store
      .list(ICHOR.machines)
      .items.map(m => (m['status'] as { hostname: string }).hostname)
      .sort(),
  ).toEqual(['cp-1', 'cp-2', 'cp-3', 'wk-1', 'wk-2'])
})

it('refuses a second TalosCluster of the same cluster, and registers nothing for it', async () => {
  const story = createStory()
  story.start()
  await story.until('the first is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  story.world.store.create(ICHOR.clusters, {
    apiVersion: API_VERSION,
    kind: 'TalosCluster',
    metadata: { name: 'again', namespace: NAMESPACE },
    spec: { talosconfigSecretRef: { name: 'talosconfig', key: 'talosconfig' } },
  })
  await story.until('it is refused', () => clusterIn(story, 'again').status?.conditions?.[0]?.reason === 'DuplicateCluster')
  expect(clusterIn(story, 'again').status?.conditions?.[0]?.message).toContain(`TalosCluster ${NAMESPACE}/${CLUSTER} is the same cluster`)
  expect(story.world.store.list(ICHOR.machines).items).toHaveLength(5)
  expect(clusterIn(story, CLUSTER).status?.conditions?.[0]?.reason).toBe('Healthy')
})

it('lifts a cordon whose operation no longer exists, and no other', async () => {
  const story = createStory()
  const mark = (node: string, annotations: Record<string, string>): void => {
    const object = story.world.store.get('nodes', '', node)
    if (!object) throw new Error(`there is no Node ${node}`)
    story.world.store.update('nodes', { ...object, metadata: { ...object.metadata, annotations }, spec: { unschedulable: true } })
  }
  const isCordoned = (node: string): boolean =>
    (story.world.store.get('nodes', '', node)?.['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable === true
  mark('wk-1', { [ANNOTATION.cordonedBy]: 'an-operation-that-is-gone' })
  mark('wk-2', {})
  story.start()
  await story.until(
    'the mark is gone',
    () => story.world.store.get('nodes', '', 'wk-1')?.metadata.annotations?.[ANNOTATION.cordonedBy] === undefined,
  )
  expect([isCordoned('wk-1'), isCordoned('wk-2')]).toEqual([false, true])
})
