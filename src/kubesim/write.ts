import { randomUUID } from 'node:crypto'
import { frozen, same } from '../world/json.ts'
import type { Draft, KubeObject, Store } from '../world/store.ts'
import type { Admission, User } from './admission.ts'
import { admit, checkObject, decoded, pruned, withDefaultsOf } from './admission.ts'
import { applied } from './apply.ts'
import { unreadable } from './built-in-faults.ts'
import { CRD_SHELF } from './catalog.ts'
import { establishedCrd } from './crd-status.ts'
import type { Fields } from './fields.ts'
import { fieldsAt, isFields, textAt, valueAt, without } from './fields.ts'
import type { Leaf } from './field-set.ts'
import { jsonPatch } from './json-patch.ts'
import { recordWrite } from './managed-fields.ts'
import { mergePatch } from './merge-patch.ts'
import { badRequest, fromStore, invalid, notFound, Refusal, resourceName, unsupportedMediaType, unsupportedPatch } from './refusal.ts'
import type { ResourceType } from './resource-types.ts'
import { apiVersionOf, hasStatus } from './resource-types.ts'
import { strategicPatch } from './strategic-patch.ts'
import { invalidValue, required } from './validate.ts'
import { prepared, preparedUpdate, served, stored } from './view.ts'

/** One write request, past authentication and authorisation. */
export type Write = {
  readonly type: ResourceType
  readonly namespace: string
  readonly name: string
  readonly subresource: string
  readonly user: User
  /** What managedFields call the writer. */
  readonly manager: string
  /** Whether the client named it itself. */
  readonly namedManager: boolean
  readonly dryRun: boolean
  /** Strict, Warn or Ignore. */
  readonly strictness: string
  readonly force: boolean
  readonly warn: (text: string) => void
}

export type World = { readonly store: Store; readonly admission: Admission }

export const checkStorage = ({ admission }: World): void => {
  const fault = admission.storageFault?.()
  if (fault !== undefined) throw new Refusal(500, undefined, fault)
}

const timestamp = (world: World): string => `${new Date(world.store.now()).toISOString().slice(0, 19)}Z`

const shapeOf = (type: ResourceType) => ({ kind: type.kind, schema: type.custom?.schema })

/** What a creator owns: not the halves that the server itself begins with. */
const begun = (type: ResourceType, object: Fields): Fields => {
  const spoken = hasStatus(type) ? without(object, 'status') : object
  return type.shelf === 'namespaces' ? without(spoken, 'spec') : spoken
}

const withManagers = (world: World, write: Write, before: Fields | undefined, after: Fields, owned?: readonly Leaf[]): Fields => {
  const managed = recordWrite(before, before ? after : begun(write.type, after), {
    manager: {
      name: write.manager,
      operation: owned ? 'Apply' : 'Update',
      apiVersion: apiVersionOf(write.type),
      subresource: write.subresource || undefined,
    },
    shape: shapeOf(write.type),
    time: timestamp(world),
    owned,
  })
  return { ...after, metadata: { ...fieldsAt(after, 'metadata'), managedFields: managed } }
}

const asked = (write: Write) => ({
  user: write.user,
  resource: write.type.shelf,
  subresource: write.subresource,
  namespace: write.namespace,
})

/** Creates an object; 404 where its namespace is not there. */
export const createObject = (world: World, write: Write, body: unknown, owned?: readonly Leaf[]): KubeObject => {
  const { type } = write
  let object = decoded(type, body, write)
  const metadata = fieldsAt(object, 'metadata')
  if (textAt(metadata, 'resourceVersion') !== '')
    throw new Refusal(500, undefined, 'resourceVersion should not be set on objects to be created')
  if (type.namespaced && !world.store.get('namespaces', '', write.namespace)) throw notFound(NAMESPACES, write.namespace)
  // A status that comes along is dropped; what its type fills in is there all the same.
  object = withDefaultsOf(type, prepared(type, pruned(type, object, write.strictness, write.warn)))
  if (type.shelf === CRD_SHELF) object = establishedCrd(object, timestamp(world))
  const generated = textAt(metadata, 'name') === '' ? textAt(metadata, 'generateName') : ''
  checkObject(type, generated === '' ? object : { ...object, metadata: { ...metadata, name: `${generated}x` } }, undefined, world.admission)
  const name = textAt(metadata, 'name')
  admit(type, { ...asked(write), operation: 'CREATE', name, object }, world.admission)
  const draft = stored(type, withManagers(world, write, undefined, object, owned)) as Draft
  if (write.dryRun) {
    if (world.store.get(type.shelf, write.namespace, name)) {
      throw new Refusal(409, 'AlreadyExists', `${type.shelf} "${name}" already exists`, { name, kind: type.plural })
    }
    const unsaved = { uid: randomUUID(), creationTimestamp: timestamp(world), generation: 1 }
    return served(type, frozen({ ...draft, metadata: { ...draft.metadata, ...unsaved } }) as KubeObject)
  }
  checkStorage(world)
  const result = world.store.create(type.shelf, draft)
  if (!result.ok) throw fromStore(type, name, result.fault)
  return served(type, result.value)
}

const NAMESPACES = { group: '', plural: 'namespaces', kind: 'Namespace' }

/** Types whose update must name the version that it was made from. */
const CONDITIONAL = ['leases', 'poddisruptionbudgets', 'volumeattachments', 'customresourcedefinitions']

export const currentObject = (world: World, write: Pick<Write, 'type' | 'namespace' | 'name'>): KubeObject => {
  const current = world.store.get(write.type.shelf, write.namespace, write.name)
  if (!current) throw notFound(write.type, write.name)
  return current
}

/** The object after a write to one of its two halves: status is written through its own path only. */
const halves = (write: Write, old: Fields, next: Fields): Fields => {
  if (write.subresource === 'status') {
    const metadata = write.type.custom
      ? {
          ...fieldsAt(old, 'metadata'),
          resourceVersion: valueAt(next, 'metadata', 'resourceVersion'),
          uid: valueAt(next, 'metadata', 'uid'),
        }
      : valueAt(next, 'metadata')
    return { ...old, status: next['status'], metadata }
  }
  return hasStatus(write.type) ? { ...next, status: old['status'] } : next
}

const checkUid = ({ type, namespace, name }: Write, old: KubeObject, uid: string): void => {
  if (uid === '' || uid === old.metadata.uid) return
  const key = ['/registry', type.custom ? type.group : '', type.plural, namespace, name].filter(part => part !== '').join('/')
  const words = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`
  const message = `Operation cannot be fulfilled on ${resourceName(type)} "${name}": StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${words}`
  throw new Refusal(409, 'Conflict', message, { name, ...(type.group === '' ? {} : { group: type.group }), kind: type.plural })
}

/** What an update would leave, and would be refused for, were it stored. */
const tried = (type: ResourceType, draft: Draft, old: KubeObject): KubeObject => {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds } =
    old.metadata
  if (draft.metadata.resourceVersion && draft.metadata.resourceVersion !== resourceVersion) {
    const words = 'the object has been modified; please apply your changes to the latest version and try again'
    const message = `Operation cannot be fulfilled on ${type.shelf} "${name}": ${words}`
    throw fromStore(type, name, { code: 409, reason: 'Conflict', message })
  }
  const servers = { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds }
  return frozen({ ...draft, metadata: { ...draft.metadata, ...servers } })
}

const replace = (world: World, write: Write, current: KubeObject, body: unknown, owned?: readonly Leaf[]): KubeObject => {
  const { type } = write
  const old = served(type, current)
  checkUid(write, old, textAt(body, 'metadata', 'uid'))
  let next = halves(write, old, preparedUpdate(type, pruned(type, decoded(type, body, write), write.strictness, write.warn)))
  if (type.shelf === CRD_SHELF && write.subresource === '') next = establishedCrd(next, timestamp(world))
  checkObject(type, next, old, world.admission)
  const settled = sameButManaged(next, old)
  const managed =
    settled && !owned
      ? { ...next, metadata: { ...fieldsAt(next, 'metadata'), managedFields: old.metadata.managedFields } }
      : withManagers(world, write, old, next, owned)
  admit(type, { ...asked(write), operation: 'UPDATE', name: write.name, object: next, old }, world.admission)
  const draft = stored(type, managed) as Draft
  if (write.dryRun) return served(type, tried(type, draft, old))
  checkStorage(world)
  const result = world.store.update(type.shelf, draft)
  if (!result.ok) throw fromStore(type, write.name, result.fault)
  return served(type, result.value)
}

const SERVERS = [
  'managedFields',
  'resourceVersion',
  'uid',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
]
const plain = (object: Fields): Fields => ({
  ...object,
  metadata: Object.fromEntries(
    Object.entries(fieldsAt(object, 'metadata')).filter(([field, value]) => !SERVERS.includes(field) && value !== undefined),
  ),
})
const sameButManaged = (a: Fields, b: Fields): boolean => same(plain(a), plain(b))

/** PUT. */
export const replaceObject = (world: World, write: Write, body: unknown): KubeObject => {
  const { type } = write
  const current = currentObject(world, write)
  const version = textAt(body, 'metadata', 'resourceVersion')
  if (version === '' && (type.custom || CONDITIONAL.includes(type.plural))) {
    // The real server names the resource here, not the kind.
    const named = { ...type, kind: type.plural }
    throw invalid(named, write.name, [invalidValue('metadata.resourceVersion', 0, 'must be specified for an update')])
  }
  return replace(world, write, current, body)
}

export const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]

const CUSTOM_PATCH_TYPES = PATCH_TYPES.filter(each => !each.includes('strategic'))

const PATCH_OPTIONS = { group: 'meta.k8s.io', plural: 'patchoptions', kind: 'PatchOptions' }
/** The server does not say of what type it was that it could not read. */
const UNNAMED = { group: '', plural: '', kind: '' }

/** PATCH, by its content type. Answers whether the object was created, which only apply does. */
export const patchObject = (world: World, write: Write, contentType: string, patch: unknown): { object: KubeObject; created: boolean } => {
  const { type } = write
  if (contentType === 'application/apply-patch+yaml') return applyObject(world, write, patch)
  if (write.force) {
    const message = 'Forbidden: may not be specified for non-apply patch'
    throw invalid(PATCH_OPTIONS, '', [{ field: 'force', reason: 'FieldValueForbidden', message }])
  }
  const current = currentObject(world, write)
  const old = served(type, current)
  const changed = (): unknown => {
    switch (contentType) {
      case 'application/json-patch+json':
        return jsonPatch(old, patch)
      case 'application/merge-patch+json':
        return mergePatch(old, patch)
      case 'application/strategic-merge-patch+json':
        if (type.custom) throw unsupportedMediaType(CUSTOM_PATCH_TYPES)
        return strategicPatch(type.kind, old, patch)
      default:
        throw type.custom ? unsupportedMediaType(CUSTOM_PATCH_TYPES) : unsupportedPatch()
    }
  }
  const next = changed()
  const garbled = unreadable(type, next)
  if (garbled !== undefined) throw invalid(UNNAMED, '', [invalidValue('patch', JSON.stringify(next), garbled)])
  return { object: replace(world, write, current, next), created: false }
}

const applyObject = (world: World, write: Write, patch: unknown): { object: KubeObject; created: boolean } => {
  const { type } = write
  if (!write.namedManager) {
    throw invalid(PATCH_OPTIONS, '', [{ ...required('fieldManager'), message: 'Required value: is required for apply patch' }])
  }
  const [apiVersion, kind] = [textAt(patch, 'apiVersion'), textAt(patch, 'kind')]
  if (kind === '' || apiVersion !== apiVersionOf(type)) {
    throw badRequest(`invalid object type: ${apiVersion.includes('/') ? '' : '/'}${apiVersion}, Kind=${kind}`)
  }
  const config = decoded(type, isFields(patch) ? patch : {}, write)
  const manager = {
    name: write.manager,
    operation: 'Apply' as const,
    apiVersion: apiVersionOf(type),
    subresource: write.subresource || undefined,
  }
  const current = world.store.get(type.shelf, write.namespace, write.name)
  const live: Fields = current ? served(type, current) : {}
  const { object, owned } = applied(live, config, { manager, shape: shapeOf(type), force: write.force })
  if (current) return { object: replace(world, write, current, object, owned), created: false }
  if (write.subresource !== '') throw notFound(type, write.name)
  return { object: createObject(world, write, object, owned), created: true }
}
