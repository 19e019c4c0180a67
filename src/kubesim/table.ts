import type { PrintColumn } from '../api/schema.ts'
import type { KubeObject } from '../world/store.ts'
import { age } from './age.ts'
import { columnsOf } from './columns.ts'
import { valueAtPath } from './json-path.ts'
import type { ResourceType } from './resource-types.ts'
import { stored } from './view.ts'

type Column = { name: string; type: string; format: string; description: string; priority: number }

const customCell = (column: PrintColumn, object: KubeObject, nowMs: number): unknown => {
  const value = valueAtPath(object, column.jsonPath)
  if (value === undefined || value === null) return null
  switch (column.type) {
    case 'date':
      return typeof value === 'string' ? age(value, nowMs) : '<unknown>'
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    default:
      return typeof value === 'string' ? value : JSON.stringify(value)
  }
}

const definition = (name: string, type: string, format: string, description: string, priority: number): Column => ({
  name,
  type,
  format,
  description,
  priority,
})

const NAME_TEXT =
  'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically.'

/** Columns and the cells of one object. */
const layout = (type: ResourceType): { columns: Column[]; cells: (object: KubeObject, nowMs: number) => unknown[] } => {
  const name = definition('Name', 'string', 'name', NAME_TEXT, 0)
  if (!type.custom) {
    const columns = columnsOf(type)
    return {
      columns: columns.map(column =>
        column.name === 'Name'
          ? { ...name, priority: column.wide ? 1 : 0 }
          : definition(column.name, column.type ?? 'string', column.format ?? '', column.description ?? '', column.wide ? 1 : 0),
      ),
      // Columns read Events in the spelling of v1, whichever group was asked.
      cells: (object, nowMs) => {
        const plain = type.shelf === 'events' ? (stored(type, object) as KubeObject) : object
        return columns.map(column => column.cell(plain, nowMs))
      },
    }
  }
  const own = type.custom.columns
  const shown: readonly PrintColumn[] =
    own.length > 0 ? own : [{ name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'When it was created.' }]
  return {
    columns: [name, ...shown.map(column => definition(column.name, column.type, '', column.description ?? '', column.priority ?? 0))],
    cells: (object, nowMs) => [object.metadata.name, ...shown.map(column => customCell(column, object, nowMs))],
  }
}

type Included = 'None' | 'Metadata' | 'Object'

const rowObject = (object: KubeObject, include: Included): unknown => {
  if (include === 'None') return null
  if (include === 'Object') return object
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata }
}

/** `meta.k8s.io/v1 Table` of some objects. */
export const tableOf = (
  type: ResourceType,
  objects: readonly KubeObject[],
  how: { readonly metadata: unknown; readonly include: string; readonly nowMs: number; readonly header: boolean },
) => {
  const { columns, cells } = layout(type)
  const include: Included = how.include === 'None' || how.include === 'Object' ? how.include : 'Metadata'
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: how.metadata,
    columnDefinitions: how.header ? columns : null,
    rows: objects.map(object => ({ cells: cells(object, how.nowMs), object: rowObject(object, include) })),
  }
}

/** Whether the client prefers a Table, by its Accept header. */
export const wantsTable = (accept: string): boolean => {
  const [first = ''] = accept.split(',')
  return /as=Table/.test(first) && /g=meta\.k8s\.io/.test(first) && /v=v1(;|$|\s)/.test(first)
}

/** Whether the client prefers metadata alone. */
export const wantsMetadata = (accept: string): '' | 'PartialObjectMetadata' | 'PartialObjectMetadataList' => {
  const [first = ''] = accept.split(',')
  return /as=PartialObjectMetadataList/.test(first)
    ? 'PartialObjectMetadataList'
    : /as=PartialObjectMetadata/.test(first)
      ? 'PartialObjectMetadata'
      : ''
}
