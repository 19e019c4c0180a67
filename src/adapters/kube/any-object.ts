// Objects of types that are known only at run time, by apiVersion and kind.
import type { ObjectRef } from '../../api/talos-cluster.ts'
import { apiFault, type ApiResult } from './classify.ts'
import type { KubeClient, KubeObject, ServedType } from './client.ts'
import { deepFreeze } from './json.ts'

type TypeName = Pick<ObjectRef, 'apiVersion' | 'kind'>

export type ServedTypes = {
  /** `unsupported` where it is not served. What type a kind is hardly ever changes: it is asked once. */
  readonly find: (name: TypeName) => Promise<ApiResult<ServedType>>
  /** Asks for it anew the next time. */
  readonly forget: (name: TypeName) => void
}

export const servedTypes = (client: KubeClient): ServedTypes => {
  const types = new Map<string, ServedType>()
  const keyOf = ({ apiVersion, kind }: TypeName): string => `${apiVersion}/${kind}`
  return {
    find: async name => {
      const { apiVersion, kind } = name
      const known = types.get(keyOf(name))
      if (known) return { ok: true, value: known }
      const slash = apiVersion.indexOf('/')
      const found = await client.typeOf(apiVersion.slice(0, Math.max(0, slash)), apiVersion.slice(slash + 1), kind)
      if (!found.ok) return found
      if (!found.value) return apiFault('unsupported', `the API server knows no ${kind} in ${apiVersion}`)
      types.set(keyOf(name), found.value)
      return { ok: true, value: found.value }
    },
    forget: name => void types.delete(keyOf(name)),
  }
}

/** Reads the object itself each time. */
export const anyObject =
  (client: KubeClient, types = servedTypes(client)): ((ref: ObjectRef) => Promise<ApiResult<KubeObject>>) =>
  async ref => {
    const type = await types.find(ref)
    if (!type.ok) return type
    const { resource, namespaced } = type.value
    if (namespaced && ref.namespace === undefined) return apiFault('invalid', `a ${ref.kind} is in a namespace, and none is named`)
    if (!namespaced && ref.namespace !== undefined)
      return apiFault('invalid', `a ${ref.kind} is in no namespace, and ${ref.namespace} is named`)
    const got = await client.get(resource, { namespace: ref.namespace, name: ref.name })
    if (got.ok) return { ok: true, value: deepFreeze(got.value) }
    // Its definition may have been deleted since, or made anew under another plural.
    if (got.fault.kind === 'notFound' || got.fault.kind === 'unsupported') types.forget(ref)
    return got
  }
