import type { KubeObject } from '../world/store.ts'
import { age } from './age.ts'
import { fieldsAt, isFields, listAt, numberAt, textAt, valueAt } from './fields.ts'
import { podColumns } from './pod-columns.ts'
import type { ResourceType } from './resource-types.ts'

export type CellColumn = {
  readonly name: string
  readonly type?: 'string' | 'integer' | 'boolean' | 'date'
  readonly format?: 'name'
  readonly description?: string
  /** Shown with `-o wide` only. */
  readonly wide?: boolean
  readonly cell: (object: KubeObject, nowMs: number) => unknown
}

const NAME: CellColumn = { name: 'Name', cell: object => object.metadata.name }
const AGE: CellColumn = {
  name: 'Age',
  description: 'How long ago it was created.',
  cell: (object, nowMs) => age(object.metadata.creationTimestamp, nowMs),
}

const orNone = (text: string): string => text || '<none>'
const text = (name: string, ...path: string[]): CellColumn => ({ name, cell: object => orNone(textAt(object, ...path)) })
const count = (name: string, ...path: string[]): CellColumn => ({ name, type: 'integer', cell: object => numberAt(object, ...path) })
const wide = (column: CellColumn): CellColumn => ({ ...column, wide: true })

const ROLE = 'node-role.kubernetes.io/'
const roles = (node: KubeObject): string => {
  const labels = Object.entries(node.metadata.labels ?? {})
  const named = labels.filter(([label]) => label.startsWith(ROLE) && label.length > ROLE.length).map(([label]) => label.slice(ROLE.length))
  const old = labels.filter(([label, value]) => label === 'kubernetes.io/role' && value !== '').map(([, value]) => value)
  return orNone([...new Set([...named, ...old])].toSorted().join(','))
}

const nodeStatus = (node: KubeObject): string => {
  const ready = listAt(node, 'status', 'conditions').find(condition => textAt(condition, 'type') === 'Ready')
  const word = ready === undefined ? 'Unknown' : textAt(ready, 'status') === 'True' ? 'Ready' : 'NotReady'
  return valueAt(node, 'spec', 'unschedulable') === true ? `${word},SchedulingDisabled` : word
}

const address = (type: string) => (node: KubeObject) =>
  orNone(
    textAt(
      listAt(node, 'status', 'addresses').find(item => textAt(item, 'type') === type),
      'address',
    ),
  )

const MODES: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
}
/** In the order of kubectl, whatever that of the object is. */
const accessModes = (volume: KubeObject): string => {
  const wanted = valueAt(volume, 'spec', 'accessModes')
  const has = (mode: string): boolean => Array.isArray(wanted) && wanted.includes(mode)
  return Object.entries(MODES)
    .flatMap(([mode, short]) => (has(mode) ? [short] : []))
    .join(',')
}

const volumeStatus = (volume: KubeObject): string =>
  volume.metadata.deletionTimestamp === undefined ? textAt(volume, 'status', 'phase') : 'Terminating'

const volumeClaim = (volume: KubeObject): string => {
  const [namespace, name] = [textAt(volume, 'spec', 'claimRef', 'namespace'), textAt(volume, 'spec', 'claimRef', 'name')]
  return name === '' ? '' : `${namespace}/${name}`
}

const unknown = (value: string): string => value || '<unknown>'

const NODES: readonly CellColumn[] = [
  NAME,
  { name: 'Status', description: 'The status of the node', cell: nodeStatus },
  { name: 'Roles', description: 'The roles of the node', cell: roles },
  AGE,
  { name: 'Version', cell: node => textAt(node, 'status', 'nodeInfo', 'kubeletVersion') },
  wide({ name: 'Internal-IP', cell: address('InternalIP') }),
  wide({ name: 'External-IP', cell: address('ExternalIP') }),
  wide({ name: 'OS-Image', cell: node => unknown(textAt(node, 'status', 'nodeInfo', 'osImage')) }),
  wide({ name: 'Kernel-Version', cell: node => unknown(textAt(node, 'status', 'nodeInfo', 'kernelVersion')) }),
  wide({ name: 'Container-Runtime', cell: node => unknown(textAt(node, 'status', 'nodeInfo', 'containerRuntimeVersion')) }),
]

const lastSeen = (event: KubeObject, nowMs: number): string => {
  const series = textAt(event, 'series', 'lastObservedTime')
  const last = series || textAt(event, 'lastTimestamp') || textAt(event, 'eventTime')
  return last === '' ? '<unknown>' : age(last, nowMs)
}

const firstSeen = (event: KubeObject, nowMs: number): string => {
  const first = textAt(event, 'firstTimestamp') || textAt(event, 'eventTime')
  return first === '' ? '<unknown>' : age(first, nowMs)
}

const eventSource = (event: KubeObject): string => {
  const component = textAt(event, 'source', 'component') || textAt(event, 'reportingComponent')
  const host = textAt(event, 'source', 'host') || textAt(event, 'reportingInstance')
  return host === '' ? component : `${component}, ${host}`
}

const eventObject = (event: KubeObject): string => {
  const [kind, name] = [textAt(event, 'involvedObject', 'kind').toLowerCase(), textAt(event, 'involvedObject', 'name')]
  return name === '' ? kind : `${kind}/${name}`
}

/** Events of either group; the columns read the spelling of v1. */
const EVENTS: readonly CellColumn[] = [
  { name: 'Last Seen', cell: lastSeen },
  { name: 'Type', cell: event => textAt(event, 'type') },
  { name: 'Reason', cell: event => textAt(event, 'reason') },
  { name: 'Object', cell: eventObject },
  wide({ name: 'Subobject', cell: event => textAt(event, 'involvedObject', 'fieldPath') }),
  wide({ name: 'Source', cell: eventSource }),
  { name: 'Message', cell: event => textAt(event, 'message').trim() },
  wide({ name: 'First Seen', cell: firstSeen }),
  wide({ name: 'Count', cell: event => numberAt(event, 'series', 'count') || numberAt(event, 'count') || 1 }),
  wide({ name: 'Name', cell: event => event.metadata.name }),
]

const size = (object: KubeObject, ...fields: string[]): number =>
  fields.reduce((sum, field) => sum + Object.keys(fieldsAt(object, field)).length, 0)

const selectorText = (selector: unknown): string => {
  const equal = Object.entries(isFields(selector) ? (isFields(selector['matchLabels']) ? selector['matchLabels'] : selector) : {})
  return orNone(
    equal
      .map(([key, value]) => `${key}=${String(value)}`)
      .toSorted()
      .join(','),
  )
}

const containers = (field: 'name' | 'image') => (object: KubeObject) =>
  listAt(object, 'spec', 'template', 'spec', 'containers')
    .map(container => textAt(container, field))
    .join(',')

const workload = [
  wide({ name: 'Containers', cell: containers('name') }),
  wide({ name: 'Images', cell: containers('image') }),
  wide({ name: 'Selector', cell: (object: KubeObject) => selectorText(valueAt(object, 'spec', 'selector')) }),
]

const replicas = (object: KubeObject): number => {
  const wanted = valueAt(object, 'spec', 'replicas')
  return typeof wanted === 'number' ? wanted : 0
}

const limitOf = (field: string) => (budget: KubeObject) => {
  const limit = valueAt(budget, 'spec', field)
  return typeof limit === 'number' || typeof limit === 'string' ? `${limit}` : 'N/A'
}

const ports = (service: KubeObject): string =>
  orNone(
    listAt(service, 'spec', 'ports')
      .map(
        port =>
          `${numberAt(port, 'port')}${numberAt(port, 'nodePort') ? `:${numberAt(port, 'nodePort')}` : ''}/${textAt(port, 'protocol') || 'TCP'}`,
      )
      .join(','),
  )

const COLUMNS: Record<string, readonly CellColumn[]> = {
  nodes: NODES,
  pods: podColumns,
  events: EVENTS,
  namespaces: [NAME, { name: 'Status', cell: namespace => textAt(namespace, 'status', 'phase') }, AGE],
  secrets: [NAME, { name: 'Type', cell: secret => textAt(secret, 'type') }, { name: 'Data', cell: secret => size(secret, 'data') }, AGE],
  configmaps: [NAME, { name: 'Data', cell: map => size(map, 'data', 'binaryData') }, AGE],
  serviceaccounts: [NAME, AGE],
  services: [
    NAME,
    text('Type', 'spec', 'type'),
    text('Cluster-IP', 'spec', 'clusterIP'),
    { name: 'External-IP', cell: service => orNone(listAt(service, 'spec', 'externalIPs').join(',')) },
    { name: 'Port(s)', cell: ports },
    AGE,
    wide({ name: 'Selector', cell: service => selectorText(valueAt(service, 'spec', 'selector')) }),
  ],
  'leases.coordination.k8s.io': [NAME, { name: 'Holder', cell: lease => textAt(lease, 'spec', 'holderIdentity') }, AGE],
  'daemonsets.apps': [
    NAME,
    count('Desired', 'status', 'desiredNumberScheduled'),
    count('Current', 'status', 'currentNumberScheduled'),
    count('Ready', 'status', 'numberReady'),
    count('Up-to-date', 'status', 'updatedNumberScheduled'),
    count('Available', 'status', 'numberAvailable'),
    { name: 'Node Selector', cell: set => selectorText(valueAt(set, 'spec', 'template', 'spec', 'nodeSelector')) },
    AGE,
    ...workload,
  ],
  'deployments.apps': [
    NAME,
    { name: 'Ready', cell: object => `${numberAt(object, 'status', 'readyReplicas')}/${replicas(object)}` },
    { ...count('Up-to-date', 'status', 'updatedReplicas'), type: 'string' },
    { ...count('Available', 'status', 'availableReplicas'), type: 'string' },
    AGE,
    ...workload,
  ],
  'replicasets.apps': [
    NAME,
    { name: 'Desired', type: 'integer', cell: replicas },
    count('Current', 'status', 'replicas'),
    count('Ready', 'status', 'readyReplicas'),
    AGE,
    ...workload,
  ],
  'poddisruptionbudgets.policy': [
    NAME,
    { name: 'Min Available', cell: limitOf('minAvailable') },
    { name: 'Max Unavailable', cell: limitOf('maxUnavailable') },
    count('Allowed Disruptions', 'status', 'disruptionsAllowed'),
    AGE,
  ],
  persistentvolumes: [
    NAME,
    { name: 'Capacity', cell: volume => textAt(volume, 'spec', 'capacity', 'storage') },
    { name: 'Access Modes', cell: accessModes },
    { name: 'Reclaim Policy', cell: volume => textAt(volume, 'spec', 'persistentVolumeReclaimPolicy') },
    { name: 'Status', cell: volumeStatus },
    { name: 'Claim', cell: volumeClaim },
    { name: 'StorageClass', cell: volume => textAt(volume, 'spec', 'storageClassName') },
    { name: 'VolumeAttributesClass', cell: volume => textAt(volume, 'spec', 'volumeAttributesClassName') || '<unset>' },
    { name: 'Reason', cell: volume => textAt(volume, 'status', 'reason') },
    AGE,
    wide({ name: 'VolumeMode', cell: volume => textAt(volume, 'spec', 'volumeMode') || '<unset>' }),
  ],
  'volumeattachments.storage.k8s.io': [
    NAME,
    { name: 'Attacher', format: 'name', cell: attachment => textAt(attachment, 'spec', 'attacher') },
    { name: 'PV', cell: attachment => textAt(attachment, 'spec', 'source', 'persistentVolumeName') },
    { name: 'Node', cell: attachment => textAt(attachment, 'spec', 'nodeName') },
    { name: 'Attached', type: 'boolean', cell: attachment => valueAt(attachment, 'status', 'attached') === true },
    AGE,
  ],
  'customresourcedefinitions.apiextensions.k8s.io': [
    NAME,
    { name: 'Created At', type: 'date', cell: object => object.metadata.creationTimestamp },
  ],
}

export const columnsOf = (type: ResourceType): readonly CellColumn[] => COLUMNS[type.shelf] ?? [NAME, AGE]
