import type { JsonObject } from '@bufbuild/protobuf'
import type { Machine } from '../../world/machine.ts'
import { ensure } from '../../world/objects.ts'
import { daemonSet, FLANNEL, KUBE_PROXY } from '../../world/population.ts'
import type { Site } from '../../world/site.ts'
import type { Draft } from '../../world/store.ts'
import { endpointOf } from './static-pods.ts'

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

/** A network and a proxy are among them where the world has Talos' own. */
export const bootstrapManifests = (site: Site, machine: Machine): readonly Manifest[] => {
  const own = (name: string): boolean => site.store.get('daemonsets.apps', 'kube-system', name) !== undefined
  const addons = [
    { id: '05-flannel', addon: FLANNEL },
    { id: '10-kube-proxy', addon: KUBE_PROXY },
  ].filter(({ addon }) => own(addon.name))
  const addonOf = (id: string): readonly Manifest[] =>
    addons.filter(one => one.id === id).map(({ addon }) => ({ id, objects: [daemonSet(site, addon) as unknown as JsonObject] }))
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
    ...addonOf('05-flannel'),
    ...addonOf('10-kube-proxy'),
    {
      id: '11-kube-config-in-cluster',
      objects: [
        {
          apiVersion: 'v1',
          data: { kubeconfig: kubeconfig(endpointOf(machine)) },
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
  return { ...rest, data: Object.fromEntries(texts.map(([key, text]) => [key, Buffer.from(text).toString('base64')])) }
}

/** Brings them into the cluster; what is there already stays as it is. */
export const applyManifests = (site: Site): void => {
  const machine = site.machines.find(one => one.role === 'controlplane' && one.config !== '')
  if (!machine) return
  for (const { objects } of bootstrapManifests(site, machine))
    for (const object of objects) ensure(site.store, SHELVES[object['kind'] as string]!, asStored(object) as unknown as Draft)
}
