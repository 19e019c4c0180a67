// Objects of types that are known only at run time, by apiVersion and kind.
import type { ObjectRef } from '../../api/talos-cluster.ts'
import { apiFault, type ApiResult } from './classify.ts'
import type { KubeClient, KubeObject, ServedType } from './client.ts'
import { deepFreeze } from './json.ts'

/** Reads the object itself each time. What type a kind is hardly ever changes: it is asked once, and again where the object is not found. */
export const anyObject = (client: KubeClient): ((ref: ObjectRef) => Promise<ApiResult<KubeObject>>) => {
  const types = new Map<string, ServedType>()

  const typeOf = async ({ apiVersion, kind }: ObjectRef): Promise<ApiResult<ServedType>> => {
    const key = `${apiVersion}/${kind}`
    const known = types.get(key)
    if (known) return { ok: true, value: known }
    const slash = apiVersion.indexOf('/')
    const found = await client.typeOf(apiVersion.slice(0, Math.max(0, slash)), apiVersion.slice(slash + 1), kind)
    if (!found.ok) return found
    if (!found.value) return apiFault('unsupported', `the API server knows no ${kind} in ${apiVersion}`)
    types.set(key, found.value)
    return { ok: true, value: found.value }
  }

  return async ref => {
    const type = await typeOf(ref)
    if (!type.ok) return type
    const { resource, namespaced } = type.value
    if (namespaced && ref.namespace === undefined) return apiFault('invalid', `a ${ref.kind} is in a namespace, and none is named`)
    if (!namespaced && ref.namespace !== undefined)
      return apiFault('invalid', `a ${ref.kind} is in no namespace, and ${ref.namespace} is named`)
    const got = await client.get(resource, { namespace: ref.namespace, name: ref.name })
    if (got.ok) return { ok: true, value: deepFreeze(got.value) }
    // Its definition may have been deleted since, or made anew under another plural.
    if (got.fault.kind === 'notFound' || got.fault.kind === 'unsupported') types.delete(`${ref.apiVersion}/${ref.kind}`)
    return got
  }
}
