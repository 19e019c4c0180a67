import type { StartRight } from '../api/start-rights.ts'
import { controllerObjects, type Settings, talosAccess } from './controller.ts'
import { LABELS, type KubeObject } from './object.ts'
import { policies } from './policies.ts'
import { CONTROLLER_ACCOUNT, controllerRoles, peoplesRoles, userOf } from './roles.ts'

/** What is installed where, besides the CRDs. */
export type Installation = {
  /** The namespace of the controller. */
  readonly namespace: string
  /** How it runs; or, where somebody runs it themselves, as which user of the API server. */
  readonly controller: Omit<Settings, 'namespace'> | { readonly user: string }
  /** Look after TalosClusters in all namespaces, and not only in the controller's own. */
  readonly allNamespaces: boolean
  readonly policies: boolean
  /** A TalosCluster of this name for the cluster itself, with a talosconfig from Talos. Absent: none. */
  readonly talosCluster?: string
}

/** Says on every object who wrote it, and which installation it is of, so that another one is told from it. */
export const MANAGED_BY = 'app.kubernetes.io/managed-by'
export const INSTANCE = 'app.kubernetes.io/instance'

/** All objects in the order in which they are written: nobody may act before the policies hold. */
export const installation = (rights: readonly StartRight[], wanted: Installation): readonly KubeObject[] => {
  const { namespace, controller, allNamespaces, talosCluster } = wanted
  const account = { name: CONTROLLER_ACCOUNT, namespace }
  const isElsewhere = 'user' in controller
  return [
    ...peoplesRoles(rights.map(right => right.subresource)),
    ...(wanted.policies ? policies(rights, isElsewhere ? controller.user : userOf(account)) : []),
    ...(isElsewhere
      ? []
      : [
          ...controllerRoles(account, { allNamespaces }),
          ...controllerObjects(account, { ...controller, namespace: allNamespaces ? '' : namespace }),
        ]),
    ...(talosCluster === undefined ? [] : talosAccess(talosCluster, namespace)),
  ]
}

/** The same with the marks of who wrote them. */
export const marked = (
  objects: readonly KubeObject[],
  by: { readonly manager: string; readonly instance: string },
): readonly KubeObject[] =>
  objects.map(object => ({
    ...object,
    metadata: { ...object.metadata, labels: { ...object.metadata.labels, [MANAGED_BY]: by.manager, [INSTANCE]: by.instance } },
  }))

/** Whether an object is one of ours at all, and not a namesake. */
export const isOurs = (labels: Readonly<Record<string, string>> | undefined): boolean =>
  labels?.['app.kubernetes.io/part-of'] === LABELS['app.kubernetes.io/part-of']

const PLURALS: Readonly<Record<string, string>> = {
  NetworkPolicy: 'networkpolicies',
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
}

/** The type of an object, as its path names it. */
export const typeOf = ({ apiVersion, kind }: Pick<KubeObject, 'apiVersion' | 'kind'>) => {
  const slash = apiVersion.lastIndexOf('/')
  return {
    group: apiVersion.slice(0, Math.max(0, slash)),
    version: apiVersion.slice(slash + 1),
    plural: PLURALS[kind] ?? `${kind.toLowerCase()}s`,
    kind,
  }
}
