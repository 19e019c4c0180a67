// Objects that Talos brought into the cluster by manifests that are no longer there.
import type { ManifestChange } from '../../ports/control-plane.ts'
import { ok, type Result } from '../../ports/fault.ts'
import type { ServedTypes } from './any-object.ts'
import type { KubeClient, KubeObject } from './client.ts'
import { type Entry, groupOf, INVENTORY_ID, ownerOf, TALOS_MANAGER, titleOf } from './inventory.ts'
import { at, list, record, text } from './json.ts'

export type Leftover = {
  readonly entry: Entry
  readonly change: ManifestChange
  /** Deletes this very object. One that is gone already counts as deleted. */
  readonly remove: () => Promise<Result<void>>
}

/** Those of the entries that live. */
export const leftoversOf = (
  client: KubeClient,
  types: ServedTypes,
): ((entries: readonly Entry[]) => Promise<Result<readonly Leftover[]>>) => {
  /** Of whatever version the server has of it; undefined where it has neither the object nor its kind. */
  const read = async (entry: Entry, apiVersions: readonly string[]): Promise<Result<Leftover | undefined>> => {
    for (const apiVersion of apiVersions.filter(one => groupOf(one) === entry.group)) {
      const type = await types.find({ apiVersion, kind: entry.kind })
      if (!type.ok && type.fault.kind === 'unsupported') continue
      if (!type.ok) return type
      const { resource, namespaced } = type.value
      const place = { namespace: namespaced ? entry.namespace || 'default' : undefined, name: entry.name }
      const got = await client.get(resource, place)
      if (!got.ok) return got.fault.kind === 'notFound' ? ok(undefined) : got
      const [name, why] = [titleOf(entry), keptBecause(entry, got.value)]
      const remove = async (): Promise<Result<void>> => {
        const uid = text(at(got.value, 'metadata', 'uid'))
        const deleted = await client.delete(resource, place, { preconditions: { uid }, propagation: 'Background' })
        if (deleted.ok || deleted.fault.kind === 'notFound') return ok(undefined)
        return { ok: false, fault: { ...deleted.fault, message: `${name}: ${deleted.fault.message}` } }
      }
      return ok({
        entry,
        change: why === undefined ? { name, would: 'leftover', detail: '' } : { name, would: 'kept', detail: why },
        remove,
      })
    }
    return ok(undefined)
  }

  return async entries => {
    if (entries.length === 0) return ok([])
    const served = await client.apiVersions()
    if (!served.ok) return served
    const found: Leftover[] = []
    for (const entry of entries) {
      const one = await read(entry, served.value)
      if (!one.ok) return one
      if (one.value) found.push(one.value)
    }
    return ok(found)
  }
}

/** With these goes all that is in them. */
const CONTAINERS = ['Namespace', 'CustomResourceDefinition']

/** Why it is not to be deleted all the same; undefined where nothing speaks against it. */
const keptBecause = (entry: Entry, live: KubeObject): string | undefined => {
  const owner = ownerOf(live)
  if (CONTAINERS.includes(entry.kind)) return 'all that is in it would go with it'
  if (owner !== '' && owner !== INVENTORY_ID) return `it belongs to the inventory ${owner}`
  if (text(record(at(live, 'metadata', 'annotations'))['meta.helm.sh/release-name']) !== '') return 'Helm has taken it over'
  const others = list(at(live, 'metadata', 'managedFields'))
    .map(record)
    .filter(({ operation, manager, subresource }) => operation === 'Apply' && manager !== TALOS_MANAGER && subresource === undefined)
    .map(({ manager }) => text(manager))
  return others.length === 0 ? undefined : `${[...new Set(others)].join(', ')} has taken it over`
}
