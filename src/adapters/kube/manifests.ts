// Talos' bootstrap manifests: what applying them would do, and doing it.
import type { Manifest } from '../../ports/components.ts'
import type { ManifestChange } from '../../ports/control-plane.ts'
import { done, isTransient, ok, type Result } from '../../ports/fault.ts'
import type { ServedTypes } from './any-object.ts'
import type { ApiFault, ApiResult } from './classify.ts'
import type { KubeClient, KubeObject } from './client.ts'
import { type Entry, groupOf, owned, readInventory, TALOS_MANAGER, titleOf } from './inventory.ts'
import { leftoversOf } from './leftovers.ts'
import { at, isRecord, record, text } from './json.ts'

type Named = {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly title: string
}

const named = (manifest: Manifest): Named => {
  const [kind, namespace, name] = [
    text(manifest['kind']),
    text(at(manifest, 'metadata', 'namespace')),
    text(at(manifest, 'metadata', 'name')),
  ]
  return {
    apiVersion: text(manifest['apiVersion']),
    kind,
    namespace,
    name,
    title: titleOf({ kind, namespace, name }),
  }
}

export type Manifests = {
  readonly compare: (manifests: readonly Manifest[]) => Promise<Result<readonly ManifestChange[]>>
  readonly apply: (manifests: readonly Manifest[]) => Promise<Result<void>>
  readonly prune: (manifests: readonly Manifest[], names: readonly string[]) => Promise<Result<void>>
}

export const manifestsOf = (client: KubeClient, types: ServedTypes): Manifests => {
  const send = async (manifest: Manifest, dryRun: boolean): Promise<ApiResult<KubeObject>> => {
    const type = await types.find(named(manifest))
    if (!type.ok) return type
    const { namespace, name } = named(manifest)
    const place = { namespace: type.value.namespaced ? namespace || 'default' : undefined, name }
    return client.patch(type.value.resource, place, manifest, { type: 'apply', fieldManager: TALOS_MANAGER, force: true, dryRun })
  }

  const live = async (manifest: Manifest): Promise<ApiResult<KubeObject | undefined>> => {
    const type = await types.find(named(manifest))
    if (!type.ok) return type
    const { namespace, name } = named(manifest)
    const got = await client.get(type.value.resource, { namespace: type.value.namespaced ? namespace || 'default' : undefined, name })
    return !got.ok && got.fault.kind === 'notFound' ? { ok: true, value: undefined } : got
  }

  const compareOne = async (manifest: Manifest, all: readonly Manifest[]): Promise<Result<ManifestChange>> => {
    const { title: name } = named(manifest)
    const [before, after] = [await live(manifest), await send(manifest, true)]
    const fault = before.ok ? (after.ok ? undefined : after.fault) : before.fault
    if (fault) {
      if (isTransient(fault) || fault.kind === 'unauthenticated') return { ok: false, fault }
      // What it needs comes with another manifest.
      if ((fault.kind === 'notFound' || fault.kind === 'unsupported') && isBroughtAlong(manifest, all))
        return { ok: true, value: { name, would: 'create', detail: '' } }
      return { ok: true, value: { name, would: 'refused', detail: wordsOf(manifest, fault) } }
    }
    if (!before.ok || !after.ok || before.value === undefined) return { ok: true, value: { name, would: 'create', detail: '' } }
    const fields = differing(told(before.value), told(after.value), [])
    return { ok: true, value: fields.length === 0 ? { name, would: 'same', detail: '' } : { name, would: 'change', detail: some(fields) } }
  }

  const leftovers = leftoversOf(client, types)

  return {
    compare: async manifests => {
      const inventory = await readInventory(client)
      if (!inventory.ok) return inventory
      const changes: ManifestChange[] = []
      for (const manifest of inOrder(manifests)) {
        const change = await compareOne(inventory.value ? owned(manifest) : manifest, manifests)
        if (!change.ok) return change
        changes.push(change.value)
      }
      const left = await leftovers(withoutManifest(inventory.value?.entries ?? [], manifests))
      return left.ok ? ok([...changes, ...left.value.map(({ change }) => change)]) : left
    },
    apply: async manifests => {
      const inventory = await readInventory(client)
      if (!inventory.ok) return inventory
      let first: Result<void> | undefined
      const entries: Entry[] = []
      for (const manifest of inOrder(manifests)) {
        const applied = await send(inventory.value ? owned(manifest) : manifest, false)
        if (applied.ok) {
          entries.push(entryOf(manifest, applied.value))
          continue
        }
        if (isTransient(applied.fault)) return applied
        types.forget(named(manifest))
        first ??= { ok: false, fault: { ...applied.fault, message: `${named(manifest).title}: ${wordsOf(manifest, applied.fault)}` } }
      }
      const written = await inventory.value?.write({ add: entries })
      return first ?? written ?? done
    },
    prune: async (manifests, names) => {
      const inventory = await readInventory(client)
      if (!inventory.ok) return inventory
      const left = await leftovers(withoutManifest(inventory.value?.entries ?? [], manifests))
      if (!left.ok) return left
      for (const { entry, remove } of left.value.filter(one => one.change.would === 'leftover' && names.includes(one.change.name))) {
        const removed = await remove()
        if (!removed.ok) return removed
        // Talos makes no object again that is still in it.
        const written = await inventory.value?.write({ remove: [entry] })
        if (written && !written.ok) return written
      }
      return done
    },
  }
}

/** What the inventory has beyond the manifests. An object of the whole cluster may be written with a namespace by mistake. */
const withoutManifest = (entries: readonly Entry[], manifests: readonly Manifest[]): readonly Entry[] =>
  entries.filter(
    ({ group, kind, namespace, name }) =>
      !manifests
        .map(named)
        .some(
          one =>
            one.kind === kind &&
            groupOf(one.apiVersion) === group &&
            one.name === name &&
            (namespace === '' || (one.namespace || 'default') === namespace),
        ),
  )

/** By the answer of the server, which knows whether it is in a namespace. */
const entryOf = (manifest: Manifest, live: KubeObject): Entry => {
  const { apiVersion, kind, name } = named(manifest)
  return { group: groupOf(apiVersion), kind, namespace: text(at(live, 'metadata', 'namespace')), name }
}

/** What others need goes first. */
const FIRST = ['Namespace', 'CustomResourceDefinition', 'ClusterRole', 'ConfigMap', 'Secret', 'ServiceAccount']
const rankOf = (manifest: Manifest): number => {
  const rank = FIRST.indexOf(text(manifest['kind']))
  return rank < 0 ? FIRST.length : rank
}
const inOrder = (manifests: readonly Manifest[]): readonly Manifest[] => manifests.toSorted((a, b) => rankOf(a) - rankOf(b))

const isBroughtAlong = (manifest: Manifest, all: readonly Manifest[]): boolean => {
  const { apiVersion, kind, namespace } = named(manifest)
  return all.some(other => {
    const otherKind = text(other['kind'])
    if (otherKind === 'Namespace') return namespace !== '' && named(other).name === namespace
    return (
      otherKind === 'CustomResourceDefinition' &&
      text(at(other, 'spec', 'group')) === apiVersion.split('/')[0] &&
      text(at(other, 'spec', 'names', 'kind')) === kind
    )
  })
}

/** The server quotes what it does not like, and that may be a secret. */
const wordsOf = (manifest: Manifest, fault: ApiFault): string =>
  text(manifest['kind']) === 'Secret' ? `the API server does not take it (${fault.kind})` : fault.message

/** Without what the server itself writes. */
const told = (object: KubeObject): KubeObject => {
  const { status: _status, metadata, ...rest } = object
  const {
    managedFields: _fields,
    resourceVersion: _version,
    generation: _generation,
    uid: _uid,
    creationTimestamp: _at,
    annotations,
    ...kept
  } = record(metadata)
  const { 'deprecated.daemonset.template.generation': _template, ...others } = record(annotations)
  return { ...rest, metadata: { ...kept, annotations: others } }
}

const differing = (before: unknown, after: unknown, path: readonly string[]): readonly string[] => {
  if (isRecord(before) && isRecord(after))
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(key => differing(before[key], after[key], [...path, key]))
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    return before.flatMap((item, index) => differing(item, after[index], [...path, String(index)]))
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [path.join('.')]
}

const MOST_FIELDS = 4
const some = (fields: readonly string[]): string =>
  fields.length > MOST_FIELDS ? `${fields.slice(0, MOST_FIELDS).join(', ')} and ${fields.length - MOST_FIELDS} more` : fields.join(', ')
