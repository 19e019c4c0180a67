import type { ApiResult } from '../../adapters/kube/classify.ts'
import type { Resource } from '../../adapters/kube/resource.ts'

/** As whom the CLI writes, in `metadata.managedFields`. */
export const FIELD_MANAGER = 'ichor'

/** What the CLI needs of a Kubernetes API. The real client stands behind it, and in tests a plain store. */
export type Api = {
  readonly get: (type: Resource, namespace: string | undefined, name: string) => Promise<ApiResult<KubeObject>>
  /** Without a namespace: of all namespaces. */
  readonly list: (type: Resource, namespace?: string) => Promise<ApiResult<readonly KubeObject[]>>
  /** The server's own print columns, as `kubectl get` shows them; one object's where `name` is given. */
  readonly table: (type: Resource, namespace: string | undefined, name?: string) => Promise<ApiResult<Table>>
  readonly create: (type: Resource, namespace: string | undefined, object: object) => Promise<ApiResult<KubeObject>>
  /** A JSON merge patch. */
  readonly patch: (
    type: Resource,
    namespace: string | undefined,
    name: string,
    change: object,
    options?: { readonly subresource?: 'status' },
  ) => Promise<ApiResult<KubeObject>>
  /** The whole object as it is given, in place of the one of that `metadata.resourceVersion`. */
  readonly replace: (
    type: Resource,
    namespace: string | undefined,
    name: string,
    object: object,
    options?: { readonly dryRun?: boolean },
  ) => Promise<ApiResult<KubeObject>>
  /** `uid`: only that very object, no namesake that came in its place. */
  readonly delete: (
    type: Resource,
    namespace: string | undefined,
    name: string,
    options?: { readonly uid?: string },
  ) => Promise<ApiResult<void>>
  /** Server-side apply. */
  readonly apply: (
    type: Resource,
    namespace: string | undefined,
    name: string,
    object: object,
    options?: { readonly dryRun?: boolean },
  ) => Promise<ApiResult<KubeObject>>
  /** Calls back with the object as it is, then on every change, over every gap. The answer stops it. */
  readonly watch: (type: Resource, namespace: string | undefined, name: string, notify: (sight: Sight) => void) => () => void
  readonly serverVersion: () => Promise<ApiResult<string>>
  /** How far the server's clock is ahead of ours, milliseconds; right to about a second. */
  readonly clockAhead: () => Promise<ApiResult<number>>
  /** Says as which version the server stores a type (`storageVersionHash` of discovery). Empty where it does not say, absent where it does not serve it. */
  readonly storageHash: (type: Resource) => Promise<ApiResult<string | undefined>>
}

export type Sight =
  | { readonly is: 'there'; readonly object: KubeObject }
  | { readonly is: 'gone' }
  | { readonly is: 'unseen'; readonly why: string }

/** An object as the server sends it: nothing but its name can be relied on. */
export type KubeObject = {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly generation?: number
    readonly creationTimestamp?: string
    readonly deletionTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly finalizers?: readonly string[]
    readonly managedFields?: unknown
  }
  readonly spec?: unknown
  readonly status?: unknown
}

/** `meta.k8s.io/v1` Table. */
export type Table = {
  readonly columnDefinitions: readonly { readonly name: string; readonly type: string; readonly priority?: number }[]
  readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: KubeObject }[]
}

/** An API server with the person who asks, from a kubeconfig. */
export type Connection = {
  readonly api: Api
  /** Its address, for messages. */
  readonly server: string
  /** The context's namespace, where it names one. */
  readonly namespace: string | undefined
  /** The name of the kubeconfig's user. */
  readonly user: string
}
