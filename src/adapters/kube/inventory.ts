// The inventory that Talos keeps since 1.13 of the objects that its bootstrap manifests brought into the cluster: one key for each in a ConfigMap.
import { ok, type Result } from '../../ports/fault.ts'
import type { KubeClient, KubeObject } from './client.ts'
import { at, record, text } from './json.ts'
import { RESOURCE } from './resource.ts'

const PLACE = { namespace: 'kube-system', name: 'talos-bootstrap-manifests-inventory' }
/** As Talos' own tools call themselves, so that all of them own the same fields. */
export const TALOS_MANAGER = 'talos'
/** On each of the objects: the inventory that it is in. */
const OWNER = 'config.k8s.io/owning-inventory'

export type Entry = { readonly group: string; readonly kind: string; readonly namespace: string; readonly name: string }

/** `NAMESPACE_NAME_GROUP_KIND`. A colon, which only names of roles have, is two underscores, as a key of a ConfigMap may have none. */
const keyOf = ({ namespace, name, group, kind }: Entry): string => [namespace, name.replaceAll(':', '__'), group, kind].join('_')

const entryOf = (key: string): Entry | undefined => {
  const [, namespace = '', name = '', group = '', kind = ''] = /^([^_]*)_(.*)_([^_]*)_([^_]+)$/.exec(key) ?? []
  const plain = name.replaceAll('__', ':')
  return kind === '' || plain === '' || plain.includes('_') ? undefined : { namespace, name: plain, group, kind }
}

/** `DaemonSet kube-system/kube-proxy` */
export const titleOf = ({ kind, namespace, name }: Pick<Entry, 'kind' | 'namespace' | 'name'>): string =>
  `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`

/** Of `apps/v1`; empty for the core group. */
export const groupOf = (apiVersion: string): string => (apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '')

/** The inventory that an object says it is in; empty where it says none. */
export const ownerOf = (object: KubeObject): string => text(record(at(object, 'metadata', 'annotations'))[OWNER])
export const INVENTORY_ID = PLACE.name

export type Inventory = {
  readonly entries: readonly Entry[]
  /** Adds and takes out; what is there already, or gone, is left alone. */
  readonly write: (change: { readonly add?: readonly Entry[]; readonly remove?: readonly Entry[] }) => Promise<Result<void>>
}

/** Undefined where there is none: no Talos of 1.13 or newer has been in the cluster. */
export const readInventory = async (client: KubeClient): Promise<Result<Inventory | undefined>> => {
  const read = await client.get(RESOURCE.configMap, PLACE)
  if (!read.ok) return read.fault.kind === 'notFound' ? ok(undefined) : read
  const keys = Object.keys(record(read.value['data']))
  return ok({
    entries: keys.flatMap(key => entryOf(key) ?? []),
    write: async ({ add = [], remove = [] }) => {
      const data = {
        ...Object.fromEntries(
          add
            .map(keyOf)
            .filter(key => !keys.includes(key))
            .map(key => [key, '']),
        ),
        ...Object.fromEntries(
          remove
            .map(keyOf)
            .filter(key => keys.includes(key))
            .map(key => [key, null]),
        ),
      }
      if (Object.keys(data).length === 0) return ok(undefined)
      const written = await client.patch(RESOURCE.configMap, PLACE, { data })
      return written.ok ? ok(undefined) : written
    },
  })
}

/** The same manifest, which says that it is in the inventory. */
export const owned = (manifest: KubeObject): KubeObject => ({
  ...manifest,
  metadata: { ...record(manifest['metadata']), annotations: { ...record(at(manifest, 'metadata', 'annotations')), [OWNER]: PLACE.name } },
})
