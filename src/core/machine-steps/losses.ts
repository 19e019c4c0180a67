import type { View } from '../world.ts'
import { nodeFacts } from '../world.ts'
import { controlPlanesOf, isControlPlane, isOnlySchedulable, nodeOfTarget } from './target.ts'

/**
 * What its users lose while a machine is away, a sentence each, for plans. `drained`: whether its pods are asked to go first, where others can take them.
 * `until`: for how long, in the words after the comma.
 */
export const losses = (
  view: View,
  { drained, until = 'until it is back' }: { readonly drained: boolean; readonly until?: string },
): readonly string[] => {
  const members = controlPlanesOf(view.world).length
  const api = members < 3 ? 'the Kubernetes API and etcd' : `one of ${members} API servers and etcd members`
  return [...(isControlPlane(view) ? [`${api}, ${until}`] : []), ...podsLost(view, drained)]
}

const podsLost = (view: View, drained: boolean): readonly string[] => {
  const [nodes, node] = [nodeFacts(view.world), nodeOfTarget(view)]
  if (!nodes.ok || !node.ok || !node.value) return []
  if (isOnlySchedulable(nodes.value, node.value)) return ['its pods, which are not drained: no other node could take them']
  return [drained ? 'its pods, which are evicted first' : 'its pods, which are not drained']
}
