import type { ObjectRef } from '../../api/talos-cluster.ts'
import type { Result } from '../../ports/fault.ts'
import { failed, ok } from '../../ports/fault.ts'
import { RESOURCE } from '../objects.ts'
import type { KubeObject, Store } from '../store.ts'

type Type = { readonly shelf: string; readonly namespaced: boolean }

/** The types that the world's own actors keep. All others come from definitions in the store. */
const BUILT_IN: Readonly<Record<string, Type>> = {
  'v1/ConfigMap': { shelf: RESOURCE.configMaps, namespaced: true },
  'v1/Namespace': { shelf: RESOURCE.namespaces, namespaced: false },
  'v1/Node': { shelf: RESOURCE.nodes, namespaced: false },
  'v1/Pod': { shelf: RESOURCE.pods, namespaced: true },
  'apps/v1/DaemonSet': { shelf: RESOURCE.daemonSets, namespaced: true },
  'apps/v1/Deployment': { shelf: RESOURCE.deployments, namespaced: true },
  'apps/v1/ReplicaSet': { shelf: RESOURCE.replicaSets, namespaced: true },
  'policy/v1/PodDisruptionBudget': { shelf: RESOURCE.budgets, namespaced: true },
}

type Definition = {
  readonly group: string
  readonly scope: string
  readonly names: { readonly plural: string; readonly kind: string }
  readonly versions: readonly { readonly name: string; readonly served: boolean }[]
}

const customType = (store: Store, { apiVersion, kind }: ObjectRef): Type | undefined => {
  for (const crd of store.list(RESOURCE.definitions).items) {
    const { group, scope, names, versions } = crd['spec'] as Definition
    const isIt = names.kind === kind && versions.some(v => v.served && `${group}/${v.name}` === apiVersion)
    if (isIt) return { shelf: `${names.plural}.${group}`, namespaced: scope === 'Namespaced' }
  }
  return undefined
}

/** Reads an object of any type, in the words of the real API server. */
export const readObject = (store: Store, ref: ObjectRef): Result<KubeObject> => {
  const { apiVersion, kind, namespace, name } = ref
  const type = BUILT_IN[`${apiVersion}/${kind}`] ?? customType(store, ref)
  if (!type) return failed('unsupported', `the API server knows no ${kind} in ${apiVersion}`)
  if (type.namespaced && namespace === undefined) return failed('invalid', `a ${kind} is in a namespace, and none is named`)
  if (!type.namespaced && namespace !== undefined) return failed('invalid', `a ${kind} is in no namespace, and ${namespace} is named`)
  const object = store.get(type.shelf, namespace ?? '', name)
  return object ? ok(object) : failed('notFound', `${type.shelf} "${name}" not found`)
}
