import type { Draft, KubeObject } from './store.ts'

type Fields = Readonly<Record<string, unknown>>
type Entry = { readonly manager?: string; readonly fieldsV1?: Fields }

const FIELD = 'f:unschedulable'

const disowned = (entry: Entry): Entry[] => {
  const { 'f:spec': spec, ...others } = entry.fieldsV1 ?? {}
  const { [FIELD]: owned, ...rest } = (spec ?? {}) as Fields
  if (owned === undefined) return [entry]
  const fieldsV1 = { ...others, ...(Object.keys(rest).length > 0 ? { 'f:spec': rest } : {}) }
  return Object.keys(fieldsV1).length > 0 ? [{ ...entry, fieldsV1 }] : []
}

/** A Node made unschedulable, or schedulable again, with what the server records of it: who wrote `spec.unschedulable` last. */
export const withCordon = (node: KubeObject, on: boolean, manager: string, time: string): Draft => {
  const spec = node['spec'] as { readonly unschedulable?: boolean } | undefined
  if (on === (spec?.unschedulable === true)) return node
  const own = { manager, operation: 'Update', apiVersion: 'v1', time, fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': { [FIELD]: {} } } }
  const others = ((node.metadata.managedFields ?? []) as readonly Entry[]).flatMap(disowned)
  return {
    ...node,
    metadata: { ...node.metadata, managedFields: on ? [...others, own] : others },
    spec: { ...spec, unschedulable: on ? true : undefined },
  }
}
