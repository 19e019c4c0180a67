import type { ManifestChange } from '../ports/control-plane.ts'
import { same } from './json.ts'
import { kubernetesConfigOf } from './kubernetes-config.ts'
import type { Machine } from './machine.ts'
import { endpointOf } from './machine-config.ts'
import { ensure } from './objects.ts'
import { daemonSet, FLANNEL, KUBE_PROXY } from './population.ts'
import { asciiBytes, encodeBase64 } from './ports/base64.ts'
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

/** A network is among them where the world has Talos' own, and a proxy where this machine's configuration has one. */
export const bootstrapManifests = (site: Site, machine: Machine): readonly Manifest[] => {
  const { kubeProxy } = kubernetesConfigOf(site, machine)
  const hasFlannel = site.store.get('daemonsets.apps', 'kube-system', FLANNEL.name) !== undefined
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

/** Brings them into the cluster; what is there already stays as it is. */
export const installManifests = (site: Site): void => {
  const machine = site.machines.find(one => one.role === 'controlplane' && one.config !== '')
  if (!machine) return
  for (const { objects } of bootstrapManifests(site, machine))
    for (const object of objects) ensure(site.store, shelfOf(object), asStored(object) as unknown as Draft)
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
export const compareManifest = (site: Site, object: JsonObject): ManifestChange => {
  const name = titleOf(object)
  const refused = site.faults.refusedManifests.get(name)
  if (refused !== undefined) return { name, would: 'refused', detail: refused }
  const live = site.store.get(shelfOf(object), ...placeOf(object))
  if (!live) return { name, would: 'create', detail: '' }
  const fields = fieldsOf(live, laidOver(live, asStored(object)), '')
  return fields.length === 0 ? { name, would: 'same', detail: '' } : { name, would: 'change', detail: fields.join(', ') }
}

/** Why it was refused; undefined where it was not. */
export const applyManifest = (site: Site, object: JsonObject): string | undefined => {
  const change = compareManifest(site, object)
  const live = site.store.get(shelfOf(object), ...placeOf(object))
  if (change.would === 'refused') return change.detail
  if (change.would === 'same') return undefined
  if (live) site.store.update(shelfOf(object), laidOver(live, asStored(object)) as KubeObject)
  else site.store.create(shelfOf(object), asStored(object) as unknown as Draft)
  site.journal.write('', 'manifest', change.name)
  return undefined
}
