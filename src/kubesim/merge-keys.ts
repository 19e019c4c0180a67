import type { JSONSchemaProps } from '../api/structural.ts'
import { listAt } from './fields.ts'

/**
 * Lists of objects that are merged by keys, by the name of their field: the ones in the built-in types that are served. A list whose field
 * is not here is one value. `''` marks lists of plain values that are merged as sets.
 */
const KEYS: Record<string, readonly string[]> = {
  addresses: ['type'],
  conditions: ['type'],
  containers: ['name'],
  env: ['name'],
  ephemeralContainers: ['name'],
  finalizers: [''],
  imagePullSecrets: ['name'],
  initContainers: ['name'],
  ownerReferences: ['uid'],
  secrets: ['name'],
  volumeMounts: ['mountPath'],
  volumes: ['name'],
}

/** `ports` is a list of Services and of containers; each has its own key. */
const PORTS: Record<string, readonly string[]> = { Service: ['port'], container: ['containerPort'] }

/** How strategic merge finds two items of a list to be the same; undefined where the list is replaced as a whole. */
export const patchKeys = (kind: string, path: readonly string[]): readonly string[] | undefined => {
  const field = path.at(-1) ?? ''
  if (field === 'ports') return kind === 'Service' ? PORTS['Service'] : PORTS['container']
  return KEYS[field]
}

/**
 * How server-side apply and managedFields name the items of a list: as patches do, but for Service ports (port and protocol); custom resources by their own schema.
 */
export const applyKeys = (kind: string, path: readonly string[], schema: JSONSchemaProps | undefined): readonly string[] | undefined => {
  const field = path.at(-1) ?? ''
  if (path[0] === 'metadata') return field === 'ownerReferences' ? ['uid'] : field === 'finalizers' ? [''] : undefined
  if (schema) {
    const type = schema['x-kubernetes-list-type']
    return type === 'map' ? (listAt(schema, 'x-kubernetes-list-map-keys') as readonly string[]) : type === 'set' ? [''] : undefined
  }
  if (field === 'ports') return kind === 'Service' ? ['port', 'protocol'] : ['containerPort', 'protocol']
  return KEYS[field]
}
