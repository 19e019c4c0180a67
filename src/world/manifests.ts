import type { ManifestChange } from '../ports/control-plane.ts'
import { same } from './json.ts'
import { kubernetesConfigOf } from './kubernetes-config.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { CNI, endpointOf, readScalar } from './machine-config.ts'
import { ensure } from './objects.ts'
import { daemonSet, FLANNEL, KUBE_PROXY } from './population.ts'
import { asciiBytes, encodeBase64 } from './ports/base64.ts'
import { isAtLeast } from './releases.ts'
import type { Site } from './site.ts'
import type { Draft, KubeObject } from './store.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** Objects that Talos brings into the cluster once, under one name. */
export type Manifest = { readonly id: string; readonly objects: readonly JsonObject[] }

const RBAC = 'rbac.authorization.k8s.io'
const group = (name: string): JsonObject => ({ apiGroup: RBAC, kind: 'Group', name })
const binding = (metadata: JsonObject, role: string, ...groups: readonly string[]): JsonObject => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'ClusterRoleBinding',
  metadata,
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
  subjects: groups.map(group),
})

const DEFAULTS = { 'kubernetes.io/bootstrapping': 'rbac-defaults' }
const NODES = 'system:talos-nodes'
const BOOTSTRAPPERS = 'system:bootstrappers:nodes'

/** The configurations of the simulated machines carry none: it follows from the cluster's id, which is as random. */
export const bootstrapToken = (site: Site): { readonly id: string; readonly secret: string } => {
  const letters = site.clusterID.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  return { id: letters.slice(0, 6), secret: letters.slice(6, 22) }
}

const tokenSecret = (site: Site): JsonObject => {
  const { id, secret } = bootstrapToken(site)
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
    stringData: {
      'auth-extra-groups': BOOTSTRAPPERS,
      'token-id': id,
      'token-secret': secret,
      'usage-bootstrap-authentication': 'true',
    },
    type: 'bootstrap.kubernetes.io/token',
  }
}

const kubeconfig = (server: string): string => `apiVersion: v1
clusters:
- cluster:
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    server: ${server}
  name: local
contexts:
- context:
    cluster: local
    user: service-account
  name: local
current-context: local
kind: Config
users:
- name: service-account
  user:
    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
`

/** Talos' own network and a proxy are among them where this machine's configuration has them. */
export const bootstrapManifests = (site: Site, machine: Machine): readonly Manifest[] => {
  const { kubeProxy } = kubernetesConfigOf(site, machine)
  const hasFlannel = (readScalar(machine.config, CNI) ?? 'flannel') === 'flannel'
  const flannel: readonly Manifest[] = hasFlannel ? [{ id: '05-flannel', objects: [daemonSet(FLANNEL, FLANNEL.image(site))] }] : []
  const proxy: readonly Manifest[] = kubeProxy === undefined ? [] : [{ id: '10-kube-proxy', objects: [daemonSet(KUBE_PROXY, kubeProxy)] }]
  const csr = 'system:certificates.k8s.io:certificatesigningrequests'
  return [
    { id: '00-kubelet-bootstrapping-token', objects: [tokenSecret(site)] },
    {
      id: '01-csr-approver-role-binding',
      objects: [binding({ name: 'system-bootstrap-approve-node-client-csr' }, `${csr}:nodeclient`, BOOTSTRAPPERS)],
    },
    {
      id: '01-csr-node-bootstrap',
      objects: [binding({ name: 'system-bootstrap-node-bootstrapper' }, 'system:node-bootstrapper', BOOTSTRAPPERS, 'system:nodes')],
    },
    {
      id: '01-csr-renewal-role-binding',
      objects: [binding({ name: 'system-bootstrap-node-renewal' }, `${csr}:selfnodeclient`, 'system:nodes')],
    },
    ...flannel,
    ...proxy,
    {
      id: '11-kube-config-in-cluster',
      objects: [
        {
          apiVersion: 'v1',
          data: { kubeconfig: kubeconfig(endpointOf(machine.config)) },
          kind: 'ConfigMap',
          metadata: { name: 'kubeconfig-in-cluster', namespace: 'kube-system' },
        },
      ],
    },
    {
      id: '11-talos-node-rbac-template',
      objects: [
        binding(
          { annotations: { [`rbac.authorization.kubernetes.io/autoupdate`]: 'true' }, labels: DEFAULTS, name: NODES },
          NODES,
          'system:nodes',
        ),
        {
          apiVersion: `${RBAC}/v1`,
          kind: 'ClusterRole',
          metadata: { labels: DEFAULTS, name: NODES },
          rules: [{ apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] }],
        },
      ],
    },
  ]
}

const SHELVES: Readonly<Record<string, string>> = {
  ClusterRole: `clusterroles.${RBAC}`,
  ClusterRoleBinding: `clusterrolebindings.${RBAC}`,
  ConfigMap: 'configmaps',
  DaemonSet: 'daemonsets.apps',
  Secret: 'secrets',
}

/** As the API server keeps a Secret that was sent with plain texts. */
const asStored = (object: JsonObject): JsonObject => {
  const { stringData, ...rest } = object
  if (stringData === undefined) return object
  const texts = Object.entries(stringData as Readonly<Record<string, string>>)
  return { ...rest, data: Object.fromEntries(texts.map(([key, text]) => [key, encodeBase64(asciiBytes(text))])) }
}

const shelfOf = (object: JsonObject): string => SHELVES[object['kind'] as string] ?? ''
const placeOf = (object: JsonObject): readonly [namespace: string, name: string] => {
  const { namespace = '', name = '' } = object['metadata'] as { namespace?: string; name?: string }
  return [namespace, name]
}

const INVENTORY = { namespace: 'kube-system', name: 'talos-bootstrap-manifests-inventory' }
const OWNER = 'config.k8s.io/owning-inventory'
const inventoryOf = (site: Site): KubeObject | undefined => site.store.get('configmaps', INVENTORY.namespace, INVENTORY.name)

const groupIn = (object: JsonObject): string => {
  const [group = '', version] = String(object['apiVersion']).split('/')
  return version === undefined ? '' : group
}
const keyOf = (object: JsonObject): string => {
  const [namespace, name] = placeOf(object)
  return [namespace, name.replaceAll(':', '__'), groupIn(object), object['kind']].join('_')
}

/** As Talos sends it: since 1.13 it says in which inventory it is. */
const asSent = (site: Site, object: JsonObject): JsonObject => {
  if (!inventoryOf(site)) return object
  const { annotations = {}, ...metadata } = object['metadata'] as { annotations?: JsonObject }
  return { ...object, metadata: { ...metadata, annotations: { ...annotations, [OWNER]: INVENTORY.name } } }
}

const enter = (site: Site, change: Readonly<Record<string, string | undefined>>): void => {
  const inventory = inventoryOf(site)
  if (!inventory) return
  const data = Object.entries({ ...(inventory['data'] as JsonObject), ...change }).filter(([, value]) => value !== undefined)
  site.store.update('configmaps', { ...inventory, data: Object.fromEntries(data) } as KubeObject)
}

/** Brings them into the cluster; what is there already stays as it is. */
export const installManifests = (site: Site): void => {
  const machine = site.machines.find(one => one.role === 'controlplane' && one.config !== '')
  if (!machine) return
  if (isAtLeast(versionOf(machine), 1, 13))
    ensure(site.store, 'configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: INVENTORY, data: {} } as unknown as Draft)
  for (const { objects } of bootstrapManifests(site, machine))
    for (const object of objects) {
      const sent = asStored(asSent(site, object))
      ensure(site.store, shelfOf(object), sent as unknown as Draft)
      // Daemons were there before, and yet are Talos' own.
      const live = site.store.get(shelfOf(object), ...placeOf(object))
      if (live) site.store.update(shelfOf(object), { ...live, metadata: laidOver(live.metadata, sent['metadata']) } as KubeObject)
      enter(site, { [keyOf(object)]: '' })
    }
}

const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value)

/** What a manifest says, laid over what is there. Lists are taken whole: the manifests of the world have the only items of theirs. */
const laidOver = (live: unknown, wanted: unknown): unknown => {
  if (!isObject(wanted)) return wanted
  const below = isObject(live) ? live : {}
  return { ...below, ...Object.fromEntries(Object.entries(wanted).map(([key, value]) => [key, laidOver(below[key], value)])) }
}

const titleOf = (object: JsonObject): string => {
  const [namespace, name] = placeOf(object)
  return `${String(object['kind'])} ${namespace === '' ? '' : `${namespace}/`}${name}`
}

const fieldsOf = (before: unknown, after: unknown, path: string): readonly string[] => {
  if (isObject(before) && isObject(after))
    return Object.keys(after).flatMap(key => fieldsOf(before[key], after[key], path === '' ? key : `${path}.${key}`))
  return same(before, after) ? [] : [path]
}

/** What applying it would do, as the dry run of an API server tells. */
const compareManifest = (site: Site, object: JsonObject): ManifestChange => {
  const name = titleOf(object)
  const refused = site.faults.refusedManifests.get(name)
  if (refused !== undefined) return { name, would: 'refused', detail: refused }
  const live = site.store.get(shelfOf(object), ...placeOf(object))
  if (!live) return { name, would: 'create', detail: '' }
  const fields = fieldsOf(live, laidOver(live, asStored(asSent(site, object))), '')
  return fields.length === 0 ? { name, would: 'same', detail: '' } : { name, would: 'change', detail: fields.join(', ') }
}

/** Why it was refused; undefined where it was not. */
export const applyManifest = (site: Site, object: JsonObject): string | undefined => {
  const change = compareManifest(site, object)
  const live = site.store.get(shelfOf(object), ...placeOf(object))
  if (change.would === 'refused') return change.detail
  enter(site, { [keyOf(object)]: '' })
  if (change.would === 'same') return undefined
  const wanted = asStored(asSent(site, object))
  if (live) site.store.update(shelfOf(object), laidOver(live, wanted) as KubeObject)
  else site.store.create(shelfOf(object), wanted as unknown as Draft)
  site.journal.write('', 'manifest', change.name)
  return undefined
}

/** What is in the inventory and lives, but is none of the manifests. */
const leftovers = (site: Site, objects: readonly JsonObject[]): readonly { readonly key: string; readonly live: KubeObject }[] => {
  const keys = Object.keys((inventoryOf(site)?.['data'] as JsonObject | undefined) ?? {})
  return keys.flatMap(key => {
    // The group of the core is empty, and a name may have a colon, which is written as two of them, too.
    const [, namespace = '', name = '', kind = ''] = /^([^_]*)_(.*)_[^_]*_([^_]+)$/.exec(key) ?? []
    const live = site.store.get(SHELVES[kind] ?? '', namespace, name.replaceAll('__', ':'))
    return live && !objects.some(object => keyOf(object) === key) ? [{ key, live }] : []
  })
}

/** What applying these would do, and what is left over of others. */
export const compareManifests = (site: Site, objects: readonly JsonObject[]): readonly ManifestChange[] => [
  ...objects.map(object => compareManifest(site, object)),
  ...leftovers(site, objects).map(({ live }): ManifestChange => {
    const owner = live.metadata.annotations?.[OWNER] ?? INVENTORY.name
    return owner === INVENTORY.name
      ? { name: titleOf(live), would: 'leftover', detail: '' }
      : { name: titleOf(live), would: 'kept', detail: `it belongs to the inventory ${owner}` }
  }),
]

export const pruneManifests = (site: Site, objects: readonly JsonObject[], names: readonly string[]): void => {
  for (const { key, live } of leftovers(site, objects)) {
    if (!names.includes(titleOf(live))) continue
    site.store.remove(shelfOf(live), ...placeOf(live))
    enter(site, { [key]: undefined })
    site.journal.write('', 'manifest-pruned', titleOf(live))
  }
}
