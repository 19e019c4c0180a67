import { disowned } from './field-owners.ts'
import type { Draft, KubeObject } from './store.ts'

const FIELD = 'f:unschedulable'

/** A Node made unschedulable, or schedulable again, with what the server records of it: who wrote `spec.unschedulable` last. */
export const withCordon = (node: KubeObject, on: boolean, manager: string, time: string): Draft => {
  const spec = node['spec'] as { readonly unschedulable?: boolean } | undefined
  if (on === (spec?.unschedulable === true)) return node
  const own = { manager, operation: 'Update', apiVersion: 'v1', time, fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': { [FIELD]: {} } } }
  const others = disowned(node.metadata.managedFields, ['f:spec', FIELD])
  return {
    ...node,
    metadata: { ...node.metadata, managedFields: on ? [...others, own] : [...others] },
    spec: { ...spec, unschedulable: on ? true : undefined },
  }
}
