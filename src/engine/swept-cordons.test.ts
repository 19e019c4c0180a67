// Cordons that nobody needs any more are lifted at each discovery; one under which a machine is being worked on is not.
import { expect, it } from 'vitest'
import { ANNOTATION } from '../api/names.ts'
import type { Target } from '../api/talos-operation.ts'
import { CLUSTER, NAMESPACE, createStory } from '../storm/story.ts'
import { change } from '../world/objects.ts'
import { openPorts } from '../world/ports/open.ts'
import { ICHOR } from '../world/ports/home.ts'
import { discover } from './discover.ts'

const done: Target = { name: 'wk-1-old', node: 'wk-1', role: 'worker', phase: 'Completed', before: { bootID: 'a' } }
/** Installed anew in the place of the one that is done, under its name. */
const newcomer: Target = { name: 'wk-1-new', node: 'wk-1', role: 'worker', phase: 'Running', before: { bootID: 'b' }, step: 'drain' }

it.each<[string, string, readonly Target[], boolean]>([
  ['only where its machine is done', 'lifted', [done], false],
  ['while another machine of that name is being drained', 'kept', [done, newcomer], true],
  ['while another machine of that name was left in the middle by a failure', 'kept', [done, { ...newcomer, phase: 'Failed' }], true],
  [
    'while another machine of that name has its turn before it',
    'lifted',
    [done, { ...newcomer, phase: 'Pending', before: undefined }],
    false,
  ],
])('%s a cordon is %s', async (_, __, machines, isKept) => expect(await isCordonedAfter(machines)).toBe(isKept))

it('while another operation is at work on the machine a cordon is kept, whoever made it', async () => {
  expect(await isCordonedAfter([newcomer], 'of-one-that-is-over')).toBe(true)
  expect(await isCordonedAfter([{ ...newcomer, phase: 'Pending' }], 'of-one-that-is-over')).toBe(false)
})

/** After a look at a cluster in which one Node has a cordon, of that operation or of another. */
const isCordonedAfter = async (machines: readonly Target[], by?: string): Promise<boolean> => {
  const story = createStory()
  const { store } = story.world
  story.create({ name: 'op', spec: { kind: 'talos', talos: { version: 'v1.13.9' } } })
  change(store, ICHOR.operations, NAMESPACE, 'op', object => ({ ...object, status: { phase: 'Running', machines } }))
  const uid = by ?? story.operation('op')?.metadata.uid ?? ''
  change(store, 'nodes', '', 'wk-1', node => ({
    ...node,
    metadata: { ...node.metadata, annotations: { [ANNOTATION.cordonedBy]: uid } },
    spec: { unschedulable: true },
  }))
  const { home, connections, clock } = openPorts(story.world, { name: 'looker' })
  const log = { info: () => {}, warn: () => {}, error: () => {} }
  let isOver = false
  void discover({ home, connections, clock, log, discoverMs: 30_000 }, { namespace: NAMESPACE, name: CLUSTER }).finally(
    () => (isOver = true),
  )
  await story.until('it has looked', () => isOver)
  const node = store.get('nodes', '', 'wk-1')
  return (node?.['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable === true
}
