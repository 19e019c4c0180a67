import { same } from '../world/json.ts'
import type { Fields } from './fields.ts'
import { textAt, valueAt } from './fields.ts'
import type { FieldSet, Leaf, Shape } from './field-set.ts'
import { changedLeaves, fromFieldsV1, joined, leavesOf, setOf, toFieldsV1 } from './field-set.ts'

/** Who writes, as managedFields remembers it. */
export type Manager = {
  readonly name: string
  readonly operation: 'Update' | 'Apply'
  readonly apiVersion: string
  readonly subresource?: string
}

export type Entry = Manager & { readonly time: string; readonly fields: FieldSet }

export const entriesOf = (object: unknown): Entry[] => {
  const list = valueAt(object, 'metadata', 'managedFields')
  return (Array.isArray(list) ? (list as readonly unknown[]) : []).map(entry => ({
    name: textAt(entry, 'manager'),
    operation: textAt(entry, 'operation') === 'Apply' ? 'Apply' : 'Update',
    apiVersion: textAt(entry, 'apiVersion'),
    subresource: textAt(entry, 'subresource') || undefined,
    time: textAt(entry, 'time'),
    fields: fromFieldsV1(valueAt(entry, 'fieldsV1')),
  }))
}

const written = ({ name, operation, apiVersion, subresource, time, fields }: Entry): Fields => ({
  manager: name,
  operation,
  apiVersion,
  time,
  fieldsType: 'FieldsV1',
  fieldsV1: toFieldsV1(fields),
  ...(subresource ? { subresource } : {}),
})

/** `metadata.managedFields` of entries: those that own nothing any more are gone. */
const toManagedFields = (entries: readonly Entry[]): unknown[] => entries.filter(entry => entry.fields.size > 0).map(written)

export const isSameManager = (a: Manager, b: Manager): boolean =>
  a.name === b.name && a.operation === b.operation && a.apiVersion === b.apiVersion && a.subresource === b.subresource

const kept = (fields: FieldSet, keep: (key: string) => boolean): FieldSet => new Map([...fields].filter(([key]) => keep(key)))

const sameSet = (a: FieldSet, b: FieldSet): boolean => a.size === b.size && [...a.keys()].every(key => b.has(key))

/**
 * managedFields after a manager wrote: it owns what it changed (or, with `owned`, exactly that), the others lose what was changed and what is
 * gone. The time of an entry moves when its fields do.
 */
export const recordWrite = (
  before: Fields | undefined,
  after: Fields,
  write: { readonly manager: Manager; readonly shape: Shape; readonly time: string; readonly owned?: readonly Leaf[] },
): unknown[] => {
  const now = leavesOf(after, write.shape)
  const present = setOf(now)
  const changed = setOf(changedLeaves(before ? leavesOf(before, write.shape) : [], now))
  const entries = entriesOf(before)
  const own = entries.find(entry => isSameManager(entry, write.manager))
  const others = entries
    .filter(entry => entry !== own)
    .map(entry => ({ ...entry, fields: kept(entry.fields, key => present.has(key) && !changed.has(key)) }))
  const mine: FieldSet = write.owned
    ? setOf(write.owned)
    : new Map([...(own ? kept(own.fields, key => present.has(key)) : new Map()), ...changed])
  const time = own && sameSet(own.fields, mine) ? own.time : write.time
  const entry: Entry = { ...write.manager, time, fields: mine }
  // Applied entries come first, then by time, as the server sorts them.
  const sorted = [...others, entry].toSorted(
    (a, b) =>
      a.operation.localeCompare(b.operation) ||
      a.time.localeCompare(b.time) ||
      a.name.localeCompare(b.name) ||
      (a.subresource ?? '').localeCompare(b.subresource ?? ''),
  )
  return toManagedFields(sorted)
}

/** Fields of other managers that an apply would change. */
export const conflictsOf = (live: Fields, config: readonly Leaf[], manager: Manager, shape: Shape): { entry: Entry; leaf: Leaf }[] => {
  const values = new Map(leavesOf(live, shape).map(leaf => [joined(leaf.path), leaf.value]))
  return entriesOf(live)
    .filter(entry => !isSameManager(entry, manager))
    .flatMap(entry =>
      config
        .filter(({ path, value }) => entry.fields.has(joined(path)) && !same(values.get(joined(path)), value))
        .map(leaf => ({ entry, leaf })),
    )
}
